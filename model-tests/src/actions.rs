//! Everything that can happen in the world.

use serde::{Deserialize, Serialize};
use wellcake_core::exec::Authority;
use wellcake_core::facts::{Container, Millis, Ordinal, PodUid, RoleLabel, Target, Tick};

use crate::faults::Mishap;
use crate::faults::kind::Kind;
use crate::invariants::{self, Violation};
use crate::operator::{self, Brain, LEASE, Operator};
use crate::world::{Disk, World, Zombie};

/// More epochs than a ValkeyCluster lives through in a run.
const LIFE: u32 = 1_000_000;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// An operator gets the newest from the API server.
    Watch(usize),
    /// An operator polls a pod; the answer may be lost.
    Poll {
        /// The operator.
        operator: usize,
        /// The pod.
        pod: usize,
        /// Whether no answer arrives in time.
        lost: bool,
    },
    /// An operator gets the newest from everything.
    Look(usize),
    /// An operator decides.
    Decide(usize),
    /// An operator does one effect.
    Execute(usize),
    /// A moment of replication of one pod.
    Replicate(usize),
    /// A client writes.
    Write,
    /// Time passes.
    Advance(u64),
    /// Seconds pass in which nothing new happens and everybody goes on, with the faults that there are.
    Stretch(u64),
    /// The kubelet starts the container of a pod again.
    Start(usize),
    /// The StatefulSet controller makes a pod that is missing.
    Recreate(usize),
    /// The kubelet reports the state of a container.
    Report(usize),
    /// A server saves a snapshot.
    Snapshot(usize),
    /// A server process is killed.
    Kill(usize),
    /// A pod gets a deletion timestamp.
    Terminate(usize),
    /// A person asks for another primary: this pod, or any that is fit.
    Ask(Option<usize>),
    /// A person changes what pods are made from.
    Change,
    /// A person asks for so many pods.
    Resize(usize),
    /// A person sends the cluster to sleep, or wakes it.
    Hibernate(bool),
    /// A person says `REPLICAOF` to a server: another pod, or `NO ONE`.
    Hand {
        /// The pod of the server.
        pod: usize,
        /// The pod that it is to follow.
        of: Option<usize>,
    },
    /// The ValkeyCluster is deleted and made anew; its claims stay.
    Renew,
    /// A pod is deleted and its server ends in order.
    Delete(usize),
    /// A pod is deleted by force; its server lives on, where operators see it or not.
    DeleteByForce(usize),
    /// Processes whose pods are gone end.
    Reap,
    /// A server stops doing anything.
    Freeze(usize),
    /// It goes on.
    Thaw(usize),
    /// Operators cannot reach a pod.
    Hide(usize),
    /// They can again.
    Show(usize),
    /// A server is cut off from operators and from all other servers.
    Isolate(usize),
    /// A replica cannot reach its primary.
    Cut(usize),
    /// It can again.
    Join(usize),
    /// An operator process is killed and starts again.
    Crash(usize),
    /// An operator takes the lease, if it is free.
    Elect(usize),
    /// Something goes wrong that searches do not try.
    Mishap(Mishap),
}

impl Action {
    /// Whether it is a fault.
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Kill(_)
                | Self::Delete(_)
                | Self::Terminate(_)
                | Self::Renew
                | Self::DeleteByForce(_)
                | Self::Freeze(_)
                | Self::Hide(_)
                | Self::Isolate(_)
                | Self::Cut(_)
                | Self::Crash(_)
                | Self::Poll { lost: true, .. }
                | Self::Mishap(_)
        )
    }
}

impl Action {
    /// Whether it can happen to so many pods and two operators, and takes no longer than an hour.
    pub fn is_possible(self, pods: u8) -> bool {
        let pods = usize::from(pods);
        match self {
            Self::Watch(o) | Self::Look(o) | Self::Decide(o) | Self::Execute(o) => o < 2,
            Self::Crash(o) | Self::Elect(o) => o < 2,
            Self::Poll { operator, pod, .. } => operator < 2 && pod < pods,
            Self::Hand { pod, of } => pod < pods && of.is_none_or(|of| of < pods),
            Self::Resize(asked) => (1..=pods).contains(&asked),
            // A person may ask for a pod that there is not.
            Self::Ask(_) | Self::Write | Self::Change => true,
            Self::Hibernate(_) | Self::Renew | Self::Reap => true,
            Self::Mishap(mishap) => mishap.is_possible(pods),
            Self::Advance(ms) => ms <= 3_600_000,
            Self::Stretch(seconds) => seconds <= 3_600,
            Self::Replicate(n) | Self::Start(n) | Self::Recreate(n) | Self::Report(n) => n < pods,
            Self::Snapshot(n) | Self::Kill(n) | Self::Terminate(n) | Self::Delete(n) => n < pods,
            Self::DeleteByForce(n) | Self::Freeze(n) | Self::Thaw(n) | Self::Hide(n) => n < pods,
            Self::Show(n) | Self::Isolate(n) | Self::Cut(n) | Self::Join(n) => n < pods,
        }
    }
}

