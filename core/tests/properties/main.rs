//! Properties of every decision, tried on arbitrary observations. A case that failed once is kept in
//! `tests/properties/regressions.txt` and tried first.

// Tests may stop with a message, and one of them measures.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod damage;
mod shapes;
mod shift;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use wellcake_core::effects::{Danger, Decision, Effect, InSync, Lane, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::{exec, limits, status, step};
use wellcake_crds::v1beta1::Topology;

use damage::{any_case, converged, silent};
use shapes::{Case, NOW, arbitrary};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/properties/regressions.txt",
        ))),
        ..ProptestConfig::default()
    }
}

fn decide(case: &Case) -> Decision {
    step(&case.spec, &case.seen, &case.hints, NOW)
}

/// Promotions of a handover, which are checked against the primary that steps down right before.
fn handed_over(decision: &Decision, pod: Ordinal) -> bool {
    decision
        .effects
        .iter()
        .any(|e| e.verb == Verb::Promote { pod } && e.guard.before.is_some())
}

fn promotions(decision: &Decision) -> impl Iterator<Item = (Ordinal, Reason)> {
    decision.effects.iter().filter_map(|e| match e.verb {
        Verb::Promote { pod } => Some((pod, e.reason)),
        _ => None,
    })
}

fn fresh(case: &Case, pod: Ordinal) -> Option<&ServerFacts> {
    case.seen.server(pod, NOW, limits::DESTRUCTIVE_AGE)
}

/// Whether the recorded primary was seen to take writes.
fn recorded_serves(case: &Case) -> bool {
    case.seen.record.is_some_and(|record| {
        let age = limits::DESTRUCTIVE_AGE;
        let server = case.seen.server_of(record.pod, record.pod_uid, NOW, age);
        server.is_some_and(ServerFacts::serves_writes)
    })
}

/// A server with a usable copy: in memory since it was in sync, or loaded behind the fence.
fn holds_usable_data(server: &ServerFacts) -> bool {
    let loaded = matches!(server.role, Role::Replica { syncing: false, .. })
        && server.port == Port::Fence
        && !server.loading;
    server.keys > 0 && (loaded || (server.port == Port::Client && server.is_synced_replica()))
}

/// Visible servers of pods whose object is seen too.
fn visible(case: &Case) -> impl Iterator<Item = (Ordinal, &ServerFacts)> {
    case.seen.ordinals().filter_map(|(ordinal, pod)| {
        let uid = pod.object.value()?.uid;
        let server = fresh(case, ordinal)?;
        (server.pod_uid == uid).then_some((ordinal, server))
    })
}

/// Whether a pod might hold data that nobody has looked at.
fn is_unknown(case: &Case, ordinal: Ordinal, pod: &PodFacts) -> bool {
    let looked_at = visible(case).any(|(n, server)| n == ordinal && !server.loading);
    let never_started = match pod.object {
        Known::Absent => true,
        Known::Seen(object) => matches!(object.value.container, Container::Waiting),
        Known::Maybe { .. } => false,
    };
    let blank = match pod.claim {
        Known::Absent => true,
        Known::Seen(claim) => claim.value.younger_than_cluster,
        Known::Maybe { .. } => false,
    };
    !looked_at && !(never_started && (blank || !case.spec.persistence.claims))
}

fn safety(decision: &Decision) -> Vec<Effect> {
    exec::lane(decision, Lane::Safety).copied().collect()
}

