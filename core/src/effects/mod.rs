//! Effects: what a decision asks the interpreter to do, each with the guard under which it may be done.

mod guard;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub use guard::{Guard, GuardFailure, Held, InSync};

use crate::facts::{ClaimUid, Object, Ordinal, Record, RoleLabel, Tick};
use crate::reasons::Reason;

/// Which of the two client Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Route {
    /// `<name>`.
    Client,
    /// `<name>-primary`.
    Primary,
}

/// A person's order by annotation, each value of which is served once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// `valkey.wellcake.io/promote`.
    Promote,
    /// `valkey.wellcake.io/failover`.
    Failover,
}

/// One action. There is none that could delete data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verb {
    /// Creates the Secrets that are missing; never changes one.
    CreateCredentials,
    /// Applies an object as it is rendered from the spec.
    Apply(Object),
    /// Deletes an object that is ours and no longer wanted.
    Delete(Object),
    /// Points a Service at a pod.
    SetRoute {
        /// The Service.
        route: Route,
        /// The pod.
        pod: Ordinal,
    },
    /// Writes the primary record to the status, before the promotion that it announces.
    RecordPrimary {
        /// The record.
        record: Record,
        /// The order that this serves, whose value is remembered with it.
        serves: Option<Order>,
    },
    /// Copies the record to the claim of the recorded pod.
    KeepRecord {
        /// The record.
        record: Record,
    },
    /// Writes (or takes away) the marker that the recorded primary does not serve.
    MarkPrimaryDown {
        /// Whether it is down.
        down: bool,
    },
    /// Sets the role label of a pod.
    SetLabel {
        /// The pod.
        pod: Ordinal,
        /// The label.
        label: RoleLabel,
    },
    /// `REPLICAOF NO ONE`.
    Promote {
        /// The pod.
        pod: Ordinal,
    },
    /// `REPLICAOF` the address of another pod.
    Follow {
        /// The pod.
        pod: Ordinal,
        /// The primary.
        primary: Ordinal,
    },
    /// `REPLICAOF` the address of nobody: it takes no writes any more and copies from nobody.
    StepDown {
        /// The pod.
        pod: Ordinal,
    },
    /// `CONFIG SET port 6379`: lets clients and replicas in.
    Open {
        /// The pod.
        pod: Ordinal,
    },
    /// `CLIENT PAUSE` of writes, for [`crate::limits::HANDOVER_PAUSE`].
    PauseWrites {
        /// The pod.
        pod: Ordinal,
    },
    /// `CLIENT UNPAUSE`.
    ResumeWrites {
        /// The pod.
        pod: Ordinal,
    },
    /// Asks a replica until it has all that its primary had when that was asked last.
    AwaitCopy {
        /// The replica.
        pod: Ordinal,
        /// The primary.
        primary: Ordinal,
    },
    /// Evicts a pod, which comes back made from the newest template. Disruption budgets count.
    Evict {
        /// The pod.
        pod: Ordinal,
    },
    /// Applies the StatefulSet with fewer replicas than it has. Claims stay.
    ScaleIn {
        /// Replicas.
        to: u8,
    },
    /// Asks for a larger volume in the claim of a pod.
    GrowVolume {
        /// The pod.
        pod: Ordinal,
        /// The claim.
        claim: ClaimUid,
    },
    /// `CLIENT KILL TYPE normal`, the operator's own connections excepted: clients that hold on to a demoted primary.
    CloseClients {
        /// The pod.
        pod: Ordinal,
    },
    /// `REPLICAOF` the address of nobody, of a replica without a link: its acknowledgements shall not let the primary that it
    /// followed take writes again.
    Detach {
        /// The pod.
        pod: Ordinal,
    },
    /// `CONFIG SET min-replicas-to-write`, 1 or 0.
    NeedReplica {
        /// The pod.
        pod: Ordinal,
        /// Whether it shall take writes only while a replica acknowledges.
        needed: bool,
    },
    /// Applies the StatefulSet with the file of the last configuration that every server accepted, and notes on it which one was
    /// refused.
    GoBackToConfig,
    /// Deletes a ConfigMap of an earlier configuration that no pod was made with and none can go back to.
    DeleteOldConfig,
    /// `CONFIG SET` of all directives that a running server takes, at once.
    Configure {
        /// The pod.
        pod: Ordinal,
    },
    /// `REPLICAOF` the address of nobody, of a server that began by itself as a primary with its client port open: what the boot
    /// fence does for servers of this operator's template.
    Fence {
        /// The pod.
        pod: Ordinal,
    },
    /// Takes the finalizer of the operator before from the ValkeyCluster.
    ReleaseFinalizer,
}

