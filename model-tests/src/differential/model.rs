//! What the model allows: the set of worlds in which some servers may be after what was done to them.

use std::collections::{BTreeSet, HashMap, HashSet};

use wellcake_core::facts::{Millis, PodUid, Replid, Tick};
use wellcake_crds::v1beta1::Profile;

use super::script::{BURST, SERVERS, Step};
use super::view::View;
use crate::history::{Data, Write};
use crate::servers::Command;
use crate::world::{Disk, World};

/// Longer than any script.
const LONG: Millis = Millis(86_400_000);
/// A server that says nothing is noticed between these: `repl-timeout 15`, in whole seconds, looked at once a second
/// (`replication.c: replicationCron`).
const NOTICED: (Millis, Millis) = (Millis(14_000), Millis(17_500));
/// Worlds that are looked through at most: many more than scripts were seen to need.
const MOST_WORLDS: usize = 100_000;
/// An identity that no other thing of a world has; writes are counted from here.
const FIRST_WRITE: Write = 20_000;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, or acknowledged.
    Done,
    /// Refused with this word.
    Refused(String),
    /// No answer.
    Unanswered,
}

/// One world with what was seen of it and what the network does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    world: World,
    /// Servers from which a full copy was begun since the last comparison.
    full_copies: BTreeSet<usize>,
    /// Since when what a server sends to others goes nowhere.
    hole: [Option<Tick>; SERVERS],
    /// Primaries that have sent a PING since the last comparison.
    pinged: [bool; SERVERS],
}

/// All worlds that are possible.
#[derive(Clone, Debug)]
pub struct Worlds {
    states: Vec<State>,
    written: Write,
}

impl Worlds {
    /// Servers that have just started behind the fence.
    pub fn new(disk: Disk) -> Self {
        let count = u8::try_from(SERVERS).unwrap_or(u8::MAX);
        let mut world = World::new(count, disk, Profile::Cache);
        world.operators.clear();
        let state = State {
            world,
            full_copies: BTreeSet::new(),
            hole: [None; SERVERS],
            pinged: [false; SERVERS],
        };
        Self {
            states: vec![state],
            written: FIRST_WRITE,
        }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.states.len()
    }

    /// The number of the next write.
    pub const fn next_write(&self) -> Write {
        self.written
    }

    /// So much time has passed since the start.
    pub fn at(&mut self, elapsed: Millis) {
        for state in &mut self.states {
            state.world.now = Tick(1_000_000).after(elapsed);
            state.world.hear();
            state.acknowledge();
        }
    }

    /// Everything that servers may have done by themselves; nothing if that is more than can be looked through.
    pub fn unfold(&self) -> Option<Self> {
        let mut known = HashSet::new();
        let mut open: Vec<State> = self.states.iter().flat_map(State::noticing).collect();
        let mut states = Vec::new();
        while let Some(state) = open.pop() {
            if !known.insert(state.clone()) {
                continue;
            }
            if known.len() > MOST_WORLDS {
                return None;
            }
            open.extend(state.steps());
            states.push(state);
        }
        Some(Self { states, ..*self })
    }

    /// Those in which no server does anything more by itself.
    pub fn at_rest(&self) -> Self {
        let states = self.states.iter().filter(|state| state.rests());
        Self {
            states: states.cloned().collect(),
            ..*self
        }
    }

    /// The views of all.
    pub fn views(&self) -> BTreeSet<View> {
        self.states.iter().map(State::view).collect()
    }

    /// Those that look like this, one of each kind, ready for the next step.
    pub fn that_look_like(&self, view: &View) -> Self {
        let mut kinds: HashMap<_, State> = HashMap::new();
        for state in self.states.iter().filter(|state| state.view() == *view) {
            let mut state = state.clone();
            state.compared();
            kinds.entry(state.kind()).or_insert(state);
        }
        Self {
            states: kinds.into_values().collect(),
            ..*self
        }
    }

    /// Whether every world says that writes to a server wait.
    pub fn expect_pause(&self, n: usize) -> bool {
        let paused = |state: &State| {
            let pod = state.world.pods.get(n);
            let process = pod.and_then(|pod| pod.process.as_ref());
            process.is_some_and(|it| it.paused_until.is_some())
        };
        self.states.iter().all(paused)
    }

