//! Pods that were made from an older template are replaced: replicas first, each in sync again before the next, the primary
//! last, after it handed over to one of them. What does not come back stops it there.

use crate::effects::{Decision, Guard, InSync, Verb};
use crate::facts::{
    Container, Epoch, Hints, Object, ObjectState, Observation, Ordinal, PodObject, Port, Record,
    Revision, SpecFacts, Tick, Trouble,
};
use crate::limits;
use crate::reasons::Reason;

/// Whether a pod was made from an older template than the one that the spec asks for, which the StatefulSet has by now.
fn is_outdated(seen: &Observation, ordinal: Ordinal) -> bool {
    let template = seen.objects.state(Object::StatefulSet);
    let matches = template.value() == Some(&ObjectState::Matches);
    let object = seen.pod(ordinal).and_then(|pod| pod.object.value());
    matches && object.is_some_and(|object| object.revision.is_outdated() && !object.terminating)
}

/// Whether what a pod holds is worth nothing: it does not run, has not been in sync since it started, or lost everything when it
/// began to copy. The last is what becomes of a server that cannot load what a newer primary sends: it stays empty and begins
/// anew for ever (measured with 8.0), so that two of them would wait for each other.
fn is_worthless(seen: &Observation, ordinal: Ordinal, now: Tick) -> bool {
    let object = seen.pod(ordinal).and_then(|pod| pod.object.value());
    let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE);
    let troubled = object.is_some_and(|object| object.trouble.is_some());
    match server {
        Some(server) => {
            let empty_handed = server.port == Port::Fence || server.keys == 0;
            empty_handed && !server.is_synced_replica()
        }
        None => troubled,
    }
}

/// Whether the primary must hand over before the rollout can go on: it alone is outdated, and all others are in sync.
pub fn is_due_to_hand_over(seen: &Observation, record: &Record, now: Tick) -> bool {
    let mut others = seen
        .ordinals()
        .map(|(ordinal, _)| ordinal)
        .filter(|ordinal| *ordinal != record.pod);
    is_outdated(seen, record.pod)
        && seen.pods.len() > 1
        && others.all(|other| seen.is_in_sync(other, now) && !is_outdated(seen, other))
}

/// Whether pods are left alone for a moment, since an attempt to take one away failed.
pub fn pauses(hints: &Hints, now: Tick, decision: &mut Decision) -> bool {
    let Some(until) = hints.pods.pause(now) else {
        return false;
    };
    decision.wait(Reason::EvictionRefused, None);
    decision.wake_at(until);
    true
}

/// Replaces a pod of an older template that does not run, whoever leads: it holds nothing in memory, and its claim stays. Nothing
/// else may be under way.
pub fn replace_broken(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    decision: &mut Decision,
) {
    let busy = decision.effects.iter().any(|effect| {
        matches!(
            effect.verb,
            Verb::Evict { .. } | Verb::ScaleIn { .. } | Verb::PauseWrites { .. }
        )
    });
    // What is kept in a volume that goes with its pod would be lost.
    let survives = spec.persistence.claims || !spec.persistence.survives_restart();
    let leaving = seen.pods.iter().any(|pod| {
        let object = pod.object.value();
        object.is_some_and(|object| object.terminating)
    });
    if busy || leaving || !survives || spec.unserved.is_some() || hints.pods.pause(now).is_some() {
        return;
    }
    let broken = seen
        .ordinals()
        .map(|(ordinal, _)| ordinal)
        .find(|pod| is_outdated(seen, *pod) && !runs(seen, *pod));
    let object = broken.and_then(|pod| seen.pod(pod)?.object.value());
    let (Some(pod), Some(object)) = (broken, object) else {
        return;
    };
    let guard = Guard {
        epoch: Some(seen.record.map_or(Epoch(0), |record| record.epoch)),
        pod: Some((pod, object.uid)),
        in_sync: InSync::NotRunning,
        ..Guard::NONE
    };
    decision.wait(Reason::WaitingForRollout, Some(pod));
    decision.act(Verb::Evict { pod }, guard, Reason::PodReplaced);
}

/// Whether a pod may run, or answers.
fn runs(seen: &Observation, pod: Ordinal) -> bool {
    let object = seen.pod(pod).and_then(|found| found.object.value());
    let troubled = object.is_some_and(|object| {
        object.trouble.is_some() && !matches!(object.container, Container::Running { .. })
    });
    !troubled || seen.answers(pod)
}

