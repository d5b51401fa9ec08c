//! The kinds of faults, and how often each took effect.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::api::{Answer, Class};
use crate::actions::Action;
use crate::world::World;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A kind of fault, or of what people do while others are at work.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Name in summaries.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

kinds! {
    /// A server process ends without notice (SIGKILL, out of memory).
    ServerKilled,
    /// A container is restarted in order by its kubelet (SIGTERM, then a start in the same pod).
    ServerRestarted,
    /// A server does nothing for a while (SIGSTOP, a stalled node).
    ServerFrozen,
    /// A server waits for its disk and does nothing else.
    DiskStalls,
    /// A script runs: a server answers `-BUSY` to everything.
    ServerBusy,
    /// A server loads its data for long and answers `-LOADING`.
    ServerLoads,
    /// A volume is full: a server answers `-MISCONF` to writes and saves nothing.
    DiskFull,
    /// The user of the operator is gone from a server.
    OperatorLockedOut,
    /// The user of the replicas is gone from a server.
    ReplicasLockedOut,
    /// The clock of a server jumps ahead: its links are over their time.
    ServerClockJumps,
    /// A command that was sent to a server that does nothing is done when it goes on.
    CommandDoneLate,
    /// A command is lost on its way.
    CommandLost,
    /// A command is done, and its answer is lost.
    CommandAnswerLost,
    /// A command arrives long after its sender gave up.
    CommandDelayed,

    /// A pod is deleted, and its server ends in order.
    PodDeleted,
    /// A pod is deleted by force, and its server lives on where operators reach it.
    PodDeletedByForce,
    /// A pod is deleted by force, and its server lives on where operators do not reach it.
    PodDeletedByForceUnseen,
    /// A pod has a deletion timestamp, and its server goes on.
    PodTerminating,
    /// A person drains a node: a pod is evicted as its disruption budget allows.
    NodeDrained,
    /// A node is lost: nobody reaches it, and its servers go on.
    NodeLost,
    /// A node is switched off: its servers end, its addresses are silent and its pods stay.
    NodeOff,
    /// A person marks a node that is switched off as out of service.
    NodeOutOfService,
    /// A new pod has the address of an earlier one.
    AddressUsedAgain,
    /// A quota lets no pod be made.
    QuotaExceeded,
    /// No node takes a pod.
    PodNotScheduled,
    /// An image cannot be pulled.
    ImageMissing,
    /// A container cannot be made.
    ContainerNotMade,
    /// A server ends at every start.
    ServerCrashes,
    /// A server does not understand its configuration.
    ConfigNotUnderstood,

    /// What a volume holds is lost, and its claim stays.
    VolumeLost,
    /// A claim is deleted and made anew, empty.
    ClaimMadeAnew,
    /// A volume holds again what it held some time ago.
    VolumeOld,

    /// Operators cannot reach a pod.
    WayToPodCut,
    /// What a pod answers to operators is lost; what they send arrives.
    WayFromPodCut,
    /// One answer of a server comes too late.
    AnswerLost,
    /// A pod reaches neither operators nor other pods.
    PodIsolated,
    /// A replica cannot reach its primary.
    ReplicaCutOff,
    /// What a primary sends does not reach its replica; what that acknowledges arrives.
    StreamCut,
    /// What a replica acknowledges does not reach its primary; the stream arrives.
    AcknowledgementsCut,
    /// Clients cannot reach a pod.
    ClientsCutOff,

    /// The API server refuses a write: the object is another by now (409).
    WriteConflicts,
    /// An admission rule refuses a write (422).
    WriteNotAdmitted,
    /// A quota or a missing permission forbids a write (403).
    WriteForbidden,
    /// The API server asks to come again later (429), as it does where a disruption budget allows no eviction.
    WriteThrottled,
    /// The API server fails (500).
    WriteFails,
    /// A write is lost on its way.
    WriteLost,
    /// A write is done, and its answer is lost.
    WriteAnswerLost,
    /// The cache of the ValkeyCluster lags.
    ClusterCacheLags,
    /// The cache of the pods lags.
    PodCacheLags,
    /// The cache of the Services lags.
    ServiceCacheLags,
    /// The cache of the StatefulSets lags.
    StatefulSetCacheLags,
    /// The cache of the claims lags.
    ClaimCacheLags,
    /// The cache of the Secrets lags.
    SecretCacheLags,
    /// A watch was over (410), and a new list shows a pod in the place of another whose end nobody saw.
    WatchGap,
    /// An event comes twice: the same facts are decided on again.
    EventTwice,
    /// An effect is done twice.
    EffectTwice,

    /// An operator ends.
    OperatorKilled,
    /// An operator ends between two effects of a decision.
    OperatorKilledBetweenEffects,
    /// The lease passes on to another operator.
    LeaderChanges,
    /// An operator that had effects left to do tries to go on after its lease is over.
    OldLeaderGoesOn,
    /// What an operator remembers between decisions is lost.
    HintsLost,
    /// An operator starts where the clock is ahead or behind.
    OperatorClockOff,

    /// A person asks for another primary.
    HandoverAsked,
    /// A person orders a pod to lead.
    PromotionOrdered,
    /// A person changes the template of the pods.
    TemplateChanged,
    /// A person asks for more or fewer pods.
    Resized,
    /// A person sends the cluster to sleep.
    SentToSleep,
    /// A person changes the spec while effects of a decision are still to be done.
    SpecChangedMeanwhile,
    /// A ValkeyCluster is deleted and made anew.
    ClusterMadeAnew,
    /// A person says `REPLICAOF` to a server.
    ReplicaofByHand,
    /// A person says `FAILOVER` to the servers.
    FailoverByHand,
    /// A person scales the StatefulSet.
    ScaledByHand,
    /// A person deletes an object that the operator made.
    ObjectDeleted,
    /// A person changes an object that the operator made.
    ObjectChanged,
    /// An object of somebody else has the name of one that the cluster needs.
    ObjectForeign,
    /// A person changes, empties or deletes the Secret with the password.
    PasswordChanged,
    /// A person changes directives that running servers take.
    DirectivesChanged,
    /// A person changes directives, and servers do not take them.
    DirectivesNotTaken,
    /// A person asks for larger volumes.
    StorageGrown,
    /// A person asks for something that is not served.
    SpecNotServed,
    /// Servers of another operator do not let this one in, have users of their own, or nobody says that the other one is gone.
    TakeoverHindered,
    /// The operator that was there before acts again.
    OtherOperatorActs,
}