    /// Whether some world says that a server is a primary whose replica acknowledges now.
    pub fn is_followed(&self, n: usize) -> bool {
        self.states.iter().any(|state| state.is_followed(n))
    }

    /// What is possible after a step that ended like this.
    pub fn step(&mut self, step: Step, outcome: &Outcome) {
        let written = self.written;
        if let Step::Thaw(n) = step {
            // What waits in its sockets is read in either order.
            let first = self
                .states
                .iter()
                .filter_map(|state| state.replicated_first(n));
            let first: Vec<_> = first.collect();
            self.states.extend(first);
            // `CLIENT KILL` ends connections that were not read yet, or were.
            let killed = self.states.iter().flat_map(|state| state.killed(n));
            let killed: Vec<_> = killed.collect();
            self.states.extend(killed);
        }
        if let Step::Freeze(n) | Step::Kill(n) | Step::End(n) = step {
            // A process that stops has sent what it had, which may not have arrived yet.
            let mut sent = self.states.clone();
            for state in &mut sent {
                state.world.leave_in_sockets(n);
            }
            self.states.extend(sent);
        }
        self.states
            .retain_mut(|state| state.step(step, outcome, written));
        self.written += match step {
            Step::Write(_) => 1,
            Step::Burst(_) => Write::try_from(BURST).unwrap_or(Write::MAX),
            _ => 0,
        };
    }
}

impl State {
    fn uid(&self, n: usize) -> PodUid {
        self.world.pods.get(n).map_or(PodUid(0), |pod| pod.uid)
    }

    fn view(&self) -> View {
        let answers = |n: &&usize| {
            let pod = self.world.pods.get(**n);
            let process = pod.and_then(|pod| pod.process.as_ref());
            process.is_some_and(|process| process.frozen.is_none())
        };
        let full_copies = self.full_copies.iter().filter(answers).copied().collect();
        View::of_world(&self.world, full_copies)
    }

    /// What was seen is not seen again.
    fn compared(&mut self) {
        self.full_copies = self
            .full_copies
            .difference(&self.view().full_copies)
            .copied()
            .collect();
        self.pinged = [false; SERVERS];
        self.world.acks.clear();
    }

    /// Servers that are followed get an acknowledgement every second.
    fn acknowledge(&mut self) {
        let now = self.world.now;
        for n in 0..SERVERS {
            if self.is_followed(n)
                && let Some(process) = self.world.process(n)
            {
                process.acknowledged = Some(now);
            }
        }
    }

    /// Whether a server has a replica that acknowledges now.
    fn is_followed(&self, n: usize) -> bool {
        let addr = self.world.pods.get(n).map(|pod| pod.addr);
        self.world.pods.iter().any(|pod| {
            !pod.cut
                && pod.process.as_ref().is_some_and(|it| {
                    it.linked && !it.syncing && it.frozen.is_none() && it.upstream == addr
                })
        })
    }

    /// The state, with every choice of what has been noticed to bring nothing where that is not sure.
    fn noticing(&self) -> Vec<Self> {
        let mut choices = vec![self.clone()];
        let unsure = |since: Tick| {
            let silent = self.world.now.since(since);
            silent >= NOTICED.0 && silent <= NOTICED.1
        };
        let less = Tick(self.world.now.0.saturating_sub(NOTICED.0.0));
        for n in 0..SERVERS {
            let pod = self.world.pods.get(n);
            let Some(process) = pod.and_then(|pod| pod.process.as_ref()) else {
                continue;
            };
            let silent = process.fed_by.is_some() && unsure(process.heard);
            let frozen = process.frozen.is_some_and(unsure);
            for mut other in choices.clone() {
                // As if it had been so for less time.
                if let Some(process) = other.world.process(n) {
                    if silent {
                        process.heard = less;
                    }
                    if frozen {
                        process.frozen = Some(less);
                    }
                }
                if silent || frozen {
                    choices.push(other);
                }
            }
        }
        choices
    }

    /// What may happen by itself.
    fn steps(&self) -> Vec<Self> {
        let replicated = (0..SERVERS).filter_map(|n| self.replicated(n));
        let pinged = (0..SERVERS).filter_map(|n| self.pinged(n));
        let passed = (0..SERVERS).filter_map(|n| {
            let mut next = self.clone();
            next.world.pass_ping(n).then_some(next)
        });
        let wrote = (0..SERVERS).filter_map(|n| {
            let mut next = self.clone();
            next.world.end_rewrite(n).then_some(next)
        });
        replicated
            .chain(pinged)
            .chain(passed)
            .chain(wrote)
            .collect()
    }

