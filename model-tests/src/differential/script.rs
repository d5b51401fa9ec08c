//! Scripts: what is done to a few servers, made from a seed.

use serde::Serialize;

use crate::random::Numbers;
use crate::world::Disk;

/// Servers of a script.
pub const SERVERS: usize = 3;
/// Fewest and most steps of a script.
const STEPS: (u64, u64) = (5, 30);
/// More writes than the backlog of the model holds, and than that of a server does with values of this size.
pub const BURST: usize = 45;
/// Bytes of a value of a burst.
pub const BURST_BYTES: usize = 2_000;
/// How long a stretch is: longer than a link survives a server that says nothing (15 s), as both sides count it.
pub const STRETCH_SECONDS: u64 = 18;

/// One step. Numbers are servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Step {
    /// A client writes once over a new connection.
    Write(usize),
    /// A client writes more than the backlog holds.
    Burst(usize),
    /// `REPLICAOF NO ONE`.
    Promote(usize),
    /// `REPLICAOF` the address of another.
    Follow(usize, usize),
    /// `REPLICAOF` the address of nobody.
    Nobody(usize),
    /// `CONFIG SET port`: from the fence to the client port.
    Open(usize),
    /// `CONFIG SET min-replicas-to-write`.
    Need(usize, bool),
    /// `CLIENT PAUSE` of writes for longer than a script takes, or `CLIENT UNPAUSE`.
    Pause(usize, bool),
    /// `CLIENT KILL TYPE normal`.
    CloseClients(usize),
    /// `SAVE`.
    Snapshot(usize),
    /// SIGKILL.
    Kill(usize),
    /// SIGTERM.
    End(usize),
    /// Starts again, with its volume or an empty one.
    Start(usize, bool),
    /// SIGSTOP.
    Freeze(usize),
    /// SIGCONT.
    Thaw(usize),
    /// What it sends to others is ended (true), or waits for ever (false).
    Cut(usize, bool),
    /// It reaches the others again.
    Join(usize),
    /// Longer than `repl-timeout`.
    Stretch,
    /// Everything is left alone until it does not change any more.
    Rest,
}

