//! A primary whose pod exists says nothing: a lost node, a black hole, a stopped process, a disk that does not answer.

use wellcake_core::effects::{Decision, Effect, GuardFailure, Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

/// Pod 0 has been silent for 30 seconds, and its replicas have been without a link for `seconds`.
fn silent(spec: SpecFacts, seconds: u32) -> Situation {
    let mut s = healthy(spec);
    s.server(0, |server| server.needs_replica = spec.needs_replica);
    s.seen.pods[0].server = Known::Maybe {
        since: Tick(NOW.0 - 30_000),
        last: s.seen.pods[0].server.value().map(|value| Stamped {
            at: Tick(NOW.0 - 30_500),
            value: *value,
        }),
    };
    s.seen.pods[0].reach = Some(Reachability {
        pod_uid: PodUid(0),
        kept: Kept::TimedOut {
            at: Tick(NOW.0 - 30_000),
        },
        fresh: Fresh::TimedOut {
            at: Tick(NOW.0 - 700),
        },
    });
    s.seen.primary_down_since = Some(Tick(NOW.0 - 30_000));
    s.unlink(1, seconds);
    s.unlink(2, seconds);
    s
}

fn self_stopping() -> SpecFacts {
    SpecFacts {
        needs_replica: true,
        ..durable()
    }
}

fn effect(decision: &Decision, kind: Kind) -> Effect {
    let mut of_kind = decision.effects.iter().filter(|e| e.verb.kind() == kind);
    *of_kind.next().unwrap_or_else(|| panic!("{decision:#?}"))
}

fn refused(decision: &Decision, reason: Reason) -> bool {
    promoted(decision).is_none() && refuses(decision, reason)
}

#[test]
fn a_silent_primary_is_succeeded_once_all_its_replicas_lost_it() {
    let mut s = silent(cache(), 3);
    s.server(2, |server| server.offset = Offset(1010));
    let d = s.decide();
    assert_eq!(promoted(&d), Some(Ordinal(2)), "{d:#?}");
    let record = recorded(&d).unwrap();
    assert_eq!((record.epoch, record.pod), (Epoch(2), Ordinal(2)));
    assert_eq!(record.served, s.seen.record.map(|before| before.own()));
    assert!(record.planned, "the one before may be alive");
    assert_eq!(
        effect(&d, Kind::Promote).reason,
        Reason::SilentPrimarySucceeded
    );
}

#[test]
fn the_other_replicas_are_detached_before_anybody_is_promoted() {
    let d = silent(cache(), 3).decide();
    assert_eq!(
        kinds(&d),
        [Kind::Detach, Kind::RecordPrimary, Kind::Promote],
        "{d:#?}"
    );
    assert_eq!(
        effect(&d, Kind::Detach).verb,
        Verb::Detach { pod: Ordinal(2) }
    );
}

#[test]
fn a_refused_connection_counts_like_one_that_is_swallowed() {
    let mut s = silent(cache(), 3);
    s.seen.pods[0].reach.as_mut().unwrap().fresh = Fresh::Refused { at: NOW };
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn before_20_seconds_nothing_is_decided() {
    let mut s = silent(cache(), 10);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 19_999));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::PrimarySilent));
}

/// This operator has asked the primary in vain for so many milliseconds; the marker is of 30 seconds ago.
fn asked_for(millis: u64, lost: u32) -> Situation {
    let mut s = silent(cache(), lost);
    if let Known::Maybe { since, .. } = &mut s.seen.pods[0].server {
        *since = Tick(NOW.0 - millis);
    }
    s
}

#[test]
fn a_marker_of_an_earlier_outage_shortens_no_later_one() {
    // Nobody looked while the primary answered again: this leader has asked for 4 s, the replicas have been alone for as long.
    let d = asked_for(4_000, 4).decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::PrimarySilent));
    let d = asked_for(19_999, 19).decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(promoted(&asked_for(20_000, 3).decide()).is_some());
}

