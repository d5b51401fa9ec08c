//! A Durable primary takes writes only while a replica acknowledges, so that it stops by itself where it is cut off.

use wellcake_core::effects::{Decision, Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

fn spec() -> SpecFacts {
    SpecFacts {
        needs_replica: true,
        ..durable()
    }
}

/// A healthy cluster whose primary needs a replica.
fn armed() -> Situation {
    let mut s = healthy(spec());
    s.server(0, |server| server.needs_replica = true);
    s
}

fn set(decision: &Decision) -> Vec<(Ordinal, bool)> {
    let of = |verb| match verb {
        Verb::NeedReplica { pod, needed } => Some((pod, needed)),
        _ => None,
    };
    decision.effects.iter().filter_map(|e| of(e.verb)).collect()
}

#[test]
fn a_primary_with_a_replica_in_sync_is_told_to_need_one() {
    let s = healthy(spec());
    let d = s.decide();
    assert_eq!(set(&d), [(Ordinal(0), true)], "{d:#?}");
    let guard = d.effects[0].guard;
    assert_eq!(guard.check(&s.seen, NOW), Ok(()));
    assert_eq!(
        (guard.epoch, guard.pod, guard.run, guard.replica),
        (
            Some(Epoch(1)),
            Some((Ordinal(0), PodUid(0))),
            Some(RunId(0)),
            Some(false)
        )
    );
    assert!(armed().decide().effects.is_empty(), "once");
}

#[test]
fn a_primary_without_a_replica_in_sync_takes_writes_alone() {
    let mut s = healthy(spec());
    for n in [1, 2] {
        s.serve(n, booted(n));
    }
    assert!(set(&s.decide()).is_empty());
    for n in [1, 2] {
        s.serve(n, replica(n));
        s.server(n, |server| server.offset = Offset(0));
    }
    assert!(set(&s.decide()).is_empty(), "a link up is no copy");
    // It would refuse writes until the first acknowledgement.
    let mut s = healthy(spec());
    s.server(0, |server| server.has_replica = false);
    assert!(set(&s.decide()).is_empty());
}

#[test]
fn profile_cache_and_users_who_set_it_themselves_are_left_alone() {
    for spec in [cache(), durable()] {
        for needs_replica in [true, false] {
            let mut s = healthy(spec);
            s.server(0, |server| server.needs_replica = needs_replica);
            assert!(set(&s.decide()).is_empty());
            for n in [1, 2] {
                s.serve(n, booted(n));
            }
            assert!(set(&s.decide()).is_empty());
        }
    }
}

#[test]
fn it_takes_writes_alone_once_every_replica_is_proven_to_be_without_a_link() {
    let mut s = armed();
    s.serve(1, booted(1));
    assert!(set(&s.decide()).is_empty(), "pod 2 follows");
    let gone = |s: &mut Situation| {
        s.seen.pods[2].object = Known::Absent;
        s.seen.pods[2].server = Known::Absent;
        s.seen.pods[2].reach = None;
    };
    let restarted = |s: &mut Situation| s.serve(2, booted(2));
    let ended = |s: &mut Situation| s.kill(2);
    for end in [gone, restarted, ended] {
        let mut s = s.clone();
        end(&mut s);
        let d = s.decide();
        assert_eq!(set(&d), [(Ordinal(0), false)], "{d:#?}");
        let told = d
            .effects
            .iter()
            .any(|e| e.reason == Reason::WritesNeedNoReplica);
        assert!(told);
    }
}

#[test]
fn writes_wait_for_a_replica_that_is_only_silent() {
    let mut s = armed();
    s.serve(1, booted(1));
    s.silence(2, 30_000);
    assert!(set(&s.decide()).is_empty());
    s.object(2, |o| o.container = Container::Terminated { restarts: 0 });
    assert!(
        set(&s.decide()).is_empty(),
        "the kubelet may speak of an earlier process"
    );
    // It runs, open, without a link: it may have one again at any moment.
    s.serve(2, replica(2));
    s.unlink(2, 5);
    assert!(set(&s.decide()).is_empty());
}

#[test]
fn with_two_pods_the_end_of_the_replica_lets_writes_go_on_at_once() {
    let mut s = armed();
    s.spec.pods = 2;
    s.seen.pods.truncate(2);
    s.silence(1, 30_000);
    assert!(set(&s.decide()).is_empty());
    s.kill(1);
    assert_eq!(set(&s.decide()), [(Ordinal(0), false)]);
}

#[test]
fn a_replica_keeps_no_such_setting_for_the_time_when_it_leads() {
    let mut s = armed();
    s.server(2, |server| server.needs_replica = true);
    let d = s.decide();
    assert_eq!(set(&d), [(Ordinal(2), false)]);
    assert_eq!(d.effects[0].guard.replica, Some(true));
}

#[test]
fn a_handover_is_done_as_without_it() {
    let mut s = armed();
    s.spec.failover = Some(Target::Any);
    assert_eq!(
        kinds(&s.decide()),
        [
            Kind::RecordPrimary,
            Kind::PauseWrites,
            Kind::AwaitCopy,
            Kind::StepDown,
            Kind::Promote
        ]
    );
}
