//! What an operator sees, decides and does. It runs the real decision and the real guards; only its sockets are simulated.

use std::collections::BTreeMap;

use wellcake_core::effects::{Decision, Effect, Lane, Order, Route, Verb};
use wellcake_core::exec::{self, Authority};
use wellcake_core::facts::{
    ClaimFacts, ClaimUid, Container, Former, Fresh, Hints, Kept, Known, Link, Millis, Object,
    ObjectFacts, ObjectState, Observation, Offset, Ordinal, PasswordSource, PodFacts, PodObject,
    PodUid, Port, Reachability, Record, Revision, Role, RunId, Served, ServerFacts, SpecFacts,
    Tick, Upstream, Volume,
};
use wellcake_core::limits;
use wellcake_core::reasons::Reason;

use crate::history::Data;
use crate::invariants::{self, Violation};
use crate::world::{Api, Disk, Process, World};

/// How long a lease lasts after its last renewal.
pub const LEASE: Millis = Millis(15_000);

/// The decision under test: [`wellcake_core::step`], or one that is wrong on purpose.
pub type Brain = fn(&SpecFacts, &Observation, &Hints, Tick) -> Decision;

/// One operator process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    pub reach: BTreeMap<PodUid, Reachability>,
    /// What servers said last whose pods were replaced or are gone.
    pub former: BTreeMap<PodUid, Known<ServerFacts>>,
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
            reach: BTreeMap::new(),
            former: BTreeMap::new(),
            offset: None,
            queue: Vec::new(),
            sight: vec![None; world.pods.len()],
            truth: vec![None; world.pods.len()],
        }
    }
}

impl World {
    /// Operator `o` gets what the API server says now.
    pub fn watch(&mut self, o: usize) {
        let objects: Vec<_> = (0..self.pods.len()).map(|n| self.object(n)).collect();
        let (api, now, replicas) = (self.api.clone(), self.now, self.replicas);
        let Some(operator) = self.operators.get_mut(o) else {
            return;
        };
        operator.cache = api;
        operator.replicas = replicas;
        for (facts, (object, claim)) in operator.pods.iter_mut().zip(objects) {
            facts.claim = claim.map_or(Known::Absent, |c| Known::seen(now, c));
            let gone = facts.object.last().map(|old| old.uid) != object.map(|new| new.uid);
            if gone {
                if let Some(old) = facts.object.last() {
                    operator.former.insert(old.uid, facts.server);
                }
                facts.server = object.map_or(Known::Absent, |_| Known::unknown(now));
            }
            facts.object = object.map_or(Known::Absent, |o| Known::seen(now, o));
        }
    }

    fn object(&self, n: usize) -> (Option<PodObject>, Option<ClaimFacts>) {
        let Some(pod) = self.pods.get(n) else {
            return (None, None);
        };
        let object = pod.exists.then_some(PodObject {
            uid: pod.uid,
            terminating: pod.terminating,
            container: pod.reported,
            label: pod.label,
            node_out_of_service: false,
            revision: if pod.made_from == self.template {
                Revision::Current
            } else {
                Revision::Outdated
            },
            trouble: None,
        });
        let claim = (self.disk != Disk::None).then_some(ClaimFacts {
            uid: ClaimUid(u16::try_from(n).unwrap_or(u16::MAX)),
            volume: Volume::Enough,
            younger_than_cluster: pod.claim_is_young,
        });
        (object, claim)
    }

