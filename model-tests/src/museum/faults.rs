//! Decisions with the faults of other operators, where none of [`crate::mutants`] has them.

use wellcake_core::effects::{Decision, Guard, Verb};
use wellcake_core::facts::{
    Epoch, Fresh, Hints, Kept, Known, Link, Observation, Ordinal, PodUid, Port, Record, Role,
    ServerFacts, SpecFacts, Tick,
};
use wellcake_core::reasons::Reason;
use wellcake_core::{limits, step};

use crate::hands::Hands;
use crate::mutants::Mutant;

/// All of them.
pub const FAULTS: &[Mutant] = &[
    Mutant {
        name: "the_first_pod_is_always_the_primary",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut decision = step(spec, seen, hints, now);
            install_first(seen, &mut decision);
            decision
        },
    },
    Mutant {
        name: "the_first_pod_leads_when_nobody_does",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut decision = step(spec, seen, hints, now);
            if answering(seen).all(|(_, _, server)| server.role != Role::Primary) {
                install_first(seen, &mut decision);
            }
            decision
        },
    },
    Mutant {
        name: "a_pod_that_goes_is_waited_for",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let leads = seen.record.and_then(|record| seen.pod(record.pod));
            let goes = leads.and_then(|pod| pod.object.value());
            if goes.is_some_and(|object| object.terminating) {
                return Decision::default();
            }
            step(spec, seen, hints, now)
        },
    },
    Mutant {
        name: "one_unseen_server_stops_everything",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let unseen = |server| matches!(server, Known::Maybe { .. });
            if seen.pods.iter().any(|pod| unseen(pod.server)) {
                return Decision::default();
            }
            step(spec, seen, hints, now)
        },
    },
    Mutant {
        name: "nobody_is_promoted_during_a_rollout",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut decision = step(spec, seen, hints, now);
            let outdated = seen.pods.iter().any(|pod| {
                let object = pod.object.value();
                object.is_none_or(|object| object.revision.is_outdated())
            });
            if outdated {
                decision.effects.retain(|effect| {
                    !matches!(
                        effect.verb,
                        Verb::RecordPrimary { .. } | Verb::Promote { .. }
                    )
                });
            }
            decision
        },
    },
    Mutant {
        name: "every_server_that_starts_is_a_primary",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut decision = step(spec, seen, hints, now);
            for (pod, guard, server) in answering(seen) {
                if server.port == Port::Fence {
                    decision.act(Verb::Promote { pod }, guard, Reason::PrimaryReturned);
                    decision.act(Verb::Open { pod }, guard, Reason::PrimaryOpened);
                }
            }
            decision
        },
    },
    Mutant {
        name: "a_replica_that_runs_is_in_sync",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut seen = seen.clone();
            believe_all(&mut seen);
            let mut decision = step(spec, &seen, hints, now);
            decision
                .effects
                .retain(|effect| !matches!(effect.verb, Verb::AwaitCopy { .. }));
            each_guard(&mut decision, |guard| {
                guard.copied = false;
                guard.before = None;
                guard.offset_floor = None;
                guard.in_sync = Default::default();
            });
            decision
        },
    },
    Mutant {
        name: "a_missed_probe_is_a_death",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| missed_is_dead(spec, seen, hints, now),
    },
    Mutant {
        name: "an_old_marker_is_a_death",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let marked = seen.primary_down_since;
            if marked.is_some_and(|at| now.since(at) > limits::SILENCE) {
                return missed_is_dead(spec, seen, hints, now);
            }
            step(spec, seen, hints, now)
        },
    },
    Mutant {
        name: "a_pod_is_replaced_in_every_pass",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut decision = step(spec, seen, hints, now);
            replace_next(seen, &mut decision);
            decision
        },
    },
    Mutant {
        name: "fewer_pods_are_asked_for_at_once",
        hands: Hands::Right,
        brain: |spec, seen, hints, now| {
            let mut decision = step(spec, seen, hints, now);
            if seen.objects.replicas_applied > spec.pods {
                decision.effects.clear();
                let verb = Verb::ScaleIn { to: spec.pods };
                decision.act(verb, Guard::NONE, Reason::ScaledIn);
            }
            decision
        },
    },
];

