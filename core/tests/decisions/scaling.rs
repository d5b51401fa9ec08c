//! Fewer pods: the primary and a copy stay before any pod goes.

use wellcake_core::effects::{Decision, Kind, Verb};
use wellcake_core::exec::{Authority, admit};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

/// A healthy cluster of three that is to have fewer.
fn fewer(pods: u8) -> Situation {
    let mut s = healthy(cache());
    s.spec.pods = pods;
    s
}

/// The same, led by the last pod.
fn led_by_last(pods: u8) -> Situation {
    let mut s = fewer(pods);
    let record = s.seen.record.as_mut().expect("a record");
    (record.pod, record.pod_uid, record.claim_uid) = (Ordinal(2), PodUid(2), Some(ClaimUid(2)));
    s.seen.kept_record = s.seen.record;
    s.serve(2, primary(2));
    for pod in [0, 1] {
        s.serve(pod, replica(pod));
        s.server(pod, |it| {
            it.role = Role::Replica {
                upstream: Upstream::Pod(Ordinal(2)),
                link: Link::Up,
                syncing: false,
            };
        });
        s.object(pod, |o| o.label = RoleLabel::Replica);
    }
    s.object(2, |o| o.label = RoleLabel::Primary);
    s.seen.objects.client_route = Some(Ordinal(2));
    s.seen.objects.primary_route = Some(Ordinal(2));
    s
}

fn scaled_to(decision: &Decision) -> Option<u8> {
    decision.effects.iter().find_map(|e| match e.verb {
        Verb::ScaleIn { to } => Some(to),
        _ => None,
    })
}

/// Where the primary hands over to.
fn handed_to(decision: &Decision) -> Option<(Ordinal, Reason)> {
    let record = recorded(decision).filter(|record| record.planned)?;
    Some((record.pod, decision.effects[0].reason))
}

#[test]
fn pods_beyond_what_is_asked_for_are_taken_away() {
    for pods in [2, 1] {
        let decision = fewer(pods).decide();
        assert_eq!(scaled_to(&decision), Some(pods));
        assert_eq!(decision.effects.len(), 1, "{decision:?}");
    }
    assert_eq!(scaled_to(&healthy(cache()).decide()), None);
}

#[test]
fn the_last_copy_in_sync_is_not_taken_away() {
    let mut s = fewer(2);
    s.unlink(1, 0);
    let decision = s.decide();
    assert_eq!(scaled_to(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingForScaleIn));
    let mut s = fewer(1);
    s.unlink(1, 0);
    assert_eq!(scaled_to(&s.decide()), Some(1), "the primary has all of it");
}

#[test]
fn a_primary_that_would_go_hands_over_to_a_pod_that_stays() {
    let decision = led_by_last(2).decide();
    assert_eq!(
        handed_to(&decision),
        Some((Ordinal(0), Reason::PrimaryIsScaledIn))
    );
    assert_eq!(scaled_to(&decision), None);
    let mut s = led_by_last(1);
    s.unlink(0, 0);
    let decision = s.decide();
    assert_eq!(handed_to(&decision), None, "pod 1 goes, too");
    assert_eq!(scaled_to(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingForTarget));
}

#[test]
fn a_pod_that_goes_leads_only_when_the_primary_leaves_and_no_other_can() {
    let mut s = fewer(2);
    s.object(0, |o| o.terminating = true);
    s.server(2, |it| it.offset = Offset(1001));
    assert_eq!(handed_to(&s.decide()).map(|it| it.0), Some(Ordinal(1)));
    s.unlink(1, 0);
    assert_eq!(handed_to(&s.decide()).map(|it| it.0), Some(Ordinal(2)));
}

#[test]
fn fewer_pods_come_before_a_rollout() {
    let mut s = fewer(2);
    s.object(1, |o| o.revision = Revision::Outdated);
    let decision = s.decide();
    assert_eq!(scaled_to(&decision), Some(2));
    assert_eq!(decision.effects.len(), 1);
}

#[test]
fn pods_are_not_taken_away_when_the_copy_that_stays_was_lost_meanwhile() {
    let leader = Authority::Leader {
        epoch: 1,
        valid_until: Tick(NOW.0 + 1000),
    };
    let mut s = fewer(2);
    let effect = s.decide().effects[0];
    assert_eq!(admit(&effect, &s.seen, leader, NOW), Ok(()));
    s.unlink(1, 0);
    assert!(admit(&effect, &s.seen, leader, NOW).is_err());
}

#[test]
fn nothing_is_taken_away_while_nobody_leads() {
    let mut s = fewer(2);
    s.kill(0);
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    let decision = s.decide();
    assert_eq!(scaled_to(&decision), None);
    assert!(promoted(&decision).is_some());
}

#[test]
fn a_recorded_primary_that_does_not_come_back_is_named_and_nobody_leads_empty() {
    let mut s = led_by_last(2);
    s.seen.objects.replicas_applied = 2;
    s.seen.pods[2].object = Known::Absent;
    s.seen.pods[2].server = Known::Absent;
    s.seen.primary_down_since = Some(Tick(NOW.0 - 40_000));
    for pod in [0, 1] {
        s.serve(pod, booted(pod));
    }
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(
        refuses(&decision, Reason::PrimaryScaledAway),
        "{decision:?}"
    );
    s.spec.pods = 3;
    let decision = s.decide();
    assert!(!refuses(&decision, Reason::PrimaryScaledAway));
    assert!(waits_for(&decision, Reason::WaitingForPrimaryPod));
}

#[test]
fn a_broken_pod_that_stays_is_replaced_while_fewer_pods_wait_for_it() {
    let mut s = led_by_last(2);
    for pod in [0, 1] {
        s.object(pod, |o| {
            o.revision = Revision::Outdated;
            o.trouble = Some(Trouble::Image);
            o.container = Container::Waiting;
        });
        s.silence(pod, 10_000);
    }
    let decision = s.decide();
    assert_eq!(scaled_to(&decision), None);
    assert!(
        decision
            .effects
            .iter()
            .any(|e| e.verb == Verb::Evict { pod: Ordinal(0) }),
        "{decision:?}"
    );
}

#[test]
fn fewer_pods_and_a_changed_template_are_one_apply() {
    let mut s = fewer(2);
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Differs));
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::ScaleIn]);
}

#[test]
fn a_durable_primary_takes_writes_alone_before_its_last_replica_goes() {
    let mut s = healthy(durable());
    s.spec.pods = 1;
    s.spec.needs_replica = true;
    s.server(0, |it| it.needs_replica = true);
    let decision = s.decide();
    assert_eq!(scaled_to(&decision), None);
    assert!(decision.effects.iter().any(|e| {
        e.verb
            == Verb::NeedReplica {
                pod: Ordinal(0),
                needed: false,
            }
    }));
    s.server(0, |it| it.needs_replica = false);
    let decision = s.decide();
    assert_eq!(
        kinds(&decision),
        [Kind::ScaleIn],
        "and it is not asked for again"
    );
}
