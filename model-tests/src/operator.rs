//! What an operator sees, decides and does. It runs the real decision and the real guards; only its sockets are simulated.

use std::fmt;

use wellcake_core::effects::{Decision, Effect, Lane, Order, Route, Verb};
use wellcake_core::exec::{self, Authority};
use wellcake_core::facts::{
    Container, Hints, Known, Millis, Object, Observation, Offset, Ordinal, PodFacts, PodUid,
    Reachability, Record, RunId, Served, ServerFacts, SpecFacts, Tick,
};
use wellcake_core::limits;
use wellcake_core::reasons::Reason;

use crate::faults::api::Class;
use crate::faults::kind::Kind;
use crate::faults::servers::Fate;
use crate::hands::Hands;
use crate::history::Data;
use crate::invariants::{self, Violation};
use crate::servers::Command;
use crate::sorted::Map;
use crate::world::{Api, Disk, Process, World};

/// How long a lease lasts after its last renewal.
pub const LEASE: Millis = Millis(15_000);

/// The decision under test: [`wellcake_core::step`], or one that is wrong on purpose.
pub type Brain = fn(&SpecFacts, &Observation, &Hints, Tick) -> Decision;

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// There was none to do.
    Nothing,
    /// It was done.
    Done(Verb),
    /// It was not done, and why.
    Failed(Verb, String),
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing to do"),
            Self::Done(verb) => write!(f, "{verb:?} done"),
            Self::Failed(verb, why) => write!(f, "{verb:?} failed: {why}"),
        }
    }
}

/// One operator process.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Operator {
    /// What it is entitled to.
    pub authority: Authority,
    /// Its watch caches: the API server as it was, and the pod objects.
    pub cache: Api,
    /// What it knows of pods.
    pub pods: Vec<PodFacts>,
    /// Replicas that the StatefulSet asks for, as far as it knows.
    pub replicas: u8,
    /// What the network says of each pod that it ever reached.
    pub reach: Map<PodUid, Reachability>,
    /// What servers said last whose pods were replaced or are gone.
    pub former: Map<PodUid, Known<ServerFacts>>,
    /// Offset of the last primary that served, when it answered last as one.
    pub offset: Option<(Served, Offset)>,
    /// Effects of the last decision that are still to be done.
    pub queue: Vec<Effect>,
    /// For each pod: the process that was in sight when the effects in the queue were planned, and whether it held data.
    pub sight: Vec<Option<(RunId, bool)>>,
    /// For each pod: when it was polled last, and whether it would have acknowledged a write then.
    pub truth: Vec<Option<(Tick, bool)>>,
}

impl Operator {
    /// A process that has just started and seen the API server, but no pod.
    pub fn new(world: &World, leads: bool) -> Self {
        let unknown = PodFacts {
            object: Known::unknown(world.now),
            claim: Known::unknown(world.now),
            server: Known::unknown(world.now),
            reach: None,
            login: wellcake_core::facts::Login::Fine,
        };
        Self {
            authority: if leads {
                Authority::Leader {
                    epoch: 1,
                    valid_until: world.now.after(LEASE),
                }
            } else {
                Authority::Follower
            },
            cache: world.api.clone(),
            pods: vec![unknown; world.pods.len()],
            replicas: world.replicas,
            reach: Map::new(),
            former: Map::new(),
            offset: None,
            queue: Vec::new(),
            sight: vec![None; world.pods.len()],
            truth: vec![None; world.pods.len()],
        }
    }
}

impl World {
    /// Operator `o` decides, unless effects of an earlier decision are still to be done.
    pub fn decide(&mut self, o: usize, brain: Brain) -> Result<Option<Decision>, Violation> {
        let Some(seen) = self.observe(o) else {
            return Ok(None);
        };
        let decision = brain(&self.seen_spec(o), &seen, &self.hints(o), self.now);
        invariants::told_the_truth(self, o, &seen, &decision)?;
        invariants::planned::one_at_a_time(self, &seen, &decision)?;
        let now = self.now;
        let Some(operator) = self.operators.get_mut(o) else {
            return Ok(None);
        };
        let hands_over = operator.queue.is_empty() && operator.authority.holds(now);
        if hands_over {
            operator.sight = operator
                .pods
                .iter()
                .map(|facts| facts.server.fresh(now, limits::DESTRUCTIVE_AGE))
                .map(|server| server.map(|s| (s.run, s.keys > 0 || s.is_fed())))
                .collect();
            operator.queue = exec::lane(&decision, Lane::Safety)
                .chain(exec::lane(&decision, Lane::Provisioning))
                .copied()
                .collect();
            operator.queue.reverse();
            self.note_decision(o, &decision);
        }
        Ok(Some(decision))
    }

