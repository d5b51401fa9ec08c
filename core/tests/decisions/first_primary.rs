//! The first primary of a new cluster.

use wellcake_core::effects::{Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

#[test]
fn three_empty_pods_make_pod_0_the_first_primary_recorded_before_it_is_promoted() {
    let mut s = fresh(cache());
    s.seen.objects.client_route = None;
    s.seen.objects.primary_route = None;
    let decision = s.decide();
    assert_eq!(promoted(&decision), Some(Ordinal(0)));
    assert_eq!(kinds(&decision), [Kind::RecordPrimary, Kind::Promote]);
    let record = recorded(&decision).expect("recorded");
    assert_eq!(
        (record.epoch, record.pod, record.pod_uid),
        (Epoch(1), Ordinal(0), PodUid(0))
    );
    // The history that the promotion began is recorded before anybody can write into it.
    s.seen.record = Some(record);
    s.server(0, |v| v.role = Role::Primary);
    let opening = [
        Kind::RecordPrimary,
        Kind::Open,
        Kind::SetRoute,
        Kind::SetRoute,
    ];
    assert_eq!(kinds(&s.decide()), opening);
}

#[test]
fn nobody_leads_while_a_pod_with_an_old_claim_has_not_answered() {
    let mut s = fresh(cache());
    s.seen.pods[2].claim = Known::seen(
        NOW,
        ClaimFacts {
            uid: ClaimUid(2),
            volume: Volume::Enough,
            younger_than_cluster: false,
        },
    );
    s.silence(2, 100);
    assert_eq!(promoted(&s.decide()), None);
    assert!(waits_for(&s.decide(), Reason::WaitingForPods));
}

#[test]
fn a_pod_that_never_started_on_a_new_claim_is_not_waited_for() {
    let mut s = fresh(cache());
    s.object(2, |o| o.container = Container::Waiting);
    s.seen.pods[2].server = Known::unknown(NOW);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
}

#[test]
fn when_pod_0_does_not_come_another_that_waited_long_enough_leads() {
    let mut s = fresh(cache());
    s.object(0, |o| o.container = Container::Waiting);
    s.seen.pods[0].server = Known::unknown(NOW);
    assert_eq!(promoted(&s.decide()), None);
    s.server(1, |server| server.uptime = 5);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn data_without_a_record_is_refused_and_a_person_may_say_who_leads() {
    let mut s = fresh(durable());
    s.server(1, |server| server.keys = 5);
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(refuses(&decision, Reason::DataWithoutRecord));
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(0),
    });
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(3),
    });
    assert!(refuses(&s.decide(), Reason::OrderNotValid));
}

#[test]
fn nobody_leads_while_a_server_loads() {
    let mut s = fresh(durable());
    s.server(0, |server| server.loading = true);
    assert_eq!(promoted(&s.decide()), None);
    assert!(waits_for(&s.decide(), Reason::WaitingForLoad));
}

/// A ValkeyCluster was made anew; its claims hold data and pod 1's keeps the record of the one before.
fn made_anew() -> Situation {
    let mut s = fresh(durable());
    s.seen.kept_record = Some(Record {
        epoch: Epoch(3),
        pod: Ordinal(1),
        pod_uid: PodUid(90),
        claim_uid: Some(ClaimUid(1)),
        replid: Some(Replid(60)),
        continues: None,
        served: None,
        planned: false,
    });
    for n in 0..3 {
        s.server(n, |server| server.keys = 5);
    }
    s
}

fn named(s: &Situation) -> Option<Ordinal> {
    let decision = s.decide();
    assert_eq!(recorded(&decision), None);
    let refusal = decision.refusals.first().unwrap();
    assert_eq!(refusal.reason, Reason::DataWithoutRecord);
    refusal.pod
}

#[test]
fn data_without_a_record_names_the_pod_of_the_record_that_the_claims_keep() {
    let mut s = made_anew();
    assert_eq!(named(&s), Some(Ordinal(1)));
    // Not if that pod has another claim now.
    s.seen.kept_record.as_mut().unwrap().claim_uid = Some(ClaimUid(77));
    assert_eq!(named(&s), Some(Ordinal(0)));
}

#[test]
fn the_claim_of_the_primary_gets_a_copy_of_each_record() {
    let mut s = healthy(durable());
    assert!(s.decide().effects.is_empty());
    s.seen.kept_record = None;
    let decision = s.decide();
    let record = s.seen.record.unwrap();
    assert!(
        decision
            .effects
            .iter()
            .any(|effect| effect.verb == Verb::KeepRecord { record })
    );
}
