//! State of the Kubernetes objects that the operator makes for a cluster.

use serde::{Deserialize, Serialize};

use super::{Known, Ordinal};

/// An object of the cluster that is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Object {
    /// Secrets: the generated password, and the ACL file with the replication credentials. Created once.
    Credentials,
    /// ConfigMap with valkey.conf, named by the digest of what only the start of a server takes from it.
    Config,
    /// Headless Service.
    HeadlessService,
    /// Service of the replicas.
    ReplicasService,
    /// Service of clients; its selector names the primary.
    ClientService,
    /// Service of the primary; its selector names the primary.
    PrimaryService,
    /// StatefulSet of the data pods.
    StatefulSet,
    /// PodDisruptionBudget.
    DisruptionBudget,
}

impl Object {
    /// All of them, in the order in which they are made.
    pub const ALL: [Self; 8] = [
        Self::Credentials,
        Self::Config,
        Self::HeadlessService,
        Self::ReplicasService,
        Self::ClientService,
        Self::PrimaryService,
        Self::StatefulSet,
        Self::DisruptionBudget,
    ];

    /// Place in [`ObjectFacts`].
    const fn index(self) -> usize {
        self as usize
    }
}

/// How an object stands to what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectState {
    /// Every field that is ours has the value it should have.
    Matches,
    /// Some field differs and can be set.
    Differs,
    /// An object of that name belongs to somebody else.
    Foreign,
    /// Another operator of this API made it for this very ValkeyCluster, and it was not taken over.
    Theirs,
    /// It was taken over, and somebody made it again what it was before.
    TakenBack,
    /// A StatefulSet that was taken over and has the pod template of the operator before, which nobody asked to roll.
    Kept,
    /// The same, and a person asked for the restart that brings this operator's template.
    RollAsked,
    /// Not wanted, and it is there and ours.
    Superfluous,
    /// Not wanted, and not there.
    NotWanted,
}

/// What stands in the way of making the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PasswordSource {
    /// There is a password, or one will be generated.
    Usable,
    /// `auth.existingSecret` does not exist.
    SecretMissing,
    /// It has no key `password`, or an empty one.
    KeyMissing,
    /// It changed after the servers got its password.
    Changed,
}

/// All objects of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectFacts {
    states: [Known<ObjectState>; 8],
    /// Pod that the selector of the client Service names.
    pub client_route: Option<Ordinal>,
    /// Pod that the selector of the primary Service names.
    pub primary_route: Option<Ordinal>,
    /// Replicas that the StatefulSet asks for now.
    pub replicas_applied: u8,
    /// Whether pods keep an earlier configuration, since a server did not start with the one that is asked for.
    pub config_refused: bool,
    /// Whether every server accepted an earlier configuration, to which pods can go back.
    pub config_before: bool,
    /// Whether the StatefulSet keeps the pod template of an operator of another version, until somebody asks for another one.
    pub template_waits: bool,
    /// ConfigMaps of earlier configurations that no pod was made with and none can go back to.
    pub old_configs: u8,
    /// The password.
    pub password: Known<PasswordSource>,
}

impl ObjectFacts {
    /// Nothing is known yet.
    pub const fn unknown(since: super::Tick) -> Self {
        Self {
            states: [Known::unknown(since); 8],
            client_route: None,
            primary_route: None,
            replicas_applied: 0,
            config_refused: false,
            config_before: false,
            template_waits: false,
            old_configs: 0,
            password: Known::unknown(since),
        }
    }

    /// State of one object.
    pub fn state(&self, object: Object) -> Known<ObjectState> {
        self.states
            .get(object.index())
            .copied()
            .unwrap_or(Known::Absent)
    }

    /// Sets the state of one object.
    pub fn set(&mut self, object: Object, state: Known<ObjectState>) {
        if let Some(slot) = self.states.get_mut(object.index()) {
            *slot = state;
        }
    }
}
