//! 128 bits for a world, equal for worlds that cannot be told apart by anything that happens later.
//!
//! What is left out or brought to one form, and why that loses nothing:
//!
//! * Times count from now. Nothing in the world or in the core reads a clock but to subtract (`core/tests` holds the core to it).
//! * Identities (uids, addresses, run ids, replication ids, writes) count by their first appearance. They are only compared for
//!   equality, but for the parity of a pod's uid and of the next identity, on which addresses and black holes depend: both are kept.
//! * What was in sight when effects were planned is read only while there are effects.
//! * Whether a server would have acknowledged a write is read only for [`limits::FACT_AGE`].
//! * A lease, an authority and a pause that are over stay over.
//! * What an operator knows of the address or the server of a pod counts while anything else names that pod, and who was left
//!   behind while it lives: nobody asks for them else.
//! * Acknowledgements count as what is owed, by write, and who acknowledged first, by epoch.
//! * `zombie_writes` is only counted.

use wellcake_core::effects::{Effect, Guard, Verb};
use wellcake_core::exec::Authority;
use wellcake_core::facts::{
    ClaimFacts, Container, Fresh, Kept, Known, Link, Offset, Ordinal, PodFacts, PodObject, PodUid,
    Reachability, Record, Replid, Role, RunId, Served, ServerFacts, SpecFacts, Stamped, Target,
    Tick, Upstream,
};
use wellcake_core::limits;

use crate::history::{Data, Write};
use crate::operator::Operator;
use crate::sorted::Map;
use crate::world::{Ack, Api, Pod, Process, World, Zombie};

/// Numbers of identities by first appearance; kept between digests for its memory.
#[derive(Default)]
pub struct Names {
    of: Vec<(u32, u16)>,
    round: u32,
    last: u16,
}

impl Names {
    fn start(&mut self, ids: u16) {
        self.of
            .resize(self.of.len().max(usize::from(ids) + 1), (0, 0));
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.of.fill((0, 0));
            self.round = 1;
        }
        self.last = 0;
    }

    /// The name of an identity that has one.
    fn known(&self, id: u16) -> Option<u64> {
        let (round, name) = self.of.get(usize::from(id))?;
        (*round == self.round).then_some(u64::from(*name))
    }

    fn name(&mut self, id: u16) -> u64 {
        let Some((round, name)) = self.of.get_mut(usize::from(id)) else {
            // No identity of this world: it stands for itself.
            return 0x1_0000 | u64::from(id);
        };
        if *round != self.round {
            self.last += 1;
            (*round, *name) = (self.round, self.last);
        }
        u64::from(*name)
    }
}

struct Digest<'a> {
    names: &'a mut Names,
    now: Tick,
    low: u64,
    high: u64,
}

/// The digest of a world and of what an order of events has spent so far.
pub fn digest(world: &World, spent: u64, names: &mut Names) -> u128 {
    names.start(world.last_id);
    let mut it = Digest {
        names,
        now: world.now,
        low: 0x2545_F491_4F6C_DD1D,
        high: 0x9E37_79B9_7F4A_7C15,
    };
    it.put(spent);
    it.world(world);
    let low = fold(it.low, 0xD6E8_FEB8_6659_FD93);
    let high = fold(it.high ^ low, 0xA076_1D64_78BD_642F);
    u128::from(high) << 64 | u128::from(low)
}