#[test]
fn a_new_leader_asks_for_a_moment_only_if_the_replicas_tell_of_the_whole_outage() {
    assert!(promoted(&asked_for(3_000, 20).decide()).is_some());
    let d = asked_for(2_999, 20).decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    // One of them had its link later than that.
    let mut s = asked_for(3_000, 20);
    s.unlink(1, 19);
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn a_replica_that_has_its_link_shows_that_only_the_operator_is_cut_off() {
    let mut s = silent(cache(), 30);
    s.serve(2, replica(2));
    let d = s.decide();
    assert!(refused(&d, Reason::OnlyOperatorCutOff), "{d:#?}");
    assert_eq!(d.refusals[0].pod, Some(Ordinal(2)));
}

#[test]
fn a_replica_that_copies_from_it_shows_so_too() {
    let mut s = silent(cache(), 30);
    s.server(2, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Pod(Ordinal(0)),
            link: Link::Down { seconds: 30 },
            syncing: true,
        };
    });
    assert!(refused(&s.decide(), Reason::OnlyOperatorCutOff));
}

#[test]
fn a_link_that_was_lost_a_moment_ago_is_looked_at_again() {
    for seconds in [0, 1, 2] {
        let mut s = silent(cache(), 30);
        s.unlink(2, seconds);
        let d = s.decide();
        assert_eq!(promoted(&d), None, "{d:#?}");
        assert!(waits_for(&d, Reason::PrimarySilent));
        assert!(d.wake.is_some_and(|wake| wake <= Tick(NOW.0 + 1_000)));
    }
}

#[test]
fn a_replica_that_nobody_sees_may_be_on_the_primarys_side() {
    for spec in [cache(), self_stopping()] {
        let mut s = silent(spec, 30);
        s.silence(2, 30_000);
        assert!(refused(&s.decide(), Reason::SilentPrimary));
        // Nor is it any better seen by an answer from before.
        let mut s = silent(spec, 30);
        let known = *s.seen.pods[2].server.value().unwrap();
        s.seen.pods[2].server = Known::seen(Tick(NOW.0 - 3_000), known);
        assert!(refused(&s.decide(), Reason::SilentPrimary));
    }
}

#[test]
fn a_report_of_the_kubelet_alone_does_not_end_an_unseen_replica() {
    let mut s = silent(cache(), 30);
    s.silence(2, 30_000);
    s.object(2, |o| o.container = Container::Terminated { restarts: 1 });
    assert!(refused(&s.decide(), Reason::SilentPrimary));
    s.seen.pods[2].reach.as_mut().unwrap().fresh = Fresh::Refused { at: NOW };
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)), "nobody listens");
}

#[test]
fn servers_that_can_have_no_link_do_not_count() {
    // The pod is gone; it restarted; its node is out of service by a person's word.
    let mut gone = silent(cache(), 30);
    gone.seen.pods[2].object = Known::Absent;
    gone.seen.pods[2].server = Known::Absent;
    gone.seen.pods[2].reach = None;
    let mut restarted = silent(cache(), 30);
    restarted.serve(
        2,
        ServerFacts {
            run_since: Tick(NOW.0 - 3_000),
            ..booted(2)
        },
    );
    let mut off = silent(cache(), 30);
    off.silence(2, 30_000);
    off.object(2, |o| o.node_out_of_service = true);
    for s in [gone, restarted, off] {
        assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
    }
}

#[test]
fn the_last_acknowledgement_of_a_server_that_ended_counts_for_a_durable_primary() {
    // It restarted, or closed its connection; what it acknowledged right before lets the primary go on for a while.
    for (ago, leads) in [(13_999, None), (14_000, Some(Ordinal(1)))] {
        let at = Tick(NOW.0 - ago);
        let mut restarted = silent(self_stopping(), 30);
        restarted.serve(
            2,
            ServerFacts {
                run_since: at,
                ..booted(2)
            },
        );
        let mut ended = silent(self_stopping(), 30);
        ended.silence(2, ago);
        ended.object(2, |o| o.container = Container::Terminated { restarts: 1 });
        let reach = ended.seen.pods[2].reach.as_mut().unwrap();
        reach.kept = Kept::Closed { at };
        reach.fresh = Fresh::Refused { at: NOW };
        for s in [restarted, ended] {
            assert_eq!(promoted(&s.decide()), leads);
        }
    }
    // Nobody knows since when a pod is gone.
    let mut gone = silent(self_stopping(), 30);
    gone.seen.pods[2].object = Known::Absent;
    gone.seen.pods[2].server = Known::Absent;
    gone.seen.pods[2].reach = None;
    assert!(refused(&gone.decide(), Reason::SilentPrimary));
}