/// A primary that does not answer is taken to be dead, whatever its replicas say.
fn missed_is_dead(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let leads = seen.record.and_then(|record| seen.pod(record.pod));
    if !leads.is_some_and(|pod| matches!(pod.server, Known::Maybe { .. })) {
        return step(spec, seen, hints, now);
    }
    let mut seen = seen.clone();
    for pod in &mut seen.pods {
        if let (Known::Maybe { since, .. }, Some(reach)) = (pod.server, &mut pod.reach) {
            reach.kept = Kept::Closed { at: since };
            reach.fresh = Fresh::Refused { at: now };
        }
    }
    each_replica(&mut seen, |server| {
        if let Role::Replica { link, .. } = &mut server.role {
            *link = Link::Down { seconds: 30 };
        }
    });
    let mut decision = step(spec, &seen, hints, now);
    each_guard(&mut decision, |guard| guard.unfed = false);
    decision
}

/// Pod 0 becomes the primary whenever it answers and is not, whoever leads.
fn install_first(seen: &Observation, decision: &mut Decision) {
    let leads = |server: &ServerFacts| server.role == Role::Primary;
    let first = answering(seen).find(|(pod, ..)| *pod == Ordinal(0));
    let Some((pod, guard, _)) = first.filter(|(_, _, server)| !leads(server)) else {
        return;
    };
    decision.effects.clear();
    for (other, guard, _) in answering(seen).filter(|(_, _, server)| leads(server)) {
        let verb = Verb::StepDown { pod: other };
        decision.act(verb, guard, Reason::SecondPrimaryDemoted);
    }
    let epoch = seen.record.map_or(Epoch(0), |record| record.epoch);
    let record = Record {
        epoch: epoch.next(),
        pod,
        pod_uid: guard.pod.map_or(PodUid(0), |(_, uid)| uid),
        claim_uid: None,
        replid: None,
        continues: None,
        served: None,
        planned: false,
    };
    let announced = Verb::RecordPrimary {
        record,
        serves: None,
    };
    let epoch = Some(record.epoch);
    decision.act(announced, Guard::NONE, Reason::PrimaryReturned);
    let guard = Guard { epoch, ..guard };
    decision.act(Verb::Promote { pod }, guard, Reason::PrimaryReturned);
}

/// The highest replica that is not up to date is evicted, whatever the others do.
fn replace_next(seen: &Observation, decision: &mut Decision) {
    let due = |pod: Ordinal| {
        let object = seen.pod(pod).and_then(|found| found.object.value());
        object.is_some_and(|object| object.revision.is_outdated() && !object.terminating)
    };
    let replica = |server: &ServerFacts| matches!(server.role, Role::Replica { .. });
    let next = answering(seen)
        .filter(|(pod, _, server)| due(*pod) && replica(server))
        .last();
    if let Some((pod, guard, _)) = next {
        decision.act(Verb::Evict { pod }, guard, Reason::PodReplaced);
    }
}

/// Every replica is taken to be open, linked and as far as the primary.
fn believe_all(seen: &mut Observation) {
    let primary = seen
        .record
        .and_then(|record| seen.pod(record.pod)?.server.value().copied());
    each_replica(seen, |server| {
        if let Role::Replica { link, syncing, .. } = &mut server.role {
            *link = Link::Up;
            *syncing = false;
            server.port = Port::Client;
            if let Some(primary) = primary {
                server.replid = primary.replid;
                server.offset = primary.offset;
                server.keys = primary.keys;
            }
        }
    });
}

fn each_replica(seen: &mut Observation, change: impl Fn(&mut ServerFacts)) {
    for pod in &mut seen.pods {
        if let Known::Seen(answer) = &mut pod.server
            && matches!(answer.value.role, Role::Replica { .. })
        {
            change(&mut answer.value);
        }
    }
}

fn each_guard(decision: &mut Decision, change: impl Fn(&mut Guard)) {
    for effect in &mut decision.effects {
        change(&mut effect.guard);
    }
}

/// Pods whose servers answer, with guards that name no more than their processes.
fn answering(seen: &Observation) -> impl Iterator<Item = (Ordinal, Guard, ServerFacts)> {
    seen.ordinals().filter_map(|(pod, found)| {
        let uid = found.object.value()?.uid;
        let server = found.server.value()?;
        let guard = Guard {
            pod: Some((pod, uid)),
            run: Some(server.run),
            ..Guard::NONE
        };
        (server.pod_uid == uid).then_some((pod, guard, *server))
    })
}
