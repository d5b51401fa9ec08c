//! Planned handovers: begun, cut off at each step, given up, seen through.

use wellcake_core::effects::{Effect, Guard, GuardFailure, Kind, Order, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

const STEPS: [Kind; 5] = [
    Kind::RecordPrimary,
    Kind::PauseWrites,
    Kind::AwaitCopy,
    Kind::StepDown,
    Kind::Promote,
];

fn asked(target: Target) -> Situation {
    let mut s = healthy(cache());
    s.spec.failover = Some(target);
    s
}

/// A handover from pod 0 to pod 1 was recorded, and nothing more was done.
fn recorded_only() -> Situation {
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
        planned: true,
    });
    s
}

/// Pod 0 stepped down, and pod 1 is not promoted yet.
fn demoted(ahead: u64) -> Situation {
    let mut s = recorded_only();
    s.server(0, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            syncing: false,
        };
        server.offset = Offset(1000 + ahead);
    });
    s
}

/// Pod 1 leads; pod 0 was demoted.
fn promoted_already() -> Situation {
    let mut s = demoted(0);
    s.server(1, |server| {
        server.role = Role::Primary;
        server.replid = Replid(7);
        server.replid2 = Some(HISTORY);
    });
    s
}

fn step_of(s: &Situation, kind: Kind) -> Effect {
    let decision = s.decide();
    *decision
        .effects
        .iter()
        .find(|effect| effect.verb.kind() == kind)
        .unwrap()
}

#[test]
fn an_asked_handover_records_pauses_waits_demotes_and_promotes_in_this_order() {
    let decision = asked(Target::Any).decide();
    assert_eq!(kinds(&decision), STEPS);
    assert!(
        decision
            .effects
            .iter()
            .all(|e| e.reason == Reason::HandoverOrdered)
    );
    let record = recorded(&decision).unwrap();
    assert_eq!((record.epoch, record.pod), (Epoch(2), Ordinal(1)));
    assert_eq!(record.served.map(|s| s.pod), Some(Ordinal(0)));
    assert!(record.planned);
    let serves = decision.effects.iter().find_map(|e| match e.verb {
        Verb::RecordPrimary { serves, .. } => serves,
        _ => None,
    });
    assert_eq!(serves, Some(Order::Failover));
}

#[test]
fn the_target_that_was_named_takes_over() {
    let decision = asked(Target::Pod(Ordinal(2))).decide();
    assert_eq!(promoted(&decision), Some(Ordinal(2)));
}

#[test]
fn a_target_that_is_not_in_sync_is_waited_for_and_nobody_else_is_taken() {
    let mut s = asked(Target::Pod(Ordinal(2)));
    s.unlink(2, 3);
    let decision = s.decide();
    assert!(waits_for(&decision, Reason::WaitingForTarget));
    assert_eq!(promoted(&decision), None);
}

#[test]
fn targets_that_can_never_lead_are_refused_by_name_and_remembered() {
    for (target, reason) in [
        (Target::Unknown, Reason::TargetUnknown),
        (Target::Pod(Ordinal(0)), Reason::TargetLeads),
    ] {
        let decision = asked(target).decide();
        assert!(refuses(&decision, reason), "{target:?}");
        let remembered = decision.effects.iter().any(|e| {
            matches!(e.verb, Verb::RecordPrimary { record, serves: Some(Order::Failover) } if record.epoch == Epoch(1))
        });
        assert!(remembered, "{target:?}");
        assert_eq!(promoted(&decision), None);
    }
}

#[test]
fn a_cluster_of_one_says_that_it_needs_a_replica() {
    let mut s = asked(Target::Any);
    s.spec.pods = 1;
    assert!(refuses(&s.decide(), Reason::HandoverNeedsReplica));
}

#[test]
fn a_primary_whose_pod_is_deleted_hands_over_while_it_lives() {
    let mut s = healthy(cache());
    s.object(0, |object| object.terminating = true);
    let decision = s.decide();
    assert_eq!(kinds(&decision), STEPS);
    assert!(
        decision
            .effects
            .iter()
            .all(|e| e.reason == Reason::PrimaryLeaves)
    );
}

