//! Pods of an older template are replaced one at a time, and the primary hands over before its turn comes.

use wellcake_core::effects::{Decision, InSync, Kind, Verb};
use wellcake_core::exec::{Authority, admit, after_batch};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_crds::v1beta1::Topology;

use crate::situation::*;

fn outdated(pods: &[u8]) -> Situation {
    let mut s = healthy(cache());
    for pod in pods {
        s.object(*pod, |o| o.revision = Revision::Outdated);
    }
    s
}

fn evicted(decision: &Decision) -> Option<Ordinal> {
    decision.effects.iter().find_map(|e| match e.verb {
        Verb::Evict { pod } => Some(pod),
        _ => None,
    })
}

fn hands_over_for(decision: &Decision) -> Option<Reason> {
    decision
        .effects
        .iter()
        .find(|e| matches!(e.verb, Verb::PauseWrites { .. }))
        .map(|e| e.reason)
}

#[test]
fn the_last_replica_is_replaced_first_and_nothing_else_is_done() {
    let decision = outdated(&[0, 1, 2]).decide();
    assert_eq!(evicted(&decision), Some(Ordinal(2)));
    assert_eq!(decision.effects.len(), 1, "{decision:?}");
    assert!(waits_for(&decision, Reason::WaitingForRollout));
}

#[test]
fn the_next_pod_waits_until_all_others_are_in_sync() {
    type Damage = fn(&mut Situation);
    let table: [(&str, Damage); 6] = [
        ("behind the fence", |s| {
            s.server(2, |it| it.port = Port::Fence)
        }),
        ("no link", |s| s.unlink(2, 3)),
        ("silent", |s| s.silence(2, 100)),
        ("terminating", |s| s.object(2, |o| o.terminating = true)),
        ("gone", |s| {
            s.seen.pods[2].object = Known::Absent;
            s.seen.pods[2].server = Known::Absent;
        }),
        ("another history", |s| {
            s.server(2, |it| it.replid = Replid(9))
        }),
    ];
    for (what, damage) in table {
        let mut s = outdated(&[0, 1]);
        damage(&mut s);
        let decision = s.decide();
        assert_eq!(evicted(&decision), None, "{what}");
        assert_eq!(hands_over_for(&decision), None, "{what}");
        assert!(waits_for(&decision, Reason::WaitingForRollout), "{what}");
    }
    assert_eq!(evicted(&outdated(&[0, 1]).decide()), Some(Ordinal(1)));
}

#[test]
fn the_primary_hands_over_to_a_replaced_pod_before_it_is_replaced_itself() {
    let decision = outdated(&[0]).decide();
    assert_eq!(hands_over_for(&decision), Some(Reason::PrimaryIsReplaced));
    assert_eq!(evicted(&decision), None);
    let mut s = outdated(&[0]);
    s.object(2, |o| o.terminating = true);
    assert_eq!(hands_over_for(&s.decide()), None, "a pod is away");
    let mut s = outdated(&[0]);
    s.hints.handover_failed_at = Some(Tick(NOW.0 - 100));
    let decision = s.decide();
    assert_eq!(hands_over_for(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingToHandOver));
}

#[test]
fn nothing_is_replaced_while_nobody_leads_or_a_handover_is_not_seen_through() {
    let mut s = outdated(&[1, 2]);
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    let decision = s.decide();
    assert_eq!(evicted(&decision), None);
    assert!(promoted(&decision).is_some(), "failover goes on");
    let mut s = outdated(&[1, 2]);
    let record = s.seen.record.as_mut().expect("a record");
    record.served = Some(Served {
        pod: Ordinal(1),
        pod_uid: PodUid(1),
        claim_uid: None,
        replid: Some(HISTORY),
    });
    assert_eq!(evicted(&s.decide()), None);
}

#[test]
fn a_template_that_is_not_applied_yet_replaces_nothing() {
    let mut s = outdated(&[1, 2]);
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Differs));
    assert_eq!(evicted(&s.decide()), None);
}

#[test]
fn a_template_whose_revision_is_not_known_yet_is_waited_for() {
    let mut s = healthy(cache());
    s.object(1, |o| o.revision = Revision::Unknown);
    let decision = s.decide();
    assert!(decision.effects.is_empty());
    assert!(waits_for(&decision, Reason::WaitingForRollout));
}

#[test]
fn a_pod_that_does_not_come_back_stops_the_rollout_and_is_named() {
    let table = [
        (Trouble::Image, Reason::ImageNotPulled),
        (Trouble::Container, Reason::ContainerNotMade),
        (Trouble::Crashes, Reason::ServerCrashes),
    ];
    for (trouble, reason) in table {
        let mut s = outdated(&[0, 1]);
        s.object(2, |o| {
            o.trouble = Some(trouble);
            o.container = Container::Waiting;
        });
        s.silence(2, 10_000);
        let decision = s.decide();
        assert_eq!(evicted(&decision), None);
        assert!(refuses(&decision, reason));
    }
    let mut s = outdated(&[]);
    s.object(2, |o| o.trouble = Some(Trouble::NoNode));
    assert!(waits_for(&s.decide(), Reason::PodNotScheduled));
}