/// Both halves of a product of 64 bits.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Digest<'_> {
    fn put(&mut self, word: u64) {
        self.low = fold(self.low ^ word, 0xA076_1D64_78BD_642F).wrapping_add(word);
        self.high = fold(self.high ^ word.rotate_left(32), 0xE703_7ED1_A0B4_28DB) ^ word;
    }

    /// Two words in one, of which the first is below 2^32.
    fn pair(&mut self, a: u64, b: u64) {
        self.put(a | b << 32);
    }

    fn name(&mut self, id: u16) -> u64 {
        self.names.name(id)
    }

    fn maybe(&mut self, id: Option<u16>) -> u64 {
        id.map_or(0, |id| self.name(id) + 1)
    }

    fn age(&self, at: Tick) -> u64 {
        self.now.0.wrapping_sub(at.0)
    }

    fn maybe_age(&self, at: Option<Tick>) -> u64 {
        at.map_or(u64::MAX, |at| self.age(at))
    }

    fn left(&self, until: Tick) -> u64 {
        until.0.saturating_sub(self.now.0)
    }

    fn world(&mut self, world: &World) {
        let World {
            spec,
            disk,
            now: _,
            pods,
            zombies,
            api,
            lease_until,
            operators,
            connection,
            acks,
            forfeited,
            left_behind,
            zombie_writes: _,
            promoted,
            last_id,
            template,
            replicas,
        } = world;
        self.spec(spec);
        self.pair(
            u64::from(*disk as u8) | u64::from(*replicas) << 8 | u64::from(last_id & 1) << 16,
            pods.len() as u64,
        );
        for pod in pods {
            self.pod(pod, *template);
        }
        self.put(zombies.len() as u64);
        for zombie in zombies {
            self.zombie(zombie);
        }
        self.api(api);
        self.put(self.left(*lease_until));
        for operator in operators {
            self.operator(operator);
        }
        let connection = self.maybe(connection.map(|RunId(id)| id));
        self.put(connection);
        self.acks(acks, |write| forfeited.contains(&write));
        self.put(promoted.len() as u64);
        for (epoch, PodUid(uid)) in promoted.iter() {
            let uid = self.name(*uid);
            self.pair(u64::from(*epoch), uid);
        }
        // Last, since what nothing else names is out of reach for all that happens later.
        self.named(
            left_behind,
            |RunId(run)| run,
            |it, stopped| {
                it.put(u64::from(*stopped));
            },
        );
        for operator in operators {
            self.named(
                &operator.reach,
                |PodUid(uid)| uid,
                |it, reach| {
                    it.reach(Some(reach));
                },
            );
            self.named(
                &operator.former,
                |PodUid(uid)| uid,
                |it, server| {
                    it.known(server, |it, server| it.server(server));
                },
            );
        }
    }

    /// The entries of a map whose keys have names, in the order of these.
    fn named<K: Ord + Copy, V>(
        &mut self,
        map: &Map<K, V>,
        id: impl Fn(K) -> u16,
        value: impl Fn(&mut Self, &V),
    ) {
        let mut after = 0;
        loop {
            let entries = map.iter().filter_map(|(key, value)| {
                let name = self.names.known(id(*key))?;
                (name > after).then_some((name, value))
            });
            let Some((name, found)) = entries.min_by_key(|(name, _)| *name) else {
                return self.put(u64::MAX);
            };
            self.put(name);
            value(self, found);
            after = name;
        }
    }

    /// Of a write it counts whether it is owed, of an epoch who acknowledged first: the others are the same pod.
    fn acks(&mut self, acks: &[Ack], is_forfeited: impl Fn(Write) -> bool) {
        let mut last = None;
        for Ack { write, epoch, pod } in acks {
            if !is_forfeited(*write) {
                let write = self.name(*write);
                self.put(write);
            }
            if last != Some((*epoch, *pod)) {
                last = Some((*epoch, *pod));
                let pod = self.name(pod.0);
                self.pair(u64::from(*epoch), pod | 1 << 31);
            }
        }
    }

    fn spec(&mut self, spec: &SpecFacts) {
        let SpecFacts {
            generation,
            topology: _,
            profile,
            pods,
            persistence: _,
            needs_replica,
            replica_lag: _,
            unserved: _,
            promote: _,
            failover,
            hibernate,
            rotation_asked: _,
            deleting: _,
        } = spec;
        let failover = match failover {
            None => 0,
            Some(Target::Any) => 1,
            Some(Target::Unknown) => 2,
            Some(Target::Pod(Ordinal(pod))) => 3 + u64::from(*pod),
        };
        let flags = u64::from(*profile as u8)
            | u64::from(*needs_replica) << 2
            | u64::from(*hibernate) << 3
            | u64::from(*pods) << 8
            | failover << 16;
        self.put(flags | (*generation as u64) << 32);
    }

    fn pod(&mut self, pod: &Pod, template: u8) {
        let Pod {
            exists,
            claim_is_young,
            uid,
            addr,
            terminating,
            reported,
            restarts,
            label,
            process,
            disk,
            hidden,
            cut,
            made_from,
            taken,
            given_up,
        } = pod;
        let flags = u64::from(*exists)
            | u64::from(*claim_is_young) << 1
            | u64::from(*terminating) << 2
            | u64::from(*hidden) << 3
            | u64::from(*cut) << 4
            | u64::from(*taken) << 5
            | u64::from(*given_up) << 6
            | u64::from(uid.0 & 1) << 7
            | u64::from(process.is_some()) << 8
            | u64::from(disk.is_some()) << 9
            | (*label as u64) << 10
            | u64::from(*made_from == template) << 12
            | u64::from(*restarts) << 16;
        self.pair(flags, container(*reported));
        let (uid, addr) = (self.name(uid.0), self.name(*addr));
        self.pair(uid, addr);
        if let Some(process) = process {
            self.process(process);
        }
        if let Some(disk) = disk {
            self.data(disk);
        }
    }

    fn zombie(&mut self, zombie: &Zombie) {
        let Zombie {
            ordinal,
            uid,
            addr,
            hidden,
            process,
        } = zombie;
        let (uid, addr) = (self.name(uid.0), self.name(*addr));
        self.pair(u64::from(ordinal.0) | u64::from(*hidden) << 8 | 1 << 9, uid);
        self.put(addr);
        self.process(process);
    }

    fn process(&mut self, process: &Process) {
        let Process {
            run,
            port,
            primary,
            upstream,
            linked,
            unlinked_at,
            syncing,
            frozen,
            paused_until,
            data,
            started,
            epoch,
            needs_replica,
            acknowledged,
        } = process;
        let run = self.name(run.0);
        let upstream = self.maybe(*upstream);
        let flags = u64::from(*port as u8)
            | u64::from(*primary) << 1
            | u64::from(*linked) << 2
            | u64::from(*syncing) << 3
            | u64::from(*needs_replica) << 4
            | u64::from(*epoch) << 8;
        self.pair(flags, run);
        self.put(upstream);
        self.put(self.maybe_age(*unlinked_at));
        self.put(self.maybe_age(*frozen));
        self.put(paused_until.map_or(0, |until| self.left(until)));
        self.put(self.age(*started));
        self.put(self.maybe_age(*acknowledged));
        self.data(data);
    }

    fn data(&mut self, data: &Data) {
        let Data {
            log,
            replid,
            before,
            position,
        } = data;
        let replid = self.name(replid.0);
        let earlier = self.maybe(before.map(|(Replid(id), _)| id));
        self.put(replid | earlier << 20 | (log.len() as u64) << 40);
        self.put(before.map_or(u64::MAX, |(_, until)| until));
        self.put(position.unwrap_or(u64::MAX));
        for write in log {
            let write = self.name(*write);
            self.put(write);
        }
    }

    fn api(&mut self, api: &Api) {
        let Api {
            record,
            kept,
            down_since,
            routes: [client, primary],
        } = api;
        self.record(record.as_ref());
        for record in kept {
            self.record(record.as_ref());
        }
        self.put(self.maybe_age(*down_since));
        self.pair(ordinal(*client), ordinal(*primary));
    }

    fn record(&mut self, record: Option<&Record>) {
        let Some(record) = record else {
            return self.put(0);
        };
        let Record {
            epoch,
            pod,
            pod_uid,
            claim_uid,
            replid,
            continues,
            served,
            planned,
        } = record;
        let uid = self.name(pod_uid.0);
        let replid = self.maybe(replid.map(|id| id.0));
        let continues = self.maybe(continues.map(|id| id.0));
        let claim = claim_uid.map_or(0, |claim| u64::from(claim.0) + 1);
        let flags = 1
            | u64::from(*planned) << 1
            | u64::from(served.is_some()) << 2
            | u64::from(pod.0) << 8
            | claim << 16;
        self.pair(u64::from(epoch.0), flags);
        self.put(uid | replid << 20 | continues << 40);
        if let Some(Served {
            pod,
            pod_uid,
            claim_uid,
            replid,
        }) = served
        {
            let uid = self.name(pod_uid.0);
            let replid = self.maybe(replid.map(|id| id.0));
            let claim = claim_uid.map_or(0, |claim| u64::from(claim.0) + 1);
            self.pair(u64::from(pod.0) | claim << 8, 0);
            self.pair(uid, replid);
        }
    }

    fn operator(&mut self, operator: &Operator) {
        let Operator {
            authority,
            cache,
            pods,
            replicas,
            reach: _,
            former: _,
            offset,
            queue,
            sight,
            truth,
        } = operator;
        match authority {
            Authority::Leader { epoch, valid_until } => {
                self.pair(u64::from(*epoch), 1);
                self.put(self.left(*valid_until));
            }
            Authority::Follower => self.put(0),
        }
        self.api(cache);
        for facts in pods {
            self.facts(facts);
        }
        self.put(u64::from(*replicas));
        match offset {
            Some((served, Offset(offset))) => {
                let uid = self.name(served.pod_uid.0);
                let replid = self.maybe(served.replid.map(|id| id.0));
                self.put(uid | replid << 20 | u64::from(served.pod.0) << 40 | 1 << 48);
                self.put(*offset);
            }
            None => self.put(0),
        }
        self.put(queue.len() as u64);
        for effect in queue {
            self.effect(effect);
        }
        if !queue.is_empty() {
            for seen in sight {
                let run = self.maybe(seen.map(|(run, _)| run.0));
                self.put(run << 1 | u64::from(seen.is_some_and(|(_, data)| data)));
            }
        }
        for seen in truth {
            let recent = seen.filter(|(at, _)| self.now.since(*at) <= limits::FACT_AGE);
            let (at, acked) =
                recent.map_or((u64::MAX >> 1, false), |(at, acked)| (self.age(at), acked));
            self.put(at << 1 | u64::from(acked));
        }
    }

    fn facts(&mut self, facts: &PodFacts) {
        let PodFacts {
            object,
            claim,
            server,
            reach,
        } = facts;
        self.known(object, |it, object| {
            let PodObject {
                uid,
                terminating,
                container: state,
                label,
                node_out_of_service,
                revision,
                trouble: _,
            } = object;
            let uid = it.name(uid.0);
            let flags = u64::from(*terminating)
                | u64::from(*node_out_of_service) << 1
                | (*label as u64) << 2
                | (*revision as u64) << 4;
            it.put(uid | flags << 20 | container(*state) << 32);
        });
        self.known(claim, |it, claim| {
            let ClaimFacts {
                uid,
                younger_than_cluster,
                volume,
            } = claim;
            it.put(
                u64::from(uid.0) | u64::from(*younger_than_cluster) << 16 | (*volume as u64) << 17,
            );
        });
        self.known(server, |it, server| it.server(server));
        self.reach(reach.as_ref());
    }

    fn known<T>(&mut self, known: &Known<T>, value: impl FnOnce(&mut Self, &T)) {
        let last = match known {
            Known::Absent => return self.put(1),
            Known::Maybe { since, last } => {
                self.put(self.age(*since) << 3 | 2 | u64::from(last.is_some()));
                last.as_ref()
            }
            Known::Seen(stamped) => {
                self.put(4);
                Some(stamped)
            }
        };
        if let Some(Stamped { at, value: seen }) = last {
            self.put(self.age(*at));
            value(self, seen);
        }
    }

    fn server(&mut self, server: &ServerFacts) {
        let ServerFacts {
            pod_uid,
            run,
            run_since,
            port,
            role,
            replid,
            replid2,
            replid2_until,
            offset,
            loading,
            keys,
            uptime,
            needs_replica,
            has_replica,
        } = server;
        let (uid, run) = (self.name(pod_uid.0), self.name(run.0));
        let (replid, replid2) = (self.name(replid.0), self.maybe(replid2.map(|id| id.0)));
        let role = match role {
            Role::Primary => 0,
            Role::Replica {
                upstream,
                link,
                syncing,
            } => {
                let upstream = match upstream {
                    Upstream::Nobody => 1,
                    Upstream::Other => 2,
                    Upstream::Pod(Ordinal(pod)) => 3 + u64::from(*pod),
                };
                let link = match link {
                    Link::Up => 1,
                    Link::Never => 2,
                    Link::Down { seconds } => 3 + u64::from(*seconds),
                };
                1 | u64::from(*syncing) << 1 | upstream << 2 | link << 12
            }
        };
        let flags = u64::from(*port as u8)
            | u64::from(*loading) << 1
            | u64::from(*needs_replica) << 2
            | u64::from(*has_replica) << 3
            | u64::from(*keys) << 4;
        self.put(uid | run << 20 | flags << 40);
        self.put(replid | replid2 << 20);
        self.put(role);
        self.put(self.age(*run_since));
        self.put(replid2_until.0);
        self.put(offset.0);
        self.put(u64::from(*uptime));
    }

    fn reach(&mut self, reach: Option<&Reachability>) {
        let Some(Reachability {
            pod_uid,
            kept,
            fresh,
        }) = reach
        else {
            return self.put(0);
        };
        let uid = self.name(pod_uid.0);
        let (kept, closed) = match kept {
            Kept::Never => (1, None),
            Kept::Up => (2, None),
            Kept::Closed { at } => (3, Some(*at)),
            Kept::TimedOut { at } => (4, Some(*at)),
        };
        let (fresh, failed) = match fresh {
            Fresh::NotTried => (0, None),
            Fresh::Refused { at } => (1, Some(*at)),
            Fresh::TimedOut { at } => (2, Some(*at)),
        };
        self.put(uid | kept << 20 | fresh << 24);
        if closed.is_some() || failed.is_some() {
            self.put(self.maybe_age(closed));
            self.put(self.maybe_age(failed));
        }
    }

    fn effect(&mut self, effect: &Effect) {
        let Effect {
            verb,
            guard,
            reason,
        } = effect;
        let (pod, more) = match verb {
            Verb::SetRoute { route, pod } => (pod.0, *route as u64),
            Verb::RecordPrimary { record, serves } => {
                self.record(Some(record));
                (0, serves.map_or(0, |order| order as u64 + 1))
            }
            Verb::KeepRecord { record } => {
                self.record(Some(record));
                (0, 0)
            }
            Verb::MarkPrimaryDown { down } => (0, u64::from(*down)),
            Verb::SetLabel { pod, label } => (pod.0, *label as u64),
            Verb::Follow { pod, primary } | Verb::AwaitCopy { pod, primary } => {
                (pod.0, u64::from(primary.0))
            }
            Verb::ScaleIn { to } => (*to, 0),
            Verb::GrowVolume { pod, claim } => (pod.0, u64::from(claim.0)),
            Verb::NeedReplica { pod, needed } => (pod.0, u64::from(*needed)),
            Verb::Promote { pod }
            | Verb::StepDown { pod }
            | Verb::Open { pod }
            | Verb::PauseWrites { pod }
            | Verb::ResumeWrites { pod }
            | Verb::Evict { pod }
            | Verb::CloseClients { pod }
            | Verb::Detach { pod } => (pod.0, 0),
            Verb::Apply(object) | Verb::Delete(object) => (0, *object as u64),
            Verb::CreateCredentials => (0, 0),
        };
        let kind = verb.kind() as u64;
        self.put(kind | u64::from(pod) << 8 | more << 16 | (*reason as u64) << 40);
        self.guard(guard);
    }

    fn guard(&mut self, guard: &Guard) {
        let Guard {
            epoch,
            pod,
            run,
            replica,
            unfed,
            offset_floor,
            primary,
            copied,
            before,
            absent,
            in_sync,
            silent,
            gone,
            foremost,
        } = guard;
        let sync = match in_sync {
            wellcake_core::effects::InSync::NotAsked => 0,
            wellcake_core::effects::InSync::Others => 1,
            wellcake_core::effects::InSync::NotThisOne => 2,
            wellcake_core::effects::InSync::NotRunning => 3,
            wellcake_core::effects::InSync::Staying(count) => 4 + u64::from(*count),
        };
        let run = self.maybe(run.map(|run| run.0));
        let flags = replica.map_or(0, |replica| 1 + u64::from(replica))
            | u64::from(*unfed) << 2
            | u64::from(*copied) << 3
            | u64::from(*foremost) << 4
            | (*absent as u64) << 5
            | sync << 8;
        self.pair(
            flags | run << 16,
            epoch.map_or(0, |epoch| u64::from(epoch.0) + 1),
        );
        if let Some(Offset(floor)) = offset_floor {
            self.put(*floor);
        }
        for (place, named) in [pod, primary, before, silent, gone].into_iter().enumerate() {
            if let Some((Ordinal(pod), PodUid(uid))) = named {
                let uid = self.name(*uid);
                self.put(uid | u64::from(*pod) << 20 | (place as u64 + 1) << 40);
            }
        }
    }
}

fn container(container: Container) -> u64 {
    match container {
        Container::Waiting => 0,
        Container::Running { restarts } => 1 | u64::from(restarts) << 2,
        Container::Terminated { restarts } => 2 | u64::from(restarts) << 2,
    }
}

fn ordinal(pod: Option<Ordinal>) -> u64 {
    pod.map_or(0, |Ordinal(pod)| u64::from(pod) + 1)
}
