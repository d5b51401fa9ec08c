//! The primary ends, or only seems to.

use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

#[test]
fn a_healthy_cluster_decides_nothing() {
    for spec in [cache(), durable()] {
        let decision = healthy(spec).decide();
        assert!(decision.effects.is_empty(), "{decision:?}");
        assert!(
            decision.waits.is_empty() && decision.refusals.is_empty(),
            "{decision:?}"
        );
        assert_eq!(decision.wake, None);
    }
}

#[test]
fn a_killed_primary_is_replaced_when_every_replica_lost_its_link() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.server(2, |server| server.offset = Offset(1010));
    let decision = s.decide();
    assert_eq!(
        promoted(&decision),
        Some(Ordinal(2)),
        "the replica with the most data"
    );
    assert_eq!(recorded(&decision).map(|r| r.epoch), Some(Epoch(2)));
}

#[test]
fn a_replica_that_still_has_its_link_proves_that_only_the_operator_is_cut_off() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 0);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn a_time_out_proves_nothing() {
    let mut s = healthy(cache());
    s.silence(0, 5_000);
    s.unlink(1, 4);
    s.unlink(2, 4);
    assert_eq!(promoted(&s.decide()), None);
    assert!(waits_for(&s.decide(), Reason::PrimarySilent));
    assert!(s.decide().wake.is_some());
}

#[test]
fn a_deletion_timestamp_is_no_death() {
    let mut s = healthy(cache());
    s.object(0, |o| o.terminating = true);
    s.silence(0, 1_000);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn the_kubelets_word_that_the_container_ended_is_enough_where_nobody_listens_any_more() {
    let mut s = healthy(cache());
    s.silence(0, 300);
    s.object(0, |o| o.container = Container::Terminated { restarts: 0 });
    s.unlink(1, 0);
    s.silence(2, 300);
    let d = s.decide();
    // The word may be of the process before the one that was promoted, which may be cut off and serve clients.
    assert_eq!(promoted(&d), None, "{d:#?}");
    s.seen.pods[0].reach.as_mut().expect("reached").fresh = Fresh::Refused { at: NOW };
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn a_server_that_answered_before_the_fault_only_is_asked_again() {
    let mut s = healthy(cache());
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    // Pod 2 answered before the new process of pod 0 did, and may hold more by now.
    s.seen.pods[2].server = Known::seen(Tick(NOW.0 - 11), replica(2));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::WaitingForAnswers));
    assert!(d.wake.is_some_and(|wake| wake <= Tick(NOW.0 + 20)));
    // It hangs.
    s.silence(2, 5);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn a_link_that_was_up_before_the_connection_closed_is_looked_at_again_soon() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 0);
    s.seen.pods[2].server = Known::seen(Tick(NOW.0 - 30), replica(2));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(d.wake.is_some_and(|wake| wake <= Tick(NOW.0 + 20)));
}

#[test]
fn an_empty_restarted_primary_never_leads_while_a_replica_holds_the_data() {
    let mut s = healthy(cache());
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    let decision = s.decide();
    assert_eq!(promoted(&decision), Some(Ordinal(1)));
    assert!(recorded(&decision).is_some_and(|r| r.pod == Ordinal(1)));
}

#[test]
fn an_unsynced_or_loading_replica_is_never_promoted() {
    for damage in [
        |s: &mut ServerFacts| s.loading = true,
        |s: &mut ServerFacts| s.offset = Offset(0),
        |s: &mut ServerFacts| {
            s.role = Role::Replica {
                upstream: Upstream::Pod(Ordinal(0)),
                link: Link::Down { seconds: 1 },
                syncing: true,
            };
        },
    ] {
        let mut s = healthy(cache());
        s.serve(0, booted(0));
        for n in [1, 2] {
            s.unlink(n, 0);
            s.server(n, damage);
        }
        assert_eq!(promoted(&s.decide()), None);
    }
}

#[test]
fn replicas_of_two_histories_are_decided_by_the_record_or_refused() {
    let mut s = healthy(cache());
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.server(1, |server| {
        server.replid = Replid(9);
        server.offset = Offset(9_999);
    });
    assert_eq!(
        promoted(&s.decide()),
        Some(Ordinal(2)),
        "the recorded history"
    );
    s.seen.record.as_mut().expect("record").replid = None;
    assert_eq!(promoted(&s.decide()), None);
    assert!(refuses(&s.decide(), Reason::HistoriesDiffer));
}

#[test]
fn a_durable_primary_that_was_ahead_may_come_back_within_a_bound() {
    let mut s = healthy(durable());
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.seen.primary_offset = Some(Offset(5_000));
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingForNewerData));
    s.seen.primary_down_since = Some(Tick(NOW.0 - 61_000));
    assert!(promoted(&s.decide()).is_some(), "the bound passed");
    s.seen.primary_down_since = Some(Tick(NOW.0 - 1_000));
    s.serve(
        0,
        ServerFacts {
            keys: 10,
            ..booted(0)
        },
    );
    assert_eq!(
        promoted(&s.decide()),
        Some(Ordinal(0)),
        "it came back with its data"
    );
}

