//! Whether a world comes to rest without faults: converges, and then sends nothing.

use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{heal, settle_unless};
use crate::world::World;

use super::digest::{Names, digest};
use super::visited::Visited;

/// Worlds that are known to come to rest. One such world vouches for every other that becomes equal to it: what happens without
/// faults, in fair turns, is decided by the world alone.
#[derive(Default)]
pub struct Rest {
    known: Visited,
}

impl Rest {
    /// Ends every fault and lets everybody have turns until the world rests, or is one that is known to come to rest. Answers
    /// the number of turns, and of decisions in them.
    pub fn reached_from(
        &self,
        world: &mut World,
        brain: Brain,
        names: &mut Names,
    ) -> Result<(u64, u64), Violation> {
        heal(world, brain, None)?;
        let (mut way, mut decisions) = (Vec::new(), 0);
        settle_unless(world, brain, None, |world| {
            let digest = digest(world, 0, names);
            way.push(digest);
            decisions += u64::from(world.leader().is_some());
            self.known.contains(digest)
        })?;
        let turns = way.len() as u64;
        for digest in way {
            self.known.insert(digest);
        }
        Ok((turns, decisions))
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.known.bytes()
    }
}
