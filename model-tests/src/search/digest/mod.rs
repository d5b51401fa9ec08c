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
//! * Faults that stand, and what ails a process of itself, are only in random runs.

mod facts;

use wellcake_core::exec::Authority;
use wellcake_core::facts::{Container, Offset, Ordinal, PodUid, Replid, RunId, Tick};
use wellcake_core::limits;

use crate::history::{Data, Write};
use crate::operator::Operator;
use crate::replication::REPL_TIMEOUT;
use crate::servers::Command;
use crate::sorted::Map;
use crate::world::{Ack, Api, Pod, Process, Unfenced, World, Zombie};

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
            made_elsewhere,
            faults: _,
            // The same in all worlds of a search.
            hands: _,
        } = world;
        self.spec(spec);
        self.pair(
            u64::from(*disk as u8)
                | u64::from(*replicas) << 8
                | u64::from(last_id & 1) << 16
                | u64::from(*made_elsewhere) << 17,
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
            configured,
            unfenced,
            fed_by,
            heard,
            in_socket,
            rewrites,
            waiting,
            ails: _,
        } = process;
        let unfenced = unfenced.map_or(0, |it| {
            let Unfenced {
                by_itself,
                named,
                with_our_password,
            } = it;
            1 | u64::from(by_itself) << 1
                | u64::from(named) << 2
                | u64::from(with_our_password) << 3
        });
        let run = self.name(run.0);
        let upstream = self.maybe(*upstream);
        let flags = u64::from(*port as u8)
            | u64::from(*primary) << 1
            | u64::from(*linked) << 2
            | u64::from(*syncing) << 3
            | u64::from(*needs_replica) << 4
            | u64::from(*configured) << 5
            | u64::from(in_socket.is_some()) << 7
            | u64::from(*epoch) << 8
            | unfenced << 40;
        self.pair(flags, run);
        self.put(upstream);
        self.put(self.maybe_age(*unlinked_at));
        self.put(self.maybe_age(*frozen));
        self.put(paused_until.map_or(0, |until| self.left(until)));
        self.put(self.age(*started));
        self.put(self.maybe_age(*acknowledged));
        let feeder = self.maybe(fed_by.map(|RunId(run)| run));
        // Read only of a link, and after its time it is over.
        let silent = fed_by.map_or(0, |_| self.age(*heard).min(REPL_TIMEOUT.0));
        self.pair(feeder, silent);
        self.put(self.maybe_age(*rewrites));
        self.data(data);
        if let Some(waits) = in_socket {
            self.data(waits);
        }
        self.put(waiting.len() as u64);
        for command in waiting {
            self.command(*command);
        }
    }

    fn command(&mut self, command: Command) {
        let word = match command {
            Command::Promote { epoch, silent } => {
                let silent = self.maybe(silent.map(|PodUid(uid)| uid));
                1 | silent << 4 | u64::from(epoch) << 24
            }
            Command::Follow(addr) => 2 | self.name(addr) << 4,
            Command::Nobody => 3,
            Command::Open => 4,
            Command::Configure => 5,
            Command::NeedReplica(needed) => 6 | u64::from(needed) << 4,
            Command::Pause(time) => 7 | time.0 << 4,
            Command::Unpause => 8,
            Command::CloseClients => 9,
        };
        self.put(word);
    }

    fn data(&mut self, data: &Data) {
        let Data {
            log,
            replid,
            before,
            position,
            backlog,
            lost,
        } = data;
        let replid = self.name(replid.0);
        let earlier = self.maybe(before.map(|(Replid(id), _)| id));
        self.put(replid | earlier << 20 | (log.len() as u64) << 40);
        self.put(before.map_or(u64::MAX, |(_, until)| until));
        self.put(position.unwrap_or(u64::MAX));
        self.put(backlog.unwrap_or(u64::MAX) ^ u64::from(*lost) << 62);
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
                self.put(*epoch << 1 | 1);
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
