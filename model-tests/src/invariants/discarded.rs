//! What must hold where a second primary is demoted.

use wellcake_core::discarded;
use wellcake_core::facts::{Observation, Ordinal, PodUid, ServerFacts};
use wellcake_core::limits;

use super::{Violation, process_of, require};
use crate::history::WRITE_BYTES;
use crate::world::{Process, World};

/// S17: where the bytes that the demotion of a second primary throws away are counted, every write that it holds and the primary
/// does not is in them, up to what it answered last.
pub fn is_counted(
    world: &World,
    seen: &Observation,
    (second, primary): ((Ordinal, PodUid), Ordinal),
) -> Result<(), Violation> {
    let facts = |pod| seen.server(pod, world.now, limits::DESTRUCTIVE_AGE);
    let (Some(told), Some(leader)) = (facts(second.0), facts(primary)) else {
        return Ok(());
    };
    let Some(bytes) = discarded::bytes(told, leader) else {
        return Ok(());
    };
    let (Some(process), Some(of)) = (
        process_of(world, second.1),
        process_of(world, leader.pod_uid),
    ) else {
        return Ok(());
    };
    let later = process.data.offset(true).0.saturating_sub(told.offset.0);
    let log = process.data.log.iter();
    let lost = log.filter(|write| !of.data.holds(**write)).count();
    let lost = u64::try_from(lost)
        .unwrap_or(u64::MAX)
        .saturating_mul(WRITE_BYTES);
    require(
        lost <= bytes.saturating_add(later),
        "S17 what a demotion loses is counted",
        || format!("{lost} bytes of writes are lost, {bytes} are counted, {later} came later"),
    )
}

/// S17: a server that was seen to take writes as a primary is made a replica only by who says so, and counts what that loses.
pub fn is_told(
    world: &World,
    seen: &Observation,
    (pod, uid): (Ordinal, PodUid),
) -> Result<(), Violation> {
    let told = seen.server_of(pod, uid, world.now, limits::DESTRUCTIVE_AGE);
    let leads = told.is_some_and(ServerFacts::serves_writes)
        && process_of(world, uid).is_some_and(Process::serves);
    require(!leads, "S17 a demotion is told as one", || {
        format!("pod {pod:?} takes writes and is made a replica")
    })
}
