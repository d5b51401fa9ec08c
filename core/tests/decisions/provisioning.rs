//! Objects of Kubernetes.

use wellcake_core::effects::{Kind, Verb};
use wellcake_core::exec;
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

fn empty() -> Situation {
    let mut s = fresh(cache());
    s.seen.pods.clear();
    for object in Object::ALL {
        s.seen.objects.set(object, Known::Absent);
    }
    s
}

#[test]
fn a_new_cluster_gets_its_secrets_first_and_its_statefulset_after_its_configuration() {
    let decision = empty().decide();
    let order: Vec<_> = decision.effects.iter().map(|e| e.verb).collect();
    assert_eq!(order[0], Verb::CreateCredentials);
    let at = |object| {
        order
            .iter()
            .position(|v| *v == Verb::Apply(object))
            .expect("applied")
    };
    assert!(at(Object::Config) < at(Object::StatefulSet));
    assert_eq!(order.len(), Object::ALL.len());
}

#[test]
fn what_is_not_served_creates_nothing() {
    let mut s = empty();
    s.spec.unserved = Some(Unserved::Tls);
    let decision = s.decide();
    assert!(decision.effects.is_empty());
    assert!(refuses(&decision, Reason::FieldNotServed));
}

#[test]
fn a_missing_secret_or_key_creates_nothing_and_says_so() {
    for (source, reason) in [
        (PasswordSource::SecretMissing, Reason::SecretMissing),
        (PasswordSource::KeyMissing, Reason::SecretKeyMissing),
    ] {
        let mut s = empty();
        s.seen.objects.password = Known::seen(NOW, source);
        let decision = s.decide();
        assert!(decision.effects.is_empty());
        assert!(refuses(&decision, reason));
    }
}

#[test]
fn an_object_of_somebody_else_stops_everything_that_would_be_made() {
    let mut s = empty();
    s.seen.objects.set(
        Object::ClientService,
        Known::seen(NOW, ObjectState::Foreign),
    );
    let decision = s.decide();
    assert!(decision.effects.is_empty());
    assert!(refuses(&decision, Reason::ForeignObject));
}

#[test]
fn what_could_not_be_looked_at_is_not_taken_for_absent() {
    let mut s = empty();
    s.seen.objects.set(Object::StatefulSet, Known::unknown(NOW));
    let decision = s.decide();
    assert!(decision.effects.is_empty());
    assert!(waits_for(&decision, Reason::NotObservedYet));
}

#[test]
fn volumes_grow_and_a_refusal_is_named_and_tried_again_later() {
    let mut s = healthy(durable());
    let claim = |s: &mut Situation, volume| {
        if let Known::Seen(claim) = &mut s.seen.pods[1].claim {
            claim.value.volume = volume;
        }
    };
    claim(&mut s, Volume::Smaller);
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::GrowVolume]);
    let refused = exec::after_batch(s.hints, &[(Kind::GrowVolume, false)], NOW);
    s.hints = refused;
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::VolumeNotGrown));
    assert_eq!(decision.wake, Some(Tick(NOW.0 + 500)));
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Differs));
    assert_eq!(
        kinds(&s.decide()),
        [Kind::Apply],
        "nothing else waits for it"
    );
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Matches));
    claim(&mut s, Volume::Growing);
    let decision = s.decide();
    assert!(decision.effects.is_empty() && decision.refusals.is_empty());
    assert!(waits_for(&decision, Reason::WaitingForVolume));
}

#[test]
fn drift_is_corrected() {
    let mut s = healthy(cache());
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Differs));
    assert_eq!(kinds(&s.decide()), [Kind::Apply]);
}

#[test]
fn failures_pause_provisioning_and_never_failover() {
    let mut s = healthy(cache());
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Differs));
    s.hints.objects = Backoff {
        at: Some(NOW),
        failures: 3,
    };
    let decision = s.decide();
    assert!(decision.effects.is_empty());
    assert_eq!(decision.wake, Some(Tick(NOW.0 + 2_000)));
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn failover_goes_on_when_the_spec_asks_for_something_not_served() {
    let mut s = healthy(cache());
    s.spec.unserved = Some(Unserved::Metrics);
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn requests_that_are_not_served_are_refused_by_name() {
    let mut s = healthy(cache());
    s.spec.rotation_asked = true;
    assert!(refuses(&s.decide(), Reason::RotationNotServed));
}

#[test]
fn nothing_is_done_for_a_cluster_that_is_being_deleted() {
    let mut s = healthy(cache());
    s.spec.deleting = true;
    s.serve(0, booted(0));
    assert!(s.decide().effects.is_empty());
}

#[test]
fn labels_and_copies_of_the_record_wait_after_a_failure_too() {
    let mut s = healthy(durable());
    s.object(1, |o| o.label = RoleLabel::None);
    s.seen.kept_record = None;
    assert_eq!(kinds(&s.decide()), [Kind::KeepRecord, Kind::SetLabel]);
    s.hints = exec::after_batch(s.hints, &[(Kind::SetLabel, false)], NOW);
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert_eq!(decision.wake, Some(Tick(NOW.0 + 500)));
}

#[test]
fn an_image_that_cannot_read_what_a_server_wrote_is_refused_and_changes_nothing() {
    let mut s = healthy(cache());
    let differs = Known::seen(NOW, ObjectState::Differs);
    s.seen.objects.set(Object::StatefulSet, differs);
    let applies = |s: &Situation| {
        let decision = s.decide();
        let verb = Verb::Apply(Object::StatefulSet);
        let applied = decision.effects.iter().any(|effect| effect.verb == verb);
        (applied, refuses(&decision, Reason::DowngradeNotServed))
    };
    for (major, server, wanted) in [
        (Some(8), 8, (true, false)),
        (Some(9), 8, (true, false)),
        (Some(9), 9, (true, false)),
        (None, 9, (true, false)),
        (Some(8), 9, (false, true)),
    ] {
        s.spec.image_major = major;
        s.server(1, |it| it.major = server);
        assert_eq!(applies(&s), wanted, "{major:?} {server}");
    }
    // One that does not answer now wrote it nevertheless.
    s.silence(1, 10_000);
    assert_eq!(applies(&s), (false, true));
}
