//! What must hold. Each function judges the truth of the world; its first sentence is the invariant.

pub mod discarded;
pub mod file;
pub mod patience;
pub mod planned;
pub mod rest;
pub mod silence;

use std::collections::BTreeMap;
use std::fmt;

use wellcake_core::effects::Decision;
use wellcake_core::facts::{Observation, PodUid, Port, ServerFacts};
use wellcake_core::reasons::Reason;
use wellcake_core::{limits, status};

use crate::history::{Data, Write};
use crate::world::{Pod, Process, World};

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.seen)
    }
}

/// An empty answer, or a violation of the named invariant.
pub(crate) fn require(
    holds: bool,
    invariant: &'static str,
    seen: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation {
            invariant,
            seen: seen(),
        })
    }
}

/// S1: under one epoch at most one pod acknowledges writes.
pub fn one_writer_per_epoch(world: &World) -> Result<(), Violation> {
    let mut writers: BTreeMap<u32, PodUid> = BTreeMap::new();
    for ack in &world.acks {
        let first = *writers.entry(ack.epoch).or_insert(ack.pod);
        require(first == ack.pod, "S1 one writer per epoch", || {
            format!(
                "pods {first:?} and {:?} acknowledged under epoch {}",
                ack.pod, ack.epoch
            )
        })?;
    }
    Ok(())
}

/// S2: a full copy never replaces data by data that lacks an acknowledged write which it holds and which no promotion has
/// given up.
pub fn full_copy_keeps_what_is_owed(
    world: &World,
    victim: &Data,
    source: &Data,
) -> Result<(), Violation> {
    let lost: Vec<Write> = world
        .owed()
        .filter(|write| victim.holds(*write) && !source.holds(*write))
        .collect();
    require(lost.is_empty(), "S2 never destroy the last copy", || {
        format!("the source of a full copy lacks {lost:?}")
    })
}

pub(crate) fn process_of(world: &World, uid: PodUid) -> Option<&Process> {
    world
        .processes()
        .find(|(pod, _)| *pod == uid)
        .map(|(_, process)| process)
}

/// What is checked right before a promotion; `silent` is a primary that is succeeded on its silence.
pub fn before_promotion(
    world: &World,
    o: usize,
    (n, uid): (usize, PodUid),
    epoch: u32,
    silent: Option<PodUid>,
) -> Result<(), Violation> {
    let Some(winner) = process_of(world, uid) else {
        return Ok(());
    };
    one_promotion_per_epoch(world, uid, epoch)?;
    no_living_primary_beside(world, uid, silent)?;
    if let Some(silent) = silent {
        silence::was_asked_in_vain(world, o, silent)?;
        silence::nobody_follows(world, o, silent)?;
        silence::has_stopped(world, silent)?;
        silence::loses_nothing_that_others_hold(world, winner, silent)?;
    }
    nobody_feeds_it(world, o, n, winner)?;
    empty_never_wins(world, o, n, winner)?;
    no_better_copy_in_sight(world, o, n, winner)
}

/// S4: whoever takes over in a planned handover holds every acknowledged write that is owed.
pub fn planned_moves_are_lossless(
    world: &World,
    uid: PodUid,
    reason: Reason,
) -> Result<(), Violation> {
    if !planned::HANDOVERS.contains(&reason) {
        return Ok(());
    }
    let winner = process_of(world, uid);
    let lost: Vec<Write> = world
        .owed()
        .filter(|write| winner.is_none_or(|winner| !winner.data.holds(*write)))
        .collect();
    require(lost.is_empty(), "S4 planned moves are lossless", || {
        format!("{uid:?} lacks {lost:?}")
    })
}

/// S2, planned: of what operators take away no owed write is held by nobody else, unless a fault took the primary first, or
/// a person takes a pod in the same moment. The only pod is left to its volume.
pub fn what_is_taken_away_is_held_elsewhere(
    world: &World,
    taken: &[usize],
) -> Result<(), Violation> {
    let stays = |n: usize| {
        let pod = world
            .pods
            .get(n)
            .filter(|pod| pod.exists && !(pod.terminating && pod.taken));
        pod.filter(|_| !taken.contains(&n))
    };
    let primary = world.pods.iter().position(|pod| {
        let serves = pod.process.as_ref().is_some_and(Process::serves);
        let recorded = world.api.record.map(|record| record.pod_uid);
        pod.exists && !pod.taken && serves && recorded == Some(pod.uid)
    });
    let there = world.pods.iter().filter(|pod| pod.exists).count();
    let Some(primary) = primary.filter(|_| there > 1) else {
        return Ok(());
    };
    require(
        stays(primary).is_some(),
        "S2 planned changes keep a copy",
        || format!("pods {taken:?} are taken, and {primary} leads"),
    )?;
    let held = |write: Write| {
        (0..world.pods.len())
            .filter_map(stays)
            .any(|pod| pod.process.as_ref().is_some_and(|p| p.data.holds(write)))
    };
    let victims = taken
        .iter()
        .filter_map(|n| world.pods.get(*n)?.process.as_ref());
    let lost: Vec<Write> = victims
        .flat_map(|process| world.owed().filter(|write| process.data.holds(*write)))
        .filter(|write| !held(*write))
        .collect();
    require(lost.is_empty(), "S2 planned changes keep a copy", || {
        format!("pods {taken:?} alone hold {lost:?}")
    })
}

