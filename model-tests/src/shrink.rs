//! From a run that breaks an invariant to the few events that it takes.

use crate::actions::Action;
use crate::faults::runs::{Mix, replay};
use crate::invariants::Violation;
use crate::operator::Brain;

/// The shortest list of events found that breaks the same invariant in the world of the same seed, with what is seen then.
/// `None` when `events` break nothing.
///
/// Leaves out ever smaller pieces as long as the rest still breaks it (delta debugging), so that in the end no single event
/// can be left out.
pub fn shrink(seed: u64, events: &[Action], brain: Brain) -> Option<(Vec<Action>, Violation)> {
    shrink_of(Mix::Few, seed, events, brain)
}

/// The same in a world with such faults.
pub fn shrink_of(
    mix: Mix,
    seed: u64,
    events: &[Action],
    brain: Brain,
) -> Option<(Vec<Action>, Violation)> {
    let breaks = |events: &[Action]| replay(mix, seed, events, brain, None).err();
    let mut violation = breaks(events)?;
    let mut kept = events.to_vec();
    let mut piece = kept.len().div_ceil(2).max(1);
    loop {
        let before = kept.len();
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + piece).min(kept.len()));
            match breaks(&fewer) {
                Some(found) if found.invariant == violation.invariant => {
                    kept = fewer;
                    violation = found;
                }
                _ => at += piece,
            }
        }
        if piece > 1 {
            piece = piece.div_ceil(2);
        } else if kept.len() == before {
            return Some((kept, violation));
        }
    }
}
