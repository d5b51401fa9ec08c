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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    /// Writes in order.
    pub log: Vec<Write>,
    /// `master_replid`.
    pub replid: Replid,
    /// `master_replid2` with `second_repl_offset`.
    pub before: Option<(Replid, u64)>,
    /// Position in the stream; `None` when there is none to continue from (an append-only file has no lineage).
    pub position: Option<u64>,
}

impl Data {
    /// Nothing, in a history of its own.
    pub const fn empty(replid: Replid) -> Self {
        Self {
            log: Vec::new(),
            replid,
            before: None,
            position: None,
        }
    }

    /// What an append-only file restores: every write, without lineage.
    pub fn without_lineage(&self, replid: Replid) -> Self {
        Self {
            log: self.log.clone(),
            ..Self::empty(replid)
        }
    }

    /// Offset as `INFO` shows it: 1 for a replica that has no position (`replication.c: genValkeyInfoString`).
    pub fn offset(&self, primary: bool) -> Offset {
        Offset(self.position.unwrap_or(if primary { 0 } else { 1 }))
    }

    /// Adds a write.
    pub fn write(&mut self, write: Write) {
        self.log.push(write);
        self.position = Some(self.position.unwrap_or(0) + WRITE_BYTES);
    }

    /// Adds a PING.
    pub fn ping(&mut self) {
        self.position = Some(self.position.unwrap_or(0) + PING_BYTES);
    }

    /// `REPLICAOF NO ONE`: a new history that continues the old one (`replication.c: shiftReplicationId`).
    pub fn promote(&mut self, replid: Replid) {
        self.before = Some((self.replid, self.position.unwrap_or(0)));
        self.replid = replid;
        self.position = Some(self.position.unwrap_or(0));
    }

    /// Whether `replica` may continue from this server's backlog (`replication.c: primaryTryPartialResynchronization`).
    pub fn can_continue(&self, replica: &Self) -> bool {
        let (Some(end), Some(at)) = (self.position, replica.position) else {
            return false;
        };
        let same = replica.replid == self.replid
            || self
                .before
                .is_some_and(|(replid, until)| replica.replid == replid && at <= until);
        same && at <= end && end - at <= BACKLOG
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