#[test]
fn without_any_witness_nothing_is_promoted() {
    let mut s = silent(cache(), 30);
    for n in [1, 2] {
        s.serve(n, booted(n));
    }
    assert!(refused(&s.decide(), Reason::SilentPrimary));
    // Who follows nobody tells nothing of the primary: it does not try to reach it.
    let mut s = silent(cache(), 30);
    for n in [1, 2] {
        s.server(n, |server| {
            server.role = Role::Replica {
                upstream: Upstream::Nobody,
                link: Link::Down { seconds: 30 },
                syncing: false,
            };
        });
    }
    assert!(refused(&s.decide(), Reason::SilentPrimary));
}

#[test]
fn the_marker_of_another_leader_is_not_enough() {
    // This leader has begun a moment ago, and has not tried yet.
    let mut s = silent(cache(), 30);
    s.seen.pods[0].server = Known::unknown(Tick(NOW.0 - 500));
    s.seen.pods[0].reach = Some(Reachability {
        pod_uid: PodUid(0),
        kept: Kept::Never,
        fresh: Fresh::NotTried,
    });
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::PrimarySilent));
    // One attempt failed.
    s.seen.pods[0].reach.as_mut().unwrap().fresh = Fresh::TimedOut { at: NOW };
    assert_eq!(promoted(&s.decide()), None);
    // It has asked in vain long enough.
    s.seen.pods[0].server = Known::unknown(Tick(NOW.0 - 3_000));
    assert!(promoted(&s.decide()).is_some());
    // It leads again after a while in which it did not ask.
    s.seen.pods[0].reach.as_mut().unwrap().fresh = Fresh::TimedOut {
        at: Tick(NOW.0 - 10_000),
    };
    assert_eq!(promoted(&s.decide()), None);
}

#[test]
fn a_durable_primary_whose_setting_this_leader_never_saw_may_acknowledge() {
    let mut s = silent(self_stopping(), 30);
    s.seen.pods[0].server = Known::unknown(Tick(NOW.0 - 4_000));
    assert!(refused(&s.decide(), Reason::SilentPrimaryMayAcknowledge));
    // It led earlier, and another leader was there in between.
    let mut s = silent(self_stopping(), 30);
    let Known::Maybe {
        last: Some(last), ..
    } = &mut s.seen.pods[0].server
    else {
        panic!("silent");
    };
    last.at = Tick(NOW.0 - 35_001);
    assert!(refused(&s.decide(), Reason::SilentPrimaryMayAcknowledge));
}

#[test]
fn what_was_seen_before_all_witnesses_started_counts_no_more() {
    // Another leader lets the primary take writes alone when all others have ended.
    let mut s = silent(self_stopping(), 30);
    for n in [1, 2] {
        s.server(n, |server| server.uptime = 30);
    }
    assert!(refused(&s.decide(), Reason::SilentPrimaryMayAcknowledge));
    s.server(1, |server| server.uptime = 32);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn of_a_primary_that_is_gone_nobody_may_be_fed_when_its_successor_is_promoted() {
    let mut s = primary_pod_replaced(cache());
    for n in [1, 2] {
        s.unlink(n, 20);
    }
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    let promote = effect(&s.decide(), Kind::RecordPrimary).guard;
    assert_eq!(promote.check(&s.seen, NOW), Ok(()));
    s.server(2, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Other,
            link: Link::Up,
            syncing: false,
        };
    });
    assert_eq!(promote.check(&s.seen, NOW), Err(GuardFailure::Silent));
}

#[test]
fn an_error_reply_is_a_sign_of_life() {
    // BUSY, NOAUTH or LOADING to a fresh connection: the attempt did not fail to reach it.
    let mut s = silent(cache(), 30);
    s.seen.pods[0].reach.as_mut().unwrap().fresh = Fresh::NotTried;
    assert!(refused(&s.decide(), Reason::SilentPrimary));
    // An error reply to the kept connection: there is an answer, which only grows old.
    let mut s = silent(cache(), 30);
    s.seen.pods[0].server = Known::seen(Tick(NOW.0 - 30_000), primary(0));
    s.seen.pods[0].reach.as_mut().unwrap().kept = Kept::Up;
    assert!(refused(&s.decide(), Reason::SilentPrimary));
}

