//! Facts: all that a decision may depend on.
//!
//! Facts are small, copied by value and free of strings; the edge parses and interns (see [`Interner`]).

mod cluster;
mod ids;
mod known;
mod objects;
mod pod;
mod server;
mod settled;
mod time;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::limits;

pub use cluster::{Persistence, PromoteOrder, Record, Served, SpecFacts, Target, Unserved};
pub use ids::{ClaimUid, Epoch, Interner, OVERFLOW, Offset, Ordinal, PodUid, Replid, RunId};
pub use known::{Known, Stamped};
pub use objects::{Object, ObjectFacts, ObjectState, PasswordSource};
pub use pod::{
    ClaimFacts, Container, Login, PodFacts, PodObject, Revision, RoleLabel, Trouble, Volume,
};
pub use server::{
    Directives, Former, Fresh, Kept, Link, Port, Reachability, Role, ServerFacts, Upstream,
};
pub use time::{Millis, Tick};

/// One look at a cluster: everything but the spec and the clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Observation {
    /// The primary record in the status.
    pub record: Option<Record>,
    /// The newest record that a claim of this cluster keeps a copy of. It outlives the ValkeyCluster.
    pub kept_record: Option<Record>,
    /// Since when the recorded primary has not served, by the marker in the status; only of the present record.
    pub primary_down_since: Option<Tick>,
    /// The offset that the last primary that served ([`Record::truth`]) had when it answered last as one.
    pub primary_offset: Option<Offset>,
    /// Objects.
    pub objects: ObjectFacts,
    /// Pods by ordinal: at least as many as the spec asks for and up to those that the record names, more while some wait to go.
    pub pods: SmallVec<[PodFacts; 8]>,
    /// Servers of the recorded primary, and of the one that is to hand over to it, after their pods were replaced or are
    /// gone.
    pub former: SmallVec<[Former; 2]>,
    /// Another operator keeps ending this one's connections, as a new leader does once to the one before.
    pub rival: bool,
}

impl Observation {
    /// The pod of an ordinal.
    pub fn pod(&self, ordinal: Ordinal) -> Option<&PodFacts> {
        self.pods.get(ordinal.index())
    }

    /// Pods with their ordinals.
    pub fn ordinals(&self) -> impl Iterator<Item = (Ordinal, &PodFacts)> {
        (0u8..).map(Ordinal).zip(self.pods.iter())
    }

    /// Pods that may hold data of the cluster: those that the spec asks for, or the StatefulSet, which a smaller `spec.replicas`
    /// reaches only when a primary serves, and others that are (or may be) there.
    pub fn members(&self, spec: &SpecFacts) -> impl Iterator<Item = (Ordinal, &PodFacts)> {
        let asked = spec.pods.max(self.objects.replicas_applied);
        self.ordinals()
            .filter(move |(ordinal, pod)| ordinal.0 < asked || !pod.object.is_absent())
    }

    /// Whether some server whose container runs was never heard of.
    pub fn awaits_first_answer(&self) -> bool {
        self.pods.iter().any(|pod| {
            let runs = pod
                .object
                .value()
                .is_some_and(|object| matches!(object.container, Container::Running { .. }));
            runs && matches!(pod.server, Known::Maybe { last: None, .. })
        })
    }

    /// What is known of the server of a pod by its uid, also if the pod object was replaced or is gone.
    pub fn known_of(&self, ordinal: Ordinal, uid: PodUid) -> Option<&Known<ServerFacts>> {
        let present = self.pod(ordinal).filter(|pod| {
            let object = pod.object.last();
            object.is_some_and(|object| object.uid == uid)
        });
        match present {
            Some(pod) => Some(&pod.server),
            None => self.former_of(uid).map(|former| &former.server),
        }
    }

    /// The server of a pod by its uid, if its answer is at most `age` old.
    pub fn server_of(
        &self,
        ordinal: Ordinal,
        uid: PodUid,
        now: Tick,
        age: Millis,
    ) -> Option<&ServerFacts> {
        self.known_of(ordinal, uid)?
            .fresh(now, age)
            .filter(|server| server.pod_uid == uid)
    }