/// The kinds of effects, for metrics, permissions and generated references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// [`Verb::CreateCredentials`].
    CreateCredentials,
    /// [`Verb::Apply`].
    Apply,
    /// [`Verb::Delete`].
    Delete,
    /// [`Verb::SetRoute`].
    SetRoute,
    /// [`Verb::RecordPrimary`].
    RecordPrimary,
    /// [`Verb::KeepRecord`].
    KeepRecord,
    /// [`Verb::MarkPrimaryDown`].
    MarkPrimaryDown,
    /// [`Verb::SetLabel`].
    SetLabel,
    /// [`Verb::Promote`].
    Promote,
    /// [`Verb::Follow`].
    Follow,
    /// [`Verb::StepDown`].
    StepDown,
    /// [`Verb::Open`].
    Open,
    /// [`Verb::PauseWrites`].
    PauseWrites,
    /// [`Verb::ResumeWrites`].
    ResumeWrites,
    /// [`Verb::AwaitCopy`].
    AwaitCopy,
    /// [`Verb::CloseClients`].
    CloseClients,
    /// [`Verb::Evict`].
    Evict,
    /// [`Verb::ScaleIn`].
    ScaleIn,
    /// [`Verb::GrowVolume`].
    GrowVolume,
    /// [`Verb::Detach`].
    Detach,
    /// [`Verb::NeedReplica`].
    NeedReplica,
    /// [`Verb::Configure`].
    Configure,
    /// [`Verb::GoBackToConfig`].
    GoBackToConfig,
    /// [`Verb::DeleteOldConfig`].
    DeleteOldConfig,
    /// [`Verb::Fence`].
    Fence,
    /// [`Verb::ReleaseFinalizer`].
    ReleaseFinalizer,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 26] = [
        Self::CreateCredentials,
        Self::Apply,
        Self::Delete,
        Self::SetRoute,
        Self::RecordPrimary,
        Self::KeepRecord,
        Self::MarkPrimaryDown,
        Self::SetLabel,
        Self::Promote,
        Self::Follow,
        Self::StepDown,
        Self::Open,
        Self::PauseWrites,
        Self::ResumeWrites,
        Self::AwaitCopy,
        Self::CloseClients,
        Self::Evict,
        Self::ScaleIn,
        Self::GrowVolume,
        Self::Detach,
        Self::NeedReplica,
        Self::Configure,
        Self::GoBackToConfig,
        Self::DeleteOldConfig,
        Self::Fence,
        Self::ReleaseFinalizer,
    ];

    /// Name in metrics and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateCredentials => "create_credentials",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::SetRoute => "set_route",
            Self::RecordPrimary => "record_primary",
            Self::KeepRecord => "keep_record",
            Self::MarkPrimaryDown => "mark_primary_down",
            Self::SetLabel => "set_label",
            Self::Promote => "promote",
            Self::Follow => "follow",
            Self::StepDown => "step_down",
            Self::Open => "open",
            Self::PauseWrites => "pause_writes",
            Self::ResumeWrites => "resume_writes",
            Self::AwaitCopy => "await_copy",
            Self::CloseClients => "close_clients",
            Self::Evict => "evict",
            Self::ScaleIn => "scale_in",
            Self::GrowVolume => "grow_volume",
            Self::Detach => "detach",
            Self::NeedReplica => "need_replica",
            Self::Configure => "configure",
            Self::GoBackToConfig => "go_back_to_config",
            Self::DeleteOldConfig => "delete_old_config",
            Self::Fence => "fence",
            Self::ReleaseFinalizer => "release_finalizer",
        }
    }
}

/// How much harm an effect could do if it were wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Danger {
    /// None that lasts.
    Free,
    /// Clients notice.
    Disruptive,
    /// Data of one pod is replaced by another's.
    Destructive,
}

/// Which lane carries an effect out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Records, promotions, routing: never waits for the other lane.
    Safety,
    /// Everything else.
    Provisioning,
}

