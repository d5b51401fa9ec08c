//! What goes wrong beside the faults of searches: on the way to the API server and to servers, in caches, on nodes and volumes, and by
//! people. Random runs of [`runs::Mix::All`] try it.
//!
//! * [`kind`]: the kinds of all faults, and how often each took effect;
//! * [`standing`]: faults that stand until they end;
//! * [`api`]: answers of the API server to writes;
//! * [`lag`]: caches that lag, each kind by itself;
//! * [`servers`]: what is wrong with servers, their nodes and their networks;
//! * [`people`]: what people do by hand;
//! * [`draw`]: which of it happens next;
//! * [`wishes`]: what people write into the spec;
//! * [`runs`]: random runs in which it does.

pub mod api;
pub mod draw;
pub mod kind;
pub mod lag;
pub mod people;
pub mod runs;
pub mod servers;
pub mod standing;
pub mod wishes;

use serde::{Deserialize, Serialize};
use wellcake_core::facts::{Hints, Object, PasswordSource, Trouble};

use crate::operator::Operator;
use crate::world::World;

use api::Answer;
use kind::Kind;
use lag::Cache;
use servers::Fate;
use wishes::Edit;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mishap {
    /// The API server answers to the next writes of an operator.
    Answer {
        /// The operator.
        operator: usize,
        /// The answer.
        answer: Answer,
        /// How many writes.
        times: u8,
    },
    /// A cache of an operator gets no events any more.
    Lag {
        /// The operator.
        operator: usize,
        /// The cache.
        cache: Cache,
    },
    /// All caches of an operator are listed anew.
    Relist(usize),
    /// An operator decides on the same facts again.
    DecideAgain(usize),
    /// An operator does its next effect, and will do it once more.
    Twice(usize),
    /// The next command of an operator meets a fate.
    Command {
        /// The operator.
        operator: usize,
        /// The fate.
        fate: Fate,
    },
    /// An operator forgets what it remembered between decisions.
    Forget(usize),
    /// An operator ends and starts where the clock is off by so many seconds.
    CrashWithClock {
        /// The operator.
        operator: usize,
        /// Seconds by which its clock is ahead.
        ahead: i16,
    },
    /// A container is restarted in order.
    Restart(usize),
    /// A server runs a script.
    Busy(usize),
    /// A server waits for its disk.
    Stall(usize),
    /// The next start of a server's container takes long to load its data.
    LoadSlowly(usize),
    /// The volume of a server is full.
    FillDisk(usize),
    /// A person removes the operator's user from a server.
    LockOperatorOut(usize),
    /// A person removes the replicas' user from a server.
    LockReplicasOut(usize),
    /// The clock of a server jumps ahead by more than `repl-timeout`.
    JumpClock(usize),
    /// Answers of a pod to operators are lost.
    CutAnswers(usize),
    /// Clients cannot reach a pod.
    CutClients(usize),
    /// The stream to a replica is lost.
    CutStream(usize),
    /// The acknowledgements of a replica are lost.
    CutAcknowledgements(usize),
    /// A node is lost.
    LoseNode(usize),
    /// A node is switched off.
    SwitchOff(usize),
    /// A node is marked as out of service.
    MarkOutOfService(usize),
    /// A node is drained.
    Drain(usize),
    /// A pod does not run the next time it is to start.
    Obstruct {
        /// The pod.
        pod: usize,
        /// Why.
        trouble: Trouble,
    },
    /// What a volume holds is lost.
    LoseVolume(usize),
    /// A claim is deleted and made anew.
    RemakeClaim(usize),
    /// What a volume holds is copied aside.
    BackUp(usize),
    /// A volume gets back what was copied aside.
    Restore(usize),
    /// No pod can be made.
    ExceedQuota,
    /// A person points a replica at another pod.
    Follow {
        /// The replica.
        pod: usize,
        /// Whom it shall follow.
        of: usize,
    },
    /// A person says `FAILOVER`.
    Failover(usize),
    /// A person scales the StatefulSet.
    Scale(u8),
    /// A person deletes an object.
    DeleteObject(Object),
    /// A person changes an object.
    ChangeObject(Object),
    /// An object of that name is somebody else's.
    ForeignObject(Object),
    /// A person does something to the Secret with the password.
    Password(PasswordSource),
    /// A person orders a pod to lead, under the present epoch or another one.
    Order {
        /// The pod.
        pod: usize,
        /// Whether the epoch that is named is over.
        late: bool,
    },
    /// A person changes the spec, or what a takeover meets.
    Edit(Edit),
    /// Everything ends that stands on a pod.
    Mend(usize),
    /// Everything ends that stands.
    MendAll,
}

