//! What the demotion of a second primary throws away, and how the status counts it.

use wellcake_core::discarded::{self, Discarded, Ledger};
use wellcake_core::facts::*;
use wellcake_crds::v1beta1::ValkeyClusterStatus;

use crate::situation::*;

const NEW: Replid = Replid(2);

/// Pod 1 was promoted at offset 1000 while pod 0 was silent, which is back with more.
fn back(offset: u64) -> Situation {
    let mut s = healthy(cache());
    s.seen.record = Some(Record {
        epoch: Epoch(2),
        pod: Ordinal(1),
        pod_uid: PodUid(1),
        claim_uid: Some(ClaimUid(1)),
        replid: Some(NEW),
        continues: Some(HISTORY),
        served: None,
        planned: false,
    });
    s.serve(
        1,
        ServerFacts {
            replid: NEW,
            replid2: Some(HISTORY),
            replid2_until: Offset(1000),
            offset: Offset(5_000),
            ..primary(1)
        },
    );
    s.server(0, |server| server.offset = Offset(offset));
    s
}

fn found(s: &Situation) -> Vec<Discarded> {
    discarded::by(&s.decide(), &s.seen, NOW).to_vec()
}

fn lost(bytes: Option<u64>) -> Discarded {
    Discarded {
        pod: Ordinal(0),
        replid: HISTORY,
        epoch: Epoch(2),
        bytes,
    }
}

fn time(text: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    serde_json::from_value(serde_json::json!(text)).expect("time")
}

fn write(ledger: &mut Ledger, status: &mut ValkeyClusterStatus) {
    while let Some((lost, told)) = ledger.untold() {
        let pod = format!("web-{}", lost.pod.0);
        let replid = format!("history-{}", lost.replid.0);
        discarded::add(
            status,
            (lost, told),
            &pod,
            &replid,
            time("2026-01-01T00:00:00Z"),
        );
        ledger.told(&lost);
    }
}

#[test]
fn what_a_succeeded_primary_took_beyond_the_promotion_is_counted_with_its_demotion() {
    assert_eq!(found(&back(9_000)), [lost(Some(8_000))]);
}

#[test]
fn a_primary_that_holds_no_more_than_its_successor_loses_nothing() {
    assert_eq!(found(&back(1_000)), [lost(Some(0))]);
    // Its successor was ahead of what it answers.
    assert_eq!(found(&back(900)), [lost(Some(0))]);
    assert_eq!(found(&healthy(cache())), []);
}

#[test]
fn what_shares_no_history_that_is_known_is_not_counted() {
    let mut s = back(9_000);
    s.server(1, |server| server.replid2 = None);
    assert_eq!(found(&s), [lost(None)]);
    let mut s = back(9_000);
    s.server(1, |server| server.replid2 = Some(Replid(7)));
    assert_eq!(found(&s), [lost(None)]);
    // The table of names was full: that the two are equal proves nothing.
    let mut s = back(9_000);
    s.server(1, |server| server.replid2 = Some(Replid(OVERFLOW)));
    s.server(0, |server| server.replid = Replid(OVERFLOW));
    assert_eq!(found(&s)[0].bytes, None);
}

#[test]
fn a_replica_that_was_promoted_by_hand_loses_what_it_took_since() {
    let mut s = healthy(cache());
    s.server(0, |server| server.offset = Offset(3_000));
    let by_hand = ServerFacts {
        replid: Replid(9),
        replid2: Some(HISTORY),
        replid2_until: Offset(1_000),
        offset: Offset(1_040),
        ..primary(1)
    };
    s.serve(1, by_hand);
    assert_eq!(found(&s)[0].bytes, Some(40));
    // Two that continue the same one share what both took of it.
    s.server(0, |server| {
        server.replid = NEW;
        server.replid2 = Some(HISTORY);
        server.replid2_until = Offset(990);
    });
    assert_eq!(found(&s)[0].bytes, Some(50));
}

#[test]
fn a_demotion_that_is_tried_again_counts_only_what_came_since() {
    let mut ledger = Ledger::default();
    let mut status = ValkeyClusterStatus::default();
    assert_eq!(ledger.note(&found(&back(9_000))), 8_000);
    assert_eq!(ledger.note(&found(&back(9_000))), 0);
    write(&mut ledger, &mut status);
    assert_eq!(status.discarded_bytes, Some(8_000));
    assert_eq!(ledger.note(&found(&back(9_100))), 100);
    // Another operator leads meanwhile, and knows only what the status tells.
    let mut after = Ledger::default();
    after.note(&found(&back(9_100)));
    write(&mut after, &mut status);
    assert_eq!(status.discarded_bytes, Some(8_100));
    write(&mut ledger, &mut status);
    assert_eq!(status.discarded_bytes, Some(8_100));
    let last = status.last_discarded.as_ref().expect("the last one");
    assert_eq!(
        (
            last.pod.as_str(),
            last.epoch,
            last.replid.as_str(),
            last.bytes
        ),
        ("web-0", 2, "history-1", 8_100)
    );
}

#[test]
fn each_history_counts_and_nothing_is_told_of_one_that_loses_nothing() {
    let mut ledger = Ledger::default();
    let mut status = ValkeyClusterStatus::default();
    let other = Discarded {
        pod: Ordinal(2),
        replid: Replid(5),
        epoch: Epoch(2),
        bytes: Some(7),
    };
    assert_eq!(ledger.note(&[lost(Some(30)), other]), 37);
    write(&mut ledger, &mut status);
    assert_eq!(status.discarded_bytes, Some(37));
    // Both fail to be demoted and are seen again: the status names one of them only.
    assert_eq!(ledger.note(&[lost(Some(30)), other]), 0);
    write(&mut ledger, &mut status);
    assert_eq!(status.discarded_bytes, Some(37));
    let later = Discarded {
        replid: Replid(6),
        ..lost(Some(3))
    };
    assert_eq!(
        ledger.note(&[
            later,
            lost(None),
            Discarded {
                bytes: Some(0),
                ..other
            }
        ]),
        3
    );
    write(&mut ledger, &mut status);
    assert_eq!(status.discarded_bytes, Some(40));
    assert_eq!(status.last_discarded.map(|last| last.bytes), Some(3));
}

#[test]
fn the_event_tells_the_number_or_that_it_is_not_known() {
    assert!(discarded::sentence(lost(Some(8_000))).contains("8000 bytes"));
    assert!(discarded::sentence(lost(Some(0))).contains("nothing"));
    assert!(discarded::sentence(lost(None)).contains("not known"));
}