    /// Operator `o` does its next effect. The guard is checked against its newest observation; the connection on which it
    /// was read carries the command, so that another process than the one that was seen never gets it.
    pub fn execute(&mut self, o: usize) -> Result<Done, Violation> {
        let Some(effect) = self.operators.get_mut(o).and_then(|op| op.queue.pop()) else {
            return Ok(Done::Nothing);
        };
        let Some(seen) = self.observe(o) else {
            return Ok(Done::Nothing);
        };
        let authority = self
            .operators
            .get(o)
            .map_or(Authority::Follower, |op| op.authority);
        let outcome = match self.hands.admit(&effect, &seen, authority, self.now) {
            Err(failure) => Err(failure.to_string()),
            Ok(()) => self.carry_out_or_not(o, &effect, &seen)?,
        };
        self.remember(o, &effect, outcome.is_ok());
        Ok(match outcome {
            Ok(()) => Done::Done(effect.verb),
            Err(why) => {
                if let Some(operator) = self.operators.get_mut(o) {
                    operator.queue.clear();
                }
                Done::Failed(effect.verb, why)
            }
        })
    }

    /// The next effect is done, and once more as the next one, as if its first outcome had not been heard of.
    pub(crate) fn execute_twice(&mut self, o: usize) -> Result<(), Violation> {
        let next = self
            .operators
            .get(o)
            .and_then(|op| op.queue.last().copied());
        let done = self.execute(o)?;
        if let (Some(effect), Done::Done(_)) = (next, done)
            && let Some(operator) = self.operators.get_mut(o)
        {
            operator.queue.push(effect);
            self.fired(Kind::EffectTwice);
        }
        Ok(())
    }

    pub(crate) fn carry_out(
        &mut self,
        o: usize,
        effect: &Effect,
        seen: &Observation,
    ) -> Result<Result<(), String>, Violation> {
        match effect.verb {
            Verb::SetRoute { route, pod } => {
                let at = usize::from(route == Route::Primary);
                let service = [Object::ClientService, Object::PrimaryService][at];
                if !self.is_there(service) {
                    return Ok(Err("404: not found".to_owned()));
                }
                Ok(self.write_api(o, Class::Route, |api| {
                    if let Some(place) = api.routes.get_mut(at) {
                        *place = Some(pod);
                    }
                }))
            }
            Verb::RecordPrimary { record, serves } => {
                invariants::patience::is_kept(self, seen, effect)?;
                let written = self.write_api(o, Class::Status, |api| record_primary(api, record));
                if written.is_ok() {
                    invariants::file::holds_the_copy(self, seen, &record, effect.reason)?;
                    self.leads_again(record.pod_uid);
                    self.acknowledges_under(record);
                }
                if written.is_ok() && serves == Some(Order::Failover) {
                    self.spec.failover = None;
                }
                if written.is_ok() && serves == Some(Order::Promote) {
                    self.spec.promote = None;
                    self.faults_mut().ordered = Some(record.epoch);
                }
                Ok(written)
            }
            Verb::KeepRecord { record } => {
                let at = record.pod.index();
                Ok(self.write_api(o, Class::Claim, |api| {
                    if let Some(claim) = api.kept.get_mut(at) {
                        *claim = Some(record);
                    }
                }))
            }
            Verb::MarkPrimaryDown { down } => {
                let now = self.now;
                let at = self.written_by(o, now);
                Ok(self.write_api(o, Class::Status, |api| api.down_since = down.then_some(at)))
            }
            Verb::SetLabel { pod, label } => {
                if let Some(pod) = self.pods.get_mut(pod.index()) {
                    pod.label = label;
                }
                Ok(Ok(()))
            }
            Verb::Promote { pod }
            | Verb::Follow { pod, .. }
            | Verb::StepDown { pod }
            | Verb::Open { pod }
            | Verb::PauseWrites { pod }
            | Verb::ResumeWrites { pod }
            | Verb::AwaitCopy { pod, .. }
            | Verb::Detach { pod }
            | Verb::NeedReplica { pod, .. }
            | Verb::Configure { pod }
            | Verb::Fence { pod }
            | Verb::CloseClients { pod } => self.command(o, pod, effect, seen),
            Verb::Evict { pod } => {
                invariants::planned::what_is_missing_stops_a_change(self, seen, pod)?;
                self.evict(o, pod, effect)
            }
            Verb::ScaleIn { to } => {
                invariants::planned::sleep_begins_while_the_primary_serves(self, seen, to)?;
                self.scale_in(o, to)
            }
            Verb::Apply(object) => {
                self.apply_object(object);
                Ok(Ok(()))
            }
            Verb::Delete(object) => {
                self.remove_object(object);
                Ok(Ok(()))
            }
            Verb::CreateCredentials => {
                self.apply_object(Object::Credentials);
                Ok(Ok(()))
            }
            Verb::GoBackToConfig => {
                self.go_back_to_config();
                Ok(Ok(()))
            }
            Verb::DeleteOldConfig => {
                self.faults_mut().arranged.old_configs = 0;
                Ok(Ok(()))
            }
            Verb::ReleaseFinalizer => {
                self.spec.foreign_finalizer = false;
                Ok(Ok(()))
            }
            Verb::GrowVolume { pod, claim } => Ok(self.grow(o, pod, claim)),
        }
    }

