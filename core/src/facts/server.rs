//! What a Valkey server says of itself.

use serde::{Deserialize, Serialize};

use super::{Known, OVERFLOW, Offset, Ordinal, PodUid, Replid, RunId, Tick};

/// Port on which a server can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Port {
    /// The fence port: only the operator knows it, no client and no replica can reach the data. A server that began
    /// [`unfenced`](ServerFacts::unfenced) counts as behind the fence until it was admitted: clients reach it, and replicas that
    /// were admitted get nothing from it.
    Fence,
    /// The client port.
    Client,
}

/// Where a replica gets its data from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Upstream {
    /// The address of nobody (`127.0.0.1 1`), with which every data pod of Replication boots.
    Nobody,
    /// The present address of this pod, or its name in DNS.
    Pod(Ordinal),
    /// Some other address: an earlier pod's, or one that a person typed.
    Other,
}

/// State of a replica's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Link {
    /// `master_link_status:up`. Not yet a sign of being in sync.
    Up,
    /// Down for this many seconds (`master_link_down_since_seconds`).
    Down {
        /// Seconds.
        seconds: u32,
    },
    /// Never up since this process started (`master_link_down_since_seconds:-1`).
    Never,
}

/// Role of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Takes writes (when its client port is open).
    Primary,
    /// Copies from `upstream`.
    Replica {
        /// Where from.
        upstream: Upstream,
        /// State of the link.
        link: Link,
        /// Whether a full synchronisation is under way (`master_sync_in_progress`).
        syncing: bool,
    },
}

/// How the directives of a server that it takes while it runs stand to what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Directives {
    /// This operator process has not set them since the server's process started: it has what its file said.
    Unset,
    /// This operator process set them before they were changed.
    Due,
    /// Set.
    Set,
    /// The server refused them; none of them was changed (`config.c: configSetCommand` takes all or none).
    Refused,
}

/// One answer of a server: `INFO` of sections server, replication, persistence and keyspace, from one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The pod whose address answered.
    pub pod_uid: PodUid,
    /// Identity of the process.
    pub run: RunId,
    /// When this process answered first. Whatever process the pod had before is dead since then.
    pub run_since: Tick,
    /// Port that it answered on.
    pub port: Port,
    /// Role.
    pub role: Role,
    /// `master_replid`.
    pub replid: Replid,
    /// `master_replid2`, unless it is all zeroes.
    pub replid2: Option<Replid>,
    /// How far its data is of `replid2`: the offset before `second_repl_offset`; 0 without one.
    pub replid2_until: Offset,
    /// `master_repl_offset` of a primary, `slave_repl_offset` of a replica.
    pub offset: Offset,
    /// Whether it is loading its data set (`loading:1`, `async_loading:1`, or the reply `-LOADING`).
    pub loading: bool,
    /// Number of keys in all databases (`INFO keyspace`), saturating.
    pub keys: u32,
    /// Seconds since the process started (`uptime_in_seconds`), saturating.
    pub uptime: u32,
    /// Whether it takes writes, as a primary, only while a replica acknowledges: `min-replicas-to-write` and
    /// `min-replicas-max-lag` are above 0. Without an acknowledgement it stops by itself ([`super::SpecFacts::replica_lag`]).
    pub needs_replica: bool,
    /// Whether a replica of it is online and acknowledged lately, by its own word.
    pub has_replica: bool,
    /// Its directives.
    pub directives: Directives,
    /// Whether it writes its append-only file anew after it was copied in full. Until this is done the file is that of before
    /// the copy: a process that is killed meanwhile has the older data again (8.0.1, measured).
    pub rewriting: bool,
    /// The first number of its version (`valkey_version`); 0 if it gives none.
    pub major: u8,
    /// Whether its process began with its client port open: the template of another operator made its pod.
    pub unfenced: bool,
    /// Whether an unfenced server has users that this operator's template would not bring back.
    pub other_users: bool,
}

impl ServerFacts {
    /// Whether this replica holds a copy that was complete once and has followed since: it is not loading, no full
    /// synchronisation is under way and its offset is known. Offset 0 with a link up was seen to hold none of 1000 keys
    /// for 0.94 s (8.0.1, measured); offset 1 stands for none (`replication.c: genValkeyInfoString`).
    ///
    /// A primary that was demoted has never had a link in that role (`master_link_down_since_seconds:-1`, measured) and
    /// holds all that it wrote. It is told from a server that just started by its client port, which is open.
    pub const fn is_synced_replica(&self) -> bool {
        match self.role {
            Role::Replica { link, syncing, .. } => {
                let followed = !matches!(link, Link::Never) || matches!(self.port, Port::Client);
                !syncing && !self.loading && self.offset.0 > 1 && followed
            }
            Role::Primary => false,
        }
    }

    /// Whether it holds all that `other` does: offsets are of one history.
    pub const fn holds_all_of(&self, other: &Self) -> bool {
        let same = self.replid.0 == other.replid.0 && self.replid.0 != OVERFLOW;
        same && !self.loading && self.offset.0 >= other.offset.0
    }

    /// Whether some server feeds it: one whose client port is open, since nobody is fed by a server behind the fence.
    pub const fn is_fed(&self) -> bool {
        matches!(self.role, Role::Replica { link: Link::Up, .. })
    }

    /// Whether it has a link to the present pod of this ordinal.
    pub const fn is_linked_to(&self, primary: Ordinal) -> bool {
        match self.role {
            Role::Replica {
                upstream: Upstream::Pod(of),
                link: Link::Up,
                ..
            } => of.0 == primary.0,
            _ => false,
        }
    }

    /// Whether this is a synced replica of `primary` with its link up.
    pub const fn follows(&self, primary: Ordinal) -> bool {
        match self.role {
            Role::Replica {
                upstream: Upstream::Pod(of),
                link: Link::Up,
                ..
            } => of.0 == primary.0 && self.is_synced_replica(),
            _ => false,
        }
    }

    /// Whether clients reach it.
    pub const fn is_reached_by_clients(&self) -> bool {
        self.unfenced || matches!(self.port, Port::Client)
    }

    /// Whether it takes writes of clients.
    pub const fn serves_writes(&self) -> bool {
        matches!(self.role, Role::Primary) && matches!(self.port, Port::Client) && !self.loading
    }
}

/// What became of the operator's kept connection to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kept {
    /// There was none yet.
    Never,
    /// It is there.
    Up,
    /// The other side closed or reset it.
    Closed {
        /// When.
        at: Tick,
    },
    /// A command got no answer in time; this side closed it.
    TimedOut {
        /// When.
        at: Tick,
    },
}

/// Outcome of the newest attempt to connect anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fresh {
    /// Not tried since the last success.
    NotTried,
    /// Refused (or no route to the address) on the client port and on the fence port.
    Refused {
        /// When.
        at: Tick,
    },
    /// No answer in time.
    TimedOut {
        /// When.
        at: Tick,
    },
}

/// What the network says of one pod's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reachability {
    /// The pod whose address is meant.
    pub pod_uid: PodUid,
    /// The kept connection.
    pub kept: Kept,
    /// The newest attempt to connect.
    pub fresh: Fresh,
}

/// The server of a pod whose object was replaced or is gone. Its process may live on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Former {
    /// Its address.
    pub reach: Reachability,
    /// What it said.
    pub server: Known<ServerFacts>,
}
