//! What the ValkeyCluster asks for and what its status remembers, without strings.

use serde::{Deserialize, Serialize};
use wellcake_crds::v1beta1::{Profile, Topology};

use super::{ClaimUid, Epoch, Ordinal, PodUid, Replid};

/// Fields that a user can set and that are not served: each creates nothing and is named in a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Unserved {
    /// `spec.topology: Sentinel`.
    Sentinel,
    /// `spec.topology: Cluster`.
    Cluster,
    /// `spec.tls.enabled`.
    Tls,
    /// `spec.metrics.enabled`.
    Metrics,
    /// `spec.networkPolicy.enabled`.
    NetworkPolicy,
    /// `spec.backup.enabled`.
    Backup,
    /// `spec.restoreFrom`.
    RestoreFrom,
    /// `spec.replicateFrom`.
    ReplicateFrom,
}

impl Unserved {
    /// Where the user wrote it.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Sentinel => "spec.topology: Sentinel",
            Self::Cluster => "spec.topology: Cluster",
            Self::Tls => "spec.tls.enabled",
            Self::Metrics => "spec.metrics.enabled",
            Self::NetworkPolicy => "spec.networkPolicy.enabled",
            Self::Backup => "spec.backup.enabled",
            Self::RestoreFrom => "spec.restoreFrom",
            Self::ReplicateFrom => "spec.replicateFrom",
        }
    }
}

/// How data survives a process or a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Persistence {
    /// Append-only file.
    pub aof: bool,
    /// Snapshots.
    pub rdb: bool,
    /// Whether pods have claims; else their volume goes with the pod.
    pub claims: bool,
    /// Whether a server that is stopped in order leaves all of its data on its volume: an append-only file, or a snapshot,
    /// which a server makes at its end only if it has any save points (`server.c: finishShutdown`).
    pub saves_at_end: bool,
}

impl Persistence {
    /// Whether a server that restarts in place may find its data again.
    pub const fn survives_restart(self) -> bool {
        self.aof || self.rdb
    }

    /// Whether a pod that is replaced in order finds all of its data again.
    pub const fn survives_replacement(self) -> bool {
        self.claims && self.saves_at_end
    }
}

/// A person's word that a pod shall lead: annotation `valkey.wellcake.io/promote`, not yet served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PromoteOrder {
    /// The pod.
    pub pod: Ordinal,
    /// The epoch of the primary record that the person looked at (0 when there was none).
    pub epoch: Epoch,
}

/// A person's wish for another primary: annotation `valkey.wellcake.io/failover`, not yet served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// Whichever replica is fit.
    Any,
    /// The pod that `valkey.wellcake.io/failover-target` names.
    Pod(Ordinal),
    /// That annotation names no data pod of this cluster.
    Unknown,
}

/// What the spec asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpecFacts {
    /// `metadata.generation`.
    pub generation: i64,
    /// Topology.
    pub topology: Topology,
    /// Profile.
    pub profile: Profile,
    /// Data pods.
    pub pods: u8,
    /// Persistence.
    pub persistence: Persistence,
    /// Whether the operator sets `min-replicas-to-write`: profile Durable, and `spec.config` does not set it.
    pub needs_replica: bool,
    /// `min-replicas-max-lag` in seconds: how long a server with `min-replicas-to-write` takes writes after the last
    /// acknowledgement of a replica.
    pub replica_lag: u32,
    /// The first number of the version that the tag of `spec.image` gives, if it does.
    pub image_major: Option<u8>,
    /// The first field that is not served, if any.
    pub unserved: Option<Unserved>,
    /// An order to promote.
    pub promote: Option<PromoteOrder>,
    /// A planned failover that is asked for.
    pub failover: Option<Target>,
    /// The annotation `valkey.wellcake.io/hibernate` is `true`: no pods, and the volumes kept.
    pub hibernate: bool,
    /// The annotation `valkey.wellcake.io/adopt` is `true`: the operator that made the objects is gone.
    pub adopt: bool,
    /// The object has the finalizer of that operator.
    pub foreign_finalizer: bool,
    /// An annotation asks for a new password (`valkey.wellcake.io/rotate-password`) that was not served.
    pub rotation_asked: bool,
    /// The object has a deletion timestamp.
    pub deleting: bool,
}

/// The primary record: who holds the truth. Kept in `status.primaryRecord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Number of the promotion.
    pub epoch: Epoch,
    /// The pod.
    pub pod: Ordinal,
    /// Its uid.
    pub pod_uid: PodUid,
    /// Its claim.
    pub claim_uid: Option<ClaimUid>,
    /// The history that its promotion began, once that was seen. It is recorded before clients are led to the pod.
    pub replid: Option<Replid>,
    /// The history of the data with which it was chosen.
    pub continues: Option<Replid>,
    /// Until the promotion is seen through: the last primary that clients were led to.
    pub served: Option<Served>,
    /// Whether that primary was alive when this promotion was recorded, so that it hands over or its end must be proven.
    pub planned: bool,
}

/// A primary that clients were led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Served {
    /// The pod.
    pub pod: Ordinal,
    /// Its uid.
    pub pod_uid: PodUid,
    /// Its claim.
    pub claim_uid: Option<ClaimUid>,
    /// What it wrote.
    pub replid: Option<Replid>,
}

impl Record {
    /// The recorded pod and what it writes.
    pub const fn own(&self) -> Served {
        Served {
            pod: self.pod,
            pod_uid: self.pod_uid,
            claim_uid: self.claim_uid,
            replid: self.replid,
        }
    }

    /// How many pods there are at least, by the ordinals that it names.
    pub fn pods(&self) -> u8 {
        let before = self.served.map_or(0, |served| served.pod.0);
        self.pod.0.max(before).saturating_add(1)
    }

    /// The primary that is to hand over to the recorded pod and was not seen to have done it.
    pub fn hands_over(&self) -> Option<Served> {
        self.served
            .filter(|_| self.planned && self.replid.is_none())
    }

    /// Who wrote what may not be lost: the recorded pod, or until its promotion is seen through the one before.
    pub fn truth(&self) -> Served {
        match (self.replid, self.served) {
            (None, Some(served)) => served,
            _ => self.own(),
        }
    }
}
