//! What must have been waited for before anybody leads.

use wellcake_core::effects::{Effect, Verb};
use wellcake_core::facts::{Observation, Ordinal, PodUid, Record, Role};
use wellcake_core::limits;
use wellcake_core::reasons::Reason;
use wellcake_crds::v1beta1::Profile;

use super::{Violation, require};
use crate::history::{Data, Write};
use crate::world::{Disk, Process, World};

/// Reasons for which another one leads after an end that was proven or found.
const AFTER_AN_END: [Reason; 4] = [
    Reason::PrimaryDied,
    Reason::PrimaryGone,
    Reason::PrimaryReturned,
    Reason::LongerHistoryLeads,
];

/// What is checked right before a promotion is recorded.
pub fn is_kept(world: &World, seen: &Observation, effect: &Effect) -> Result<(), Violation> {
    let Verb::RecordPrimary { record, .. } = effect.verb else {
        return Ok(());
    };
    if !AFTER_AN_END.contains(&effect.reason) {
        return Ok(());
    }
    // Of one that is another process by now, nothing comes.
    let winner = super::process_of(world, record.pod_uid);
    let Some(winner) = winner.filter(|it| Some(it.run) == effect.guard.run) else {
        return Ok(());
    };
    durable_data_is_waited_for(world, seen, &record, winner)?;
    volumes_are_waited_for(world, seen, &record, winner)
}

/// S5, Durable: where the dead primary was seen to be ahead of its successor and what it wrote is in its append-only file, that is
/// waited for as long as the limits say.
fn durable_data_is_waited_for(
    world: &World,
    seen: &Observation,
    record: &Record,
    winner: &Process,
) -> Result<(), Violation> {
    let truth = seen.record.map(|before| before.truth());
    let durable = world.spec.profile == Profile::Durable && world.disk == Disk::Aof;
    let Some(truth) = truth.filter(|truth| durable && truth.pod_uid != record.pod_uid) else {
        return Ok(());
    };
    let waited = seen
        .primary_down_since
        .is_some_and(|since| world.now.since(since) >= limits::RETURN_OF_DURABLE);
    let Some(dead) = world.pods.get(truth.pod.index()) else {
        return Ok(());
    };
    let same = truth.replid == Some(winner.data.replid);
    let was_ahead = seen.primary_offset > Some(winner.data.offset(winner.primary));
    let lacks = lacked(world, winner, dead.disk.as_ref());
    let away = dead.process.is_none() && dead.uid == truth.pod_uid;
    require(
        waited || !(same && was_ahead && away) || lacks.is_empty(),
        "S5 the data of a Durable primary is waited for",
        || {
            format!(
                "{:?} leads without {lacks:?}, which {:?} keeps",
                record.pod, truth.pod
            )
        },
    )
}

/// S3, volumes: after the restart of every server of a Durable cluster one that lacks an owed write leads only once it has waited
/// for the pods that are not seen and whose volumes hold it.
fn volumes_are_waited_for(
    world: &World,
    seen: &Observation,
    record: &Record,
    winner: &Process,
) -> Result<(), Violation> {
    let was_linked = |process: &Process| process.linked || process.unlinked_at.is_some();
    let copies = world
        .processes()
        .any(|(_, it)| was_linked(it) && !it.syncing && !it.primary);
    let waited = world.now.since(winner.started) >= limits::RETURN_OF_OTHERS;
    let durable = world.spec.profile == Profile::Durable;
    if !durable || copies || waited || winner.primary || was_linked(winner) {
        return Ok(());
    }
    let asked = usize::from(world.replicas);
    let pods = (0..).map(Ordinal).zip(&world.pods).take(asked);
    let away = pods.filter(|(pod, it)| {
        let told = seen.server(*pod, world.now, limits::DESTRUCTIVE_AGE);
        told.is_none() && it.process.is_none() && !it.given_up
    });
    let lacks: Vec<Write> = away
        .flat_map(|(_, pod)| lacked(world, winner, pod.disk.as_ref()))
        .collect();
    require(
        lacks.is_empty(),
        "S3 volumes that are away are waited for",
        || format!("{:?} leads without {lacks:?}", record.pod),
    )
}

/// S5, death: nobody is promoted for the end of a primary whose pod is gone while that was just seen to take writes, and does.
pub fn nobody_who_is_gone_answers(
    world: &World,
    o: usize,
    winner: PodUid,
    reason: Reason,
) -> Result<(), Violation> {
    let of_its_end = [
        Reason::PrimaryDied,
        Reason::PrimaryGone,
        Reason::PrimaryReturned,
    ];
    if !of_its_end.contains(&reason) {
        return Ok(());
    }
    let operator = world.operators.get(o);
    let lives = world.zombies.iter().find(|zombie| {
        let told = operator
            .and_then(|operator| operator.former.get(&zombie.uid))
            .and_then(|known| known.fresh(world.now, limits::DESTRUCTIVE_AGE));
        let leads = told
            .is_some_and(|server| server.run == zombie.process.run && server.role == Role::Primary);
        // One that began by itself is not the one that was recorded.
        let serves = zombie.process.serves() && !zombie.process.is_by_itself();
        zombie.uid != winner && leads && serves
    });
    require(lives.is_none(), "S5 death is proven", || {
        format!(
            "{:?} answered, and takes writes",
            lives.map(|zombie| zombie.uid)
        )
    })
}

/// Owed writes that a volume holds and a server does not.
fn lacked(world: &World, server: &Process, disk: Option<&Data>) -> Vec<Write> {
    let Some(disk) = disk else { return Vec::new() };
    let lacks = |write: &Write| disk.holds(*write) && !server.data.holds(*write);
    world.owed().filter(lacks).collect()
}
