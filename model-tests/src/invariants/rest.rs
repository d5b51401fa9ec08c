//! What must be so in a cluster that has come to rest.

use wellcake_core::facts::RoleLabel;

use super::{Violation, nothing_owed_is_missing, require};
use crate::world::World;

/// What is checked when a cluster has come to rest.
pub fn is_well(world: &World) -> Result<(), Violation> {
    nothing_owed_is_missing(world)?;
    labels_tell_roles(world)?;
    durable_primary_would_stop(world)?;
    primary_takes_writes(world)
}

/// S17, labels: each pod has the label of its role, by which the Service of the replicas finds it.
pub fn labels_tell_roles(world: &World) -> Result<(), Violation> {
    let Some(record) = world.api.record else {
        return Ok(());
    };
    let wrong = world.pods.iter().enumerate().find(|(n, pod)| {
        let wanted = if *n == record.pod.index() {
            RoleLabel::Primary
        } else {
            RoleLabel::Replica
        };
        pod.exists && pod.label != wanted
    });
    require(wrong.is_none(), "S17 labels tell roles", || {
        format!("{:?}", wrong.map(|(n, pod)| (n, pod.label)))
    })
}

/// S18, Durable: a primary that a replica follows would stop by itself if it were cut off.
pub fn durable_primary_would_stop(world: &World) -> Result<(), Violation> {
    let needed = world.spec.needs_replica && world.spec.pods > 1;
    let primary = world
        .api
        .record
        .and_then(|record| world.pods.get(record.pod.index())?.process.as_ref());
    let stops = primary.is_none_or(|process| process.needs_replica);
    require(!needed || stops, "S18 a Durable primary would stop", || {
        "the primary takes writes without a replica".to_owned()
    })
}

/// L1, writes: the recorded primary takes writes.
pub fn primary_takes_writes(world: &World) -> Result<(), Violation> {
    let primary = world
        .api
        .record
        .and_then(|record| world.pods.get(record.pod.index())?.process.as_ref());
    let acks = primary.is_none_or(|process| process.acks(world.now));
    require(acks, "L1 comes to rest", || {
        "it is Ready, and takes no writes".to_owned()
    })
}