/// S12, changes: no copy in sync is taken away while another pod that an operator took is still missed.
pub fn one_pod_is_taken_at_a_time(world: &World, n: usize) -> Result<(), Violation> {
    let is_copy = world.pods.get(n).is_some_and(Pod::is_in_sync);
    let missed = world
        .pods
        .iter()
        .take(usize::from(world.replicas))
        .enumerate()
        .position(|(other, pod)| other != n && pod.taken && !pod.given_up && !pod.is_in_sync());
    require(
        !is_copy || missed.is_none(),
        "S12 one change at a time",
        || format!("pod {n} is taken while {missed:?} is missed"),
    )
}

/// S12: two pods are never promoted under one epoch.
pub fn one_promotion_per_epoch(world: &World, uid: PodUid, epoch: u32) -> Result<(), Violation> {
    let earlier = world.promoted.get(&epoch).copied().unwrap_or(uid);
    require(earlier == uid, "S12 one promotion at a time", || {
        format!("{uid:?} is promoted under epoch {epoch} after {earlier:?}")
    })
}

/// S5, death: nobody is promoted while another pod that Kubernetes knows has a primary that takes writes, but for one that is
/// succeeded on its silence, now or before: what that acknowledges is charged.
fn no_living_primary_beside(
    world: &World,
    uid: PodUid,
    silent: Option<PodUid>,
) -> Result<(), Violation> {
    let left_behind = |process: &Process| world.left_behind.contains_key(&process.run);
    let living = world.pods.iter().find(|pod| {
        pod.uid != uid
            && Some(pod.uid) != silent
            && pod.exists
            && pod
                .process
                .as_ref()
                .is_some_and(|p| p.primary && p.port == Port::Client && !left_behind(p))
    });
    require(living.is_none(), "S5 death is proven", || {
        format!("{:?} still takes writes", living.map(|pod| pod.uid))
    })
}

/// S5, death: nobody is promoted that is seen to be fed by a primary which takes writes, whether Kubernetes knows that one or not.
fn nobody_feeds_it(world: &World, o: usize, n: usize, winner: &Process) -> Result<(), Violation> {
    let seen = world
        .operators
        .get(o)
        .and_then(|operator| operator.pods.get(n)?.server.value())
        .is_some_and(|server| server.run == winner.run && server.is_fed());
    let source = winner
        .upstream
        .and_then(|addr| world.at(addr))
        // A process that began by itself, and was not admitted, feeds no server that was.
        .filter(|source| source.serves() && !source.is_by_itself());
    require(
        !(seen && winner.linked && source.is_some()),
        "S5 death is proven",
        || format!("{:?} still feeds it", source.map(|source| source.run)),
    )
}

/// S3: a server that was not in sync since it started and is without any owed write is never promoted while a pod, or its
/// volume, holds one.
fn empty_never_wins(world: &World, o: usize, n: usize, winner: &Process) -> Result<(), Violation> {
    let holds_some = |data: &Data| world.owed().any(|write| data.holds(write));
    let in_sync = winner.linked || winner.unlinked_at.is_some();
    let is_copy = in_sync && !winner.syncing;
    // It may win instead of a copy that holds no more.
    let as_good_as_a_copy = !winner.syncing
        && world.processes().any(|(_, process)| {
            let linked_once = process.linked || process.unlinked_at.is_some();
            linked_once
                && !process.syncing
                && process.data.log.iter().all(|w| winner.data.holds(*w))
        });
    if is_copy || winner.port == Port::Client || holds_some(&winner.data) || as_good_as_a_copy {
        return Ok(());
    }
    let holder = world.pods.iter().enumerate().find(|(other, pod)| {
        let seen_empty = |run| {
            let operator = world.operators.get(o);
            let sight = operator.and_then(|op| *op.sight.get(*other)?);
            let newest = operator.and_then(|op| op.pods.get(*other)?.server.value());
            let shows_data =
                |server: &ServerFacts| server.run == run && (server.keys > 0 || server.is_fed());
            sight == Some((run, false)) && !newest.is_some_and(shows_data)
        };
        let memory = pod.process.as_ref().is_some_and(|p| {
            holds_some(&p.data) && !(is_fed_unseen(world, p) && seen_empty(p.run))
        });
        // What a running server has on its volume is older than what it has in memory.
        // Nobody looks at the volumes of pods that were given up in order.
        let asked = *other < usize::from(world.replicas) && !pod.given_up;
        let volume = asked && pod.process.is_none() && pod.disk.as_ref().is_some_and(holds_some);
        *other != n && (memory || volume)
    });
    require(holder.is_none(), "S3 empty never wins", || {
        format!(
            "pod {:?} holds acknowledged writes",
            holder.map(|(other, _)| other)
        )
    })
}

