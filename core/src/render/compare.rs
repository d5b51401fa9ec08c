//! How a live object stands to what it should be.

use serde_json::{Map, Value};
use wellcake_crds::annotations;

use super::adoption;
use super::metadata::{POD_NAME_LABEL, applied_hash_of};
use super::quantity::Amount;
use crate::facts::ObjectState;

/// Parts of a StatefulSet's spec that only new pods, or a new StatefulSet, can follow.
const ROLLED: [&str; 5] = [
    "template",
    VOLUMES,
    "selector",
    "serviceName",
    "podManagementPolicy",
];
/// Parts of a StatefulSet's spec that are the same for every spec and that Kubernetes does not allow to be changed.
const FIXED: [&str; 3] = ["selector", "serviceName", "podManagementPolicy"];
/// The part that describes the volumes. Kubernetes does not allow it to be changed either.
const VOLUMES: &str = "volumeClaimTemplates";

/// Compares a live object with the rendered one; `None` means that it is wanted and not there.
///
/// Every field that was rendered must be there with the same value; what others added (defaults of the API server,
/// injected fields, status) is ignored. Quantities are compared by value, and an empty or zero value equals an absent
/// one. A different applied hash tells that a field was taken out. Somebody else's object under a name that is not needed
/// is nobody's concern.
pub fn compare(
    desired: Option<&Value>,
    live: Option<&Value>,
    owner_uid: &str,
) -> Option<ObjectState> {
    let (desired, live) = match (desired, live) {
        (Some(_), None) => return None,
        (None, None) => return Some(ObjectState::NotWanted),
        (None, Some(live)) if is_ours(live, owner_uid) => return Some(ObjectState::Superfluous),
        (None, Some(_)) => return Some(ObjectState::NotWanted),
        (Some(desired), Some(live)) => (desired, live),
    };
    if !is_ours(live, owner_uid) {
        return Some(ObjectState::Foreign);
    }
    let kind = desired.get("kind").and_then(Value::as_str);
    if kind == Some("StatefulSet") {
        return Some(stateful_set(desired, live));
    }
    if let Some(theirs) = adoption::state_by_selector(live) {
        return Some(theirs);
    }
    Some(if !was_made_here(desired, live) {
        ObjectState::Foreign
    } else if covers(desired, live, "") {
        ObjectState::Matches
    } else {
        ObjectState::Differs
    })
}

/// How the live Secret with the ACL file stands; `None` means that the credentials were not made. Its content is written
/// once, so that it exists and is ours is all that is asked.
pub fn credentials(acl: Option<&Value>, owner_uid: &str) -> Option<ObjectState> {
    let acl = acl?;
    Some(if is_ours(acl, owner_uid) {
        ObjectState::Matches
    } else {
        ObjectState::Foreign
    })
}

/// The part of a StatefulSet that only new pods can follow.
pub fn rolled_part(stateful_set: &Value) -> Value {
    let spec = stateful_set.get("spec");
    let part: Map<String, Value> = ROLLED
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), spec?.get(key)?.clone())))
        .collect();
    Value::Object(part)
}

/// The StatefulSet as it can be applied over the live one: with the volumes that the latter was made with, with `replicas`, or
/// else no fewer replicas than it has, with the restart that was asked for last, since a request that is taken back is no other
/// one, with the configuration that it has if the one that is asked for was refused, and with the
/// template that it has if the operator, and nobody else, has another one.
pub fn over_live(desired: &Value, live: Option<&Value>, replicas: Option<u8>) -> Value {
    let mut applied = desired.clone();
    let Some(live_spec) = live.and_then(|live| live.get("spec")) else {
        return applied;
    };
    let Some(spec) = applied.get_mut("spec").and_then(Value::as_object_mut) else {
        return applied;
    };
    let wanted = spec.get("replicas").and_then(Value::as_u64);
    let present = live_spec.get("replicas").and_then(Value::as_u64);
    let count = replicas.map(u64::from).or(wanted.max(present));
    spec.insert("replicas".to_owned(), count.into());
    let asked = live_spec
        .pointer("/template/metadata/annotations")
        .and_then(|all| all.get(annotations::RESTARTED_AT));
    let template = spec
        .get_mut("template")
        .and_then(|it| it.pointer_mut("/metadata/annotations"))
        .and_then(Value::as_object_mut);
    if let (Some(asked), Some(template)) = (asked, template) {
        template
            .entry(annotations::RESTARTED_AT)
            .or_insert_with(|| asked.clone());
    }
    if let Some(live) = live {
        super::refused::keep(&mut applied, live);
        super::held::keep(&mut applied, live);
    }
    let Some(spec) = applied.get_mut("spec").and_then(Value::as_object_mut) else {
        return applied;
    };
    match live_spec.get(VOLUMES) {
        Some(volumes) if !has_volumes(desired, live) => {
            spec.insert(VOLUMES.to_owned(), volumes.clone());
        }
        Some(_) => {}
        None => {
            spec.remove(VOLUMES);
        }
    }
    if let Some(live) = live {
        adoption::keep(&mut applied, live);
    }
    applied
}