proptest! {
    #![proptest_config(config(4_000))]

    /// No observation makes a decision or the status that follows from it panic, and the same input gives the same answer.
    #[test]
    fn every_observation_has_a_decision_and_the_same_one_each_time(case in arbitrary()) {
        let decision = decide(&case);
        prop_assert_eq!(&decision, &decide(&case));
        let told = status::facts(&case.spec, &case.seen, &decision, NOW);
        prop_assert_eq!(told, status::facts(&case.spec, &case.seen, &decision, NOW));
    }

    /// Only differences of time matter.
    #[test]
    fn a_later_clock_moves_the_wake_up_and_nothing_else(case in any_case(), by in 0u64..1_000_000_000) {
        let decision = decide(&case);
        let moved = shift::later(&case, by);
        let after = step(&moved.spec, &moved.seen, &moved.hints, Tick(NOW.0 + by));
        prop_assert_eq!(after.wake, decision.wake.map(|at| Tick(at.0 + by)));
        prop_assert_eq!(after.effects, decision.effects);
        prop_assert_eq!(after.waits, decision.waits);
        prop_assert_eq!(after.refusals, decision.refusals);
    }

    /// What is as the spec asks is left alone, without a later look.
    #[test]
    fn a_converged_cluster_needs_nothing(case in converged()) {
        let decision = decide(&case);
        prop_assert_eq!(&decision, &Decision::default());
        let told = status::facts(&case.spec, &case.seen, &decision, NOW);
        prop_assert!(told.ready_condition.0 && told.available.0 && !told.degraded.0 && !told.progressing.0);
    }

    /// One promotion at a time, and beside a primary that serves only after that stepped down.
    #[test]
    fn at_most_one_promotion_and_none_beside_a_serving_primary(case in any_case()) {
        let decision = decide(&case);
        let steps_down = |pod| decision.effects.iter().position(|e| {
            e.verb == Verb::StepDown { pod }
        });
        let promoted = |pod| decision.effects.iter().position(|e| {
            e.verb == Verb::Promote { pod }
        });
        let mut beside = 0;
        for effect in &decision.effects {
            let Verb::Promote { pod } = effect.verb else { continue };
            match effect.guard.before {
                Some((before, _)) => prop_assert!(steps_down(before) < promoted(pod) && steps_down(before).is_some()),
                None => beside += 1,
            }
        }
        prop_assert!(promotions(&decision).count() <= 1);
        prop_assert!(beside <= usize::from(!recorded_serves(&case)));
    }

    /// A primary that is silent is succeeded only by who heard nothing of it, and saw all who may have a link to it.
    #[test]
    fn silence_is_heard_and_has_witnesses(case in prop_oneof![any_case().boxed(), silent().boxed()]) {
        let decision = decide(&case);
        for effect in decision.effects.iter().filter(|e| e.reason == Reason::SilentPrimarySucceeded) {
            prop_assert_eq!(effect.guard.check(&case.seen, NOW).err().filter(|_| {
                matches!(effect.verb, Verb::RecordPrimary { .. })
            }), None);
            let Some((primary, _)) = effect.guard.silent else { panic!("{effect:?}") };
            let silent = case.seen.pod(primary).expect("a pod");
            let unheard = matches!(silent.server, Known::Maybe { .. });
            prop_assert!(unheard);
            for (other, pod) in case.seen.members(&case.spec).filter(|(n, _)| *n != primary) {
                let may_run = match pod.object {
                    Known::Absent => false,
                    Known::Maybe { .. } => true,
                    Known::Seen(object) => {
                        matches!(object.value.container, Container::Running { .. })
                            && !object.value.node_out_of_service
                    }
                };
                let server = fresh(&case, other);
                prop_assert!(server.is_some() || !may_run, "nobody sees {:?}", other);
                prop_assert!(!server.is_some_and(|s| s.is_linked_to(primary)));
            }
        }
    }

    /// Only a primary steps down, for a copy that is promoted with it.
    #[test]
    fn who_steps_down_is_a_primary_and_a_copy_is_promoted_for_it(case in any_case()) {
        let decision = decide(&case);
        for effect in decision.effects.iter().filter(|e| matches!(e.verb, Verb::StepDown { .. })) {
            prop_assert_eq!(effect.guard.replica, Some(false));
            prop_assert!(effect.guard.copied);
            let promoted = decision.effects.iter().any(|e| {
                matches!(e.verb, Verb::Promote { .. }) && e.guard.before == effect.guard.pod
            });
            prop_assert!(promoted);
        }
    }

    /// A re-pointing may cost a replica its copy, so copies are re-pointed one by one.
    #[test]
    fn at_most_one_copy_is_repointed_at_a_time(case in any_case()) {
        let decision = decide(&case);
        let repointed = decision.effects.iter().filter(|e| match e.verb {
            Verb::Follow { pod, .. } => fresh(&case, pod)
                .is_some_and(|s| s.port == Port::Client && s.role != Role::Primary),
            _ => false,
        });
        prop_assert!(repointed.count() <= 1);
    }

    /// A server that is loading, or behind another that can be seen to hold more of the same history, is not promoted.
    #[test]
    fn a_promotion_takes_the_longest_part_of_its_history_in_sight(case in any_case()) {
        let decision = decide(&case);
        for (pod, reason) in promotions(&decision) {
            if matches!(reason, Reason::PromotedByOrder) || handed_over(&decision, pod) {
                continue;
            }
            let chosen = fresh(&case, pod).copied();
            prop_assert!(chosen.is_some(), "never a server that was not seen");
            let Some(chosen) = chosen else { continue };
            prop_assert!(!chosen.loading);
            for (other, server) in visible(&case).filter(|(n, _)| *n != pod) {
                let same = server.replid == chosen.replid && chosen.replid.0 != OVERFLOW;
                // Offsets 0 and 1 stand for none: what an append-only file restored has no part in a history.
                let restored = reason == Reason::PrimaryReturned && chosen.offset.0 <= 1;
                let same = same && server.offset.0 > 1 && !restored;
                prop_assert!(
                    !(same && holds_usable_data(server) && server.offset > chosen.offset),
                    "{:?} holds more than {:?}", other, pod
                );
            }
        }
    }

    /// An empty server leads only when every pod that might hold data was looked at and holds none.
    #[test]
    fn an_empty_server_leads_only_when_nothing_is_left_anywhere(case in any_case()) {
        for (pod, reason) in promotions(&decide(&case)) {
            let Some(chosen) = fresh(&case, pod).copied() else { continue };
            let empty = chosen.port == Port::Fence && chosen.keys == 0 && !chosen.is_synced_replica();
            if !empty || matches!(reason, Reason::PromotedByOrder) {
                continue;
            }
            for (other, facts) in case.seen.members(&case.spec).filter(|(n, _)| *n != pod) {
                prop_assert!(!is_unknown(&case, other, facts), "nobody looked at {:?}", other);
                let full = visible(&case).any(|(n, server)| n == other && server.keys > 0);
                // A server of the chosen one's own history was compared by offset.
                let compared = visible(&case).any(|(n, server)| n == other && server.replid == chosen.replid);
                prop_assert!(!full || compared, "{:?} holds data", other);
            }
        }
    }

    /// What could do harm is bound to the process and the promotion that it was planned for.
    #[test]
    fn what_could_do_harm_names_pod_process_and_epoch(case in any_case()) {
        for effect in decide(&case).effects.iter().filter(|e| e.verb.danger() != Danger::Free) {
            let guard = effect.guard;
            // A pod whose server does not run is replaced as well, or sent to sleep if it is the only one.
            let silent = match effect.verb {
                Verb::Evict { pod } => fresh(&case, pod).is_none(),
                Verb::ScaleIn { to: 0 } => fresh(&case, Ordinal(0)).is_none(),
                _ => false,
            };
            prop_assert!(guard.pod.is_some() && (guard.run.is_some() || silent), "{:?}", effect);
            prop_assert!(guard.epoch.is_some() || case.spec.topology == Topology::Standalone, "{:?}", effect);
        }
    }

    /// A planned change takes one pod at a time, never the primary of several, and no copy while another pod is away.
    #[test]
    fn a_planned_change_takes_one_pod_at_a_time_and_no_copy_that_is_missed(case in any_case()) {
        let decision = decide(&case);
        let changes = decision.effects.iter().filter(|e| {
            matches!(e.verb, Verb::Evict { .. } | Verb::ScaleIn { .. } | Verb::PauseWrites { .. })
        });
        prop_assert!(changes.count() <= 1, "{:?}", decision.effects);
        if case.spec.topology == Topology::Standalone {
            return Ok(());
        }
        for effect in &decision.effects {
            let Verb::Evict { pod } = effect.verb else { continue };
            let broken = effect.guard.in_sync == InSync::NotRunning;
            let runs = case.seen.pod(pod).and_then(|found| found.object.value())
                .is_some_and(|object| matches!(object.container, Container::Running { .. }));
            prop_assert!(!broken || !(runs || case.seen.answers(pod)));
            let leads = case.seen.record.is_some_and(|record| record.pod == pod);
            prop_assert!(broken || case.seen.record.is_some(), "nothing that runs is replaced without a primary");
            prop_assert!(broken || !leads || case.seen.pods.len() == 1);
            let away = |other: Ordinal| !case.seen.is_in_sync(other, NOW);
            let others_away = case.seen.ordinals().any(|(other, _)| other != pod && away(other));
            prop_assert!(!others_away || away(pod), "{:?} is a copy", pod);
        }
    }

    /// A primary with replicas that is not ready does something, waits for something or refuses something: nothing is ever left
    /// undone without a word.
    #[test]
    fn who_is_not_ready_says_why_or_does_something(mut case in any_case()) {
        case.spec.topology = Topology::Replication;
        (case.spec.deleting, case.spec.hibernate) = (false, false);
        // Every pod that is asked for is looked at.
        let looked_at = u8::try_from(case.seen.pods.len()).unwrap_or(u8::MAX);
        case.spec.pods = case.spec.pods.min(looked_at);
        for pod in &mut case.seen.pods {
            if pod.object.is_absent() {
                pod.server = Known::Absent;
            }
        }
        let decision = decide(&case);
        let told = status::facts(&case.spec, &case.seen, &decision, NOW);
        let silent = decision.effects.is_empty() && decision.waits.is_empty() && decision.refusals.is_empty();
        prop_assert!(told.ready_condition.0 || !silent, "{:?}", told);
    }

    /// Without a person's word nothing of another operator's is touched, whatever is seen.
    #[test]
    fn without_a_persons_word_nothing_of_another_operator_is_touched(mut case in any_case()) {
        let theirs = Known::seen(NOW, ObjectState::Theirs);
        case.seen.objects.set(Object::StatefulSet, theirs);
        case.seen.record = None;
        case.spec.adopt = false;
        let decision = decide(&case);
        prop_assert!(decision.effects.is_empty(), "{:?}", decision.effects);
    }

    /// No pod is replaced while the StatefulSet has the template of another operator.
    #[test]
    fn a_template_that_is_kept_takes_no_pod(
        mut case in any_case(),
        state in prop_oneof![Just(ObjectState::Theirs), Just(ObjectState::Kept), Just(ObjectState::RollAsked)],
    ) {
        case.seen.objects.set(Object::StatefulSet, Known::seen(NOW, state));
        let decision = decide(&case);
        let evicted = decision.effects.iter().find(|e| matches!(e.verb, Verb::Evict { .. }));
        prop_assert_eq!(evicted, None);
    }

    /// A cluster that is being deleted is left alone, but for what would keep it from going.
    #[test]
    fn a_cluster_that_is_being_deleted_is_left_alone(mut case in any_case()) {
        case.spec.deleting = true;
        let mut decision = decide(&case);
        decision.effects.retain(|effect| effect.verb != Verb::ReleaseFinalizer);
        prop_assert_eq!(decision, Decision::default());
    }

    /// What was forgotten or made up about earlier failures never changes what safety needs; only a planned handover, which
    /// nobody's safety needs, may come later.
    #[test]
    fn safety_does_not_depend_on_hints(case in any_case()) {
        let forgotten = decide(&Case { hints: Hints::default(), ..case.clone() });
        let hands_over = forgotten.effects.iter().any(|e| matches!(e.verb, Verb::PauseWrites { .. }));
        if !hands_over {
            prop_assert_eq!(safety(&decide(&case)), safety(&forgotten));
        }
    }

    /// The first effect of a decision that names a new primary is the record of it.
    #[test]
    fn a_new_primary_is_recorded_before_it_is_promoted(case in any_case()) {
        let effects = safety(&decide(&case));
        let Some(at) = effects.iter().position(|e| matches!(e.verb, Verb::Promote { .. })) else { return Ok(()) };
        let Verb::Promote { pod } = effects[at].verb else { return Ok(()) };
        let known = case.seen.record.is_some_and(|record| record.pod == pod);
        let announced = effects[..at].iter().any(|e| matches!(e.verb, Verb::RecordPrimary { record, .. } if record.pod == pod));
        prop_assert!(known || announced);
    }
}

