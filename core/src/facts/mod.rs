//! Facts: all that a decision may depend on.
//!
//! Facts are small, copied by value and free of strings; the edge parses and interns (see [`Interner`]).

mod cluster;
mod ids;
mod known;
mod objects;
mod pod;
mod server;
mod time;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub use cluster::{Persistence, PromoteOrder, Record, Served, SpecFacts, Unserved};
pub use ids::{ClaimUid, Epoch, Interner, OVERFLOW, Offset, Ordinal, PodUid, Replid, RunId};
pub use known::{Known, Stamped};
pub use objects::{Object, ObjectFacts, ObjectState, PasswordSource};
pub use pod::{ClaimFacts, Container, PodFacts, PodObject, RoleLabel};
pub use server::{Fresh, Kept, Link, Port, Reachability, Role, ServerFacts, Upstream};
pub use time::{Millis, Tick};

/// One look at a cluster: everything but the spec and the clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Observation {
    /// The primary record in the status.
    pub record: Option<Record>,
    /// Since when the recorded primary has not served, by the marker in the status; only of the present record.
    pub primary_down_since: Option<Tick>,
    /// The offset that the recorded primary had when it answered last, of the process that was promoted.
    pub primary_offset: Option<Offset>,
    /// Objects.
    pub objects: ObjectFacts,
    /// Pods by ordinal: at least as many as the spec asks for, more while some wait to go.
    pub pods: SmallVec<[PodFacts; 8]>,
    /// The address of the recorded primary's pod after that pod was replaced or is gone.
    pub former_primary: Option<Reachability>,
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

    /// Pods that may hold data of the cluster: those that the spec asks for, and others that are (or may be) there, since
    /// a smaller `spec.replicas` does not take pods away at once.
    pub fn members(&self, spec: &SpecFacts) -> impl Iterator<Item = (Ordinal, &PodFacts)> {
        let asked = spec.pods;
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

/// Hints: in-memory helpers that may vanish at any time without harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hints {
    /// When an effect of the provisioning lane failed last.
    pub failed_at: Option<Tick>,
    /// How often in a row.
    pub failures: u8,
}
