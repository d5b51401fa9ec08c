//! What an operator sees: its caches, the answers of servers, and the observation that follows.

use wellcake_core::facts::{
    ClaimFacts, Directives, Former, Fresh, Kept, Known, Link, Object, ObjectFacts, ObjectState,
    Observation, Offset, Ordinal, PodFacts, PodObject, PodUid, Port, Reachability, Revision, Role,
    RunId, Served, ServerFacts, Tick, Upstream, Volume,
};

use crate::faults::kind::Kind;
use crate::faults::lag::Cache;
use crate::faults::standing::Node;
use crate::world::{Disk, Process, World};

impl World {
    /// Operator `o` gets what the API server says now.
    pub fn watch(&mut self, o: usize) {
        let objects: Vec<_> = (0..self.pods.len()).map(|n| self.object(n)).collect();
        let (api, now) = (self.api_as_cached(o), self.now);
        let (pods_lag, claims_lag) = (
            self.is_lagging(o, Cache::Pods),
            self.is_lagging(o, Cache::Claims),
        );
        let replicas = self.replicas_as_cached(o);
        self.open_eyes(o);
        if pods_lag {
            self.note_pod_lag(o);
        }
        let Some(operator) = self.operators.get_mut(o) else {
            return;
        };
        operator.cache = api;
        let mut news = false;
        operator.replicas = replicas;
        for (facts, (object, claim)) in operator.pods.iter_mut().zip(objects) {
            if claims_lag {
                news |= facts.claim.value().copied() != claim;
            } else {
                facts.claim = claim.map_or(Known::Absent, |c| Known::seen(now, c));
            }
            if pods_lag {
                continue;
            }
            let gone = facts.object.last().map(|old| old.uid) != object.map(|new| new.uid);
            if gone {
                if let Some(old) = facts.object.last() {
                    operator.former.insert(old.uid, facts.server);
                }
                facts.server = object.map_or(Known::Absent, |_| Known::unknown(now));
            }
            facts.object = object.map_or(Known::Absent, |o| Known::seen(now, o));
        }
        self.note_lag(Cache::Claims, news);
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
            node_out_of_service: self.is_pod(n, |it| it.node == Node::OutOfService),
            revision: if pod.made_from == self.template {
                Revision::Current
            } else {
                Revision::Outdated
            },
            trouble: self.obstructs(n).filter(|_| pod.process.is_none()),
        });
        let claim = (self.disk != Disk::None).then_some(ClaimFacts {
            uid: self.claim_uid(n),
            volume: self
                .on_pod(n)
                .and_then(|it| it.volume)
                .unwrap_or(Volume::Enough),
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
        if self.is_pod(n, |it| it.answers_cut) {
            self.fired(Kind::WayFromPodCut);
        }
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
            // The same process still runs, and nothing that would change its role gets through
            // (`interpreter/src/valkey/server.rs`).
            Answer::Busy(run, truth) if facts.server.value().is_some_and(|it| it.run == run) => {
                if let Some(seen) = operator.truth.get_mut(n) {
                    *seen = Some((now, truth));
                }
                match facts.server.value() {
                    Some(server) => Known::seen(now, *server),
                    None => facts.server,
                }
            }
            Answer::Refused | Answer::Nothing | Answer::Busy(..) | Answer::Denied => {
                facts.server.failed(now)
            }
        };
    }

    fn ask(&self, o: usize, n: usize, uid: PodUid, dropped: bool) -> Answer {
        let Some(pod) = self.pods.get(n) else {
            return Answer::Nothing;
        };
        if dropped || pod.hidden || self.is_pod(n, |it| it.answers_cut) {
            return Answer::Nothing;
        }
        let process = if pod.exists && pod.uid == uid {
            pod.process.as_ref()
        } else {
            return self.ask_former(o, uid);
        };
        match process {
            Some(process) => self.answer_of(o, uid, process),
            None if self.is_node_up(n) => Answer::Refused,
            None => Answer::Nothing,
        }
    }

    /// What runs in a pod whose object is gone answers, too, where it can be reached.
    fn ask_former(&self, o: usize, uid: PodUid) -> Answer {
        let Some(zombie) = self.zombies.iter().find(|zombie| zombie.uid == uid) else {
            return Answer::Refused;
        };
        if zombie.hidden {
            return Answer::Nothing;
        }
        self.answer_of(o, uid, &zombie.process)
    }

    /// What a server that is reached answers.
    fn answer_of(&self, o: usize, uid: PodUid, process: &Process) -> Answer {
        if process.ails(|it| it.busy) {
            let serves = process.primary && process.port == Port::Client;
            return Answer::Busy(process.run, serves);
        }
        if process.frozen.is_some() {
            return Answer::Nothing;
        }
        if process.ails(|it| it.denies_operator) {
            return Answer::Denied;
        }
        let mut facts = self.facts(o, uid, process);
        if let Some((_, replid)) = process.ails.as_deref().and_then(|it| it.loads) {
            // Nothing of its data is known before all of it is there.
            facts.loading = true;
            (facts.replid, facts.replid2, facts.replid2_until) = (replid, None, Offset(0));
            (facts.offset, facts.keys) = (Offset(0), facts.keys / 2);
        }
        Answer::Server(facts, process.serves())
    }

    fn facts(&self, o: usize, uid: PodUid, process: &Process) -> ServerFacts {
        let role = if process.primary {
            Role::Primary
        } else {
            Role::Replica {
                upstream: match process.unfenced {
                    Some(unfenced) if unfenced.named => Upstream::Pod(Ordinal(0)),
                    _ => self.upstream(o, process.upstream),
                },
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
        let arranged = self.arranged();
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
            directives: match process.ails.as_deref().and_then(|it| it.directives) {
                Some(directives) => directives,
                None if process.configured => Directives::Set,
                None => Directives::Unset,
            },
            rewriting: process.rewrites.is_some(),
            major: if arranged.newer { 9 } else { 8 },
            unfenced: process.unfenced.is_some(),
            other_users: arranged.users && process.unfenced.is_some(),
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
            let known = operator.former.get(&uid).copied();
            let known = known.unwrap_or(Known::unknown(now));
            let known = match answer {
                Answer::Server(mut server, _) => {
                    let last = known.last().filter(|last| last.run == server.run);
                    server.run_since = last.map_or(now, |last| last.run_since);
                    Known::seen(now, server)
                }
                Answer::Busy(run, _) if known.value().is_some_and(|it| it.run == run) => {
                    match known.value() {
                        Some(server) => Known::seen(now, *server),
                        None => known,
                    }
                }
                Answer::Refused | Answer::Nothing | Answer::Busy(..) | Answer::Denied => {
                    known.failed(now)
                }
            };
            operator.former.insert(uid, known);
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
            // The first object of another operator was taken long ago.
            let since = if self.made_elsewhere {
                Tick(0)
            } else {
                self.now
            };
            let matches = Known::seen(since, ObjectState::Matches);
            objects.set(object, self.seen_object(object, since).unwrap_or(matches));
        }
        if self.made_elsewhere && self.template == 0 && self.faults.is_none() {
            let state = match operator.cache.record {
                Some(_) => ObjectState::Kept,
                None => ObjectState::Theirs,
            };
            objects.set(Object::StatefulSet, Known::seen(self.now, state));
        }
        let arranged = self.arranged();
        objects.config_refused = arranged.config_refused;
        objects.config_before = self.faults.is_some() && !arranged.config_refused;
        objects.old_configs = arranged.old_configs;
        if self.on_operator(o).is_some_and(|it| it.blind) {
            objects = ObjectFacts::unknown(self.now);
        }
        objects.client_route = operator.cache.routes[0];
        objects.primary_route = operator.cache.routes[1];
        objects.replicas_applied = operator.replicas;
        objects.password = Known::seen(self.now, self.seen_password(o));
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
        let asked = usize::from(operator.replicas.max(self.seen_spec(o).pods));
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
                login: arranged.login,
                ..*facts
            });
        let kept = operator.cache.kept.iter().flatten();
        Some(Observation {
            record,
            kept_record: kept.max_by_key(|record| record.epoch).copied(),
            primary_down_since: operator.cache.down_since.map(|at| self.read_by(o, at)),
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
            rival: arranged.rival,
        })
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
    /// `-BUSY`, of which process, and whether that is a primary that clients reach.
    Busy(RunId, bool),
    /// The operator's user is unknown there.
    Denied,
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
        // Whoever answers lives, whatever it says.
        Answer::Busy(..) => reach.fresh = Fresh::NotTried,
        Answer::Denied => {
            if reach.kept == Kept::Up {
                reach.kept = Kept::Closed { at: now };
            }
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