impl Step {
    /// Its name and the server that it is done to.
    pub const fn subject(self) -> (&'static str, Option<usize>) {
        match self {
            Self::Write(n) => ("SET", Some(n)),
            Self::Burst(n) => ("SET beyond the backlog", Some(n)),
            Self::Promote(n) => ("REPLICAOF NO ONE", Some(n)),
            Self::Follow(n, _) => ("REPLICAOF another", Some(n)),
            Self::Nobody(n) => ("REPLICAOF nobody", Some(n)),
            Self::Open(n) => ("CONFIG SET port", Some(n)),
            Self::Need(n, _) => ("CONFIG SET min-replicas-to-write", Some(n)),
            Self::Pause(n, true) => ("CLIENT PAUSE", Some(n)),
            Self::Pause(n, false) => ("CLIENT UNPAUSE", Some(n)),
            Self::CloseClients(n) => ("CLIENT KILL", Some(n)),
            Self::Snapshot(n) => ("SAVE", Some(n)),
            Self::Kill(n) => ("SIGKILL", Some(n)),
            Self::End(n) => ("SIGTERM", Some(n)),
            Self::Start(n, true) => ("start with its volume", Some(n)),
            Self::Start(n, false) => ("start empty", Some(n)),
            Self::Freeze(n) => ("SIGSTOP", Some(n)),
            Self::Thaw(n) => ("SIGCONT", Some(n)),
            Self::Cut(n, true) => ("connections ended", Some(n)),
            Self::Cut(n, false) => ("black hole", Some(n)),
            Self::Join(n) => ("network again", Some(n)),
            Self::Stretch => ("time", None),
            Self::Rest => ("rest", None),
        }
    }
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Script {
    /// The seed that it was made from.
    pub seed: u64,
    /// What the servers persist.
    pub disk: Disk,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// What the generator knows of a server: what it has done to it.
#[derive(Clone, Copy, Default)]
struct Hand {
    runs: bool,
    open: bool,
    frozen: bool,
    paused: bool,
    cut: bool,
}

impl Script {
    /// From a seed. Most begin as clusters do: one leads and the others follow it.
    pub fn from_seed(seed: u64) -> Self {
        let mut numbers = Numbers::new(seed ^ 0x00D1_FFE6);
        let disk = [Disk::None, Disk::Rdb, Disk::Aof][pick(&mut numbers, 3)];
        let mut hands = [Hand {
            runs: true,
            ..Hand::default()
        }; SERVERS];
        let mut steps = Vec::new();
        if numbers.below(6) > 0 {
            steps.extend((0..SERVERS).map(Step::Open));
            steps.push(Step::Promote(0));
            if numbers.below(2) == 0 {
                steps.push(Step::Write(0));
            }
            steps.extend((1..SERVERS).map(|n| Step::Follow(n, 0)));
            steps.push(Step::Rest);
            hands.iter_mut().for_each(|hand| hand.open = true);
        }
        let count = STEPS.0 + numbers.below(STEPS.1 - STEPS.0 - steps.len() as u64);
        let mut stretched = false;
        let mut left = count;
        while left > 0 {
            let n = pick(&mut numbers, SERVERS);
            let Some(step) = next(&mut numbers, n, hands[n], disk) else {
                continue;
            };
            // One stretch is enough for a script, and takes most of its time.
            if step == Step::Stretch && std::mem::replace(&mut stretched, true) {
                continue;
            }
            remember(&mut hands, step);
            steps.push(step);
            left -= 1;
        }
        steps.push(Step::Rest);
        Self { seed, disk, steps }
    }
}

fn pick(numbers: &mut Numbers, bound: usize) -> usize {
    usize::try_from(numbers.below(bound as u64)).unwrap_or(0)
}

fn next(numbers: &mut Numbers, n: usize, hand: Hand, disk: Disk) -> Option<Step> {
    let other = (n + 1 + pick(numbers, SERVERS - 1)) % SERVERS;
    let step = match numbers.below(100) {
        0..=19 => Step::Write(n),
        20..=22 => Step::Burst(n),
        23..=30 => Step::Promote(n),
        31..=48 => Step::Follow(n, other),
        49..=53 => Step::Nobody(n),
        54..=57 => Step::Open(n),
        58..=60 => Step::Need(n, numbers.below(2) == 0),
        61..=63 => Step::Pause(n, !hand.paused),
        64 => Step::CloseClients(n),
        65..=67 => Step::Snapshot(n),
        68..=72 => Step::Kill(n),
        73..=74 => Step::End(n),
        75..=80 => Step::Start(n, numbers.below(4) > 0),
        81..=83 => Step::Freeze(n),
        84..=87 => Step::Thaw(n),
        88..=90 => Step::Cut(n, numbers.below(2) == 0),
        91..=93 => Step::Join(n),
        94 => Step::Stretch,
        _ => Step::Rest,
    };
    is_possible(step, hand, disk).then_some(step)
}

fn is_possible(step: Step, hand: Hand, disk: Disk) -> bool {
    let answers = hand.runs && !hand.frozen;
    match step {
        Step::Write(_) | Step::Burst(_) => answers && hand.open,
        Step::Open(_) => answers && !hand.open,
        Step::Snapshot(_) => answers && disk == Disk::Rdb,
        Step::End(_) | Step::Freeze(_) => answers,
        Step::Kill(_) => hand.runs,
        Step::Start(..) => !hand.runs,
        Step::Thaw(_) => hand.frozen,
        Step::Cut(..) => hand.runs && !hand.cut,
        Step::Join(_) => hand.cut,
        Step::Stretch | Step::Rest => true,
        // A command may meet a server that is frozen.
        _ => hand.runs,
    }
}

fn remember(hands: &mut [Hand; SERVERS], step: Step) {
    let (_, subject) = step.subject();
    let Some(hand) = subject.and_then(|n| hands.get_mut(n)) else {
        return;
    };
    match step {
        Step::Open(_) => hand.open = true,
        Step::Pause(_, paused) => hand.paused = paused,
        Step::Kill(_) | Step::End(_) => {
            *hand = Hand {
                cut: hand.cut,
                ..Hand::default()
            };
        }
        Step::Start(..) => hand.runs = true,
        Step::Freeze(_) => hand.frozen = true,
        Step::Thaw(_) => hand.frozen = false,
        Step::Cut(..) => hand.cut = true,
        Step::Join(_) => hand.cut = false,
        _ => {}
    }
}