    /// A write that the API server refuses when the writer's copy is not the newest (`resourceVersion`); the writer sees its
    /// own writes at once.
    ///
    /// Only writes to the status name the version; Services and claims are written whatever they are by now
    /// (`interpreter/src/execute/kubernetes.rs`). Searches have all of it refused.
    fn write_api(
        &mut self,
        o: usize,
        class: Class,
        change: impl Fn(&mut Api),
    ) -> Result<(), String> {
        let each = self.faults.is_some();
        let lagging = self
            .on_operator(o)
            .is_some_and(|it| it.spec.is_some_and(|spec| spec != self.spec));
        let Some(operator) = self.operators.get_mut(o) else {
            return Err("no operator".to_owned());
        };
        let (cache, api) = (&operator.cache, &self.api);
        let same_status = cache.record == api.record && cache.down_since == api.down_since;
        let agrees = match each {
            true => class != Class::Status || (same_status && !lagging),
            false => cache == api,
        };
        if !agrees {
            return Err("conflict: the object has been modified".to_owned());
        }
        change(&mut self.api);
        match each {
            _ if self.hands == Hands::OwnWritesAreNotSeen => {}
            true => change(&mut operator.cache),
            false => operator.cache = self.api.clone(),
        }
        Ok(())
    }

    fn command(
        &mut self,
        o: usize,
        pod: Ordinal,
        effect: &Effect,
        seen: &Observation,
    ) -> Result<Result<(), String>, Violation> {
        let n = pod.index();
        let Some((_, uid)) = effect.guard.pod else {
            return Ok(Err("the pod is not named".to_owned()));
        };
        let reachable = self.is_reachable(uid);
        let any = self.hands == Hands::CommandsGoToAnyProcess;
        let process = self.process_of(uid);
        let process = process.filter(|p| any || Some(p.run) == effect.guard.run);
        let Some(process) = process.filter(|_| reachable) else {
            return Ok(Err("the connection is gone".to_owned()));
        };
        if process.ails(|it| it.denies_operator) {
            return Ok(Err("the connection is gone".to_owned()));
        }
        let (busy, loads) = (process.ails(|it| it.busy), process.is_loading());
        let frozen = process.frozen.is_some() || self.is_pod(n, |it| it.answers_cut);
        if let Verb::AwaitCopy { .. } = effect.verb {
            return match frozen {
                true => Ok(Err("no answer in time".to_owned())),
                false => self.await_copy(o, n, seen),
            };
        }
        let Some(command) = self.command_of(effect, seen) else {
            return Ok(Err("the primary's address is not known".to_owned()));
        };
        if busy {
            return Ok(Err("-BUSY".to_owned()));
        }
        if loads && command.is_of_replication() {
            return Ok(Err("-LOADING".to_owned()));
        }
        let fate = self.take_fate(o);
        if fate == Some(Fate::Lost) {
            return Ok(Err("no answer in time".to_owned()));
        }
        self.judge(o, (pod, uid), effect, seen, command)?;
        match fate {
            Some(Fate::Delayed) => self.delay(uid, command),
            _ => self.send(uid, command),
        }
        if matches!(command, Command::Promote { .. }) && self.is_ordered(effect.guard.epoch) {
            self.leave_others_behind(uid);
        }
        if frozen || fate.is_some() {
            return Ok(Err("no answer in time".to_owned()));
        }
        self.read_back(o, n, uid);
        Ok(Ok(()))
    }