impl Verb {
    /// Its kind.
    pub const fn kind(self) -> Kind {
        match self {
            Self::CreateCredentials => Kind::CreateCredentials,
            Self::Apply(_) => Kind::Apply,
            Self::Delete(_) => Kind::Delete,
            Self::SetRoute { .. } => Kind::SetRoute,
            Self::RecordPrimary { .. } => Kind::RecordPrimary,
            Self::KeepRecord { .. } => Kind::KeepRecord,
            Self::MarkPrimaryDown { .. } => Kind::MarkPrimaryDown,
            Self::SetLabel { .. } => Kind::SetLabel,
            Self::Promote { .. } => Kind::Promote,
            Self::Follow { .. } => Kind::Follow,
            Self::StepDown { .. } => Kind::StepDown,
            Self::Open { .. } => Kind::Open,
            Self::PauseWrites { .. } => Kind::PauseWrites,
            Self::ResumeWrites { .. } => Kind::ResumeWrites,
            Self::AwaitCopy { .. } => Kind::AwaitCopy,
            Self::CloseClients { .. } => Kind::CloseClients,
            Self::Evict { .. } => Kind::Evict,
            Self::ScaleIn { .. } => Kind::ScaleIn,
            Self::GrowVolume { .. } => Kind::GrowVolume,
            Self::Detach { .. } => Kind::Detach,
            Self::NeedReplica { .. } => Kind::NeedReplica,
            Self::Configure { .. } => Kind::Configure,
            Self::GoBackToConfig => Kind::GoBackToConfig,
            Self::DeleteOldConfig => Kind::DeleteOldConfig,
            Self::Fence { .. } => Kind::Fence,
            Self::ReleaseFinalizer => Kind::ReleaseFinalizer,
        }
    }

    /// Its danger.
    pub const fn danger(self) -> Danger {
        match self {
            Self::Promote { .. }
            | Self::StepDown { .. }
            | Self::PauseWrites { .. }
            | Self::CloseClients { .. }
            | Self::Evict { .. }
            | Self::ScaleIn { .. }
            | Self::Detach { .. }
            | Self::NeedReplica { .. }
            | Self::Fence { .. }
            | Self::Configure { .. } => Danger::Disruptive,
            Self::Follow { .. } => Danger::Destructive,
            _ => Danger::Free,
        }
    }

    /// Its lane.
    pub const fn lane(self) -> Lane {
        match self {
            Self::CreateCredentials
            | Self::Apply(_)
            | Self::Delete(_)
            | Self::KeepRecord { .. }
            | Self::Evict { .. }
            | Self::ScaleIn { .. }
            | Self::GrowVolume { .. }
            | Self::Configure { .. }
            | Self::GoBackToConfig
            | Self::DeleteOldConfig
            | Self::ReleaseFinalizer
            | Self::SetLabel { .. } => Lane::Provisioning,
            _ => Lane::Safety,
        }
    }
}

/// One effect of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Effect {
    /// What to do.
    pub verb: Verb,
    /// What must still be true right before doing it.
    pub guard: Guard,
    /// Why.
    pub reason: Reason,
}

/// What a decision waits for, or why it refuses to act; `pod` is the pod in question, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Note {
    /// Why.
    pub reason: Reason,
    /// The pod.
    pub pod: Option<Ordinal>,
}

/// Effects in the order in which they are to be done; a lane stops at the first that fails.
pub type Effects = SmallVec<[Effect; 8]>;
/// Notes.
pub type Notes = SmallVec<[Note; 4]>;

/// Answer of [`crate::step`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    /// What to do now.
    pub effects: Effects,
    /// What the decision waits for without a person.
    pub waits: Notes,
    /// What it refuses until a person or the world changes something.
    pub refusals: Notes,
    /// When to decide again even if nothing is seen to change.
    pub wake: Option<Tick>,
}

impl Decision {
    /// Notes a wait.
    pub fn wait(&mut self, reason: Reason, pod: Option<Ordinal>) {
        self.waits.push(Note { reason, pod });
    }

    /// Notes a refusal.
    pub fn refuse(&mut self, reason: Reason, pod: Option<Ordinal>) {
        self.refusals.push(Note { reason, pod });
    }

    /// Asks for an effect.
    pub fn act(&mut self, verb: Verb, guard: Guard, reason: Reason) {
        self.effects.push(Effect {
            verb,
            guard,
            reason,
        });
    }

    /// Asks for a decision at `at`, or earlier if one is asked for already.
    pub fn wake_at(&mut self, at: Tick) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }
}
