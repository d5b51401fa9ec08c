//! Failures that people reported of other operators (`docs/field-reports.md`), where no other test is about them.

use wellcake_core::effects::{Decision, Kind, Lane, Verb};
use wellcake_core::exec;
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::status;

use crate::situation::*;

fn evicted(decision: &Decision) -> Option<Ordinal> {
    decision.effects.iter().find_map(|e| match e.verb {
        Verb::Evict { pod } => Some(pod),
        _ => None,
    })
}

#[test]
fn a_primary_that_is_not_reached_is_succeeded_whatever_its_pod_looks_like() {
    let containers = [
        Container::Waiting,
        Container::Running { restarts: 0 },
        Container::Terminated { restarts: 0 },
    ];
    let troubles = [None, Some(Trouble::NoNode), Some(Trouble::Crashes)];
    for container in containers {
        for (terminating, trouble) in [(false, 0), (true, 0), (false, 1), (true, 2)] {
            for silent in [true, false] {
                let mut s = healthy(cache());
                s.object(0, |o| {
                    o.container = container;
                    o.terminating = terminating;
                    o.trouble = troubles[trouble];
                });
                if silent {
                    s.silence(0, 30_000);
                    let reach = s.seen.pods[0].reach.as_mut().expect("it was reached");
                    reach.fresh = Fresh::TimedOut {
                        at: Tick(NOW.0 - 700),
                    };
                    s.seen.primary_down_since = Some(Tick(NOW.0 - 30_000));
                } else {
                    s.kill(0);
                }
                for pod in [1, 2] {
                    s.unlink(pod, if silent { 30 } else { 0 });
                }
                let decision = s.decide();
                assert!(
                    promoted(&decision).is_some(),
                    "{container:?} terminating {terminating} silent {silent}: {decision:#?}"
                );
            }
        }
    }
}

#[test]
fn a_pod_that_comes_back_on_an_old_volume_copies_before_anybody_reaches_it() {
    let mut s = healthy(durable());
    let old = ServerFacts {
        keys: 5_000,
        offset: Offset(90_000),
        replid: Replid(7),
        ..booted(2)
    };
    s.serve(2, old);
    let decision = s.decide();
    assert!(kinds(&decision).contains(&Kind::Follow), "{decision:?}");
    assert!(!kinds(&decision).contains(&Kind::Open), "{decision:?}");
    // Nor does it lead by what it brought when the primary ends before it was copied over.
    s.kill(0);
    s.unlink(1, 0);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(1)));
}

#[test]
fn more_pods_are_asked_for_although_one_is_broken() {
    let mut s = healthy(cache());
    s.spec.pods = 4;
    s.object(2, |o| {
        o.trouble = Some(Trouble::Crashes);
        o.container = Container::Waiting;
    });
    s.silence(2, 60_000);
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Differs));
    let decision = s.decide();
    assert!(
        decision
            .effects
            .iter()
            .any(|e| e.verb == Verb::Apply(Object::StatefulSet)),
        "{decision:?}"
    );
    assert!(refuses(&decision, Reason::ServerCrashes), "it is named");
}

#[test]
fn a_budget_that_may_not_be_made_keeps_nothing_else_back() {
    let mut s = healthy(cache());
    let all = |s: &mut Situation, state: fn() -> Known<ObjectState>| {
        for object in Object::ALL {
            s.seen.objects.set(object, state());
        }
    };
    all(&mut s, || Known::Absent);
    let order = kinds(&s.decide());
    let applied: Vec<Verb> = exec::lane(&s.decide(), Lane::Provisioning)
        .map(|effect| effect.verb)
        .collect();
    let last = Verb::Apply(Object::DisruptionBudget);
    assert_eq!(applied.last(), Some(&last), "{order:?}");
    // Everything else is there, it alone is refused again and again, and a pod is to be replaced.
    all(&mut s, || Known::seen(NOW, ObjectState::Matches));
    s.seen.objects.set(Object::DisruptionBudget, Known::Absent);
    s.object(2, |o| o.revision = Revision::Outdated);
    s.hints = exec::after_batch(s.hints, &[(Kind::Apply, false)], NOW);
    assert_eq!(evicted(&s.decide()), Some(Ordinal(2)));
    s.hints = exec::after_batch(s.hints, &[(Kind::Apply, false)], Tick(NOW.0 - 90_000));
    let again = s.decide();
    let tried: Vec<Kind> = exec::lane(&again, Lane::Provisioning)
        .map(|effect| effect.verb.kind())
        .collect();
    assert_eq!(tried, [Kind::Evict, Kind::Apply], "the refusal comes last");
}

#[test]
fn a_changed_password_is_named_and_keeps_nobody_from_leading() {
    let mut s = healthy(cache());
    s.seen.objects.password = Known::seen(NOW, PasswordSource::Changed);
    let decision = s.decide();
    assert!(refuses(&decision, Reason::PasswordChangeNotServed));
    assert!(decision.effects.is_empty(), "the servers keep theirs");
    s.kill(0);
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn nothing_is_replaced_while_the_primary_or_another_replica_is_not_seen() {
    let unseen = |pod: u8| {
        let mut s = healthy(cache());
        for pod in 0..3 {
            s.object(pod, |o| o.revision = Revision::Outdated);
        }
        s.silence(pod, 10_000);
        evicted(&s.decide())
    };
    assert_eq!(unseen(0), None, "the primary");
    assert_eq!(unseen(1), None, "a replica that may not be in sync");
    // The record and the answers of all others say that pod 2 does not lead and is not needed.
    assert_eq!(unseen(2), Some(Ordinal(2)));
}

#[test]
fn replicas_that_cannot_load_what_a_newer_primary_sends_do_not_wait_for_each_other() {
    // Half way through an update pod 0 led already, with the newer server. The two others lost what they held when they
    // began to copy, cannot load what they get ("Can't handle RDB format version"), and begin anew, with the client port
    // still open (measured with 8.0).
    let mut s = healthy(cache());
    for pod in [1, 2] {
        s.object(pod, |o| o.revision = Revision::Outdated);
        s.server(pod, |server| {
            server.keys = 0;
            server.offset = Offset(1);
            server.replid = Replid(60);
            server.role = Role::Replica {
                upstream: Upstream::Pod(Ordinal(0)),
                link: Link::Never,
                syncing: false,
            };
        });
    }
    assert!(evicted(&s.decide()).is_some(), "{:#?}", s.decide());
}

#[test]
fn a_new_cluster_whose_pods_are_not_made_says_what_it_waits_for() {
    let mut s = fresh(cache());
    for pod in &mut s.seen.pods {
        pod.object = Known::Absent;
        pod.server = Known::Absent;
    }
    let decision = s.decide();
    assert!(waits_for(&decision, Reason::WaitingForPods), "{decision:?}");
    let told = status::facts(&s.spec, &s.seen, &decision, NOW);
    assert!(told.progressing.0 && !told.ready_condition.0);
    // Before there is a StatefulSet, that is what is said.
    for object in Object::ALL {
        s.seen.objects.set(object, Known::Absent);
    }
    let decision = s.decide();
    assert!(!waits_for(&decision, Reason::WaitingForPods));
    assert!(waits_for(&decision, Reason::CreatingObjects));
}
