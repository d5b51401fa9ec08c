//! Situations in which a careless rule would lose data or get stuck.

use wellcake_core::effects::{Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

#[test]
fn a_smaller_spec_hides_no_copy_from_an_empty_restarted_primary() {
    let mut s = healthy(cache());
    s.spec.pods = 1;
    s.serve(0, booted(0));
    s.silence(1, 100);
    s.silence(2, 100);
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
}

#[test]
fn a_pod_beyond_the_spec_that_still_runs_may_hold_everything() {
    let mut s = healthy(cache());
    s.spec.pods = 2;
    s.serve(0, booted(0));
    s.serve(1, booted(1));
    s.silence(2, 100);
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
}

#[test]
fn a_durable_primary_with_snapshots_only_does_not_beat_a_running_copy() {
    let mut s = healthy(durable());
    s.spec.persistence.aof = false;
    s.serve(
        0,
        ServerFacts {
            keys: 5,
            replid: HISTORY,
            offset: Offset(100),
            ..booted(0)
        },
    );
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.seen.primary_offset = Some(Offset(1001));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "{d:#?}");
}

#[test]
fn a_snapshot_of_the_recorded_history_beats_one_of_the_history_before() {
    // record: epoch 2, history 2 (descends from 1). Pod 0 loaded an old snapshot of history 1, pod 1 a newer of 2.
    let mut s = healthy(durable());
    s.spec.persistence.aof = false;
    s.seen.record.as_mut().unwrap().replid = Some(Replid(2));
    for n in 0..3 {
        s.serve(
            n,
            ServerFacts {
                keys: 5,
                replid: Replid(1),
                offset: Offset(100),
                ..booted(n)
            },
        );
    }
    s.server(1, |v| {
        v.replid = Replid(2);
        v.offset = Offset(900);
        v.keys = 50;
    });
    let d = s.decide();
    assert_ne!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
}

#[test]
fn a_copy_of_the_continued_history_beats_one_of_its_beginning() {
    // epoch 2 recorded (pod 0 promoted, its history not recorded yet); pod 1 followed it already.
    let mut s = healthy(cache());
    s.seen.record.as_mut().unwrap().replid = None;
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.server(1, |v| {
        v.replid = Replid(2);
        v.replid2 = Some(HISTORY);
        v.offset = Offset(1500);
    });
    let d = s.decide();
    assert_ne!(promoted(&d), Some(Ordinal(2)), "{d:#?}");
}

#[test]
fn an_order_that_is_over_stops_no_failover() {
    let mut s = healthy(cache());
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(0),
    });
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    let d = s.decide();
    assert!(promoted(&d).is_some(), "{d:#?}");
}

#[test]
fn an_order_while_the_primary_serves_is_refused_and_used_up() {
    let mut s = healthy(cache());
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(1),
    });
    let d = s.decide();
    assert!(refuses(&d, Reason::OrderNotValid), "{d:#?}");
    assert!(d.effects.iter().any(|e| matches!(
        e.verb,
        Verb::RecordPrimary {
            serves: Some(_),
            ..
        }
    )));
    assert_eq!(promoted(&d), None);
}

#[test]
fn every_promotion_writes_a_record_of_its_own() {
    let mut s = healthy(durable());
    s.spec.pods = 2;
    s.seen.pods.truncate(2);
    // An older record in a lagging cache: pod 1 was promoted and serves with epoch 2.
    s.serve(
        0,
        ServerFacts {
            keys: 10,
            ..booted(0)
        },
    );
    s.serve(
        1,
        ServerFacts {
            replid: Replid(2),
            ..primary(1)
        },
    );
    let d = s.decide();
    assert!(promoted(&d).is_none() || recorded(&d).is_some(), "{d:#?}");
}

#[test]
fn an_old_snapshot_does_not_lead_while_running_pods_are_unseen() {
    let mut s = healthy(durable());
    s.spec.persistence.aof = false;
    s.serve(
        0,
        ServerFacts {
            keys: 5,
            replid: HISTORY,
            offset: Offset(100),
            uptime: 31,
            ..booted(0)
        },
    );
    s.silence(1, 100);
    s.silence(2, 100);
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
}

#[test]
fn a_replica_of_a_replica_is_no_witness() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 0);
    s.server(2, |v| {
        v.role = Role::Replica {
            upstream: Upstream::Pod(Ordinal(1)),
            link: Link::Up,
            syncing: false,
        }
    });
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "{d:#?}");
}

#[test]
fn a_pod_that_is_gone_needs_links_that_are_down_for_20_seconds() {
    let mut s = primary_pod_replaced(cache());
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
}

#[test]
fn a_new_record_makes_the_marker_of_the_old_one_void() {
    let mut s = healthy(cache());
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 1_000));
    let d = s.decide();
    let r = recorded(&d).unwrap().epoch;
    for e in &d.effects {
        if e.verb.kind() == Kind::MarkPrimaryDown {
            assert_eq!(e.guard.epoch, Some(r));
        }
    }
}

#[test]
fn replicas_with_a_link_know_better_than_an_old_report_of_the_kubelet() {
    let mut s = healthy(cache());
    s.silence(0, 300);
    s.object(0, |o| o.container = Container::Terminated { restarts: 0 });
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
}

#[test]
fn an_order_for_a_pod_that_is_primary_already_is_carried_out() {
    let mut s = healthy(cache());
    s.seen.record = None;
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(0),
        epoch: Epoch(0),
    });
    let d = s.decide();
    let e = d.effects.first().unwrap();
    assert_eq!(e.guard.check(&s.seen, NOW), Ok(()), "{d:#?}");
}

#[test]
fn a_recorded_pod_that_never_comes_back_is_refused_with_the_way_out() {
    let mut s = healthy(durable());
    s.seen.pods[0].object = Known::Absent;
    s.seen.pods[0].server = Known::Absent;
    s.seen.pods[0].reach = None;
    for n in 1..3 {
        s.serve(
            n,
            ServerFacts {
                keys: 10,
                uptime: 3600,
                ..booted(n)
            },
        );
    }
    s.seen.primary_down_since = Some(Tick(NOW.0 - 900_000));
    let d = s.decide();
    assert!(!d.refusals.is_empty(), "{d:#?}");
}

#[test]
fn a_recorded_pod_that_is_copying_data_is_not_promoted() {
    let mut s = healthy(cache());
    s.server(0, |v| {
        v.role = Role::Replica {
            upstream: Upstream::Other,
            link: Link::Down { seconds: 1 },
            syncing: true,
        };
        v.loading = true;
    });
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "{d:#?}");
}

#[test]
fn an_empty_primary_does_not_lead_while_its_replicas_were_not_looked_at() {
    let mut s = healthy(cache());
    // in-place restart, replicas known to run but not looked at yet (operator restarted)
    s.serve(0, booted(0));
    s.seen.pods[1].server = Known::unknown(NOW);
    s.seen.pods[2].server = Known::unknown(NOW);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn a_pod_that_takes_writes_is_never_wiped_by_a_returned_holder() {
    // A pod that is not the recorded one serves as primary and holds more: the returned holder must not wipe it.
    let mut s = healthy(durable());
    s.serve(
        0,
        ServerFacts {
            keys: 10,
            uptime: 40,
            ..booted(0)
        },
    );
    s.serve(
        1,
        ServerFacts {
            replid: Replid(2),
            offset: Offset(5000),
            ..primary(1)
        },
    );
    s.silence(2, 100);
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
}
