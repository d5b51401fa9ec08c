//! Objects of Kubernetes: made once, set right when they drift, never taken from somebody else.

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{
    Hints, Known, Object, ObjectState, Observation, PasswordSource, SpecFacts, Tick, Volume,
};
use crate::limits;
use crate::reasons::Reason;

use super::{adoption, configuration};

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
    let adopting = adoption::is_pending(spec, seen, now);
    if let Some(until) = hints.objects.pause(now) {
        decision.wait(Reason::RetryingLater, None);
        decision.wake_at(until);
        return;
    }
    if adopting {
        adoption::objects(spec, seen, now, decision);
        return;
    }
    for object in Object::ALL {
        if object == Object::StatefulSet && is_downgrade(spec, seen) {
            decision.refuse(Reason::DowngradeNotServed, None);
            continue;
        }
        plan_object(seen, object, now, decision);
    }
    adoption::release(spec, seen, decision);
    volumes(seen, hints, now, decision);
}

/// Volumes grow to what the spec asks for; they never shrink (a rule of the API).
fn volumes(seen: &Observation, hints: &Hints, now: Tick, decision: &mut Decision) {
    let paused = hints.volumes.pause(now);
    for (pod, facts) in seen.ordinals() {
        let Some(claim) = facts.claim.value() else {
            continue;
        };
        match claim.volume {
            Volume::Enough => {}
            Volume::Growing => decision.wait(Reason::WaitingForVolume, Some(pod)),
            Volume::Smaller => {
                if hints.volumes.failures > 0 {
                    decision.refuse(Reason::VolumeNotGrown, Some(pod));
                }
                match paused {
                    Some(until) => decision.wake_at(until),
                    None => decision.act(
                        Verb::GrowVolume {
                            pod,
                            claim: claim.uid,
                        },
                        Guard::NONE,
                        Reason::VolumeGrown,
                    ),
                }
            }
        }
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

/// Whether an image is asked for that may not be able to read what some server wrote.
fn is_downgrade(spec: &SpecFacts, seen: &Observation) -> bool {
    let older = spec
        .image_major
        .is_some_and(|major| major < limits::NEWER_FORMAT);
    let mut servers = seen.pods.iter().filter_map(|pod| pod.server.last());
    older && servers.any(|server| server.major >= limits::NEWER_FORMAT)
}

fn state(seen: &Observation, object: Object) -> Option<ObjectState> {
    seen.objects.state(object).value().copied()
}

fn plan_object(seen: &Observation, object: Object, now: Tick, decision: &mut Decision) {
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
            // It differs by directives only that servers are to take first.
            ObjectState::Differs
                if object == Object::Config && !configuration::is_file_due(seen, now) => {}
            ObjectState::Differs => {
                decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectCorrected);
            }
            ObjectState::Superfluous => {
                decision.act(Verb::Delete(object), Guard::NONE, Reason::ObjectRemoved);
            }
            ObjectState::Theirs => {
                let reason = match object {
                    Object::StatefulSet => Reason::ClusterTakenOver,
                    _ => Reason::ObjectTakenOver,
                };
                decision.act(Verb::Apply(object), Guard::NONE, reason);
                decision.wait(Reason::TakingOver, None);
            }
            ObjectState::TakenBack => {
                adoption::take_again(object, seen_state.at, now, decision);
            }
            ObjectState::RollAsked => match adoption::with_other_users(seen) {
                Some(pod) => decision.refuse(Reason::UsersWouldBeLost, Some(pod)),
                None => {
                    decision.act(Verb::Apply(object), Guard::NONE, Reason::TemplateReplaced);
                }
            },
            ObjectState::Matches
            | ObjectState::Kept
            | ObjectState::NotWanted
            | ObjectState::Foreign => {}
        },
        Known::Maybe { .. } => {}
    }
}
