//! What the append-only file of who is to lead must hold.

use wellcake_core::facts::{Observation, Record};
use wellcake_core::limits;
use wellcake_core::reasons::Reason;
use wellcake_crds::v1beta1::Profile;

use super::{Violation, process_of, require};
use crate::world::{Disk, World};

/// S5, file: in a Durable cluster with append-only files nobody is recorded as the next primary, but by a person's order, of whom
/// the operator sees that its file lacks the copy that it was given, within the minute that the primary before has to come
/// back.
pub fn holds_the_copy(
    world: &World,
    seen: &Observation,
    record: &Record,
    reason: Reason,
) -> Result<(), Violation> {
    let durable = world.spec.profile == Profile::Durable && world.disk == Disk::Aof;
    let next = seen
        .record
        .is_some_and(|before| before.epoch < record.epoch);
    if !durable || !next || reason == Reason::PromotedByOrder {
        return Ok(());
    }
    let waited = seen
        .primary_down_since
        .is_some_and(|since| world.now >= since.after(limits::RETURN_OF_DURABLE));
    let lacks = process_of(world, record.pod_uid).is_some_and(|it| it.rewrites.is_some());
    let sees = seen
        .pod(record.pod)
        .and_then(|pod| pod.server.value())
        .is_some_and(|server| server.rewriting);
    require(
        waited || !lacks || !sees,
        "S5 the file of who leads holds its copy",
        || {
            format!(
                "{:?} is killed and has the older data again",
                record.pod_uid
            )
        },
    )
}
