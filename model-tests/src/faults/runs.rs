//! Random runs, each from a seed, with the faults of searches or with all of them.

use std::fmt::Write as _;

use super::draw::{KINDS, draw};
use super::kind::Tally;
use super::standing::Faults;
use wellcake_core::facts::{Login, Object, ObjectState};

use crate::actions::Action;
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{self, End, Numbers, live, pick};
use crate::world::World;

/// Which faults a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Those that searches try, too.
    Few,
    /// All.
    All,
}

impl Mix {
    /// The world of a seed.
    pub fn world(self, seed: u64) -> World {
        let mut world = random::world(seed);
        if self == Self::Few {
            return world;
        }
        let mut faults = Box::<Faults>::default();
        match seed % 8 {
            // Another operator made it, or its objects are still to be made.
            7 => {
                world = world.made_elsewhere();
                world.spec.foreign_finalizer = true;
                faults.objects = [Some(ObjectState::Theirs); 8];
                *faults.object(Object::Credentials) = None;
                untidy(&mut world, &mut faults, seed);
            }
            3 => {
                faults.objects = [None; 8];
                *faults.object(Object::StatefulSet) = Some(ObjectState::Matches);
            }
            _ => {}
        }
        world.faults = Some(faults);
        world
    }
}

/// What a takeover may find: nobody says that the other operator is gone, its servers do not let this one in, or two of them are
/// primaries.
fn untidy(world: &mut World, faults: &mut Faults, seed: u64) {
    match seed / 8 % 8 {
        0 => world.spec.adopt = false,
        1 => faults.arranged.login = Login::Denied,
        2 => faults.arranged.login = Login::Open,
        3 => {
            let second = world.pods.get(1).map(|pod| pod.uid);
            if let Some(uid) = second {
                world.promote(uid, 0);
            }
        }
        4 => {
            faults.arranged.users = true;
            faults.arranged.roll = true;
        }
        _ => {}
    }
}

/// What comes next in a run.
struct Chance {
    numbers: Numbers,
    few: u64,
    more: u64,
    one_in: u64,
}

impl Chance {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        // As in runs with few faults, each has some kinds only: a half of them, or a quarter.
        let few = numbers.below(1 << random::KINDS);
        let mut half = || numbers.below(1 << 20) | numbers.below(1 << (KINDS - 20)) << 20;
        let (one, other) = (half(), half());
        let more = if numbers.below(4) == 0 {
            one
        } else {
            one & other
        };
        let one_in = [6, 16, 40][numbers.index(3)];
        Self {
            numbers,
            few,
            more,
            one_in,
        }
    }

    fn next(&mut self, world: &World) -> Action {
        let numbers = &mut self.numbers;
        if numbers.below(self.one_in) > 0 {
            return pick(world, numbers, self.few);
        }
        let o = match numbers.below(8) {
            0 => 1,
            _ => world.leader().unwrap_or(0),
        };
        Action::Mishap(draw(world, o, numbers, self.more))
    }
}

/// A run with all faults, with the milliseconds that its world lived. `tally` counts what took effect; `trace` gets a line for each
/// event when it is given.
pub fn run(
    seed: u64,
    steps: u32,
    brain: Brain,
    tally: &mut Tally,
    trace: Option<&mut String>,
) -> (Result<End, Violation>, u64) {
    let mut world = Mix::All.world(seed);
    let mut chance = Chance::new(seed);
    let mut left = steps;
    let next = |world: &mut World| {
        tally.take(world);
        left = left.checked_sub(1)?;
        Some(chance.next(world))
    };
    let end = live(&mut world, next, brain, trace);
    tally.take(&mut world);
    (end, world.age())
}

/// The events of a run with all faults, up to the one that breaks an invariant.
pub fn events(seed: u64, steps: u32, brain: Brain) -> Vec<Action> {
    let mut chance = Chance::new(seed);
    let mut events = Vec::new();
    let next = |world: &mut World| {
        if events.len() as u64 >= u64::from(steps) {
            return None;
        }
        let action = chance.next(world);
        events.push(action);
        Some(action)
    };
    // What the run ends with is told by whoever replays the events.
    let _ = live(&mut Mix::All.world(seed), next, brain, None);
    events
}

/// The same run with its events and decisions in words.
pub fn story(seed: u64, steps: u32, brain: Brain) -> String {
    let mut trace = String::new();
    let (end, _) = run(seed, steps, brain, &mut Tally::default(), Some(&mut trace));
    let start = random::world(seed);
    let told = match end {
        Ok(end) => format!("{end:?}"),
        Err(violation) => violation.to_string(),
    };
    let mut text = format!(
        "seed {seed}, all faults: {} pods, {:?}, {:?}\n{trace}",
        start.pods.len(),
        start.disk,
        start.spec.profile
    );
    let _ = write!(text, "{told}");
    text
}

/// A run with given events in the world of a seed. `trace` gets a line for each event when it is given.
pub fn replay(
    mix: Mix,
    seed: u64,
    events: &[Action],
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<End, Violation> {
    let mut rest = events.iter().copied();
    live(&mut mix.world(seed), |_| rest.next(), brain, trace)
}
