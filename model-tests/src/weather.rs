//! Random runs in a world and with faults that are chosen: what is too rare in all worlds happens often in the right one.

use wellcake_crds::v1beta1::Profile;

use crate::actions::Action;
use crate::hands::Hands;
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{End, Kinds, Numbers, live, pick};
use crate::world::{Disk, World};

/// Faults and wishes that there may be.
pub mod faults {
    /// Servers are killed.
    pub const KILLS: u64 = 0b11;
    /// Pods are deleted, in order.
    pub const DELETES: u64 = 1 << 2;
    /// Pods are deleted by force.
    pub const FORCE: u64 = 1 << 3;
    /// Servers do nothing for a while.
    pub const FREEZES: u64 = 1 << 4;
    /// Operators cannot reach a pod.
    pub const HIDES: u64 = 1 << 5;
    /// Replicas cannot reach their primary.
    pub const CUTS: u64 = 1 << 6;
    /// Operators are killed.
    pub const CRASHES: u64 = 1 << 7;
    /// Pods get a deletion timestamp.
    pub const TERMINATES: u64 = 1 << 8;
    /// Another primary is asked for.
    pub const ASKS: u64 = 0b11 << 9;
    /// The ValkeyCluster is made anew.
    pub const RENEWS: u64 = 1 << 11;
    /// The template changes.
    pub const CHANGES: u64 = 1 << 12;
    /// More and fewer pods are asked for.
    pub const RESIZES: u64 = 1 << 13;
    /// The cluster is sent to sleep.
    pub const SLEEPS: u64 = 1 << 14;
    /// The primary is cut off or does nothing.
    pub const SILENCE: u64 = 1 << 15;
}

/// A world, and what may happen in it.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Pods.
    pub pods: u8,
    /// How data outlives a process.
    pub disk: Disk,
    /// Profile.
    pub profile: Profile,
    /// Whether another operator made it.
    pub made_elsewhere: bool,
    /// Faults and wishes ([`faults`]).
    pub kinds: u64,
    /// Whether operators get each answer by itself, and never all of them at once.
    pub parts: bool,
}

impl Weather {
    /// Three pods that keep nothing.
    pub const fn memory(kinds: u64) -> Self {
        Self {
            pods: 3,
            disk: Disk::None,
            profile: Profile::Cache,
            made_elsewhere: false,
            kinds,
            parts: false,
        }
    }

    /// Three pods of profile Durable that keep data like that.
    pub const fn durable(disk: Disk, kinds: u64) -> Self {
        Self {
            disk,
            profile: Profile::Durable,
            ..Self::memory(kinds)
        }
    }

    /// The same with so many pods.
    #[must_use]
    pub const fn of(self, pods: u8) -> Self {
        Self { pods, ..self }
    }

    /// The same with profile Cache.
    #[must_use]
    pub const fn cache(self) -> Self {
        Self {
            profile: Profile::Cache,
            ..self
        }
    }

    /// The same, and operators get each answer by itself.
    #[must_use]
    pub const fn in_parts(self) -> Self {
        Self {
            parts: true,
            ..self
        }
    }

    /// The same, made by another operator.
    #[must_use]
    pub const fn made_elsewhere(self) -> Self {
        Self {
            made_elsewhere: true,
            ..self
        }
    }

    /// A run like [`crate::random::run`] in this world.
    pub fn run(
        self,
        seed: u64,
        steps: u32,
        (brain, hands): (Brain, Hands),
        trace: Option<&mut String>,
    ) -> Result<End, Violation> {
        let mut world = World::new(self.pods, self.disk, self.profile);
        if self.made_elsewhere {
            world = world.made_elsewhere();
        }
        world.hands = hands;
        let mut numbers = Numbers::new(seed);
        let mut left = steps;
        let next = |world: &mut World| {
            left = left.checked_sub(1)?;
            let action = pick(world, &mut numbers, Kinds::Chosen(self.kinds));
            Some(match action {
                Action::Look(operator) if self.parts => part(operator, world, &mut numbers),
                other => other,
            })
        };
        live(&mut world, next, brain, trace)
    }
}

/// One of the looks that a look at everything is made of.
fn part(operator: usize, world: &World, numbers: &mut Numbers) -> Action {
    if numbers.below(3) == 0 {
        return Action::Watch(operator);
    }
    let pod = numbers.index(world.pods.len());
    let lost = false;
    Action::Poll {
        operator,
        pod,
        lost,
    }
}
