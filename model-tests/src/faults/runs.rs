//! How the world of a random run begins that all kinds of faults may meet, and what comes next in it.

use super::draw::{KINDS, draw};
use super::standing::Faults;
use wellcake_core::facts::{Login, Object, ObjectState};

use crate::actions::Action;
use crate::random::{self, Kinds, Numbers, pick};
use crate::world::World;

/// A world that all kinds of faults may meet, as a seed finds it.
pub(crate) fn arrange(mut world: World, seed: u64) -> World {
    let mut faults = Box::<Faults>::default();
    if world.made_elsewhere {
        world.spec.foreign_finalizer = true;
        faults.objects = [Some(ObjectState::Theirs); 8];
        *faults.object(Object::Credentials) = None;
        untidy(&mut world, &mut faults, seed);
    } else if seed % 8 == 3 {
        // Its objects are still to be made.
        faults.objects = [None; 8];
        *faults.object(Object::StatefulSet) = Some(ObjectState::Matches);
    }
    world.faults = Some(faults);
    world
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
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    numbers: Numbers,
    few: u64,
    more: u64,
    one_in: u64,
}

impl Chance {
    /// That of a seed.
    pub(crate) fn new(seed: u64) -> Self {
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

    /// The next event.
    pub(crate) fn next(&mut self, world: &World) -> Action {
        let numbers = &mut self.numbers;
        if numbers.below(self.one_in) > 0 {
            return pick(world, numbers, Kinds::Swarm(self.few));
        }
        let o = match numbers.below(8) {
            0 => 1,
            _ => world.leader().unwrap_or(0),
        };
        Action::Mishap(draw(world, o, numbers, self.more))
    }
}
