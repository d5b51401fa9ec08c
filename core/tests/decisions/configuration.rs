//! Directives that running servers take, and files that servers do not start with.

use wellcake_core::effects::{Decision, Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

fn set(s: &mut Situation, states: [Directives; 3]) {
    for (n, state) in (0u8..).zip(states) {
        s.server(n, |server| server.directives = state);
    }
}

fn configured(decision: &Decision) -> Vec<Ordinal> {
    let verbs = decision.effects.iter().map(|effect| effect.verb);
    verbs
        .filter_map(|verb| match verb {
            Verb::Configure { pod } => Some(pod),
            _ => None,
        })
        .collect()
}

#[test]
fn changed_directives_are_set_one_server_after_the_other_and_on_the_primary_last() {
    use Directives::{Due, Set};
    let mut s = healthy(cache());
    for (states, next) in [
        ([Due, Due, Due], Some(2)),
        ([Due, Due, Set], Some(1)),
        ([Due, Set, Set], Some(0)),
        ([Set, Set, Set], None),
    ] {
        set(&mut s, states);
        let decision = s.decide();
        let next: Vec<_> = next.map(Ordinal).into_iter().collect();
        assert_eq!(configured(&decision), next, "{states:?}");
        let waits = decision
            .waits
            .iter()
            .any(|note| note.reason == Reason::WaitingForDirectives);
        assert_eq!(waits, !next.is_empty());
    }
}

#[test]
fn servers_of_a_new_leader_are_set_again_without_a_word() {
    let mut s = healthy(cache());
    set(&mut s, [Directives::Unset; 3]);
    let decision = s.decide();
    assert_eq!(configured(&decision), [Ordinal(2)]);
    assert!(decision.waits.is_empty() && decision.refusals.is_empty());
}

#[test]
fn one_refusal_keeps_the_directives_from_all_other_servers() {
    use Directives::{Due, Refused};
    let mut s = healthy(cache());
    set(&mut s, [Due, Due, Refused]);
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    let refusal = decision.refusals.first().expect("a refusal");
    assert_eq!(refusal.reason, Reason::DirectivesRefused);
    assert_eq!(refusal.pod, Some(Ordinal(2)));
}

#[test]
fn nothing_is_set_on_a_pod_that_is_to_be_replaced_or_while_something_else_is_done() {
    let mut s = healthy(cache());
    set(&mut s, [Directives::Due; 3]);
    s.object(2, |object| object.revision = Revision::Outdated);
    let decision = s.decide();
    assert!(configured(&decision).is_empty(), "{decision:?}");
    assert_eq!(kinds(&decision), [Kind::Evict]);
    s.object(2, |object| object.revision = Revision::Current);
    s.object(1, |object| object.label = RoleLabel::None);
    assert_eq!(kinds(&s.decide()), [Kind::SetLabel]);
}

#[test]
fn a_primary_that_died_is_succeeded_whatever_its_replicas_were_sent() {
    for state in [Directives::Unset, Directives::Due, Directives::Refused] {
        let mut s = healthy(cache());
        set(&mut s, [state; 3]);
        s.kill(0);
        for replica in [1, 2] {
            s.unlink(replica, 0);
        }
        let decision = s.decide();
        assert!(kinds(&decision).contains(&Kind::Promote), "{state:?}");
        assert!(configured(&decision).is_empty());
    }
}

#[test]
fn the_file_follows_when_every_server_took_what_differs() {
    use Directives::{Due, Refused, Set, Unset};
    let mut s = healthy(cache());
    s.seen
        .objects
        .set(Object::Config, Known::seen(NOW, ObjectState::Differs));
    let file = Verb::Apply(Object::Config);
    for states in [[Due, Set, Set], [Unset, Set, Set], [Set, Set, Refused]] {
        set(&mut s, states);
        let decision = s.decide();
        assert!(
            !decision.effects.iter().any(|effect| effect.verb == file),
            "{states:?}"
        );
    }
    set(&mut s, [Set; 3]);
    assert!(s.decide().effects.iter().any(|effect| effect.verb == file));
    // Nobody runs who could take it: the file itself may be what keeps them from running.
    for n in 0..3 {
        s.object(n, |object| {
            object.container = Container::Terminated { restarts: 5 };
            object.trouble = Some(Trouble::Config);
        });
        s.seen.pods[usize::from(n)].server = Known::unknown(NOW);
    }
    assert!(s.decide().effects.iter().any(|effect| effect.verb == file));
}

fn not_started() -> Situation {
    let mut s = healthy(cache());
    s.seen.objects.config_before = true;
    for n in [0, 1] {
        s.object(n, |object| object.revision = Revision::Outdated);
    }
    s.object(2, |object| {
        object.container = Container::Terminated { restarts: 3 };
        object.trouble = Some(Trouble::Config);
    });
    s.seen.pods[2].server = Known::unknown(NOW);
    s
}

#[test]
fn a_file_that_a_server_does_not_start_with_is_taken_back() {
    let s = not_started();
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::GoBackToConfig]);
    assert_eq!(decision.refusals[0].reason, Reason::ConfigNotUnderstood);

    // The pods that run have what the StatefulSet has again, and the one that does not is replaced.
    let mut s = s;
    s.seen.objects.config_refused = true;
    for n in [0, 1] {
        s.object(n, |object| object.revision = Revision::Current);
    }
    s.object(2, |object| object.revision = Revision::Outdated);
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::Evict]);
    assert_eq!(decision.refusals[0].reason, Reason::ConfigRefused);
}

#[test]
fn nothing_is_taken_back_without_an_earlier_file_or_for_another_cause() {
    let mut s = not_started();
    s.seen.objects.config_before = false;
    assert!(s.decide().effects.is_empty());
    s.seen.objects.config_before = true;
    s.object(2, |object| object.trouble = Some(Trouble::Crashes));
    assert!(s.decide().effects.is_empty());
    s.object(2, |object| {
        object.trouble = Some(Trouble::Config);
        object.revision = Revision::Outdated;
    });
    assert_eq!(kinds(&s.decide()), [Kind::Evict]);
}

#[test]
fn a_file_that_nobody_needs_is_deleted_when_all_is_quiet() {
    let mut s = healthy(cache());
    s.seen.objects.old_configs = 1;
    assert_eq!(kinds(&s.decide()), [Kind::DeleteOldConfig]);
    for change in [
        (|s: &mut Situation| s.object(1, |object| object.label = RoleLabel::None))
            as fn(&mut Situation),
        |s| s.object(1, |object| object.revision = Revision::Unknown),
        |s| set(s, [Directives::Set, Directives::Set, Directives::Refused]),
        |s| s.hints.objects = Backoff::default().after(true, NOW),
    ] {
        let mut busy = s.clone();
        change(&mut busy);
        let decision = busy.decide();
        assert!(
            !kinds(&decision).contains(&Kind::DeleteOldConfig),
            "{decision:?}"
        );
    }
}