#[test]
fn a_durable_primary_is_succeeded_when_it_takes_no_writes_by_itself() {
    let s = silent(self_stopping(), 14);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
    // Its last acknowledgement may be 12 seconds old.
    let s = silent(self_stopping(), 13);
    assert_eq!(promoted(&s.decide()), None);
    assert!(waits_for(&s.decide(), Reason::PrimarySilent));
    // A user lets it go on for longer.
    let lag = |replica_lag| SpecFacts {
        replica_lag,
        ..self_stopping()
    };
    assert_eq!(promoted(&silent(lag(60), 63).decide()), None);
    assert!(promoted(&silent(lag(60), 64).decide()).is_some());
    assert!(promoted(&silent(lag(1), 5).decide()).is_some());
    assert_eq!(promoted(&silent(lag(u32::MAX), 900).decide()), None);
}

#[test]
fn a_durable_primary_that_takes_writes_alone_is_not_succeeded() {
    // Nobody set it; and a user set it to 0.
    for needs_replica in [true, false] {
        let spec = SpecFacts {
            needs_replica,
            ..durable()
        };
        let mut s = silent(spec, 30);
        let Known::Maybe {
            last: Some(last), ..
        } = &mut s.seen.pods[0].server
        else {
            panic!("silent");
        };
        last.value.needs_replica = false;
        assert!(refused(&s.decide(), Reason::SilentPrimaryMayAcknowledge));
    }
}

