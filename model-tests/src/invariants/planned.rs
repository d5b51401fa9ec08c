//! What must hold where operators change something that works.

use wellcake_core::effects::{Decision, Effect, Kind, Verb};
use wellcake_core::facts::{
    Directives, Observation, Ordinal, PodUid, Revision, Role, ServerFacts, Upstream,
};
use wellcake_core::limits;
use wellcake_core::reasons::Reason;

use super::{Violation, process_of, require};
use crate::history::Write;
use crate::world::{Disk, World};

/// Reasons of a planned handover.
pub(super) const HANDOVERS: [Reason; 4] = [
    Reason::HandoverOrdered,
    Reason::PrimaryLeaves,
    Reason::PrimaryIsReplaced,
    Reason::PrimaryIsScaledIn,
];

/// S4, volumes: whoever takes over in a planned handover and keeps an append-only file has every owed write in it.
pub fn successor_has_it_on_its_volume(
    world: &World,
    uid: PodUid,
    reason: Reason,
) -> Result<(), Violation> {
    let planned = HANDOVERS.contains(&reason) && world.disk == Disk::Aof;
    let successor = world.pods.iter().find(|pod| pod.exists && pod.uid == uid);
    let Some(successor) = successor.filter(|_| planned) else {
        return Ok(());
    };
    let kept = |write| {
        successor
            .disk
            .as_ref()
            .is_some_and(|data| data.holds(write))
    };
    let lost: Vec<Write> = world.owed().filter(|write| !kept(*write)).collect();
    require(
        lost.is_empty(),
        "S4 a planned successor has it on its volume",
        || format!("the file of {uid:?} lacks {lost:?}"),
    )
}

/// S4, pauses: a primary that hands over steps down only for a copy that holds all that it was seen to hold.
pub fn nobody_steps_down_in_vain(
    world: &World,
    effect: &Effect,
    seen: &Observation,
) -> Result<(), Violation> {
    let planned = HANDOVERS.contains(&effect.reason);
    let (Some((pod, uid)), Some((_, copy))) = (effect.guard.pod, effect.guard.primary) else {
        return Ok(());
    };
    let told = seen
        .known_of(pod, uid)
        .and_then(|known| known.recent(world.now, limits::DESTRUCTIVE_AGE));
    let copy = process_of(world, copy);
    let (Some(told), Some(copy)) = (told.filter(|_| planned), copy) else {
        return Ok(());
    };
    let (had, has) = (told.offset, copy.data.offset(copy.primary));
    require(
        copy.data.replid != told.replid || has >= had,
        "S4 nobody steps down in vain",
        || format!("{uid:?} was seen at {had:?}, its successor is at {has:?}"),
    )
}

/// S12, changes: no copy in sync is evicted while another pod was seen not to be in sync and is not.
pub fn what_is_missing_stops_a_change(
    world: &World,
    seen: &Observation,
    pod: Ordinal,
) -> Result<(), Violation> {
    let asked = usize::from(world.replicas);
    let missing = world
        .pods
        .iter()
        .enumerate()
        .take(asked)
        .find(|(n, other)| {
            let ordinal = Ordinal(u8::try_from(*n).unwrap_or(u8::MAX));
            ordinal != pod && !other.is_in_sync() && !seen.is_in_sync(ordinal, world.now)
        });
    let is_copy = seen.is_in_sync(pod, world.now);
    require(
        !is_copy || missing.is_none(),
        "S12 what is missing stops a change",
        || {
            format!(
                "pod {pod:?} is evicted, and {:?} is missing",
                missing.map(|(n, _)| n)
            )
        },
    )
}

/// S4, sleep: pods are sent to sleep only while the recorded primary is seen to take writes, so that it ends with everything.
pub fn sleep_begins_while_the_primary_serves(
    world: &World,
    seen: &Observation,
    to: u8,
) -> Result<(), Violation> {
    let serves = seen.record.is_some_and(|record| {
        let told = seen.server_of(record.pod, record.pod_uid, world.now, limits::FACT_AGE);
        told.is_some_and(ServerFacts::serves_writes)
    });
    require(
        to > 0 || serves,
        "S4 sleep begins while the primary serves",
        || "all pods are taken away, and the recorded primary was not seen to serve".to_owned(),
    )
}

/// S2 and S12, decisions: one decision evicts one pod and configures one server at most, and sends one copy at most to another
/// primary, none while one is on its way: a copy that cannot continue is emptied first.
pub fn one_at_a_time(
    world: &World,
    seen: &Observation,
    decision: &Decision,
) -> Result<(), Violation> {
    for kind in [Kind::Evict, Kind::Configure] {
        let effects = decision.effects.iter();
        let count = effects.filter(|it| it.verb.kind() == kind).count();
        require(count < 2, "S12 one change at a time", || {
            format!("{count} effects of kind {kind:?} in one decision")
        })?;
    }
    primary_is_configured_last(world, seen, decision)?;
    let server = |pod| seen.server(pod, world.now, limits::DESTRUCTIVE_AGE);
    let is_copy = |it: &&ServerFacts| {
        it.role != Role::Primary && (it.is_reached_by_clients() || it.is_synced_replica())
    };
    let mut sent = Vec::new();
    let mut target = None;
    for effect in &decision.effects {
        if let Verb::Follow { pod, primary } = effect.verb
            && server(pod).as_ref().is_some_and(is_copy)
        {
            sent.push(pod);
            target = Some(primary);
        }
    }
    let Some(target) = target else { return Ok(()) };
    let on_its_way = |it: &ServerFacts| {
        let pointed =
            matches!(it.role, Role::Replica { upstream: Upstream::Pod(of), .. } if of == target);
        pointed && it.is_reached_by_clients() && !it.follows(target)
    };
    let others = seen.ordinals().map(|(pod, _)| pod);
    let away = others
        .filter(|pod| *pod != target && server(*pod).is_some_and(on_its_way))
        .count();
    require(
        sent.len() + away < 2,
        "S2 one copy is re-pointed at a time",
        || format!("{sent:?} are sent to {target:?}, {away} others are on their way"),
    )
}

/// S12, directives: the primary gets its directives after every replica that is seen to be in sync and not to have them.
fn primary_is_configured_last(
    world: &World,
    seen: &Observation,
    decision: &Decision,
) -> Result<(), Violation> {
    let leads = seen.record.map(|record| record.pod);
    let is_set =
        |effect: &Effect| matches!(effect.verb, Verb::Configure { pod } if Some(pod) == leads);
    let unset = seen.ordinals().find(|(pod, facts)| {
        let object = facts.object.value();
        let current = object.is_some_and(|object| object.revision == Revision::Current);
        let server = seen.server(*pod, world.now, limits::DESTRUCTIVE_AGE);
        let due = server.is_some_and(|it| it.directives != Directives::Set);
        Some(*pod) != leads && current && due && seen.is_in_sync(*pod, world.now)
    });
    require(
        unset.is_none() || !decision.effects.iter().any(is_set),
        "S12 the primary is configured last",
        || {
            format!(
                "{leads:?} leads, and {:?} has other directives",
                unset.map(|(pod, _)| pod)
            )
        },
    )
}