    /// A server whose pod was replaced or is gone.
    pub fn former_of(&self, uid: PodUid) -> Option<&Former> {
        self.former
            .iter()
            .find(|former| former.reach.pod_uid == uid)
    }

    /// Whether the pod of this uid was replaced or is gone.
    pub fn is_gone(&self, ordinal: Ordinal, uid: PodUid) -> bool {
        self.pod(ordinal).is_some_and(|pod| {
            pod.object.is_absent() || pod.object.value().is_some_and(|object| object.uid != uid)
        })
    }

    /// The primary: the recorded one, or, while that is to take over from one that still takes writes, the latter.
    pub fn primary(&self, now: Tick) -> Option<Served> {
        let record = self.record?;
        let before = record.hands_over().filter(|before| {
            let is_primary = |of: &Served| {
                self.server_of(of.pod, of.pod_uid, now, limits::FACT_AGE)
                    .is_some_and(|server| server.role == Role::Primary)
            };
            is_primary(before) && !is_primary(&record.own())
        });
        Some(before.unwrap_or(record.own()))
    }

    /// Whether the server of a pod answered last when it was asked.
    pub fn answers(&self, ordinal: Ordinal) -> bool {
        self.pod(ordinal)
            .is_some_and(|pod| pod.server.value().is_some())
    }

    /// Whether a pod is there to stay and its server serves clients as it should: the recorded primary takes writes, any other
    /// follows it with a complete copy of the same history.
    pub fn is_in_sync(&self, ordinal: Ordinal, now: Tick) -> bool {
        let Some(record) = self.record else {
            return false;
        };
        let stays = self
            .pod(ordinal)
            .and_then(|pod| pod.object.value())
            .is_some_and(|object| !object.terminating);
        let Some(server) = self.server(ordinal, now, limits::DESTRUCTIVE_AGE) else {
            return false;
        };
        let serves = if ordinal == record.pod {
            server.pod_uid == record.pod_uid && server.serves_writes()
        } else {
            let same = record.replid.is_none_or(|replid| replid == server.replid);
            server.port == Port::Client && server.follows(record.pod) && same
        };
        stays && serves
    }

    /// The server of an ordinal, if its answer belongs to the present pod and is at most `age` old.
    pub fn server(&self, ordinal: Ordinal, now: Tick, age: Millis) -> Option<&ServerFacts> {
        let pod = self.pod(ordinal)?;
        let server = pod.server.fresh(now, age)?;
        match pod.object.last() {
            Some(object) if object.uid != server.pod_uid => None,
            _ => Some(server),
        }
    }
}

/// Failures in a row of one kind of effects in the provisioning lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backoff {
    /// When the last one was.
    pub at: Option<Tick>,
    /// How many there were.
    pub failures: u8,
}

impl Backoff {
    /// After another failure, or none.
    #[must_use]
    pub const fn after(self, failed: bool, now: Tick) -> Self {
        if !failed {
            return Self {
                at: None,
                failures: 0,
            };
        }
        Self {
            at: Some(now),
            failures: self.failures.saturating_add(1),
        }
    }

    /// Until when the next attempt waits, if it does: [`limits::RETRY_FIRST`] after the first failure, doubled with each to
    /// [`limits::RETRY_MAX`].
    pub fn pause(self, now: Tick) -> Option<Tick> {
        let doublings = u32::from(self.failures.saturating_sub(1)).min(16);
        let span = limits::RETRY_FIRST.0.saturating_mul(1 << doublings);
        let until = self.at?.after(Millis(span.min(limits::RETRY_MAX.0)));
        (now < until).then_some(until)
    }
}

/// Hints: in-memory helpers that may vanish at any time without harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hints {
    /// Of making objects and labels.
    pub objects: Backoff,
    /// Of taking pods away.
    pub pods: Backoff,
    /// Of growing volumes.
    pub volumes: Backoff,
    /// When a handover came to nothing last.
    pub handover_failed_at: Option<Tick>,
}