#[test]
fn a_user_who_sets_it_himself_has_a_silent_primary_succeeded_too() {
    let mut s = silent(durable(), 14);
    let Known::Maybe {
        last: Some(last), ..
    } = &mut s.seen.pods[0].server
    else {
        panic!("silent");
    };
    last.value.needs_replica = true;
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn a_durable_primary_that_was_seen_to_hold_more_is_waited_for_and_then_refused() {
    let mut s = silent(self_stopping(), 30);
    s.seen.primary_offset = Some(Offset(1001));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    assert!(waits_for(&d, Reason::WaitingForNewerData));
    s.seen.primary_down_since = Some(Tick(NOW.0 - 60_000));
    let Known::Maybe {
        last: Some(last), ..
    } = &mut s.seen.pods[0].server
    else {
        panic!("silent");
    };
    last.at = Tick(NOW.0 - 60_500);
    assert!(refused(&s.decide(), Reason::SilentPrimaryIsAhead));
}

#[test]
fn two_operators_cannot_both_do_it_and_a_sign_of_life_stops_it() {
    let s = silent(cache(), 5);
    let d = s.decide();
    let (record, promote) = (
        effect(&d, Kind::RecordPrimary),
        effect(&d, Kind::Promote).guard,
    );
    assert_eq!(record.guard.check(&s.seen, NOW), Ok(()));
    // The other one was quicker.
    let mut other = s.clone();
    other.seen.record.as_mut().unwrap().epoch = Epoch(2);
    assert_eq!(
        record.guard.check(&other.seen, NOW),
        Err(GuardFailure::Epoch)
    );
    // The record is written; then the primary answers, or another replica has its link again.
    let mut s = s;
    s.seen.record = recorded(&d);
    assert_eq!(promote.check(&s.seen, NOW), Ok(()));
    let mut linked = s.clone();
    linked.serve(2, replica(2));
    assert_eq!(promote.check(&linked.seen, NOW), Err(GuardFailure::Silent));
    let mut busy = s.clone();
    busy.seen.pods[0].reach.as_mut().unwrap().fresh = Fresh::NotTried;
    assert_eq!(promote.check(&busy.seen, NOW), Err(GuardFailure::Silent));
    s.serve(0, primary(0));
    assert_eq!(promote.check(&s.seen, NOW), Err(GuardFailure::Silent));
    for kind in [Kind::Detach, Kind::RecordPrimary] {
        let mut guard = effect(&d, kind).guard;
        guard.epoch = None;
        assert_eq!(guard.check(&s.seen, NOW), Err(GuardFailure::Silent));
    }
}

#[test]
fn a_replica_that_had_its_link_again_for_a_moment_is_not_passed_over() {
    // It was seen without its link, and when it was detached it held more.
    let mut s = silent(cache(), 5);
    let d = s.decide();
    let detached = |seconds| Role::Replica {
        upstream: Upstream::Nobody,
        link: Link::Down { seconds },
        syncing: false,
    };
    s.server(2, |server| {
        server.role = detached(0);
        server.offset = Offset(1010);
    });
    let record = effect(&d, Kind::RecordPrimary);
    assert_eq!(record.guard.check(&s.seen, NOW), Err(GuardFailure::Data));
    // It leads, once it has had no link for long enough again.
    assert_eq!(promoted(&s.decide()), None);
    s.server(2, |server| server.role = detached(3));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
}

/// A promotion on silence was recorded and not done.
fn recorded_only() -> Situation {
    let mut s = silent(cache(), 5);
    s.seen.record = recorded(&s.decide());
    s.seen.primary_down_since = None;
    s
}

#[test]
fn a_primary_that_lives_after_all_leads_again() {
    let mut s = recorded_only();
    s.serve(0, primary(0));
    let d = s.decide();
    assert_eq!(promoted(&d), None, "{d:#?}");
    let record = recorded(&d).unwrap();
    assert_eq!((record.epoch, record.pod), (Epoch(3), Ordinal(0)));
    assert_eq!((record.served, record.planned), (None, false));
}

#[test]
fn what_was_recorded_on_silence_is_done_on_the_same_evidence_only() {
    let mut s = recorded_only();
    assert_eq!(promoted(&s.decide()), None, "a marker of its own first");
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    assert!(promoted(&s.decide()).is_some());
    s.serve(2, replica(2));
    assert!(refused(&s.decide(), Reason::OnlyOperatorCutOff));
}

#[test]
fn the_old_primary_is_demoted_and_loses_its_clients_when_it_comes_back() {
    let mut s = healthy(cache());
    let record = s.seen.record.as_mut().unwrap();
    *record = Record {
        epoch: Epoch(2),
        pod: Ordinal(1),
        pod_uid: PodUid(1),
        claim_uid: Some(ClaimUid(1)),
        replid: Some(Replid(2)),
        continues: Some(HISTORY),
        served: None,
        planned: false,
    };
    s.serve(
        1,
        ServerFacts {
            replid: Replid(2),
            replid2: Some(HISTORY),
            ..primary(1)
        },
    );
    // Pod 0 is the same pod and the same process as before, with more than anybody else has.
    s.server(0, |server| server.offset = Offset(9_000));
    let d = s.decide();
    let (pod, primary) = (Ordinal(0), Ordinal(1));
    let of: Vec<Verb> = d
        .effects
        .iter()
        .filter(|e| e.reason == Reason::SecondPrimaryDemoted)
        .map(|e| e.verb)
        .collect();
    assert_eq!(
        of,
        [Verb::Follow { pod, primary }, Verb::CloseClients { pod }]
    );
}

#[test]
fn the_end_of_a_promotion_on_silence_does_not_wait_for_the_silent_one() {
    let mut s = silent(cache(), 5);
    let record = recorded(&s.decide()).unwrap();
    s.seen.record = Some(Record {
        replid: Some(Replid(2)),
        ..record
    });
    s.seen.objects.client_route = Some(Ordinal(1));
    s.serve(
        1,
        ServerFacts {
            replid: Replid(2),
            replid2: Some(HISTORY),
            ..primary(1)
        },
    );
    let forgets = s.decide().effects.iter().any(|e| match e.verb {
        Verb::RecordPrimary { record, .. } => record.served.is_none() && !record.planned,
        _ => false,
    });
    assert!(forgets, "else no handover would begin any more");
}

#[test]
fn of_a_primary_whose_pod_is_gone_every_replica_that_may_have_a_link_is_asked() {
    let mut s = primary_pod_replaced(cache());
    s.unlink(1, 20);
    s.silence(2, 30_000);
    s.seen.primary_down_since = Some(Tick(NOW.0 - 20_000));
    assert_eq!(promoted(&s.decide()), None, "pod 2 may be beside it");
    s.serve(2, booted(2));
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}