impl Mishap {
    /// Whether it can happen to so many pods and two operators.
    pub fn is_possible(self, pods: usize) -> bool {
        match self {
            Self::Answer { operator, .. }
            | Self::Lag { operator, .. }
            | Self::Command { operator, .. }
            | Self::CrashWithClock { operator, .. }
            | Self::Relist(operator)
            | Self::DecideAgain(operator)
            | Self::Twice(operator)
            | Self::Forget(operator) => operator < 2,
            Self::Restart(n)
            | Self::Busy(n)
            | Self::Stall(n)
            | Self::LoadSlowly(n)
            | Self::FillDisk(n)
            | Self::LockOperatorOut(n)
            | Self::LockReplicasOut(n)
            | Self::JumpClock(n)
            | Self::CutAnswers(n)
            | Self::CutClients(n)
            | Self::CutStream(n)
            | Self::CutAcknowledgements(n)
            | Self::LoseNode(n)
            | Self::SwitchOff(n)
            | Self::MarkOutOfService(n)
            | Self::Drain(n)
            | Self::LoseVolume(n)
            | Self::RemakeClaim(n)
            | Self::BackUp(n)
            | Self::Restore(n)
            | Self::Failover(n)
            | Self::Mend(n) => n < pods,
            Self::Obstruct { pod, .. } | Self::Order { pod, .. } => pod < pods,
            Self::Follow { pod, of } => pod < pods && of < pods,
            Self::Scale(to) => usize::from(to) <= pods,
            Self::DeleteObject(_)
            | Self::ChangeObject(_)
            | Self::ForeignObject(_)
            | Self::Password(_)
            | Self::Edit(_)
            | Self::ExceedQuota
            | Self::MendAll => true,
        }
    }
}

impl World {
    /// Something goes wrong. Deciding again and doing an effect twice is the operator's, in `actions.rs`.
    pub(crate) fn go_wrong(&mut self, mishap: Mishap) {
        match mishap {
            Mishap::Answer {
                operator,
                answer,
                times,
            } => self.faults_mut().operator(operator).answers = Some((answer, times)),
            Mishap::Command { operator, fate } => {
                self.faults_mut().operator(operator).fate = Some(fate);
            }
            Mishap::Lag { operator, cache } => self.lag(operator, cache),
            Mishap::Relist(o) => self.relist(o),
            Mishap::DecideAgain(_) | Mishap::Twice(_) => {}
            Mishap::Forget(o) => {
                let remembered = &mut self.faults_mut().operator(o).hints;
                if std::mem::take(remembered) != Hints::default() {
                    self.fired(Kind::HintsLost);
                }
            }
            Mishap::CrashWithClock { operator, ahead } => self.crash_with_clock(operator, ahead),
            Mishap::Drain(n) => self.drain(n),
            Mishap::ExceedQuota => self.faults_mut().quota = true,
            Mishap::Follow { pod, of } => self.follow_by_hand(pod, of),
            Mishap::Failover(n) => self.fail_over_by_hand(n),
            Mishap::Scale(to) => self.scale_by_hand(to),
            Mishap::DeleteObject(object) => self.delete_object(object),
            Mishap::ChangeObject(object) => self.change_object(object),
            Mishap::ForeignObject(object) => self.take_name(object),
            Mishap::Password(state) => self.touch_password(state),
            Mishap::Order { pod, late } => self.order(pod, late),
            Mishap::Edit(edit) => self.edit(edit),
            Mishap::Mend(n) => self.mend_pod(n),
            Mishap::MendAll => self.mend_all(),
            other => self.befall(other),
        }
    }

    fn crash_with_clock(&mut self, o: usize, ahead: i16) {
        let fresh = Operator::new(self, false);
        let Some(operator) = self.operators.get_mut(o) else {
            return;
        };
        *operator = fresh;
        self.forget_operator(o);
        let faults = self.faults_mut().operator(o);
        faults.ahead = ahead;
        faults.blind = true;
        self.fired(Kind::OperatorClockOff);
    }

    /// An operator process ended: what was true of it only is over.
    pub(crate) fn forget_operator(&mut self, o: usize) {
        if let Some(faults) = self.faults.as_deref_mut() {
            *faults.operator(o) = standing::OnOperator::default();
        }
    }
}