#[test]
fn a_pod_that_is_gone_needs_20_seconds_of_lost_links_without_the_servers_own_word() {
    let mut s = primary_pod_replaced(cache());
    s.unlink(1, 20);
    s.unlink(2, 20);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 19_000));
    assert_eq!(promoted(&s.decide()), None);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn a_pod_that_is_gone_after_closing_its_connections_is_replaced_at_once() {
    let mut s = healthy(cache());
    s.seen.pods[0].object = Known::Absent;
    s.seen.pods[0].server = Known::Absent;
    s.seen.pods[0].reach = None;
    s.former(closed(PodUid(0), 30, 10));
    s.unlink(1, 0);
    s.unlink(2, 0);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn the_promotion_carries_the_identity_it_was_planned_for() {
    let mut s = healthy(cache());
    s.serve(0, booted(0));
    s.unlink(1, 0);
    s.unlink(2, 0);
    let decision = s.decide();
    for effect in &decision.effects {
        if promoted(&decision).is_some()
            && effect.verb.kind() == wellcake_core::effects::Kind::Promote
        {
            assert_eq!(effect.guard.pod, Some((Ordinal(1), PodUid(1))));
            assert_eq!(effect.guard.run, Some(RunId(1)));
            assert_eq!(effect.guard.offset_floor, Some(Offset(1000)));
            assert_eq!(
                effect.guard.epoch,
                Some(Epoch(2)),
                "only after the record was written"
            );
        }
    }
}

#[test]
fn an_unfinished_promotion_is_finished() {
    let mut s = healthy(cache());
    s.server(0, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Other,
            link: Link::Down { seconds: 1 },
            syncing: false,
        };
    });
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
    let mut s = healthy(cache());
    s.server(0, |server| server.port = Port::Fence);
    assert_eq!(kinds(&s.decide())[0], wellcake_core::effects::Kind::Open);
}

#[test]
fn a_recorded_promotion_is_not_resumed_while_somebody_feeds_the_copy_again() {
    let mut s = healthy(cache());
    let before = s.seen.record.unwrap().own();
    s.seen.record = Some(Record {
        epoch: Epoch(2),
        pod: Ordinal(1),
        pod_uid: PodUid(1),
        claim_uid: Some(ClaimUid(1)),
        replid: None,
        continues: Some(HISTORY),
        served: Some(before),
        planned: false,
    });
    s.silence(0, 30_000);
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(waits_for(&decision, Reason::UnseenPrimaryLives));
    s.unlink(1, 0);
    s.unlink(2, 0);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn a_copy_that_is_fed_again_is_not_promoted_as_it_was_planned() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    let decision = s.decide();
    let mut promote = *decision
        .effects
        .iter()
        .find(|effect| effect.verb.kind() == wellcake_core::effects::Kind::Promote)
        .unwrap();
    promote.guard.epoch = None;
    assert_eq!(promote.guard.check(&s.seen, NOW), Ok(()));
    s.serve(1, replica(1));
    assert!(promote.guard.check(&s.seen, NOW).is_err());
}

#[test]
fn an_end_that_was_seen_before_a_silence_is_not_the_end_of_what_is_silent() {
    let mut s = healthy(cache());
    s.silence(0, 20);
    s.object(0, |o| o.container = Container::Terminated { restarts: 0 });
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    let reach = |s: &mut Situation, fresh| {
        s.seen.pods[0].reach = Some(Reachability {
            pod_uid: PodUid(0),
            kept: Kept::Closed {
                at: Tick(NOW.0 - 40_000),
            },
            fresh,
        });
    };
    for (fresh, ended) in [
        (
            Fresh::TimedOut {
                at: Tick(NOW.0 - 20),
            },
            false,
        ),
        (
            Fresh::Refused {
                at: Tick(NOW.0 - 20),
            },
            true,
        ),
        (Fresh::NotTried, true),
    ] {
        reach(&mut s, fresh);
        assert_eq!(promoted(&s.decide()).is_some(), ended, "{fresh:?}");
    }
}

#[test]
fn a_copy_that_is_fed_by_the_primary_before_is_not_promoted_when_its_successor_was_killed() {
    let mut s = healthy(cache());
    let record = s.seen.record.as_mut().expect("a record");
    let before = record.own();
    record.epoch = Epoch(2);
    (record.pod, record.pod_uid, record.claim_uid) = (Ordinal(1), PodUid(1), Some(ClaimUid(1)));
    (record.replid, record.continues, record.served) = (None, Some(HISTORY), Some(before));
    s.seen.pods[0].object = Known::Absent;
    s.seen.pods[0].server = Known::Absent;
    s.seen.pods[0].reach = None;
    s.serve(1, booted(1));
    s.server(2, |it| {
        it.role = Role::Replica {
            upstream: Upstream::Other,
            link: Link::Up,
            syncing: false,
        };
    });
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(
        waits_for(&decision, Reason::UnseenPrimaryLives),
        "{decision:?}"
    );
    s.unlink(2, 0);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
}
