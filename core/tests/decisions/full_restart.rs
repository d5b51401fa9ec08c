//! Every pod restarted or was replaced at once.

use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

/// All pods were deleted and came back with their claims and what they had persisted.
fn replaced(spec: SpecFacts, keys: u32) -> Situation {
    let mut s = healthy(spec);
    for n in 0..3 {
        let uid = PodUid(40 + u16::from(n));
        s.object(n, |o| {
            o.uid = uid;
            o.label = RoleLabel::None;
        });
        s.serve(
            n,
            ServerFacts {
                pod_uid: uid,
                keys,
                ..booted(n)
            },
        );
    }
    s.seen.primary_down_since = Some(Tick(NOW.0 - 3_000));
    s.former(closed(PodUid(0), 3_000, 2_900));
    s
}

#[test]
fn nobody_leads_for_20_seconds_while_the_deleted_primary_may_live_where_nobody_sees_it() {
    for spec in [cache(), durable()] {
        let mut s = replaced(spec, 10);
        s.seen.former.clear();
        let d = s.decide();
        assert_eq!(promoted(&d), None, "{d:#?}");
        assert!(waits_for(&d, Reason::PrimarySilent), "{d:#?}");
        assert_eq!(d.wake, Some(Tick(NOW.0 + 17_000)));
        s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
        assert!(!waits_for(&s.decide(), Reason::PrimarySilent));
    }
    let mut s = replaced(durable(), 10);
    s.seen.former.clear();
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
}

#[test]
fn with_volumes_the_recorded_primary_leads_with_its_data() {
    let decision = replaced(durable(), 10).decide();
    assert_eq!(promoted(&decision), Some(Ordinal(0)));
    assert_eq!(recorded(&decision).map(|r| r.pod_uid), Some(PodUid(40)));
}

#[test]
fn without_anything_persisted_the_recorded_primary_leads_empty() {
    assert_eq!(promoted(&replaced(cache(), 0).decide()), Some(Ordinal(0)));
}

#[test]
fn nobody_leads_empty_while_a_pod_that_may_hold_data_has_not_answered() {
    let mut s = replaced(cache(), 0);
    s.silence(2, 100);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn a_longer_part_of_the_same_history_leads_and_another_history_does_not() {
    let mut s = replaced(durable(), 10);
    for n in 0..3 {
        s.server(n, |server| {
            server.replid = HISTORY;
            server.offset = Offset(1000 + u64::from(n));
        });
    }
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
    s.server(2, |server| server.replid = Replid(9));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn when_the_recorded_claim_is_gone_and_others_hold_data_a_person_decides() {
    let mut s = replaced(durable(), 10);
    s.seen.pods[0].claim = Known::seen(
        NOW,
        ClaimFacts {
            uid: ClaimUid(77),
            volume: Volume::Enough,
            younger_than_cluster: true,
        },
    );
    s.server(0, |server| server.keys = 0);
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(refuses(&decision, Reason::RecordedDataGone));
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(1),
    });
    let decision = s.decide();
    assert_eq!(promoted(&decision), Some(Ordinal(1)));
    assert_eq!(recorded(&decision).map(|r| r.epoch), Some(Epoch(2)));
}

#[test]
fn the_recorded_primary_waits_a_bounded_time_for_the_others() {
    let mut s = replaced(durable(), 10);
    s.silence(2, 100);
    assert!(waits_for(&s.decide(), Reason::WaitingForOthers));
    assert_eq!(promoted(&s.decide()), None);
    s.server(0, |server| server.uptime = 30);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
}

#[test]
fn a_single_pod_that_restarted_leads_again() {
    let mut spec = cache();
    spec.pods = 1;
    let mut s = healthy(spec);
    s.seen.pods.truncate(1);
    s.serve(0, booted(0));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
    assert_eq!(
        recorded(&s.decide()).map(|r| r.epoch),
        Some(Epoch(2)),
        "a new process, a new epoch"
    );
}

/// All servers restarted after a promotion of pod 1 was recorded and not done; clients were led to pod 0 before.
fn promotion_that_came_to_nothing() -> Situation {
    let mut s = healthy(durable());
    s.seen.primary_down_since = Some(Tick(NOW.0 - 3_000));
    let before = s.seen.record.expect("recorded");
    s.seen.record = Some(Record {
        epoch: Epoch(2),
        pod: Ordinal(1),
        pod_uid: PodUid(1),
        claim_uid: Some(ClaimUid(1)),
        replid: None,
        continues: Some(HISTORY),
        served: Some(before.own()),
        planned: false,
    });
    for n in 0..3 {
        s.serve(
            n,
            ServerFacts {
                keys: 10,
                ..booted(n)
            },
        );
    }
    s
}

#[test]
fn after_a_promotion_that_came_to_nothing_the_primary_before_it_counts() {
    let mut s = promotion_that_came_to_nothing();
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
    s.seen.pods[0].server = Known::unknown(Tick(NOW.0 - 3_000));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "it may come back: {d:#?}");
    assert!(waits_for(&d, Reason::WaitingForPrimaryPod), "{d:#?}");
    s.object(0, |o| o.container = Container::Terminated { restarts: 3 });
    s.seen.primary_down_since = Some(Tick(NOW.0 - 30_000));
    s.server(1, |v| v.uptime = 40);
    let d = s.decide();
    assert_eq!(
        promoted(&d),
        Some(Ordinal(1)),
        "it did not come back: {d:#?}"
    );
}

#[test]
fn a_promotion_that_was_seen_through_forgets_the_primary_before_it() {
    let mut s = promotion_that_came_to_nothing();
    s.server(1, |v| {
        *v = ServerFacts {
            replid: Replid(2),
            ..primary(1)
        }
    });
    let record = recorded(&s.decide()).expect("the history is recorded");
    assert_eq!((record.replid, record.served), (Some(Replid(2)), None));
}

#[test]
fn where_nothing_is_kept_a_pod_that_does_not_come_holds_nobody_back() {
    let came = |spec: SpecFacts| {
        let mut s = healthy(spec);
        for pod in 0..2u8 {
            let uid = PodUid(30 + u16::from(pod));
            s.object(pod, |o| o.uid = uid);
            let server = ServerFacts {
                pod_uid: uid,
                ..booted(pod)
            };
            s.serve(pod, server);
        }
        s.object(2, |o| o.container = Container::Waiting);
        s.seen.pods[2].server = Known::unknown(NOW);
        s
    };
    let mut s = came(cache());
    s.seen.primary_down_since = Some(Tick(NOW.0 - 25_000));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)), "{:?}", s.decide());
    let mut s = came(durable());
    s.seen.primary_down_since = Some(Tick(NOW.0 - 25_000));
    assert_eq!(promoted(&s.decide()), None);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 31_000));
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(refuses(&decision, Reason::UnseenCopy), "{decision:?}");
}