    /// Operator `o` polls the server of pod `n`, at the address of the pod that its cache names.
    pub fn poll(&mut self, o: usize, n: usize, dropped: bool) {
        let now = self.now;
        let Some(uid) = self
            .operators
            .get(o)
            .and_then(|op| op.pods.get(n)?.object.value().map(|object| object.uid))
        else {
            return;
        };
        let answer = self.ask(o, n, uid, dropped);
        let recorded = self.operators.get(o).and_then(|op| op.cache.record);
        let Some(operator) = self.operators.get_mut(o) else {
            return;
        };
        let Some(facts) = operator.pods.get_mut(n) else {
            return;
        };
        let before = operator.reach.get(&uid).copied();
        let reach = note(uid, before, &answer, now);
        operator.reach.insert(uid, reach);
        facts.server = match answer {
            Answer::Server(mut server, truth) => {
                let known = facts.server.last().filter(|last| last.run == server.run);
                server.run_since = known.map_or(now, |last| last.run_since);
                if let Some(seen) = operator.truth.get_mut(n) {
                    *seen = Some((now, truth));
                }
                let truth = recorded.map(|record| record.truth());
                if let Some(truth) = truth.filter(|truth| is_offset_of(truth, uid, &server)) {
                    operator.offset = Some((truth, server.offset));
                }
                Known::seen(now, server)
            }
            Answer::Refused | Answer::Nothing => facts.server.failed(now),
        };
    }

    fn ask(&self, o: usize, n: usize, uid: PodUid, dropped: bool) -> Answer {
        let Some(pod) = self.pods.get(n) else {
            return Answer::Nothing;
        };
        if dropped || pod.hidden {
            return Answer::Nothing;
        }
        let process = if pod.exists && pod.uid == uid {
            pod.process.as_ref()
        } else {
            return self.ask_former(o, uid);
        };
        match process {
            Some(process) if process.frozen.is_some() => Answer::Nothing,
            Some(process) => Answer::Server(self.facts(o, uid, process), process.serves()),
            None => Answer::Refused,
        }
    }

    /// What runs in a pod whose object is gone answers, too, where it can be reached.
    fn ask_former(&self, o: usize, uid: PodUid) -> Answer {
        let Some(zombie) = self.zombies.iter().find(|zombie| zombie.uid == uid) else {
            return Answer::Refused;
        };
        if zombie.hidden || zombie.process.frozen.is_some() {
            return Answer::Nothing;
        }
        Answer::Server(self.facts(o, uid, &zombie.process), zombie.process.serves())
    }

    fn facts(&self, o: usize, uid: PodUid, process: &Process) -> ServerFacts {
        let role = if process.primary {
            Role::Primary
        } else {
            Role::Replica {
                upstream: self.upstream(o, process.upstream),
                link: match process.unlinked_at {
                    _ if process.linked => Link::Up,
                    Some(at) => Link::Down {
                        // The server subtracts whole seconds: it may say up to one more than it was.
                        seconds: u32::try_from(self.now.since(at).0.div_ceil(1000))
                            .unwrap_or(u32::MAX),
                    },
                    None => Link::Never,
                },
                syncing: process.syncing,
            }
        };
        ServerFacts {
            pod_uid: uid,
            run: process.run,
            run_since: self.now,
            port: process.port,
            role,
            replid: process.data.replid,
            replid2: process.data.before.map(|(replid, _)| replid),
            replid2_until: Offset(process.data.before.map_or(0, |(_, until)| until)),
            offset: process.data.offset(process.primary),
            loading: false,
            keys: u32::try_from(process.data.log.len()).unwrap_or(u32::MAX),
            uptime: u32::try_from(self.now.since(process.started).0 / 1000).unwrap_or(u32::MAX),
            needs_replica: process.needs_replica,
            has_replica: process.primary && self.is_followed(uid),
        }
    }

    /// Whether a replica has its link to the server of a pod.
    fn is_followed(&self, uid: PodUid) -> bool {
        let of_pod = self.pods.iter().find(|pod| pod.exists && pod.uid == uid);
        let gone = self.zombies.iter().find(|zombie| zombie.uid == uid);
        let addr = of_pod.map(|pod| pod.addr).or(gone.map(|z| z.addr));
        let linked = |p: &Process| p.linked && !p.syncing && p.upstream == addr;
        addr.is_some() && self.processes().any(|(_, process)| linked(process))
    }

    /// What an address means to operator `o`: the pod that has it by the operator's cache.
    fn upstream(&self, o: usize, addr: Option<u16>) -> Upstream {
        let Some(addr) = addr else {
            return Upstream::Nobody;
        };
        let known = self.operators.get(o).and_then(|op| {
            op.pods.iter().position(|facts| {
                let uid = facts.object.value().map(|object| object.uid);
                self.pods
                    .iter()
                    .any(|pod| Some(pod.uid) == uid && pod.addr == addr && pod.exists)
            })
        });
        known
            .and_then(|n| u8::try_from(n).ok())
            .map_or(Upstream::Other, |n| Upstream::Pod(Ordinal(n)))
    }