impl Kind {
    /// Place in [`Kind::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    const fn bit(self) -> u128 {
        1 << self as u32
    }
}

/// What took effect since it was looked at last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fired {
    kinds: u128,
    writes: Vec<(Class, Answer)>,
}

impl Fired {
    /// A fault took effect.
    pub const fn note(&mut self, kind: Kind) {
        self.kinds |= kind.bit();
    }

    /// The API server gave such an answer to such a write.
    pub fn note_answer(&mut self, class: Class, answer: Answer) {
        self.note(answer.kind());
        self.writes.push((class, answer));
    }
}

/// How often each kind of fault took effect.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Tally {
    /// By kind, in the order of [`Kind::ALL`].
    #[serde(serialize_with = "by_name")]
    kinds: BTreeMap<Kind, u64>,
    /// Answers of the API server to writes, by class of what was written and answer.
    #[serde(serialize_with = "by_names")]
    writes: BTreeMap<(Class, Answer), u64>,
}

impl Tally {
    /// Takes note of what took effect in a world since the last time.
    pub fn take(&mut self, world: &mut World) {
        let Some(faults) = world.faults.as_deref_mut() else {
            return;
        };
        let fired = &mut faults.fired;
        if fired.kinds != 0 {
            let kinds = Kind::ALL
                .iter()
                .filter(|kind| fired.kinds & kind.bit() != 0);
            for kind in kinds {
                *self.kinds.entry(*kind).or_default() += 1;
            }
            fired.kinds = 0;
        }
        for answer in fired.writes.drain(..) {
            *self.writes.entry(answer).or_default() += 1;
        }
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.kinds {
            *self.kinds.entry(*kind).or_default() += count;
        }
        for (answer, count) in &other.writes {
            *self.writes.entry(*answer).or_default() += count;
        }
    }

    /// How often a kind took effect.
    pub fn of(&self, kind: Kind) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    /// How often the API server gave an answer to a class of writes.
    pub fn of_answer(&self, class: Class, answer: Answer) -> u64 {
        self.writes.get(&(class, answer)).copied().unwrap_or(0)
    }
}