/// Whether the live StatefulSet, if there is one, was made with the volumes that are asked for.
fn has_volumes(desired: &Value, live: Option<&Value>) -> bool {
    let volumes = |object: &Value| {
        object
            .get("spec")
            .and_then(|spec| spec.get(VOLUMES))
            .cloned()
    };
    live.is_none_or(|live| match (volumes(desired), volumes(live)) {
        (Some(desired), Some(live)) => covers(&desired, &live, ""),
        (desired, live) => desired.is_none() && live.is_none(),
    })
}

fn stateful_set(desired: &Value, live: &Value) -> ObjectState {
    let fixed = |object: &Value| {
        FIXED.map(|part| object.get("spec").and_then(|spec| spec.get(part)).cloned())
    };
    let same = fixed(desired)
        .iter()
        .zip(&fixed(live))
        .all(|(desired, live)| match (desired, live) {
            (Some(desired), Some(live)) => covers(desired, live, ""),
            (desired, _) => desired.is_none(),
        });
    let taken_out = match (applied_hash_of(live), applied_hash_of(desired)) {
        (Some(live), Some(desired)) => live != desired,
        _ => false,
    };
    if !same {
        ObjectState::Foreign
    } else if adoption::has_other_template(live) {
        other_template(desired, live)
    } else if (!taken_out || super::held::waits(desired, live))
        && covers(&over_live(desired, Some(live), None), live, "")
    {
        ObjectState::Matches
    } else {
        ObjectState::Differs
    }
}

/// How a StatefulSet stands that has the pod template of another operator.
fn other_template(desired: &Value, live: &Value) -> ObjectState {
    if !adoption::is_taken(live) {
        ObjectState::Theirs
    } else if adoption::is_roll_asked(desired, live) {
        ObjectState::RollAsked
    } else if covers(&over_live(desired, Some(live), None), live, "") {
        ObjectState::Kept
    } else {
        ObjectState::Differs
    }
}

/// Whether the controller of an object is the ValkeyCluster of this uid.
fn is_ours(live: &Value, owner_uid: &str) -> bool {
    let references = live
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| {
        reference.get("controller").and_then(Value::as_bool) == Some(true)
            && reference.get("uid").and_then(Value::as_str) == Some(owner_uid)
    })
}

/// Whether a client Service was made by this operator. Another operator of the same API makes it with the same controller
/// reference, without the applied hash and with a selector that names no pod; either mark tells ours.
fn was_made_here(desired: &Value, live: &Value) -> bool {
    let names_pod = |service: &Value| {
        service
            .pointer("/spec/selector")
            .is_some_and(|selector| selector.get(POD_NAME_LABEL).is_some())
    };
    !names_pod(desired) || names_pod(live) || applied_hash_of(live).is_some()
}

/// Whether every field of `desired` is in `live` with the same value. `within` is the key of the map that holds them.
pub fn covers(desired: &Value, live: &Value, within: &str) -> bool {
    match (desired, live) {
        (Value::Object(wanted), Value::Object(there)) => wanted.iter().all(|(key, value)| {
            let quantities = matches!(within, "requests" | "limits") || key == "sizeLimit";
            match there.get(key) {
                Some(live) if quantities && is_same_amount(value, live) => true,
                Some(live) => covers(value, live, key),
                None => is_zero(value),
            }
        }),
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len()
                && wanted
                    .iter()
                    .zip(there)
                    .all(|(value, live)| covers(value, live, ""))
        }
        _ => desired == live || (is_zero(desired) && is_zero(live)),
    }
}

fn is_same_amount(one: &Value, other: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::String(text) => Amount::parse(text).ok(),
        Value::Number(number) => Amount::parse(&number.to_string()).ok(),
        _ => None,
    };
    amount(one).is_some_and(|amount_of_one| Some(amount_of_one) == amount(other))
}

/// Whether the API server may leave a value out when it writes an object.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
    }
}