    /// Operator `o` asks the servers of the recorded primary, and of one that hands over to it, whose pods are gone.
    pub fn probe_former(&mut self, o: usize) {
        let now = self.now;
        for uid in self.former_uids(o) {
            let answer = self.ask_former(o, uid);
            let Some(operator) = self.operators.get_mut(o) else {
                return;
            };
            // A server that was never reached is not looked for.
            let Some(before) = operator.reach.get(&uid).copied() else {
                continue;
            };
            operator
                .reach
                .insert(uid, note(uid, Some(before), &answer, now));
            let known = operator.former.entry(uid).or_insert(Known::unknown(now));
            *known = match answer {
                Answer::Server(mut server, _) => {
                    let last = known.last().filter(|last| last.run == server.run);
                    server.run_since = last.map_or(now, |last| last.run_since);
                    Known::seen(now, server)
                }
                Answer::Refused | Answer::Nothing => known.failed(now),
            };
            let truth = operator.cache.record.map(|record| record.truth());
            if let (Some(truth), Some(server)) = (truth, known.value())
                && is_offset_of(&truth, uid, server)
            {
                operator.offset = Some((truth, server.offset));
            }
        }
    }

    /// Uids of the recorded primary, and of one that hands over to it, of which operator `o` sees no object.
    fn former_uids(&self, o: usize) -> Vec<PodUid> {
        let Some(operator) = self.operators.get(o) else {
            return Vec::new();
        };
        let Some(record) = operator.cache.record else {
            return Vec::new();
        };
        let recorded = [
            Some(record.pod_uid),
            record.served.map(|before| before.pod_uid),
        ];
        let present = |uid| {
            let mut objects = operator.pods.iter().filter_map(|pod| pod.object.last());
            objects.any(|object| object.uid == uid)
        };
        recorded
            .into_iter()
            .flatten()
            .filter(|uid| !present(*uid))
            .collect()
    }

    /// The observation of operator `o`.
    pub fn observe(&self, o: usize) -> Option<Observation> {
        let operator = self.operators.get(o)?;
        let mut objects = ObjectFacts::unknown(self.now);
        for object in Object::ALL {
            objects.set(object, Known::seen(self.now, ObjectState::Matches));
        }
        objects.client_route = operator.cache.routes[0];
        objects.primary_route = operator.cache.routes[1];
        objects.replicas_applied = operator.replicas;
        objects.password = Known::seen(self.now, PasswordSource::Usable);
        let record = operator.cache.record;
        let former = self.former_uids(o).into_iter().filter_map(|uid| {
            Some(Former {
                reach: *operator.reach.get(&uid)?,
                server: operator
                    .former
                    .get(&uid)
                    .copied()
                    .unwrap_or(Known::unknown(self.now)),
            })
        });
        // Of pods that nobody asks for only those are seen that are there.
        let asked = usize::from(operator.replicas.max(self.spec.pods));
        let recorded = record.map_or(0, |record| usize::from(record.pods()));
        let there = operator
            .pods
            .iter()
            .rposition(|facts| !facts.object.is_absent())
            .map_or(0, |last| last + 1);
        let pods = operator
            .pods
            .iter()
            .take(asked.max(there).max(recorded))
            .map(|facts| PodFacts {
                reach: facts
                    .object
                    .last()
                    .and_then(|object| operator.reach.get(&object.uid).copied()),
                ..*facts
            });
        let kept = operator.cache.kept.iter().flatten();
        Some(Observation {
            record,
            kept_record: kept.max_by_key(|record| record.epoch).copied(),
            primary_down_since: operator.cache.down_since,
            primary_offset: operator
                .offset
                .filter(|(of, _)| {
                    let truth = record.map(|record| record.truth());
                    truth.is_some_and(|truth| {
                        of.pod_uid == truth.pod_uid && of.replid == truth.replid
                    })
                })
                .map(|(_, offset)| offset),
            objects,
            pods: pods.collect(),
            former: former.collect(),
            rival: false,
        })
    }