impl World {
    /// Lets something happen and judges the result. Answers what is worth telling.
    pub fn apply(&mut self, action: Action, brain: Brain) -> Result<String, Violation> {
        let mut told = String::new();
        self.act(action, brain, Some(&mut told))?;
        Ok(told)
    }

    /// The same; what is worth telling is put into words only for who asks.
    pub fn act(
        &mut self,
        action: Action,
        brain: Brain,
        told: Option<&mut String>,
    ) -> Result<(), Violation> {
        self.note_event(action);
        match action {
            Action::Watch(o) => self.refresh(o),
            Action::Poll {
                operator,
                pod,
                lost,
            } => {
                self.poll(operator, pod, lost);
                self.probe_former(operator);
            }
            Action::Look(o) => {
                self.refresh(o);
                for n in 0..self.pods.len() {
                    self.poll(o, n, false);
                }
                self.probe_former(o);
            }
            Action::Decide(o) => {
                let decision = self.decide(o, brain)?;
                if let (Some(decision), Some(told)) = (decision, told) {
                    *told = summary(&decision);
                }
            }
            Action::Execute(o) => {
                let done = self.execute(o)?;
                if let Some(told) = told {
                    *told = done.to_string();
                }
            }
            Action::Replicate(n) => self.replicate(n)?,
            Action::Write => {
                let before = self.acks.len();
                self.write();
                invariants::one_writer_per_epoch(self)?;
                for ack in self.acks.iter().skip(before) {
                    invariants::silence::nobody_writes_beside(self, ack)?;
                }
            }
            Action::Advance(ms) => {
                self.now = self.now.after(Millis(ms));
                self.end_loads();
                self.ping();
            }
            Action::Stretch(seconds) => {
                for _ in 0..seconds {
                    self.second(|world, action| world.act(action, brain, None))?;
                }
            }
            Action::Mishap(Mishap::DecideAgain(o)) => {
                self.fired(Kind::EventTwice);
                self.decide(o, brain)?;
                self.decide(o, brain)?;
            }
            Action::Mishap(Mishap::Twice(o)) => self.execute_twice(o)?,
            other => self.happen(other),
        }
        self.notice_returns();
        Ok(())
    }

    /// A second in which replicas replicate, a client writes and the operator that leads does what it decides. `act` lets each of
    /// these events happen.
    pub(crate) fn second(
        &mut self,
        mut act: impl FnMut(&mut Self, Action) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        act(self, Action::Advance(1_000))?;
        for n in 0..self.pods.len() {
            act(self, Action::Replicate(n))?;
        }
        act(self, Action::Write)?;
        let Some(o) = self.leader() else {
            return Ok(());
        };
        act(self, Action::Look(o))?;
        act(self, Action::Decide(o))?;
        while self.is_busy(o) {
            act(self, Action::Execute(o))?;
        }
        Ok(())
    }

    /// Whether an operator has effects to do.
    pub(crate) fn is_busy(&self, o: usize) -> bool {
        let operator = self.operators.get(o);
        operator.is_some_and(|operator| !operator.queue.is_empty())
    }

    fn refresh(&mut self, o: usize) {
        self.watch(o);
        let until = self.now.after(LEASE);
        let now = self.now;
        let Some(operator) = self.operators.get_mut(o) else {
            return;
        };
        if let Authority::Leader { epoch, .. } = operator.authority
            && operator.authority.holds(now)
        {
            operator.authority = Authority::Leader {
                epoch,
                valid_until: until,
            };
            self.lease_until = until;
        }
    }