#[test]
fn a_primary_whose_pod_is_gone_while_its_server_lives_hands_over() {
    let mut s = healthy(cache());
    s.seen.former.push(Former {
        reach: s.seen.pods[0].reach.unwrap(),
        server: s.seen.pods[0].server,
    });
    // The successor of the same name has booted already.
    s.object(0, |object| object.uid = PodUid(9));
    let mut successor = booted(0);
    successor.pod_uid = PodUid(9);
    s.serve(0, successor);
    for n in [1, 2] {
        s.server(n, |server| {
            if let Role::Replica { upstream, .. } = &mut server.role {
                *upstream = Upstream::Other;
            }
        });
    }
    let decision = s.decide();
    assert_eq!(kinds(&decision), STEPS);
    let pause = decision.effects[1];
    assert_eq!(pause.guard.pod, Some((Ordinal(0), PodUid(0))));
    let guard = Guard {
        epoch: None,
        ..pause.guard
    };
    assert_eq!(guard.check(&s.seen, NOW), Ok(()));
}

#[test]
fn a_copy_that_is_leaving_too_or_far_behind_is_not_chosen() {
    let mut s = asked(Target::Any);
    s.object(1, |object| object.terminating = true);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
    s.server(0, |server| server.offset = Offset(3_000_000));
    assert!(waits_for(&s.decide(), Reason::WaitingForTarget));
}

#[test]
fn nobody_is_demoted_for_a_copy_that_lacks_something() {
    let mut s = asked(Target::Any);
    let mut step_down = step_of(&s, Kind::StepDown);
    step_down.guard.epoch = None;
    s.server(0, |server| server.offset = Offset(1001));
    assert_eq!(step_down.guard.check(&s.seen, NOW), Err(GuardFailure::Copy));
    s.server(1, |server| server.offset = Offset(1001));
    assert_eq!(step_down.guard.check(&s.seen, NOW), Ok(()));
}

#[test]
fn the_copy_is_promoted_only_if_the_demoted_primary_holds_no_more() {
    let mut promote = step_of(&asked(Target::Any), Kind::Promote);
    promote.guard.epoch = None;
    let check = |s: &Situation| promote.guard.check(&s.seen, NOW);
    assert_eq!(check(&recorded_only()), Err(GuardFailure::Before));
    // A write came between the end of the pause and the demotion.
    assert_eq!(check(&demoted(1)), Err(GuardFailure::Copy));
    assert_eq!(check(&demoted(0)), Ok(()));
    // It ended right after it was demoted: it acknowledges nothing more.
    let mut ended = demoted(0);
    ended.kill(0);
    assert_eq!(check(&ended), Ok(()));
}

#[test]
fn a_handover_that_was_only_recorded_is_given_up_and_writes_go_on() {
    let decision = recorded_only().decide();
    assert_eq!(kinds(&decision), [Kind::RecordPrimary, Kind::ResumeWrites]);
    let record = recorded(&decision).unwrap();
    assert_eq!((record.epoch, record.pod), (Epoch(3), Ordinal(0)));
    assert_eq!((record.replid, record.planned), (Some(HISTORY), false));
}

#[test]
fn a_handover_that_came_to_nothing_is_not_begun_again_at_once() {
    let mut s = healthy(cache());
    s.object(0, |object| object.terminating = true);
    s.hints.handover_failed_at = Some(Tick(NOW.0 - 4_000));
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingToHandOver));
    assert_eq!(decision.wake, Some(Tick(NOW.0 + 1_000)));
    s.hints.handover_failed_at = Some(Tick(NOW.0 - 5_000));
    assert_eq!(kinds(&s.decide()), STEPS);
}