    /// Operator `o` decides, unless effects of an earlier decision are still to be done.
    pub fn decide(&mut self, o: usize, brain: Brain) -> Result<Option<Decision>, Violation> {
        let Some(seen) = self.observe(o) else {
            return Ok(None);
        };
        let decision = brain(&self.spec, &seen, &Hints::default(), self.now);
        invariants::told_the_truth(self, o, &seen, &decision)?;
        let now = self.now;
        let Some(operator) = self.operators.get_mut(o) else {
            return Ok(None);
        };
        if operator.queue.is_empty() && operator.authority.holds(now) {
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
        }
        Ok(Some(decision))
    }

    /// Operator `o` does its next effect. The guard is checked against its newest observation; the connection on which it
    /// was read carries the command, so that another process than the one that was seen never gets it.
    pub fn execute(&mut self, o: usize) -> Result<String, Violation> {
        let Some(effect) = self.operators.get_mut(o).and_then(|op| op.queue.pop()) else {
            return Ok("nothing to do".to_owned());
        };
        let Some(seen) = self.observe(o) else {
            return Ok("no operator".to_owned());
        };
        let authority = self
            .operators
            .get(o)
            .map_or(Authority::Follower, |op| op.authority);
        let outcome = match exec::admit(&effect, &seen, authority, self.now) {
            Err(failure) => Err(failure.to_string()),
            Ok(()) => self.carry_out(o, &effect, &seen)?,
        };
        Ok(match outcome {
            Ok(()) => format!("{:?} done", effect.verb),
            Err(why) => {
                if let Some(operator) = self.operators.get_mut(o) {
                    operator.queue.clear();
                }
                format!("{:?} failed: {why}", effect.verb)
            }
        })
    }