/// Replaces the next replica, around a primary that serves.
pub fn plan(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    now: Tick,
    decision: &mut Decision,
) {
    if seen.pods.len() < 2 {
        alone(spec, seen, record.pod, now, decision);
        return;
    }
    let outdated = || {
        seen.ordinals()
            .map(|(ordinal, _)| ordinal)
            .filter(|ordinal| is_outdated(seen, *ordinal))
    };
    if outdated().next().is_none() {
        await_revisions(seen, decision);
        return;
    }
    decision.wait(Reason::WaitingForRollout, None);
    if !seen.is_in_sync(record.pod, now) || record.served.is_some() || is_one_leaving(seen) {
        return;
    }
    let mut replicas: Vec<Ordinal> = outdated().filter(|it| *it != record.pod).collect();
    replicas.reverse();
    // One that serves nobody is replaced first, whatever the others do: an older template may be what keeps it from that.
    let broken = replicas.iter().find(|it| is_worthless(seen, **it, now));
    let next = match broken {
        Some(pod) => Some((*pod, InSync::NotThisOne)),
        None => replicas.first().map(|pod| (*pod, InSync::Others)),
    };
    let Some((pod, in_sync)) = next else { return };
    let all = seen
        .ordinals()
        .all(|(ordinal, _)| ordinal == pod || seen.is_in_sync(ordinal, now));
    if in_sync == InSync::Others && !all {
        return;
    }
    let Some(object) = seen.pod(pod).and_then(|found| found.object.value()) else {
        return;
    };
    let server = seen.server(pod, now, limits::DESTRUCTIVE_AGE);
    let guard = Guard {
        epoch: Some(record.epoch),
        pod: Some((pod, object.uid)),
        run: server.map(|server| server.run),
        replica: server.map(|_| true),
        in_sync,
        ..Guard::NONE
    };
    decision.act(Verb::Evict { pod }, guard, Reason::PodReplaced);
}

/// A template that was just applied has no revision yet, so that nobody can tell whether it is rolled out.
fn await_revisions(seen: &Observation, decision: &mut Decision) {
    let unknown = seen.pods.iter().any(|pod| {
        let object = pod.object.value();
        object.is_some_and(|object| object.revision == Revision::Unknown)
    });
    if unknown {
        decision.wait(Reason::WaitingForRollout, None);
    }
}

fn is_one_leaving(seen: &Observation) -> bool {
    seen.pods.iter().any(|pod| {
        let object = pod.object.value();
        object.is_none_or(|object| object.terminating)
    })
}

/// Replaces the only pod, if its data survives that or a person asked for it.
pub fn alone(
    spec: &SpecFacts,
    seen: &Observation,
    pod: Ordinal,
    now: Tick,
    decision: &mut Decision,
) {
    if !is_outdated(seen, pod) {
        await_revisions(seen, decision);
        return;
    }
    let Some(object) = seen.pod(pod).and_then(|found| found.object.value()) else {
        return;
    };
    let server = seen.server(pod, now, limits::DESTRUCTIVE_AGE);
    let asked = object.revision == Revision::RestartAsked;
    // A server that never ran, or whose process ends again and again, has nothing in memory.
    let holds_data = server.is_some() || object.trouble.is_none();
    if holds_data && !asked && !spec.persistence.survives_replacement() {
        decision.refuse(Reason::ChangeLosesData, Some(pod));
        return;
    }
    if server.is_none() && object.trouble.is_none() {
        // It starts, or does not answer: what it holds is not known.
        decision.wait(Reason::WaitingForRollout, Some(pod));
        return;
    }
    let guard = Guard {
        epoch: seen.record.map(|record| record.epoch),
        pod: Some((pod, object.uid)),
        run: server.map(|server| server.run),
        ..Guard::NONE
    };
    decision.wait(Reason::WaitingForRollout, Some(pod));
    decision.act(Verb::Evict { pod }, guard, Reason::PodReplaced);
}

/// Says why pods do not run.
pub fn tell_trouble(seen: &Observation, decision: &mut Decision) {
    let troubled = |object: &PodObject| object.trouble.filter(|_| !object.terminating);
    for (ordinal, pod) in seen.ordinals() {
        let Some(trouble) = pod.object.value().and_then(troubled) else {
            continue;
        };
        let reason = match trouble {
            // Autoscalers take minutes, and there is nothing wrong before.
            Trouble::NoNode => {
                decision.wait(Reason::PodNotScheduled, Some(ordinal));
                continue;
            }
            Trouble::Image => Reason::ImageNotPulled,
            Trouble::Container => Reason::ContainerNotMade,
            Trouble::Crashes => Reason::ServerCrashes,
            Trouble::Config => Reason::ConfigNotUnderstood,
        };
        decision.refuse(reason, Some(ordinal));
    }
}
