//! A trace of an hour: a cluster of three in which something goes wrong every minute, whose servers are asked ten times a second, as
//! the operator does while something is under way.

use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;

use super::write::Recording;
use crate::actions::Action;
use crate::invariants::Violation;
use crate::random::settle;
use crate::world::{Disk, World};

/// Looks in an hour: one in 100 ms (`interpreter/src/valkey/pace.rs`: `UNSETTLED`).
pub const LOOKS: u64 = 36_000;
/// Time between two looks, in milliseconds.
const APART: u64 = 100;
/// Looks between two faults: a minute.
const FAULTS: u64 = 600;
/// Looks from a fault to its end: 25 s, so that also silence is acted upon.
const HEALED: u64 = 250;

/// The trace of an hour. With `every` each look is a pass in it; else those that the operator would write.
pub fn trace(every: bool) -> Result<String, Violation> {
    let mut world = World::new(3, Disk::None, Profile::Cache);
    settle(&mut world, step, None)?;
    let mut recording = Recording::new(world, step);
    if every {
        recording = recording.of_every_pass();
    }
    for look in 0..LOOKS {
        for event in events(look) {
            recording.act(event)?;
        }
        turn(&mut recording)?;
    }
    Ok(recording.end().swap_remove(0).text)
}

/// What goes wrong, and what ends, before a look.
fn events(look: u64) -> Vec<Action> {
    let (minute, at) = (look / FAULTS, look % FAULTS);
    let pod = usize::try_from(minute % 3).unwrap_or(0);
    match (at, minute % 4) {
        (0, 0) => vec![Action::Kill(pod)],
        (0, 1) => vec![Action::Freeze(pod)],
        (0, 2) => vec![Action::Delete(pod)],
        (0, _) => vec![Action::Hide(pod)],
        (HEALED, _) => vec![
            Action::Thaw(pod),
            Action::Show(pod),
            Action::Start(pod),
            Action::Recreate(pod),
            Action::Report(pod),
        ],
        _ => Vec::new(),
    }
}

fn turn(recording: &mut Recording) -> Result<(), Violation> {
    recording.act(Action::Advance(APART))?;
    for n in 0..3 {
        recording.act(Action::Replicate(n))?;
    }
    recording.act(Action::Look(0))?;
    recording.act(Action::Decide(0))?;
    while recording.world.is_busy(0) {
        recording.act(Action::Execute(0))?;
    }
    Ok(())
}
