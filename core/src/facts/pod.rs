//! What Kubernetes says of a data pod and of its claim.

use serde::{Deserialize, Serialize};

use super::{ClaimUid, Known, PodUid, Reachability, ServerFacts};

/// State of the container `valkey` by the kubelet's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Container {
    /// Never started.
    Waiting,
    /// Runs; `restarts` counts earlier ones.
    Running {
        /// `restartCount`.
        restarts: u16,
    },
    /// The kubelet reports its process ended (`state.terminated`, or waiting after `lastState.terminated`).
    Terminated {
        /// `restartCount`.
        restarts: u16,
    },
}

/// The role label on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RoleLabel {
    /// None.
    None,
    /// `primary`.
    Primary,
    /// `replica`.
    Replica,
}

/// How a pod stands to the template of its StatefulSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// The controller has not said yet which revision its newest template is.
    Unknown,
    /// It was made from the newest template.
    Current,
    /// It was made from an older one.
    Outdated,
    /// It was made from an older one, and a person asked for its restart (`valkey.wellcake.io/restart`).
    RestartAsked,
}

impl Revision {
    /// Whether the pod is to be replaced.
    pub const fn is_outdated(self) -> bool {
        matches!(self, Self::Outdated | Self::RestartAsked)
    }
}

/// Why a pod does not run, as the scheduler and the kubelet tell. It is told to users; only a configuration that is not understood
/// decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Trouble {
    /// No node takes it (condition `PodScheduled`, reason `Unschedulable`).
    NoNode,
    /// Its image cannot be pulled.
    Image,
    /// Its container cannot be made (`CreateContainerConfigError`, `CreateContainerError`, `RunContainerError`).
    Container,
    /// Its process ends again and again (`CrashLoopBackOff`).
    Crashes,
    /// So it does, and by its own last words it does not understand its configuration.
    Config,
}

/// A pod object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodObject {
    /// Its uid.
    pub uid: PodUid,
    /// Whether it has a deletion timestamp. Not a sign of death: a terminating server still acknowledges writes.
    pub terminating: bool,
    /// The container.
    pub container: Container,
    /// The label.
    pub label: RoleLabel,
    /// Whether its node is marked `node.kubernetes.io/out-of-service`: a person's word that nothing runs there.
    pub node_out_of_service: bool,
    /// How it stands to the template.
    pub revision: Revision,
    /// Why it does not run.
    pub trouble: Option<Trouble>,
}

/// How the volume of a claim stands to the size that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Volume {
    /// It is as large, or larger; or the claim is not bound yet.
    Enough,
    /// The claim asks for as much, and the volume is smaller.
    Growing,
    /// The claim asks for less.
    Smaller,
}

/// A claim of a data pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimFacts {
    /// Its uid.
    pub uid: ClaimUid,
    /// Whether it was created after the ValkeyCluster.
    pub younger_than_cluster: bool,
    /// Its size.
    pub volume: Volume,
}

/// Whether a server that another operator's template started let this one in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Login {
    /// Nothing is known against it.
    #[default]
    Fine,
    /// It does not take the password of clients that the Secret holds, or asks for one where the spec says there is none.
    Denied,
    /// It lets everybody in without a password, and the spec asks for one.
    Open,
}

/// All that is known of the pod of one ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodFacts {
    /// The object.
    pub object: Known<PodObject>,
    /// The claim; absent on ephemeral storage.
    pub claim: Known<ClaimFacts>,
    /// The server of the present pod.
    pub server: Known<ServerFacts>,
    /// The address of the present pod.
    pub reach: Option<Reachability>,
    /// How the last attempt went to make this operator's user on a server that does not know it.
    pub login: Login,
}