    /// The command of an effect; none where it names a pod whose address is not known.
    fn command_of(&self, effect: &Effect, seen: &Observation) -> Option<Command> {
        Some(match effect.verb {
            Verb::Promote { .. } => {
                let on_silence = effect.reason == Reason::SilentPrimarySucceeded;
                let silent = effect.guard.silent.filter(|_| on_silence);
                Command::Promote {
                    epoch: effect.guard.epoch.map_or(0, |epoch| epoch.0),
                    silent: silent.map(|(_, uid)| uid),
                }
            }
            Verb::Follow { primary, .. } => {
                let of = seen.pod(primary)?.object.value()?.uid;
                let pod = self.pods.iter().find(|pod| pod.uid == of)?;
                Command::Follow(pod.addr)
            }
            Verb::StepDown { .. } | Verb::Fence { .. } | Verb::Detach { .. } => Command::Nobody,
            Verb::NeedReplica { needed, .. } => Command::NeedReplica(needed),
            Verb::Open { .. } => Command::Open,
            Verb::Configure { .. } => Command::Configure,
            Verb::PauseWrites { .. } => Command::Pause(limits::HANDOVER_PAUSE),
            Verb::ResumeWrites { .. } => Command::Unpause,
            _ => Command::CloseClients,
        })
    }

    /// The stream goes on while the operator asks the replica `n` again and again.
    fn await_copy(
        &mut self,
        o: usize,
        n: usize,
        seen: &Observation,
    ) -> Result<Result<(), String>, Violation> {
        let truth = seen.record.map(|record| record.truth());
        let far = truth
            .and_then(|truth| seen.known_of(truth.pod, truth.pod_uid)?.last())
            .map(|server| server.offset);
        self.replicate(n)?;
        self.poll(o, n, false);
        let copy = self
            .operators
            .get(o)
            .and_then(|op| op.pods.get(n)?.server.value())
            .map(|server| server.offset);
        if copy.is_some() && copy >= far {
            return Ok(Ok(()));
        }
        Ok(Err("the replica did not catch up in time".to_owned()))
    }

    /// The command's connection tells at once what became of the server.
    fn read_back(&mut self, o: usize, n: usize, uid: PodUid) {
        let present = self
            .operators
            .get(o)
            .and_then(|op| op.pods.get(n)?.object.last())
            .is_some_and(|object| object.uid == uid);
        if present {
            self.poll(o, n, false);
        } else {
            self.probe_former(o);
        }
    }
}

fn record_primary(api: &mut Api, record: Record) {
    if api.record.map(|old| old.epoch) != Some(record.epoch) {
        api.down_since = None;
    }
    api.record = Some(record);
}

/// What a container that ends leaves on its volume.
pub fn left_behind(
    disk: Disk,
    process: &Process,
    before: Option<Data>,
    orderly: bool,
) -> Option<Data> {
    match disk {
        Disk::None => None,
        // It stays until its file is written (`server.c: prepareForShutdown`).
        Disk::Aof if orderly => Some(process.data.clone()),
        Disk::Aof => before,
        Disk::Rdb if orderly && !process.syncing => Some(process.data.saved(process.primary)),
        Disk::Rdb => before,
    }
}

/// The kubelet's words for a pod.
pub fn container(process: Option<&Process>, restarts: u16) -> Container {
    match process {
        Some(_) => Container::Running { restarts },
        None => Container::Terminated { restarts },
    }
}
