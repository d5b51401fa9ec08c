//! A piece as traces of the operators in it, as real ones write them (`docs/reference/trace.md`).

use wellcake_core::step;

use super::{Piece, page};
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{heal, settle};
use crate::recorded::write::{Lines, Recording};
use crate::world::World;

/// Seconds that everybody goes on after the last event.
const AFTER: u64 = 60;

impl Piece {
    /// What each operator writes when everything happens to a cluster that the real decisions brought to rest, and faults end after
    /// the last event; also what broke on the way, which ends the traces.
    pub fn traces(&self, brain: Brain) -> (Vec<Lines>, Result<(), Violation>) {
        let mut world = World::new(self.head.pods.get(), self.head.disk, self.head.profile);
        if let Err(violation) = settle(&mut world, step, None) {
            return (Vec::new(), Err(violation));
        }
        let mut recording = Recording::new(world, brain);
        let outcome = self.live(&mut recording, brain);
        (recording.end(), outcome)
    }

    fn live(&self, recording: &mut Recording, brain: Brain) -> Result<(), Violation> {
        // What everything was like before.
        recording.second()?;
        for event in &self.events {
            if let Some(told) = page::in_words(*event) {
                recording.tell(&told);
            }
            recording.act(*event)?;
        }
        recording.tell("Every fault that can end does so, and everybody goes on.");
        heal(&mut recording.world, brain, None)?;
        for _ in 0..AFTER {
            recording.second()?;
        }
        Ok(())
    }
}