#[test]
fn a_handover_that_was_cut_off_after_the_demotion_is_finished() {
    let decision = demoted(0).decide();
    let record = recorded(&decision).unwrap();
    assert_eq!(promoted(&decision), Some(Ordinal(1)));
    assert_eq!((record.epoch, record.pod), (Epoch(3), Ordinal(1)));
    // Clients of the one that stepped down are still to be let go.
    assert!(record.planned && record.served.map(|before| before.pod) == Some(Ordinal(0)));
}

#[test]
fn what_a_primary_that_is_gone_holds_and_still_feeds_is_waited_for() {
    let mut s = demoted(10);
    s.seen.former.push(Former {
        reach: s.seen.pods[0].reach.unwrap(),
        server: s.seen.pods[0].server,
    });
    s.object(0, |object| object.uid = PodUid(9));
    s.seen.pods[0].server = Known::unknown(NOW);
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingForTarget));
    for pod in [1, 2] {
        s.server(pod, |server| server.offset = Offset(1010));
    }
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn a_copy_that_is_fed_by_a_primary_that_was_to_hand_over_is_not_promoted_on_its_silence() {
    let mut s = recorded_only();
    s.spec.pods = 2;
    s.seen.pods.pop();
    s.seen.pods[0].object = Known::Absent;
    s.seen.pods[0].server = Known::Absent;
    s.seen.pods[0].reach = None;
    s.seen.primary_down_since = Some(Tick(NOW.0 - 60_000));
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(refuses(&decision, Reason::SilentPrimary));
}

#[test]
fn clients_of_a_primary_that_is_late_to_answer_are_let_go_later() {
    let mut s = promoted_already();
    s.seen.record.as_mut().unwrap().replid = Some(Replid(7));
    s.silence(0, 3_000);
    let cleared = |s: &Situation| recorded(&s.decide()).is_some_and(|record| !record.planned);
    assert!(!cleared(&s));
    s.kill(0);
    assert!(cleared(&s));
}

#[test]
fn the_demoted_primary_leads_again_if_it_holds_more() {
    // It never had a link in its new role, and no server that just started has its client port open.
    let decision = demoted(10).decide();
    assert_eq!(promoted(&decision), Some(Ordinal(0)));
    assert!(
        decision
            .effects
            .iter()
            .any(|e| e.reason == Reason::HandoverAbandoned)
    );
}

#[test]
fn nobody_is_promoted_while_the_primary_that_was_to_hand_over_may_live() {
    let mut s = recorded_only();
    s.silence(0, 19_000);
    assert_eq!(promoted(&s.decide()), None);
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn nobody_else_is_promoted_while_the_recorded_target_may_have_been() {
    let mut s = demoted(0);
    s.silence(1, 19_000);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn after_a_handover_history_routes_and_the_clients_of_the_old_primary_follow() {
    let mut s = promoted_already();
    let decision = s.decide();
    let order = kinds(&decision);
    let at = |kind| order.iter().position(|k| *k == kind).unwrap();
    assert!(at(Kind::RecordPrimary) < at(Kind::SetRoute));
    assert!(at(Kind::SetRoute) < at(Kind::CloseClients));
    assert!(at(Kind::CloseClients) < at(Kind::ResumeWrites));
    let last = decision
        .effects
        .iter()
        .rev()
        .find_map(|e| match e.verb {
            Verb::RecordPrimary { record, .. } => Some(record),
            _ => None,
        })
        .unwrap();
    assert_eq!((last.served, last.planned), (None, false));
    assert_eq!(last.replid, Some(Replid(7)));
    // An operator that begins in between closes them, too.
    s.seen.record.as_mut().unwrap().replid = Some(Replid(7));
    assert!(kinds(&s.decide()).contains(&Kind::CloseClients));
}

#[test]
fn a_primary_that_was_to_hand_over_is_told_as_the_primary_while_it_serves() {
    let s = recorded_only();
    let decision = s.decide();
    let told = wellcake_core::status::facts(&s.spec, &s.seen, &decision, NOW);
    assert_eq!(told.primary, Some(Ordinal(0)));
    assert!(told.available.0);
}

#[test]
fn a_copy_that_followed_the_new_primary_for_a_moment_counts_by_what_it_holds() {
    let mut s = demoted(10);
    // Pod 0 has 10 bytes more of the old history than pod 2, and then some of the new one; pod 1 ended.
    s.server(0, |server| {
        server.replid = Replid(7);
        server.replid2 = Some(HISTORY);
        server.replid2_until = Offset(1010);
        server.offset = Offset(1024);
        server.role = Role::Replica {
            upstream: Upstream::Pod(Ordinal(1)),
            link: Link::Down { seconds: 0 },
            syncing: false,
        };
    });
    s.kill(1);
    s.unlink(2, 0);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(0)));
    // One that has less of it does not win by what it heard of the new history.
    s.server(0, |server| server.replid2_until = Offset(990));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
}

