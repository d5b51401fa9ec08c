//! Who holds the newest data when copies, fenced servers and a returned primary compete.

use wellcake_core::effects::GuardFailure;
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

/// A Durable cluster whose primary was killed and came back behind the fence with its append-only file loaded, while the
/// operator, which has just started, never saw how far it had got.
fn returned_to_a_new_operator() -> Situation {
    let mut s = healthy(durable());
    s.seen.primary_offset = None;
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.serve(
        0,
        ServerFacts {
            keys: 12,
            ..booted(0)
        },
    );
    s
}

#[test]
fn a_durable_primary_that_came_back_leads_when_nobody_knows_how_far_it_was() {
    let s = returned_to_a_new_operator();
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
}

#[test]
fn a_durable_primary_that_came_back_in_a_new_pod_on_its_claim_leads_too() {
    let mut s = returned_to_a_new_operator();
    s.object(0, |o| o.uid = PodUid(40));
    s.server(0, |v| v.pod_uid = PodUid(40));
    s.former(closed(PodUid(0), 30, 10));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
    s.seen.pods[0].claim = Known::seen(
        NOW,
        ClaimFacts {
            uid: ClaimUid(77),
            volume: Volume::Enough,
            younger_than_cluster: true,
        },
    );
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "another claim: {d:#?}");
}

#[test]
fn a_durable_primary_that_came_back_leads_also_after_the_time_it_was_given() {
    let mut s = returned_to_a_new_operator();
    s.seen.primary_offset = Some(Offset(5_000));
    s.seen.primary_down_since = Some(Tick(NOW.0 - 61_000));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
}

#[test]
fn a_durable_primary_that_is_loading_is_waited_for_within_the_bound() {
    let mut s = returned_to_a_new_operator();
    s.server(0, |v| v.loading = true);
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::WaitingForNewerData), "{d:#?}");
    s.seen.primary_down_since = Some(Tick(NOW.0 - 60_000));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "{d:#?}");
}

#[test]
fn a_durable_primary_that_came_back_leads_although_the_copies_had_everything_when_it_answered_last()
{
    let mut s = returned_to_a_new_operator();
    // It may have acknowledged more after that answer.
    s.seen.primary_offset = Some(Offset(1_000));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
    s.server(0, |v| v.keys = 0);
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "it came back empty: {d:#?}");
}

/// A Durable cluster whose primary was killed, and whose copies wait for their files.
fn copies_without_files() -> Situation {
    let mut s = healthy(durable());
    s.kill(0);
    for n in 1..3 {
        s.unlink(n, 0);
        s.server(n, |server| server.rewriting = true);
    }
    s
}

#[test]
fn a_copy_whose_file_lacks_it_leads_once_the_file_is_written() {
    let mut s = copies_without_files();
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::WaitingForFile), "{d:#?}");
    s.server(2, |server| server.rewriting = false);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)), "its file is whole");
    // Data goes before files.
    s.server(1, |server| server.offset = Offset(server.offset.0 + 10));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::WaitingForFile), "{d:#?}");
}

#[test]
fn a_copy_whose_file_lacks_it_is_not_waited_for_without_end() {
    let mut s = copies_without_files();
    s.seen.primary_down_since = Some(Tick(NOW.0 - 59_000));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert_eq!(d.wake, Some(Tick(NOW.0 + 1_000)));
    s.seen.primary_down_since = Some(Tick(NOW.0 - 60_000));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn a_primary_that_came_back_with_its_file_leads_before_copies_whose_files_lack_them() {
    let mut s = returned_to_a_new_operator();
    for n in 1..3 {
        s.server(n, |server| server.rewriting = true);
    }
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
}

#[test]
fn a_cache_does_not_wait_for_files() {
    let mut s = healthy(cache());
    s.kill(0);
    for n in 1..3 {
        s.unlink(n, 0);
        s.server(n, |server| server.rewriting = true);
    }
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn a_synced_server_that_was_not_opened_yet_is_not_passed_over() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 5);
    // In sync with the primary of the history that continued the one of pod 1, still behind the fence.
    s.seen.record.as_mut().unwrap().replid = None;
    s.server(2, |v| {
        v.port = Port::Fence;
        v.replid = Replid(2);
        v.replid2 = Some(HISTORY);
        v.offset = Offset(1_200);
    });
    s.unlink(2, 0);
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(2)), "{d:#?}");
}