/// What a primary that nobody sees goes on to feed holds more with each moment, also after the operator's look.
fn is_fed_unseen(world: &World, process: &Process) -> bool {
    let zombie = |addr| world.zombies.iter().any(|z| Some(z.addr) == addr);
    process.linked && zombie(process.upstream)
}

/// S5, choice: the winner lacks no owed write that a healthy server which the operator saw when it decided holds on top of all that the
/// winner holds. What shares no history id with
/// the winner is left out: an append-only file keeps none and a snapshot only its own, so that nobody can compare them.
fn no_better_copy_in_sight(
    world: &World,
    o: usize,
    n: usize,
    winner: &Process,
) -> Result<(), Violation> {
    let extra = |data: &Data| {
        let more = world.owed().any(|w| data.holds(w) && !winner.data.holds(w));
        let all = world.owed().all(|w| data.holds(w) || !winner.data.holds(w));
        more && all
    };
    let operator = world.operators.get(o);
    let better = world.pods.iter().enumerate().find(|(other, pod)| {
        let in_sight = operator
            .and_then(|op| *op.sight.get(*other)?)
            .zip(pod.process.as_ref())
            .is_some_and(|((run, _), process)| run == process.run);
        let fed_unseen = pod
            .process
            .as_ref()
            .is_some_and(|process| is_fed_unseen(world, process));
        let healthy = pod.process.as_ref().is_some_and(|p| {
            p.frozen.is_none() && !p.syncing && p.data.is_comparable(&winner.data) && extra(&p.data)
        });
        *other != n && in_sight && healthy && !fed_unseen && !pod.hidden
    });
    require(better.is_none(), "S5 the best copy wins", || {
        format!("pod {:?} holds more", better.map(|(other, _)| other))
    })
}

/// S5, account: after a promotion, what the winner lacks is charged to the faults before it.
pub fn charge_losses(world: &mut World, uid: PodUid) {
    let Some(winner) = process_of(world, uid) else {
        return;
    };
    let lost: Vec<Write> = world
        .owed()
        .filter(|write| !winner.data.holds(*write))
        .collect();
    let epoch = winner.epoch;
    world.forfeited.extend(lost);
    world.promoted.insert(epoch, uid);
}

/// S17: the status says Available only if a primary took writes, and the Service led to it, when it was looked at.
pub fn told_the_truth(
    world: &World,
    o: usize,
    seen: &Observation,
    decision: &Decision,
) -> Result<(), Violation> {
    let told = status::facts(&world.seen_spec(o), seen, decision, world.now);
    if !told.available.0 {
        return Ok(());
    }
    let truth = told.primary.and_then(|pod| {
        let operator = world.operators.get(o)?;
        let (at, acked) = (*operator.truth.get(pod.index())?)?;
        let recent = world.now.since(at) <= limits::FACT_AGE;
        Some(acked && recent && operator.cache.routes[0] == Some(pod))
    });
    require(truth == Some(true), "S17 status tells the truth", || {
        format!("Available with primary {:?}", told.primary)
    })
}

/// S5, end: every acknowledged write is held by the primary of a cluster that has come to rest, unless a promotion gave it up.
pub fn nothing_owed_is_missing(world: &World) -> Result<(), Violation> {
    let primary = world
        .api
        .record
        .and_then(|record| world.pods.get(record.pod.index()))
        .and_then(|pod| pod.process.as_ref());
    let missing: Vec<Write> = world
        .owed()
        .filter(|write| !primary.is_some_and(|p| p.data.holds(*write)))
        .collect();
    require(missing.is_empty(), "S5 losses are attributed", || {
        format!("{missing:?} are gone and no promotion gave them up")
    })
}