/// The shape of silent primaries has such that are succeeded, of both profiles, and such that are not.
#[test]
fn some_silent_primaries_are_succeeded_and_some_are_not() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use wellcake_crds::v1beta1::Profile;
    let mut runner = TestRunner::deterministic();
    let mut count = [0; 3];
    for _ in 0..2_000 {
        let case = silent().new_tree(&mut runner).expect("a case").current();
        let decision = decide(&case);
        let mut promoted = promotions(&decision);
        let at = match promoted.any(|(_, why)| why == Reason::SilentPrimarySucceeded) {
            true if case.spec.profile == Profile::Durable => 0,
            true => 1,
            false => 2,
        };
        count[at] += 1;
    }
    assert!(count.iter().all(|cases| *cases > 50), "{count:?}");
}

/// Bounded time: the largest cluster that the schema allows, with every pod in an arbitrary state.
#[test]
fn a_decision_on_a_hundred_pods_takes_milliseconds() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    for _ in 0..50 {
        let mut case = damage::damaged()
            .new_tree(&mut runner)
            .expect("a case")
            .current();
        let few: Vec<_> = case.seen.pods.iter().copied().collect();
        case.seen.pods = few
            .into_iter()
            .cycle()
            .take(usize::from(limits::MAX_PODS))
            .collect();
        case.spec.pods = limits::MAX_PODS;
        let start = std::time::Instant::now();
        let decision = decide(&case);
        assert!(
            start.elapsed() < std::time::Duration::from_millis(50),
            "{decision:?}"
        );
    }
}