    fn happen(&mut self, action: Action) {
        match action {
            Action::Start(n) => self.start(n),
            Action::Recreate(n) => self.recreate(n),
            Action::Report(n) => self.report(n),
            Action::Snapshot(n) => self.snapshot(n),
            Action::Kill(n) => {
                self.end(n, false);
            }
            Action::Delete(n) => self.delete(n),
            Action::DeleteByForce(n) => self.abandon(n),
            Action::Reap => self.zombies.clear(),
            Action::Freeze(n) => {
                let now = self.now;
                if let Some(process) = self.process(n) {
                    process.frozen = process.frozen.or(Some(now));
                }
            }
            Action::Thaw(n) => self.thaw(n),
            Action::Hide(n) | Action::Show(n) => {
                let hidden = matches!(action, Action::Hide(_));
                if let Some(pod) = self.pods.get_mut(n) {
                    pod.hidden = hidden;
                }
                for zombie in self.zombies.iter_mut().filter(|z| z.ordinal.index() == n) {
                    zombie.hidden = hidden;
                }
            }
            Action::Isolate(n) => self.isolate(n),
            Action::Renew => self.renew(),
            Action::Change => self.change_template(),
            Action::Resize(pods) => self.resize(pods),
            Action::Hibernate(asleep) => self.hibernate(asleep),
            Action::Hand { pod, of } => self.say_replicaof(pod, of),
            Action::Terminate(n) => {
                if let Some(pod) = self.pods.get_mut(n).filter(|pod| pod.exists) {
                    pod.terminating = true;
                }
            }
            Action::Ask(target) => {
                let pod = target.and_then(|n| u8::try_from(n).ok()).map(Ordinal);
                self.spec.failover = Some(pod.map_or(Target::Any, Target::Pod));
            }
            Action::Cut(n) | Action::Join(n) => {
                if let Some(pod) = self.pods.get_mut(n) {
                    pod.cut = matches!(action, Action::Cut(_));
                }
            }
            Action::Crash(o) => {
                self.forget_operator(o);
                let fresh = Operator::new(self, false);
                if let Some(operator) = self.operators.get_mut(o) {
                    *operator = fresh;
                }
            }
            Action::Elect(o) => self.elect(o),
            Action::Mishap(mishap) => self.go_wrong(mishap),
            _ => {}
        }
    }

    /// The kubelet of a node that is not there does not end a pod.
    pub(crate) fn delete(&mut self, n: usize) {
        if self.is_node_up(n) {
            self.end(n, true);
            self.remove(n);
        } else if let Some(pod) = self.pods.get_mut(n) {
            pod.terminating = true;
        }
    }

    pub(crate) fn isolate(&mut self, n: usize) {
        for (other, pod) in self.pods.iter_mut().enumerate() {
            pod.hidden |= other == n;
            pod.cut |= other != n;
        }
    }

    pub(crate) fn start(&mut self, n: usize) {
        let Some(pod) = self.pods.get(n).filter(|p| p.exists && p.process.is_none()) else {
            return;
        };
        let (disk, template) = (pod.disk.clone(), pod.made_from);
        if !self.is_node_up(n) || self.is_obstructed(n) {
            return;
        }
        let mut process = self.boot_pod(n, template, disk.as_ref());
        self.load(n, &mut process);
        if let Some(pod) = self.pods.get_mut(n) {
            pod.process = Some(process);
            pod.restarts = pod.restarts.saturating_add(1);
        }
    }

    fn recreate(&mut self, n: usize) {
        let asked = n < usize::from(self.replicas);
        let Some(pod) = self.pods.get(n).filter(|p| asked && !p.exists) else {
            return;
        };
        // A volume is attached to one node only.
        let held = self.disk != Disk::None && self.zombies.iter().any(|z| z.ordinal.index() == n);
        if held {
            return;
        }
        if self.faults.as_ref().is_some_and(|faults| faults.quota) {
            // The controller's create is refused (403, "Resource quotas").
            return self.fired(Kind::QuotaExceeded);
        }
        let free = !self.zombies.iter().any(|z| z.addr == pod.addr);
        let (old, disk) = (pod.addr, pod.disk.clone());
        let template = self.template;
        let uid = PodUid(self.id());
        // Every second address is used again.
        let addr = if free && uid.0.is_multiple_of(2) {
            self.fired(Kind::AddressUsedAgain);
            old
        } else {
            self.id()
        };
        let mut process = Some(self.boot_pod(n, template, disk.as_ref()));
        self.leave_node(n);
        let mut reported = Container::Running { restarts: 0 };
        if self.is_obstructed(n) {
            (process, reported) = (None, Container::Waiting);
        } else if let Some(process) = &mut process {
            self.load(n, process);
        }
        if let Some(pod) = self.pods.get_mut(n) {
            pod.exists = true;
            pod.uid = uid;
            pod.addr = addr;
            pod.restarts = 0;
            pod.reported = reported;
            pod.label = RoleLabel::None;
            pod.process = process;
            pod.hidden = false;
            pod.cut = false;
            pod.terminating = false;
            pod.made_from = template;
            pod.given_up = false;
        }
    }

    fn report(&mut self, n: usize) {
        if !self.is_node_up(n) {
            return;
        }
        self.end_growth(n);
        if let Some(pod) = self.pods.get_mut(n) {
            pod.reported = operator::container(pod.process.as_ref(), pod.restarts);
        }
    }

