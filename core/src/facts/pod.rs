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
}

/// A claim of a data pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimFacts {
    /// Its uid.
    pub uid: ClaimUid,
    /// Whether it was created after the ValkeyCluster.
    pub younger_than_cluster: bool,
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
}
