//! A data set with the history that it is a part of.

use wellcake_core::facts::{Offset, Replid};

/// A write of a client, by its number.
pub type Write = u16;

/// Bytes that one write adds to the replication stream.
pub const WRITE_BYTES: u64 = 10;
/// Bytes of a PING in the replication stream.
const PING_BYTES: u64 = 14;
/// Size of the replication backlog.
const BACKLOG: u64 = 400;

/// What a server holds: the writes in order, and where it stands in which history.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Data {
    /// Writes in order.
    pub log: Vec<Write>,
    /// `master_replid`.
    pub replid: Replid,
    /// `master_replid2` with `second_repl_offset`.
    pub before: Option<(Replid, u64)>,
    /// Position in the stream; `None` when there is none to continue from (an append-only file has no lineage).
    pub position: Option<u64>,
    /// Position from which it keeps the stream for others (`repl_backlog_first_byte_offset`), if it does: a server does from
    /// its first link on, a primary from the first replica that comes. One that has just started keeps none, even where its
    /// snapshot tells its position.
    pub backlog: Option<u64>,
    /// Whether a replica has no position to continue from although it knows its own: its link ended in a pause.
    pub lost: bool,
}

impl Data {
    /// Nothing, in a history of its own.
    pub const fn empty(replid: Replid) -> Self {
        Self {
            log: Vec::new(),
            replid,
            before: None,
            position: None,
            backlog: None,
            lost: false,
        }
    }

    /// What an append-only file restores: every write, without lineage.
    pub fn without_lineage(&self, replid: Replid) -> Self {
        Self {
            log: self.log.clone(),
            ..Self::empty(replid)
        }
    }

    /// What a snapshot keeps. A primary that keeps no backlog saves no position (`rdb.c: rdbPopulateSaveInfo`).
    pub fn saved(&self, primary: bool) -> Self {
        let lineage = match primary {
            true => self.backlog.is_some(),
            false => !self.lost,
        };
        Self {
            before: None,
            position: self.position.filter(|_| lineage),
            backlog: None,
            lost: false,
            ..self.clone()
        }
    }

    /// What a snapshot restores at the start of a replica (`server.c: loadDataFromDisk`).
    pub fn restored(&self, replid: Replid) -> Self {
        match self.position {
            Some(_) => self.clone(),
            None => self.without_lineage(replid),
        }
    }

    /// Offset as `INFO` shows it: 1 for a replica that has no position (`replication.c: genValkeyInfoString`).
    pub fn offset(&self, primary: bool) -> Offset {
        let position = self.position.filter(|_| primary || !self.lost);
        Offset(position.unwrap_or(if primary { 0 } else { 1 }))
    }

    /// Adds a write. Without a backlog it is in no stream; with an append-only file the offset counts it all the same
    /// (`replication.c: replicationFeedReplicas`).
    pub fn write(&mut self, write: Write, aof: bool) {
        self.log.push(write);
        let bytes = match self.backlog {
            Some(_) => WRITE_BYTES,
            None if aof => 1,
            None => return,
        };
        self.position = Some(self.position.unwrap_or(0) + bytes);
    }

    /// Adds a PING.
    pub fn ping(&mut self) {
        self.position = Some(self.position.unwrap_or(0) + PING_BYTES);
    }

    /// `REPLICAOF NO ONE`: a new history that continues the old one (`replication.c: shiftReplicationId`).
    pub fn promote(&mut self, replid: Replid) {
        self.before = Some((self.replid, self.position.unwrap_or(0)));
        self.replid = replid;
        self.lost = false;
    }

    /// A primary becomes a replica: it could continue from where it is, if that is 0 (`replication.c:
    /// replicationCachePrimaryUsingMyself`).
    pub fn demote(&mut self) {
        self.position = Some(self.position.unwrap_or(0));
    }

    /// A first replica asks for a copy: a primary that kept no backlog begins one, in a new history that continues none
    /// (`replication.c: syncCommand`).
    pub fn begin_backlog(&mut self, replid: Replid) {
        if self.backlog.is_none() {
            let position = self.position.unwrap_or(0);
            self.replid = replid;
            self.before = None;
            self.position = Some(position);
            self.backlog = Some(position);
        }
    }

    /// Whether a replica that is linked to this server gets the stream of what it holds, and no end of its link before: a
    /// server whose history changes ends the links of its replicas (`replication.c: disconnectReplicas`).
    pub fn streams_to(&self, replica: &Self) -> bool {
        self.replid == replica.replid && replica.position <= self.position
    }

    /// Whether `replica` may continue from this server's backlog (`replication.c: primaryTryPartialResynchronization`).
    pub fn can_continue(&self, replica: &Self) -> bool {
        let (Some(end), Some(at), Some(first)) = (self.position, replica.position, self.backlog)
        else {
            return false;
        };
        let same = replica.replid == self.replid
            || self
                .before
                .is_some_and(|(replid, until)| replica.replid == replid && at <= until);
        same && !replica.lost && first <= at && at <= end && end - at <= BACKLOG
    }

    /// Gets the stream of `source` up to where that is. A replica keeps its own position as the end of what it shares with the
    /// history before (`replication.c: replicaTryPartialResynchronization`).
    pub fn continue_from(&mut self, source: &Self) {
        if self.replid != source.replid {
            self.before = Some((self.replid, self.position.unwrap_or(0)));
            self.replid = source.replid;
        }
        self.backlog = self.backlog.or(self.position);
        self.log.clone_from(&source.log);
        self.position = source.position;
    }

    /// Takes from `data`, which continues this, all but what is new from the first write on: a replica applies no writes of the
    /// stream during a pause (measured).
    pub fn take_all_but_writes(&mut self, data: &Self) {
        let (log, position) = (self.log.clone(), self.position);
        *self = data.clone();
        if self.log != log {
            self.log = log;
            self.position = position;
        }
    }

    /// Whether PINGs may be the first of what `other` lacks of this.
    pub fn holds_ping_for(&self, other: &Self) -> bool {
        let writes = self.log.len().saturating_sub(other.log.len()) as u64;
        let position = |data: &Self| data.position.unwrap_or(0);
        self.replid == other.replid
            && position(self) >= position(other) + PING_BYTES + writes * WRITE_BYTES
    }

    /// Becomes a full copy of `source`, which knows of no history before (`replication.c: readSyncBulkPayload`).
    pub fn copy_of(source: &Self) -> Self {
        Self {
            before: None,
            backlog: source.position,
            lost: false,
            ..source.clone()
        }
    }

    /// Whether the two are known to be parts of one history: by the same id, or by the id that one of them continued.
    pub fn is_comparable(&self, other: &Self) -> bool {
        let continues = |a: &Self, b: &Self| a.before.is_some_and(|(replid, _)| replid == b.replid);
        self.replid == other.replid || continues(self, other) || continues(other, self)
    }

    /// Whether it holds a write.
    pub fn holds(&self, write: Write) -> bool {
        self.log.contains(&write)
    }
}