#[test]
fn a_primary_that_leads_again_counts_as_one_that_served() {
    let record = recorded(&demoted(10).decide()).unwrap();
    assert_eq!((record.pod, record.served), (Ordinal(0), None));
}

#[test]
fn a_new_primary_that_is_gone_before_anybody_followed_it_is_replaced_after_20_seconds() {
    let mut s = promoted_already();
    s.seen.record.as_mut().unwrap().replid = Some(Replid(7));
    s.seen.pods[1].object = Known::Absent;
    s.seen.pods[1].server = Known::Absent;
    s.seen.pods[1].reach = None;
    s.seen.primary_down_since = Some(Tick(NOW.0 - 19_000));
    assert_eq!(promoted(&s.decide()), None);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    assert!(promoted(&s.decide()).is_some());
    // A server that cannot be seen may be its witness.
    s.silence(2, 1_000);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn nobody_leads_while_the_new_primary_may_live_although_the_one_before_is_gone() {
    let mut s = demoted(0);
    s.silence(1, 30_000);
    s.silence(2, 30_000);
    s.object(0, |object| object.uid = PodUid(9));
    let mut successor = booted(0);
    successor.pod_uid = PodUid(9);
    successor.keys = 10;
    s.serve(0, successor);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 30_000));
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn of_two_old_snapshots_the_one_that_the_last_promotion_continued_leads() {
    let mut s = healthy(SpecFacts {
        persistence: Persistence {
            aof: false,
            rdb: true,
            claims: true,
            saves_at_end: true,
        },
        ..cache()
    });
    // Pod 0 leads by the record with a history that no snapshot has.
    let record = s.seen.record.as_mut().unwrap();
    record.replid = Some(Replid(20));
    record.continues = Some(Replid(15));
    for (pod, history) in [(0, 13), (1, 13), (2, 15)] {
        let mut server = booted(pod);
        server.replid = Replid(history);
        server.offset = Offset(500);
        server.keys = 5;
        server.uptime = 31;
        s.serve(pod, server);
    }
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
}

#[test]
fn answers_from_before_a_deleted_primary_closed_its_connection_do_not_count() {
    let mut s = healthy(cache());
    s.seen.pods[0].object = Known::Absent;
    s.seen.pods[0].server = Known::Absent;
    s.seen.pods[0].reach = None;
    s.former(closed(PodUid(0), 30, 10));
    for pod in [1, 2] {
        s.serve(pod, booted(pod));
        if let Known::Seen(answer) = &mut s.seen.pods[usize::from(pod)].server {
            answer.at = Tick(NOW.0 - 100);
        }
    }
    s.spec.persistence.claims = false;
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(waits_for(&decision, Reason::WaitingForAnswers));
}

#[test]
fn a_second_primary_is_demoted_before_anybody_hands_over() {
    let mut s = healthy(cache());
    s.spec.failover = Some(Target::Any);
    s.serve(2, primary(2));
    s.server(2, |it| it.replid = Replid(9));
    let decision = s.decide();
    assert_eq!(promoted(&decision), None);
    assert!(
        decision
            .effects
            .iter()
            .any(|e| e.reason == Reason::SecondPrimaryDemoted),
        "{decision:?}"
    );
    s.serve(2, replica(2));
    assert!(promoted(&s.decide()).is_some());
}