    fn pinged(&self, n: usize) -> Option<Self> {
        let mut next = self.clone();
        if std::mem::replace(next.pinged.get_mut(n)?, true) || !next.world.ping_from(n) {
            return None;
        }
        Some(next)
    }

    fn replicated(&self, n: usize) -> Option<Self> {
        let mut next = self.clone();
        let syncing = |state: &Self| {
            let process = state.world.pods.get(n)?.process.as_ref()?;
            Some((process.syncing, process.upstream))
        };
        let before = syncing(self);
        next.world.replicate(n).ok()?;
        if let (Some((false, _)), Some((true, upstream))) = (before, syncing(&next)) {
            let pods = &next.world.pods;
            let source = pods.iter().position(|pod| Some(pod.addr) == upstream);
            next.full_copies.extend(source);
        }
        (next != *self).then_some(next)
    }

    /// As if commands had not reached a frozen server that were sent after one that ends connections.
    fn killed(&self, n: usize) -> Vec<Self> {
        let pod = self.world.pods.get(n);
        let waiting = pod.and_then(|pod| Some(&pod.process.as_ref()?.waiting));
        let kill = waiting.and_then(|it| it.iter().position(|it| *it == Command::CloseClients));
        let Some((waiting, kill)) = waiting.zip(kill) else {
            return Vec::new();
        };
        let after = waiting.len() - kill - 1;
        let masks = 0..1_usize << after.min(8);
        let without = masks.map(|mask| {
            let mut next = self.clone();
            let mut index = 0;
            if let Some(process) = next.world.process(n) {
                process.waiting.retain(|_| {
                    index += 1;
                    index <= kill + 1 || mask >> (index - kill - 2) & 1 == 0
                });
            }
            next
        });
        without.collect()
    }

    /// As if a frozen server had read what its primary sent to it before it reads commands.
    fn replicated_first(&self, n: usize) -> Option<Self> {
        let mut next = self.clone();
        let now = next.world.now;
        let process = next.world.process(n).filter(|it| !it.is_paused(now))?;
        process.data = process.in_socket.take()?;
        Some(next)
    }

    /// Whether nothing more happens by itself; what is in a black hole waits until it is noticed.
    fn rests(&self) -> bool {
        let waits = |n: usize| {
            let since = self.hole.get(n).copied().flatten();
            since.is_some_and(|since| self.world.now.since(since) < NOTICED.1)
        };
        let mut processes = self
            .world
            .pods
            .iter()
            .filter_map(|pod| pod.process.as_ref());
        let writes = processes.any(|it| it.frozen.is_none() && it.rewrites.is_some());
        let mut others = (0..SERVERS).filter(|n| !waits(*n));
        !writes && others.all(|n| self.replicated(n).is_none())
    }

    /// Does a step. Whether it may end like this.
    fn step(&mut self, step: Step, outcome: &Outcome, written: Write) -> bool {
        let now = self.world.now;
        match step {
            Step::Write(n) => return self.write(n, 1, outcome, written),
            Step::Burst(n) => return self.write(n, BURST, outcome, written),
            _ if *outcome != Outcome::Done => return false,
            Step::Snapshot(n) => self.world.snapshot(n),
            Step::Kill(n) | Step::End(n) => {
                self.world.end(n, matches!(step, Step::End(_)));
                self.full_copies.remove(&n);
            }
            Step::Start(n, keeps) => {
                if let Some(pod) = self.world.pods.get_mut(n).filter(|_| !keeps) {
                    pod.disk = None;
                }
                self.world.start(n);
            }
            Step::Cut(n, ended) => self.cut(n, true, (!ended).then_some(now)),
            Step::Join(n) => self.cut(n, false, None),
            Step::Freeze(n) => {
                if let Some(process) = self.world.process(n) {
                    process.frozen = Some(now);
                }
            }
            Step::Thaw(n) => self.world.thaw(n),
            _ => self.command(step),
        }
        true
    }

