//! Objects of Kubernetes: made once, set right when they drift, never taken from somebody else.

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{
    Hints, Known, Millis, Object, ObjectState, Observation, PasswordSource, SpecFacts, Tick,
};
use crate::limits;
use crate::reasons::Reason;

/// Plans the objects of a cluster.
pub fn plan(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    decision: &mut Decision,
) {
    if spec.unserved.is_some() {
        decision.refuse(Reason::FieldNotServed, None);
        return;
    }
    if !is_observed(seen) {
        decision.wait(Reason::NotObservedYet, None);
        return;
    }
    if is_blocked(seen, decision) {
        return;
    }
    if let Some(until) = pause(hints).filter(|until| now < *until) {
        decision.wait(Reason::RetryingLater, None);
        decision.wake_at(until);
        return;
    }
    for object in Object::ALL {
        plan_object(seen, object, decision);
    }
}

/// Nothing is created while any kind of object cannot be looked at: what cannot be seen may exist.
fn is_observed(seen: &Observation) -> bool {
    Object::ALL
        .iter()
        .all(|object| !matches!(seen.objects.state(*object), Known::Maybe { .. }))
        && !matches!(seen.objects.password, Known::Maybe { .. })
}

/// Whether something stands in the way of all objects; says what.
fn is_blocked(seen: &Observation, decision: &mut Decision) -> bool {
    let foreign = Object::ALL
        .iter()
        .any(|object| state(seen, *object) == Some(ObjectState::Foreign));
    if foreign {
        decision.refuse(Reason::ForeignObject, None);
    }
    let made = seen.objects.state(Object::Credentials).value().is_some();
    let password = match seen.objects.password.value() {
        Some(PasswordSource::SecretMissing) => Some(Reason::SecretMissing),
        Some(PasswordSource::KeyMissing) => Some(Reason::SecretKeyMissing),
        Some(PasswordSource::Changed) => Some(Reason::PasswordChangeNotServed),
        Some(PasswordSource::Usable) | None => None,
    };
    if let Some(reason) = password {
        decision.refuse(reason, None);
    }
    // Servers that run already have their password; a Secret that is missing later must not stop their upkeep.
    foreign || (password.is_some() && !made)
}

fn state(seen: &Observation, object: Object) -> Option<ObjectState> {
    seen.objects.state(object).value().copied()
}

fn plan_object(seen: &Observation, object: Object, decision: &mut Decision) {
    match seen.objects.state(object) {
        Known::Absent if object == Object::Credentials => {
            decision.act(
                Verb::CreateCredentials,
                Guard::NONE,
                Reason::CredentialsCreated,
            );
        }
        Known::Absent => {
            decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectCreated);
            decision.wait(Reason::CreatingObjects, None);
        }
        Known::Seen(seen_state) => match seen_state.value {
            ObjectState::Differs => {
                decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectCorrected);
            }
            ObjectState::Superfluous => {
                decision.act(Verb::Delete(object), Guard::NONE, Reason::ObjectRemoved);
            }
            ObjectState::Matches | ObjectState::NotWanted | ObjectState::Foreign => {}
        },
        Known::Maybe { .. } => {}
    }
}

/// Until when the lane pauses after failures: 0.5 s, doubling up to a minute.
fn pause(hints: &Hints) -> Option<Tick> {
    let failed_at = hints.failed_at?;
    let doublings = u32::from(hints.failures.saturating_sub(1)).min(16);
    let span = limits::RETRY_FIRST
        .0
        .saturating_mul(1 << doublings)
        .min(limits::RETRY_MAX.0);
    Some(failed_at.after(Millis(span)))
}