#[test]
fn of_equal_copies_one_that_is_about_to_go_does_not_lead() {
    let mut s = healthy(cache());
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    s.object(1, |o| o.terminating = true);
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(2)), "{d:#?}");
    s.server(1, |v| v.offset = Offset(1_001));
    let d = s.decide();
    assert_eq!(
        promoted(&d),
        Some(Ordinal(1)),
        "more data counts more: {d:#?}"
    );
}

#[test]
fn servers_that_ended_do_not_stand_against_a_witness_of_a_gone_primary() {
    let mut s = primary_pod_replaced(cache());
    s.spec.pods = 4;
    let fourth = s.seen.pods[2];
    s.seen.pods.push(fourth);
    for n in [2, 3] {
        s.serve(n, booted(n));
        s.object(n, |o| o.uid = PodUid(u16::from(n)));
    }
    s.unlink(1, 20);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "{d:#?}");
}

#[test]
fn a_returned_primary_of_the_recorded_history_beats_a_copy_of_an_older_one() {
    let mut s = healthy(cache());
    s.spec.persistence.rdb = true;
    let record = s.seen.record.as_mut().unwrap();
    (record.epoch, record.replid) = (Epoch(3), Some(Replid(3)));
    // Two promotions ago pod 1 was cut off; nothing relates what it has to what pod 0 loaded.
    s.unlink(1, 60);
    s.serve(
        0,
        ServerFacts {
            replid: Replid(3),
            offset: Offset(800),
            keys: 4,
            ..booted(0)
        },
    );
    s.serve(2, booted(2));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
}

#[test]
fn a_durable_cluster_waits_for_its_primary_when_the_copies_lack_everything_since_its_promotion() {
    let mut s = healthy(durable());
    s.spec.persistence.aof = false;
    let record = s.seen.record.as_mut().unwrap();
    (record.epoch, record.replid) = (Epoch(2), Some(Replid(2)));
    s.kill(0);
    s.unlink(1, 5);
    s.unlink(2, 5);
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::WaitingForNewerData));
    s.seen.primary_down_since = Some(Tick(NOW.0 - 60_000));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(refuses(&d, Reason::OnlyOlderData), "{d:#?}");
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(2),
    });
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)), "a person decides");
}

#[test]
fn a_durable_primary_that_came_back_with_a_snapshot_from_before_its_promotion_does_not_beat_a_later_copy()
 {
    let mut s = healthy(durable());
    s.spec.persistence.aof = false;
    let record = s.seen.record.as_mut().unwrap();
    (record.replid, record.continues) = (Some(Replid(3)), Some(HISTORY));
    s.unlink(1, 5);
    s.unlink(2, 5);
    s.serve(
        0,
        ServerFacts {
            replid: Replid(7),
            keys: 4,
            ..booted(0)
        },
    );
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(1)), "{d:#?}");
}

#[test]
fn a_promotion_planned_without_any_copy_is_not_done_once_one_is_seen() {
    let mut s = healthy(durable());
    for n in 0..3 {
        s.serve(
            n,
            ServerFacts {
                keys: 10,
                ..booted(n)
            },
        );
    }
    let promotion = s.decide().effects[0];
    assert_eq!(promotion.guard.check(&s.seen, NOW), Ok(()));
    s.serve(1, replica(1));
    assert_eq!(promotion.guard.check(&s.seen, NOW), Err(GuardFailure::Data));
}

#[test]
fn a_server_leads_empty_only_as_long_as_nobody_is_seen_to_hold_data() {
    let mut s = healthy(cache());
    for n in 0..3 {
        s.serve(n, booted(n));
    }
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(0)), "{d:#?}");
    let promotion = d.effects[0];
    assert_eq!(promotion.guard.check(&s.seen, NOW), Ok(()));
    // A server that nobody sees begins to feed pod 1.
    s.server(1, |v| {
        v.role = replica(1).role;
        v.offset = Offset(0);
    });
    assert_eq!(promotion.guard.check(&s.seen, NOW), Err(GuardFailure::Data));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::UnseenPrimaryLives));
}

#[test]
fn a_server_that_takes_writes_beside_the_recorded_one_is_not_overruled_by_an_older_copy() {
    let mut s = healthy(cache());
    s.serve(0, booted(0));
    s.unlink(1, 0);
    // Somebody made pod 2 a primary by hand.
    s.serve(
        2,
        ServerFacts {
            offset: Offset(1_200),
            ..primary(2)
        },
    );
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(refuses(&d, Reason::HistoriesDiffer), "{d:#?}");
}