    fn command(&mut self, step: Step) {
        let addr = |n: usize| self.world.pods.get(n).map(|pod| pod.addr);
        let command = match step {
            Step::Promote(_) => Some(Command::Promote {
                epoch: 1,
                silent: None,
            }),
            Step::Follow(_, of) => addr(of).map(Command::Follow),
            Step::Nobody(_) => Some(Command::Nobody),
            Step::Open(_) => Some(Command::Open),
            Step::Need(_, needed) => Some(Command::NeedReplica(needed)),
            Step::Pause(_, true) => Some(Command::Pause(LONG)),
            Step::Pause(_, false) => Some(Command::Unpause),
            Step::CloseClients(_) => Some(Command::CloseClients),
            _ => None,
        };
        let (_, subject) = step.subject();
        if let (Some(n), Some(command)) = (subject, command) {
            self.world.send(self.uid(n), command);
        }
    }

    fn cut(&mut self, n: usize, cut: bool, hole: Option<Tick>) {
        if let (Some(pod), Some(since)) = (self.world.pods.get_mut(n), self.hole.get_mut(n)) {
            pod.cut = cut;
            *since = hole;
        }
    }

    /// Whether writes to a server may end like this.
    fn write(&mut self, n: usize, count: usize, outcome: &Outcome, first: Write) -> bool {
        let now = self.world.now;
        let pod = self.world.pods.get(n);
        let Some(process) = pod.and_then(|pod| pod.process.as_ref()) else {
            return false;
        };
        match outcome {
            Outcome::Done if !process.acks(now) => false,
            Outcome::Done => {
                let ids = self.world.last_id;
                self.world.connection = Some(process.run);
                self.world.last_id = first - 1;
                for _ in 0..count {
                    self.world.write();
                }
                self.world.last_id = ids;
                self.world.connection = None;
                self.world.acks.clear();
                true
            }
            Outcome::Unanswered => {
                process.primary && process.paused_until.is_some() && !process.has_stopped(now)
            }
            Outcome::Refused(word) if word == "READONLY" => !process.primary,
            // A replica whose connection ends counts no more at once (`networking.c: freeClient`): the model lets writes be
            // taken for longer.
            Outcome::Refused(word) if word == "NOREPLICAS" => {
                process.primary && process.needs_replica && !self.is_followed(n)
            }
            Outcome::Refused(_) => false,
        }
    }

    /// What tells it from others as far as anything that follows can: positions by their order and by who can continue from
    /// whom, identities by where they are met first.
    fn kind(&self) -> (Self, Vec<bool>) {
        let mut kind = self.clone();
        let all: Vec<Data> = datas(&mut kind.world).map(|data| data.clone()).collect();
        let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
        let continues = pairs.map(|(a, b)| a.can_continue(b)).collect();
        let mut places: Vec<u64> = all
            .iter()
            .flat_map(|data| {
                let until = data.before.map(|(_, until)| until);
                [data.position, data.backlog, until]
            })
            .flatten()
            .collect();
        places.sort_unstable();
        places.dedup();
        let place = |at: u64| places.binary_search(&at).map_or(0, |rank| rank as u64);
        let mut met: Vec<Replid> = Vec::new();
        let mut name = |id: Replid| {
            let known = met.iter().position(|it| *it == id);
            let index = known.unwrap_or(met.len());
            if known.is_none() {
                met.push(id);
            }
            Replid(u16::try_from(index).unwrap_or(u16::MAX))
        };
        for data in datas(&mut kind.world) {
            data.position = data.position.map(place);
            data.backlog = data.backlog.map(place);
            data.replid = name(data.replid);
            data.before = data.before.map(|(id, until)| (name(id), place(until)));
        }
        kind.world.last_id = 0;
        for process in kind
            .world
            .pods
            .iter_mut()
            .filter_map(|pod| pod.process.as_mut())
        {
            process.acknowledged = None;
            process.rewrites = process.rewrites.map(|_| Tick(0));
            process.heard = Tick(process.heard.0 / 1_000);
            process.unlinked_at = process.unlinked_at.map(|_| Tick(0));
        }
        (kind, continues)
    }
}

fn datas(world: &mut World) -> impl Iterator<Item = &mut Data> {
    world.pods.iter_mut().flat_map(|pod| {
        let process = pod.process.as_mut();
        let held = process.map(|process| (&mut process.data, process.in_socket.as_mut()));
        let held = held
            .into_iter()
            .flat_map(|(data, waits)| std::iter::once(data).chain(waits));
        held.chain(pod.disk.as_mut())
    })
}