    fn carry_out(
        &mut self,
        o: usize,
        effect: &Effect,
        seen: &Observation,
    ) -> Result<Result<(), String>, Violation> {
        match effect.verb {
            Verb::SetRoute { route, pod } => {
                let at = usize::from(route == Route::Primary);
                Ok(self.write_api(o, |api| {
                    if let Some(place) = api.routes.get_mut(at) {
                        *place = Some(pod);
                    }
                }))
            }
            Verb::RecordPrimary { record, serves } => {
                let written = self.write_api(o, |api| record_primary(api, record));
                if written.is_ok() {
                    self.leads_again(record.pod_uid);
                }
                if written.is_ok() && serves == Some(Order::Failover) {
                    self.spec.failover = None;
                }
                Ok(written)
            }
            Verb::KeepRecord { record } => {
                let at = record.pod.index();
                Ok(self.write_api(o, |api| {
                    if let Some(claim) = api.kept.get_mut(at) {
                        *claim = Some(record);
                    }
                }))
            }
            Verb::MarkPrimaryDown { down } => {
                let now = self.now;
                Ok(self.write_api(o, |api| api.down_since = down.then_some(now)))
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
            | Verb::CloseClients { pod } => self.command(o, pod, effect, seen),
            Verb::Evict { pod } => self.evict(o, pod, effect),
            Verb::ScaleIn { to } => self.scale_in(o, to),
            Verb::CreateCredentials
            | Verb::Apply(_)
            | Verb::Delete(_)
            | Verb::GrowVolume { .. } => Ok(Ok(())),
        }
    }

    /// A write that the API server refuses when the writer's copy is not the newest (`resourceVersion`); the writer sees its
    /// own writes at once.
    fn write_api(&mut self, o: usize, change: impl FnOnce(&mut Api)) -> Result<(), String> {
        let Some(operator) = self.operators.get_mut(o) else {
            return Err("no operator".to_owned());
        };
        if operator.cache != self.api {
            return Err("conflict: the object has been modified".to_owned());
        }
        change(&mut self.api);
        operator.cache = self.api.clone();
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
        let answers = self
            .process_of(uid)
            .is_some_and(|p| p.frozen.is_none() && Some(p.run) == effect.guard.run);
        if !reachable || !answers {
            return Ok(Err("the connection is gone".to_owned()));
        }
        let now = self.now;
        match effect.verb {
            Verb::Promote { .. } => {
                let epoch = effect.guard.epoch.map_or(0, |epoch| epoch.0);
                let on_silence = effect.reason == Reason::SilentPrimarySucceeded;
                let silent = effect.guard.silent.filter(|_| on_silence);
                let silent = silent.map(|(_, uid)| uid);
                invariants::before_promotion(self, o, (n, uid), epoch, silent)?;
                if effect.reason == Reason::PrimaryGone
                    && let Some(before) = seen.record.and_then(|record| record.served)
                {
                    invariants::silence::nobody_follows(self, o, before.pod_uid)?;
                }
                invariants::planned_moves_are_lossless(self, uid, effect.reason)?;
                self.promote(uid, epoch);
                invariants::charge_losses(self, uid);
                if let Some(silent) = silent {
                    self.leave_behind(silent);
                }
            }
            Verb::Follow { primary, .. } => {
                let of = seen
                    .pod(primary)
                    .and_then(|pod| pod.object.value())
                    .map(|object| object.uid);
                let addr = self
                    .pods
                    .iter()
                    .find(|pod| Some(pod.uid) == of)
                    .map(|pod| pod.addr);
                match addr {
                    Some(addr) => self.follow(uid, addr),
                    None => return Ok(Err("the primary's address is not known".to_owned())),
                }
            }
            Verb::StepDown { .. } => self.step_down(uid),
            Verb::Detach { .. } => self.detach(uid),
            Verb::NeedReplica { needed, .. } => {
                if let Some(process) = self.process_of(uid) {
                    process.needs_replica = needed;
                }
            }
            Verb::Open { .. } => {
                if let Some(process) = self.process_of(uid) {
                    process.port = Port::Client;
                }
            }
            Verb::PauseWrites { .. } | Verb::ResumeWrites { .. } => {
                let pauses = matches!(effect.verb, Verb::PauseWrites { .. });
                if let Some(process) = self.process_of(uid) {
                    process.paused_until = pauses.then_some(now.after(limits::HANDOVER_PAUSE));
                }
            }
            Verb::AwaitCopy { .. } => return self.await_copy(o, n, seen),
            _ => {
                let run = self.process_of(uid).map(|p| p.run);
                if self.connection == run {
                    self.connection = None;
                }
            }
        }
        self.read_back(o, n, uid);
        Ok(Ok(()))
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

/// Whether an answer tells how far the last primary that served has come.
fn is_offset_of(truth: &Served, uid: PodUid, server: &ServerFacts) -> bool {
    truth.pod_uid == uid
        && server.role == Role::Primary
        && server.port == Port::Client
        && truth.replid.is_none_or(|replid| replid == server.replid)
}

/// What a poll brought.
enum Answer {
    /// An answer, and whether the server would have acknowledged a write.
    Server(ServerFacts, bool),
    /// Nobody listens.
    Refused,
    /// No answer in time.
    Nothing,
}

fn note(uid: PodUid, before: Option<Reachability>, answer: &Answer, now: Tick) -> Reachability {
    let mut reach = before.unwrap_or(Reachability {
        pod_uid: uid,
        kept: Kept::Never,
        fresh: Fresh::NotTried,
    });
    match answer {
        Answer::Server(..) => {
            reach.kept = Kept::Up;
            reach.fresh = Fresh::NotTried;
        }
        Answer::Refused => refuse(&mut reach, now),
        Answer::Nothing => {
            if reach.kept == Kept::Up {
                reach.kept = Kept::TimedOut { at: now };
            }
            reach.fresh = Fresh::TimedOut { at: now };
        }
    }
    reach
}

fn refuse(reach: &mut Reachability, now: Tick) {
    if reach.kept == Kept::Up {
        reach.kept = Kept::Closed { at: now };
    }
    reach.fresh = Fresh::Refused { at: now };
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
        Disk::Aof => before,
        Disk::Rdb if orderly && !process.syncing => Some(process.data.clone()),
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