fn by_name<S: Serializer>(kinds: &BTreeMap<Kind, u64>, to: S) -> Result<S::Ok, S::Error> {
    let count = |kind: &Kind| kinds.get(kind).copied().unwrap_or(0);
    to.collect_map(Kind::ALL.iter().map(|kind| (kind.as_str(), count(kind))))
}

fn by_names<S: Serializer>(
    writes: &BTreeMap<(Class, Answer), u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let name = |(class, answer): &(Class, Answer)| format!("{class:?} {answer:?}");
    to.collect_map(writes.iter().map(|(of, count)| (name(of), count)))
}

impl World {
    /// A fault took effect. Worlds of searches do not count.
    pub(crate) fn fired(&mut self, kind: Kind) {
        if let Some(faults) = self.faults.as_deref_mut() {
            faults.fired.note(kind);
        }
    }

    /// Notes which fault an event is, if it can take effect now.
    pub(crate) fn note_event(&mut self, action: Action) {
        if self.faults.is_none() {
            return;
        }
        if is_of_person(action) && self.operators.iter().any(|it| !it.queue.is_empty()) {
            self.fired(Kind::SpecChangedMeanwhile);
        }
        if let Some(kind) = self.kind_of(action) {
            self.fired(kind);
        }
    }

    /// The kind of fault that an event is. What [`super::Mishap`]s are is told where they take effect.
    fn kind_of(&self, action: Action) -> Option<Kind> {
        let pod = |n: usize| self.pods.get(n);
        let runs = |n: usize| pod(n).is_some_and(|pod| pod.process.is_some());
        let exists = |n: usize| pod(n).is_some_and(|pod| pod.exists);
        let operator = |o: usize| self.operators.get(o);
        match action {
            Action::Kill(n) if runs(n) => Some(Kind::ServerKilled),
            Action::Freeze(n) if runs(n) => Some(Kind::ServerFrozen),
            Action::Thaw(n) => {
                let waits = |process: &crate::world::Process| !process.waiting.is_empty();
                let late = pod(n)?.process.as_ref().is_some_and(waits);
                late.then_some(Kind::CommandDoneLate)
            }
            Action::Delete(n) if exists(n) => Some(Kind::PodDeleted),
            Action::DeleteByForce(n) if runs(n) => {
                let pod = pod(n)?;
                let unseen = pod.hidden || !pod.uid.0.is_multiple_of(2);
                Some(if unseen {
                    Kind::PodDeletedByForceUnseen
                } else {
                    Kind::PodDeletedByForce
                })
            }
            Action::Terminate(n) if exists(n) => Some(Kind::PodTerminating),
            Action::Hide(n) if exists(n) => Some(Kind::WayToPodCut),
            Action::Isolate(n) if exists(n) => Some(Kind::PodIsolated),
            Action::Cut(n) if runs(n) => Some(Kind::ReplicaCutOff),
            Action::Poll { pod: n, lost, .. } if lost && exists(n) => Some(Kind::AnswerLost),
            Action::Crash(o) => Some(match operator(o)?.queue.is_empty() {
                true => Kind::OperatorKilled,
                false => Kind::OperatorKilledBetweenEffects,
            }),
            Action::Elect(o) => {
                let leads = operator(o)?.authority.holds(self.now);
                let free = self.now >= self.lease_until;
                (free && !leads).then_some(Kind::LeaderChanges)
            }
            Action::Execute(o) => {
                let operator = operator(o)?;
                let late = !operator.queue.is_empty() && !operator.authority.holds(self.now);
                late.then_some(Kind::OldLeaderGoesOn)
            }
            Action::Ask(_) => Some(Kind::HandoverAsked),
            Action::Change => Some(Kind::TemplateChanged),
            Action::Resize(pods) if pods != usize::from(self.spec.pods) => Some(Kind::Resized),
            Action::Hibernate(true) => Some(Kind::SentToSleep),
            Action::Renew if self.zombies.is_empty() => Some(Kind::ClusterMadeAnew),
            _ => None,
        }
    }
}

/// Whether a person changes the spec.
const fn is_of_person(action: Action) -> bool {
    matches!(
        action,
        Action::Ask(_) | Action::Change | Action::Resize(_) | Action::Hibernate(_)
    )
}
