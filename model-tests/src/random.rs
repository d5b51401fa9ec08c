//! What happens in random runs, and what must become of every run in the end.

use std::fmt::Write as _;

use wellcake_core::effects::Decision;
use wellcake_core::facts::Hints;
use wellcake_core::reasons::Reason;
use wellcake_core::status;
use wellcake_crds::v1beta1::Phase;

use crate::actions::{Action, summary};
use crate::dive::{Dive, Start};
use crate::faults::Mishap;
use crate::hands::Hands;
use crate::invariants::{self, Violation};
use crate::operator::Brain;
use crate::world::World;

/// A source of numbers: xorshift64*.
#[derive(Clone, Copy, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// From a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1)
    }

    /// A place in a list of `bound`.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap_or(0)
    }
}

/// Kinds of faults and of people's wishes.
pub(crate) const KINDS: u64 = 16;

/// Which kinds of faults and wishes there may be, by their numbers as bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kinds {
    /// One of all is drawn, and happens if it is among these.
    Swarm(u64),
    /// One of these is drawn.
    Chosen(u64),
}

impl Kinds {
    fn draw(self, numbers: &mut Numbers) -> Option<u64> {
        match self {
            Self::Swarm(swarm) => {
                let kind = numbers.below(KINDS);
                (swarm & (1 << kind) != 0).then_some(kind)
            }
            Self::Chosen(chosen) => {
                let count = numbers.index(chosen.count_ones() as usize);
                (0..KINDS)
                    .filter(|kind| chosen & (1 << kind) != 0)
                    .nth(count)
            }
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Ready, and then nothing to do.
    Settled,
    /// A refusal from the closed list of what needs a person.
    NeedsPerson(Reason),
}

/// What needs a person, and only a person.
const NEEDS_PERSON: [Reason; 3] = [
    Reason::HistoriesDiffer,
    Reason::RecordedDataGone,
    Reason::OnlyOlderData,
];

/// A world by its seed.
pub fn world(seed: u64) -> World {
    Start::of(seed).world()
}

/// A run like [`run`] in a world that another operator made.
pub fn run_made_elsewhere(
    seed: u64,
    steps: u32,
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<End, Violation> {
    let mut dive = Dive::even(seed, steps);
    dive.start.made_elsewhere = true;
    dive.run(brain, trace)
}

/// A run: comes to life, suffers `steps` events, gets rid of its faults and must come to rest. `trace` gets a line for each
/// event when it is given.
pub fn run(
    seed: u64,
    steps: u32,
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<End, Violation> {
    Dive::even(seed, steps).run(brain, trace)
}

/// The same in a given world, with effects carried out like that.
pub(crate) fn run_with(
    world: World,
    seed: u64,
    steps: u32,
    brain: Brain,
    hands: Hands,
) -> Result<End, Violation> {
    Dive::even(seed, steps).run_in(world, brain, hands)
}

/// Comes to life, meets the events that `next` gives, gets rid of its faults and must come to rest.
pub(crate) fn live(
    world: &mut World,
    mut next: impl FnMut(&mut World) -> Option<Action>,
    brain: Brain,
    mut trace: Option<&mut String>,
) -> Result<End, Violation> {
    // A takeover may meet what stands in its way.
    let untidy = world.made_elsewhere && world.faults.is_some();
    if !untidy {
        settle(world, brain, trace.as_deref_mut())?;
    }
    while let Some(action) = next(world) {
        perform(world, action, brain, trace.as_deref_mut())?;
    }
    heal(world, brain, trace.as_deref_mut())?;
    settle(world, brain, trace)
}

/// The events of a run, up to the one that breaks an invariant.
pub fn events(seed: u64, steps: u32, brain: Brain) -> Vec<Action> {
    Dive::even(seed, steps).events(brain)
}

/// A run with given events in the world of a seed. `trace` gets a line for each event when it is given.
pub fn replay(
    seed: u64,
    events: &[Action],
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<End, Violation> {
    Start::of(seed).replay(events, brain, trace)
}

/// The same run with its events and decisions in words.
pub fn story(seed: u64, steps: u32, brain: Brain) -> String {
    Dive::even(seed, steps).story(brain)
}

/// Lets something happen; `trace` gets a line for it when it is given.
pub(crate) fn perform(
    world: &mut World,
    action: Action,
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<(), Violation> {
    let Some(trace) = trace else {
        return world.act(action, brain, None);
    };
    let mut told = String::new();
    let result = world.act(action, brain, Some(&mut told));
    if let Err(violation) = &result {
        told = format!("VIOLATION {violation}");
    }
    let _ = writeln!(trace, "{:>8} ms  {action:?}  {told}", world.age());
    result
}

/// The next event of a run.
pub(crate) fn pick(world: &World, numbers: &mut Numbers, kinds: Kinds) -> Action {
    let n = numbers.index(world.pods.len());
    let o = if numbers.below(8) == 0 {
        1
    } else {
        world.leader().unwrap_or(0)
    };
    match numbers.below(100) {
        0..=17 => Action::Look(o),
        18..=21 => Action::Watch(o),
        22..=27 => Action::Poll {
            operator: o,
            pod: n,
            lost: false,
        },
        28..=41 => Action::Decide(o),
        42..=59 => Action::Execute(o),
        60..=68 => Action::Replicate(n),
        69..=75 => Action::Write,
        76..=79 => Action::Advance([50, 300, 900, 1_500][numbers.index(4)]),
        80 => Action::Advance([3_000, 11_000, 21_000, 31_000][numbers.index(4)]),
        81..=84 => Action::Start(n),
        85..=86 => Action::Recreate(n),
        87 if world.pods.get(n).is_some_and(|pod| pod.terminating) => Action::Delete(n),
        87 => Action::Recreate(n),
        88 if numbers.below(2) == 0 => Action::Snapshot(n),
        88 => Action::Report(n),
        89 => Action::Stretch([4, 9, 16, 31][numbers.index(4)]),
        90 => mend(world, n, numbers),
        91 => Action::Elect(numbers.index(2)),
        _ => {
            let lead = world.api.record.map(|record| record.pod.index());
            fault((n, lead), o, numbers, kinds)
        }
    }
}

fn mend(world: &World, n: usize, numbers: &mut Numbers) -> Action {
    match numbers.below(4) {
        0 => Action::Thaw(n),
        1 => Action::Show(n),
        2 => Action::Join(n),
        _ if world.spec.hibernate => Action::Hibernate(false),
        _ => Action::Reap,
    }
}

fn fault(
    (n, lead): (usize, Option<usize>),
    o: usize,
    numbers: &mut Numbers,
    kinds: Kinds,
) -> Action {
    let Some(kind) = kinds.draw(numbers) else {
        return Action::Replicate(n);
    };
    match kind {
        0 | 1 => Action::Kill(n),
        2 => Action::Delete(n),
        3 => Action::DeleteByForce(n),
        4 => Action::Freeze(n),
        5 => Action::Hide(n),
        6 => Action::Cut(n),
        7 => Action::Crash(o),
        8 => Action::Terminate(n),
        9 => Action::Ask(None),
        10 => Action::Ask(Some(n)),
        11 if numbers.below(8) == 0 => Action::Renew,
        12 if numbers.below(4) == 0 => Action::Change,
        13 if numbers.below(4) == 0 => Action::Resize(n + 1),
        14 if numbers.below(4) == 0 => Action::Hibernate(true),
        // What is said of a silent primary needs it to be silent for long, and the others not to be.
        15 if numbers.below(3) == 0 => Action::Isolate(lead.unwrap_or(n)),
        15 if numbers.below(2) == 0 => Action::Freeze(lead.unwrap_or(n)),
        _ => Action::Poll {
            operator: o,
            pod: n,
            lost: true,
        },
    }
}

/// Ends every fault that can end.
pub fn heal(
    world: &mut World,
    brain: Brain,
    mut trace: Option<&mut String>,
) -> Result<(), Violation> {
    perform(world, Action::Reap, brain, trace.as_deref_mut())?;
    if world.faults.is_some() {
        let mended = Action::Mishap(Mishap::MendAll);
        perform(world, mended, brain, trace.as_deref_mut())?;
    }
    perform(world, Action::Hibernate(false), brain, trace.as_deref_mut())?;
    for n in 0..world.pods.len() {
        for action in [Action::Thaw(n), Action::Show(n), Action::Join(n)] {
            perform(world, action, brain, trace.as_deref_mut())?;
        }
        if world.pods.get(n).is_some_and(|pod| pod.terminating) {
            perform(world, Action::Delete(n), brain, trace.as_deref_mut())?;
        }
        for action in [Action::Start(n), Action::Recreate(n), Action::Report(n)] {
            perform(world, action, brain, trace.as_deref_mut())?;
        }
    }
    Ok(())
}

/// Turns without anything to do after which a cluster has come to rest.
const QUIET: u32 = 5;
/// Turns within which it must.
const TURNS: u32 = 400;

/// L1: without faults and with everybody getting a turn, the cluster becomes Ready and then nothing is done any more, or a
/// refusal names what needs a person; nothing owed is missing then.
pub fn settle(
    world: &mut World,
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<End, Violation> {
    settle_unless(world, brain, trace, |_| false).map(|end| end.unwrap_or(End::Settled))
}

/// The same; `None` when `is_known` says of a world after a turn that it comes to rest.
pub(crate) fn settle_unless(
    world: &mut World,
    brain: Brain,
    mut trace: Option<&mut String>,
    mut is_known: impl FnMut(&World) -> bool,
) -> Result<Option<End>, Violation> {
    let mut quiet = 0;
    let mut last = Decision::default();
    for _ in 0..TURNS {
        last = turn(world, brain, trace.as_deref_mut())?;
        if is_known(world) {
            return Ok(None);
        }
        let rests = last.effects.is_empty()
            && world
                .leader()
                .and_then(|o| world.observe(o))
                .map(|seen| status::facts(&world.spec, &seen, &last, world.now))
                .is_some_and(|told| told.phase == Phase::Ready && told.ready_condition.0);
        quiet = if rests { quiet + 1 } else { 0 };
        if quiet == QUIET {
            invariants::rest::is_well(world)?;
            return Ok(Some(End::Settled));
        }
    }
    let refusal = world
        .leader()
        .and_then(|o| world.observe(o))
        .map(|seen| brain(&world.spec, &seen, &Hints::default(), world.now))
        .and_then(|decision| decision.refusals.first().copied());
    match refusal {
        Some(note) if needs_person(world, note.reason) => Ok(Some(End::NeedsPerson(note.reason))),
        _ => Err(Violation {
            invariant: "L1 comes to rest",
            seen: format!("after {} ms: {}", world.age(), summary(&last)),
        }),
    }
}

/// Data without a record is there only after the ValkeyCluster was made anew.
fn needs_person(world: &World, reason: Reason) -> bool {
    let made_anew = world.pods.iter().any(|pod| !pod.claim_is_young);
    // The only pod, which keeps nothing, is not replaced unasked.
    let beyond = world
        .api
        .record
        .is_some_and(|record| record.pod.0 >= world.replicas);
    let alone = world.spec.pods == 1 && !world.spec.persistence.survives_replacement();
    // A takeover is of what a person arranged.
    let untidy = world.made_elsewhere && world.faults.is_some();
    let arranged = [Reason::AdoptionPodsDiffer, Reason::AdoptionPrimaryUnclear];
    NEEDS_PERSON.contains(&reason)
        || (untidy && arranged.contains(&reason))
        || (made_anew && reason == Reason::DataWithoutRecord)
        || (beyond && reason == Reason::PrimaryScaledAway)
        || (alone && reason == Reason::ChangeLosesData)
}

/// Half a second in which everybody gets a turn.
pub(crate) fn turn(
    world: &mut World,
    brain: Brain,
    mut trace: Option<&mut String>,
) -> Result<Decision, Violation> {
    perform(world, Action::Advance(500), brain, trace.as_deref_mut())?;
    for n in 0..world.pods.len() {
        // Whatever the operator takes away ends, and comes back if it is asked for.
        if world
            .pods
            .get(n)
            .is_some_and(|pod| pod.taken && pod.terminating)
        {
            perform(world, Action::Delete(n), brain, trace.as_deref_mut())?;
        }
        let missing = world.pods.get(n).is_some_and(|pod| !pod.exists);
        if missing && n < usize::from(world.replicas) {
            perform(world, Action::Recreate(n), brain, trace.as_deref_mut())?;
        }
        perform(world, Action::Replicate(n), brain, None)?;
    }
    if world.leader().is_none() {
        perform(world, Action::Elect(0), brain, trace.as_deref_mut())?;
    }
    let Some(o) = world.leader() else {
        return Ok(Decision::default());
    };
    perform(world, Action::Look(o), brain, trace.as_deref_mut())?;
    if let Some(operator) = world.operators.get_mut(o) {
        operator.queue.clear();
    }
    let outcome = world.decide(o, brain);
    if let Some(trace) = trace.as_deref_mut() {
        let told = match &outcome {
            Ok(decision) => decision.as_ref().map(summary).unwrap_or_default(),
            Err(violation) => format!("VIOLATION {violation}"),
        };
        let _ = writeln!(trace, "{:>8} ms  Decide({o})  {told}", world.age());
    }
    let decision = outcome?;
    while world
        .operators
        .get(o)
        .is_some_and(|op| !op.queue.is_empty())
    {
        perform(world, Action::Execute(o), brain, trace.as_deref_mut())?;
    }
    Ok(decision.unwrap_or_default())
}
