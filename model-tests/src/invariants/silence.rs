//! What must hold where a primary is succeeded on its silence.

use wellcake_core::facts::{Fresh, Known, Link, PodUid, Role};
use wellcake_core::limits;

use super::{Violation, process_of, require};
use crate::history::Write;
use crate::servers::REPLICA_LAG;
use crate::world::{Ack, World};

impl World {
    /// Another is promoted on the silence of a primary: what that acknowledges from now on is counted, and not owed. One that
    /// was to have stopped by itself acknowledges nothing, unless a replica had it again right before, after it was asked.
    pub fn leave_behind(&mut self, silent: PodUid) {
        let now = self.now;
        let durable = self.spec.needs_replica;
        let Some(process) = self.process_of(silent) else {
            return;
        };
        if process.primary {
            let again = process
                .acknowledged
                .is_some_and(|at| now.since(at) <= limits::DESTRUCTIVE_AGE);
            let run = process.run;
            self.left_behind.insert(run, durable && !again);
        }
    }
}

impl World {
    /// The record names a pod: one that was left behind counts again, as nobody was led to its successor.
    pub fn leads_again(&mut self, uid: PodUid) {
        if let Some(run) = self.process_of(uid).map(|process| process.run) {
            self.left_behind.remove(&run);
        }
    }
}

/// S18, silence: nobody is promoted on the silence of a primary that the operator did not itself ask in vain for a while, and
/// to the end.
pub fn was_asked_in_vain(world: &World, o: usize, silent: PodUid) -> Result<(), Violation> {
    let operator = world.operators.get(o);
    let newest = operator.and_then(|operator| operator.reach.get(&silent));
    let to_the_end = match newest.map(|reach| reach.fresh) {
        Some(Fresh::TimedOut { at } | Fresh::Refused { at }) => {
            world.now.since(at) <= limits::FACT_AGE
        }
        _ => false,
    };
    let mut pods = operator
        .into_iter()
        .flat_map(|operator| &operator.pods)
        .filter(|pod| pod.object.value().map(|object| object.uid) == Some(silent));
    let for_a_while = pods.any(|pod| match pod.server {
        Known::Maybe { since, .. } => world.now.since(since) >= limits::SILENT_ASKING,
        _ => false,
    });
    require(
        to_the_end && for_a_while,
        "S18 silence was heard by who decides",
        || format!("{silent:?} was not asked: {newest:?}"),
    )
}

/// S18, witnesses: nobody is promoted on the silence of a primary that has a replica which the operator did not see to be
/// without a link.
pub fn nobody_follows(world: &World, o: usize, silent: PodUid) -> Result<(), Violation> {
    // One that stepped down keeps its replicas, and takes no writes.
    if process_of(world, silent).is_none_or(|process| !process.primary) {
        return Ok(());
    }
    let pods = world.pods.iter().filter(|pod| pod.exists);
    let zombies = world.zombies.iter().map(|zombie| (zombie.uid, zombie.addr));
    let addr = pods
        .map(|pod| (pod.uid, pod.addr))
        .chain(zombies)
        .find(|(uid, _)| *uid == silent)
        .map(|(_, addr)| addr);
    let follower = world.pods.iter().enumerate().find(|(n, pod)| {
        let linked = pod
            .process
            .as_ref()
            .is_some_and(|p| p.linked && p.upstream == addr && p.upstream.is_some());
        linked && pod.uid != silent && !was_seen_without_link(world, o, *n)
    });
    require(follower.is_none(), "S18 silence has witnesses", || {
        format!(
            "pod {:?} follows the silent primary and was not seen without a link",
            follower.map(|(n, _)| n)
        )
    })
}

fn was_seen_without_link(world: &World, o: usize, n: usize) -> bool {
    let known = world
        .operators
        .get(o)
        .and_then(|operator| operator.pods.get(n));
    match known.map(|pod| pod.server) {
        Some(Known::Seen(answer)) => {
            let recent = world.now.since(answer.at) <= limits::DESTRUCTIVE_AGE;
            let up = matches!(answer.value.role, Role::Replica { link: Link::Up, .. });
            recent && !up
        }
        _ => false,
    }
}

/// S18, Durable: a primary that is succeeded on its silence takes no writes any more by itself. It may again only if a replica
/// had it again after that was asked.
pub fn has_stopped(world: &World, silent: PodUid) -> Result<(), Violation> {
    let Some(process) = process_of(world, silent).filter(|p| world.spec.needs_replica && p.primary)
    else {
        return Ok(());
    };
    if process.is_by_itself() {
        // Nobody could tell it; what it takes is vouched for by nobody.
        return Ok(());
    }
    let ago = process.acknowledged.map(|at| world.now.since(at));
    let late = ago.is_some_and(|ago| ago > limits::DESTRUCTIVE_AGE && ago <= REPLICA_LAG);
    let stops = process.needs_replica && !late;
    require(stops, "S18 a silent Durable primary stops", || {
        format!(
            "it needs a replica: {}, and one acknowledged {ago:?} ago",
            process.needs_replica
        )
    })
}

/// S18, loss: whoever is promoted on the silence of a primary holds every owed write that any other server holds which runs and
/// kept its data.
pub fn loses_nothing_that_others_hold(
    world: &World,
    winner: &crate::world::Process,
    silent: PodUid,
) -> Result<(), Violation> {
    let lost: Vec<Write> = world
        .owed()
        .filter(|write| !winner.data.holds(*write))
        .filter(|write| {
            world.pods.iter().any(|pod| {
                let holds = |p: &crate::world::Process| {
                    let copy = p.linked || p.unlinked_at.is_some();
                    copy && !p.syncing && p.data.holds(*write)
                };
                pod.exists && pod.uid != silent && pod.process.as_ref().is_some_and(holds)
            })
        })
        .collect();
    require(
        lost.is_empty(),
        "S18 silence costs only what one server holds",
        || format!("another server holds {lost:?}"),
    )
}

/// S18, Durable: a primary that was succeeded on its silence acknowledges nothing any more.
pub fn nobody_writes_beside(world: &World, ack: &Ack) -> Result<(), Violation> {
    let run = process_of(world, ack.pod).map(|process| process.run);
    let stopped = run.and_then(|run| world.left_behind.get(&run).copied());
    require(
        stopped != Some(true),
        "S18 a silent Durable primary stops",
        || format!("{:?} acknowledged beside its successor", ack.pod),
    )
}
