//! Somebody made another pod the primary by hand, and the recorded one follows or follows nobody.

use wellcake_core::effects::{Decision, Kind};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

/// The history that pod 2 began when it was made the primary at offset 1000.
const BY_HAND: Replid = Replid(7);

/// `FAILOVER` was said to pod 0: pod 2 leads, pod 0 follows it, and pod 1 still follows pod 0.
fn failed_over() -> Situation {
    let mut s = healthy(cache());
    s.serve(
        2,
        ServerFacts {
            replid: BY_HAND,
            replid2: Some(HISTORY),
            replid2_until: Offset(1_000),
            offset: Offset(1_200),
            ..primary(2)
        },
    );
    let follows = |upstream, link| Role::Replica {
        upstream: Upstream::Pod(Ordinal(upstream)),
        link,
        syncing: false,
    };
    s.server(0, |server| {
        server.role = follows(2, Link::Up);
        server.replid = BY_HAND;
        server.offset = Offset(1_200);
    });
    s.server(1, |server| server.role = follows(0, Link::Up));
    s
}

fn is_refused(decision: &Decision) -> bool {
    promoted(decision).is_none()
        && recorded(decision).is_none()
        && refuses(decision, Reason::HistoriesDiffer)
}

#[test]
fn a_pod_that_was_made_the_primary_by_hand_and_holds_everything_is_recorded() {
    let mut s = failed_over();
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::RecordPrimary], "{decision:?}");
    let effect = decision.effects[0];
    assert_eq!(effect.reason, Reason::LeadsByHand);
    assert_eq!(effect.guard.pod, Some((Ordinal(2), PodUid(2))));
    assert_eq!(effect.guard.replica, Some(false), "only while it leads");
    let record = recorded(&decision).expect("a record");
    assert_eq!((record.epoch, record.pod), (Epoch(2), Ordinal(2)));
    assert_eq!(record.replid, Some(BY_HAND));
    // Then traffic follows it, and the others do.
    s.seen.record = Some(record);
    let after = kinds(&s.decide());
    assert!(after.contains(&Kind::SetRoute) && after.contains(&Kind::Follow));
    assert!(!after.contains(&Kind::Promote));
}

#[test]
fn what_nobody_but_the_demoted_primary_holds_is_not_given_up() {
    let mut s = failed_over();
    s.server(0, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            syncing: false,
        };
        server.replid = HISTORY;
        server.offset = Offset(1_001);
    });
    assert!(is_refused(&s.decide()), "{:?}", s.decide());
    s.server(0, |server| server.offset = Offset(1_000));
    assert!(recorded(&s.decide()).is_some());
}

#[test]
fn of_two_and_of_strangers_a_person_chooses() {
    let mut s = failed_over();
    let second = *s.seen.pods[2].server.value().expect("it answers");
    s.serve(
        1,
        ServerFacts {
            pod_uid: PodUid(1),
            run: RunId(1),
            ..second
        },
    );
    assert!(is_refused(&s.decide()), "{:?}", s.decide());
    let mut s = failed_over();
    s.server(2, |server| server.replid2 = Some(Replid(30)));
    assert!(is_refused(&s.decide()), "{:?}", s.decide());
}

#[test]
fn a_promotion_that_is_under_way_is_not_by_hand() {
    let mut s = failed_over();
    s.seen.record.as_mut().expect("a record").replid = None;
    let decision = s.decide();
    let reasons: Vec<Reason> = decision.effects.iter().map(|e| e.reason).collect();
    assert!(!reasons.contains(&Reason::LeadsByHand), "{decision:?}");
}