#[test]
fn pods_that_do_not_run_are_replaced_first_by_a_corrected_template() {
    let mut s = outdated(&[0, 1, 2]);
    for pod in [1, 2] {
        s.object(pod, |o| {
            o.trouble = Some(Trouble::Crashes);
            o.container = Container::Waiting;
        });
        s.silence(pod, 10_000);
    }
    let decision = s.decide();
    assert_eq!(evicted(&decision), Some(Ordinal(2)));
    assert_eq!(decision.effects[0].guard.in_sync, InSync::NotThisOne);
    s.object(2, |o| o.terminating = true);
    assert_eq!(evicted(&s.decide()), None, "one at a time");
    let mut s = outdated(&[0, 1, 2]);
    s.serve(1, booted(1));
    assert_eq!(
        evicted(&s.decide()),
        Some(Ordinal(1)),
        "it never was in sync"
    );
    let mut s = outdated(&[0, 1, 2]);
    s.unlink(1, 2);
    assert_eq!(evicted(&s.decide()), None, "it may catch up");
}

#[test]
fn an_eviction_is_not_done_when_another_pod_went_away_meanwhile() {
    let leader = Authority::Leader {
        epoch: 1,
        valid_until: Tick(NOW.0 + 1000),
    };
    let mut s = outdated(&[0, 1, 2]);
    let effect = s.decide().effects[0];
    assert_eq!(admit(&effect, &s.seen, leader, NOW), Ok(()));
    s.unlink(1, 0);
    assert!(admit(&effect, &s.seen, leader, NOW).is_err());
    let mut s = outdated(&[1, 2]);
    s.serve(1, booted(1));
    let decision = s.decide();
    let effect = decision
        .effects
        .iter()
        .find(|e| matches!(e.verb, Verb::Evict { .. }))
        .expect("an eviction");
    assert_eq!(admit(effect, &s.seen, leader, NOW), Ok(()));
    s.serve(1, replica(1));
    s.server(1, |it| it.run = booted(1).run);
    assert!(
        admit(effect, &s.seen, leader, NOW).is_err(),
        "it is in sync by now"
    );
}

/// A cluster of one pod.
fn alone(spec: SpecFacts) -> Situation {
    let mut s = outdated(&[0]);
    s.spec = SpecFacts { pods: 1, ..spec };
    s.seen.pods.truncate(1);
    s.seen.objects.replicas_applied = 1;
    s
}

#[test]
fn the_only_pod_is_replaced_only_if_its_data_survives_or_a_person_asked() {
    for topology in [Topology::Replication, Topology::Standalone] {
        let of = |spec: SpecFacts| alone(SpecFacts { topology, ..spec });
        assert_eq!(evicted(&of(durable()).decide()), Some(Ordinal(0)));
        let mut s = of(cache());
        let decision = s.decide();
        assert_eq!(evicted(&decision), None);
        assert!(refuses(&decision, Reason::ChangeLosesData));
        s.object(0, |o| o.revision = Revision::RestartAsked);
        assert_eq!(evicted(&s.decide()), Some(Ordinal(0)));
        let mut s = of(cache());
        s.object(0, |o| o.trouble = Some(Trouble::Image));
        s.silence(0, 1000);
        if topology == Topology::Standalone {
            assert_eq!(evicted(&s.decide()), Some(Ordinal(0)), "it never ran");
        }
    }
}

#[test]
fn an_eviction_that_is_refused_is_tried_again_later_and_keeps_nobody_from_leading() {
    let mut s = outdated(&[1, 2]);
    s.hints = after_batch(s.hints, &[(Kind::Evict, false)], NOW);
    let decision = s.decide();
    assert_eq!(evicted(&decision), None);
    assert!(waits_for(&decision, Reason::EvictionRefused));
    assert_eq!(decision.wake, Some(Tick(NOW.0 + 500)));
    s.kill(0);
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    assert!(promoted(&s.decide()).is_some());
    let mut s = outdated(&[1, 2]);
    s.hints = after_batch(s.hints, &[(Kind::Evict, false)], Tick(NOW.0 - 600));
    assert_eq!(evicted(&s.decide()), Some(Ordinal(2)));
    let done = after_batch(s.hints, &[(Kind::Evict, true)], NOW);
    assert_eq!(done, Hints::default());
}

#[test]
fn a_broken_pod_is_replaced_by_a_corrected_template_although_nobody_leads() {
    let broken = |s: &mut Situation, pod: u8| {
        s.object(pod, |o| {
            o.revision = Revision::Outdated;
            o.trouble = Some(Trouble::Image);
            o.container = Container::Waiting;
        });
        s.silence(pod, 10_000);
    };
    let mut s = fresh(cache());
    for pod in 0..3 {
        broken(&mut s, pod);
    }
    let decision = s.decide();
    assert_eq!(evicted(&decision), Some(Ordinal(0)));
    let leader = Authority::Leader {
        epoch: 1,
        valid_until: Tick(NOW.0 + 1000),
    };
    let effect = decision
        .effects
        .iter()
        .find(|e| matches!(e.verb, Verb::Evict { .. }))
        .expect("an eviction");
    assert_eq!(admit(effect, &s.seen, leader, NOW), Ok(()));
    s.object(0, |o| o.container = Container::Running { restarts: 0 });
    assert!(admit(effect, &s.seen, leader, NOW).is_err(), "it runs");
    // The only pod of a cluster that had a primary.
    let mut s = alone(durable());
    broken(&mut s, 0);
    assert_eq!(evicted(&s.decide()), Some(Ordinal(0)));
    s.object(0, |o| o.revision = Revision::Current);
    assert_eq!(evicted(&s.decide()), None, "it is what the spec asks for");
    // What is kept in a volume that goes with its pod is not given up.
    let mut s = alone(durable());
    s.spec.persistence.claims = false;
    broken(&mut s, 0);
    assert_eq!(evicted(&s.decide()), None);
}