    pub(crate) fn snapshot(&mut self, n: usize) {
        if self.disk != Disk::Rdb {
            return;
        }
        if let Some(pod) = self.pods.get_mut(n)
            && let Some(process) = pod.process.as_ref().filter(|p| p.frozen.is_none())
            && !process.ails(|it| it.disk_full)
        {
            pod.disk = Some(process.data.saved(process.primary));
        }
    }

    /// Ends the process of a pod.
    pub(crate) fn end(&mut self, n: usize, orderly: bool) {
        let disk = self.disk;
        if let Some(pod) = self.pods.get_mut(n)
            && let Some(process) = pod.process.take()
        {
            let fails = process.frozen.is_some() || process.ails(|it| it.disk_full);
            let orderly = orderly && !fails && !process.is_loading();
            pod.disk = operator::left_behind(disk, &process, pod.disk.take(), orderly);
            if self.connection == Some(process.run) {
                self.connection = None;
            }
        }
    }

    fn remove(&mut self, n: usize) {
        let ephemeral = self.disk == Disk::None;
        if let Some(pod) = self.pods.get_mut(n) {
            pod.exists = false;
            if ephemeral {
                pod.disk = None;
            }
        }
    }

    /// Everything that the ValkeyCluster owns goes with it. A pod whose process lives on where nobody sees it would hold its
    /// volume, so that no new one could start.
    fn renew(&mut self) {
        if !self.zombies.is_empty() {
            return;
        }
        for n in 0..self.pods.len() {
            self.end(n, true);
            self.remove(n);
            if let Some(pod) = self.pods.get_mut(n) {
                pod.claim_is_young = false;
            }
        }
        if self.disk == Disk::None {
            // Whoever deletes what is in memory only gives it up.
            let owed: Vec<_> = self.owed().collect();
            self.forfeited.extend(owed);
        }
        self.replicas = self.spec.pods;
        self.leave_template();
        self.spec.hibernate = false;
        // Epochs may begin anew.
        self.promoted.clear();
        for ack in &mut self.acks {
            ack.epoch = ack.epoch.saturating_add(LIFE);
        }
        self.api.record = None;
        self.api.down_since = None;
        self.api.routes = [None; 2];
        self.spec.failover = None;
        // What the operators knew of the old one is no matter of the new one.
        for o in 0..self.operators.len() {
            let authority = self.operators.get(o).map(|operator| operator.authority);
            let mut fresh = Operator::new(self, false);
            if let (Some(operator), Some(authority)) = (self.operators.get_mut(o), authority) {
                fresh.authority = authority;
                *operator = fresh;
            }
        }
    }

    fn abandon(&mut self, n: usize) {
        let Some(pod) = self.pods.get_mut(n).filter(|p| p.exists) else {
            return;
        };
        let ordinal = Ordinal(u8::try_from(n).unwrap_or(u8::MAX));
        if let Some(process) = pod.process.take() {
            self.zombies.push(Zombie {
                ordinal,
                uid: pod.uid,
                addr: pod.addr,
                // Every second one is on a node that operators do not reach.
                hidden: pod.hidden || !pod.uid.0.is_multiple_of(2),
                process,
            });
        }
        self.remove(n);
    }

    fn elect(&mut self, o: usize) {
        let free = self.now >= self.lease_until;
        let until = self.now.after(LEASE);
        let Some(operator) = self.operators.get_mut(o) else {
            return;
        };
        if free {
            operator.authority = Authority::Leader {
                epoch: 2,
                valid_until: until,
            };
            self.lease_until = until;
        }
    }

    /// Whether an operator may act.
    pub fn leader(&self) -> Option<usize> {
        self.operators
            .iter()
            .position(|operator| operator.authority.holds(self.now))
    }

    /// Milliseconds since the start.
    pub fn age(&self) -> u64 {
        self.now.since(Tick(1_000_000)).0
    }
}

/// A decision in one line.
pub fn summary(decision: &wellcake_core::effects::Decision) -> String {
    let effects: Vec<String> = decision
        .effects
        .iter()
        .map(|effect| format!("{:?} ({:?})", effect.verb, effect.reason))
        .collect();
    let notes = |notes: &[wellcake_core::effects::Note]| {
        notes
            .iter()
            .map(|note| format!("{:?} {:?}", note.reason, note.pod.map(|pod| pod.0)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    format!(
        "do [{}] wait [{}] refuse [{}]",
        effects.join("; "),
        notes(&decision.waits),
        notes(&decision.refusals)
    )
}
