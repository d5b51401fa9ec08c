//! Objects of another operator of this API: how they are told from ours, and what of them is kept when they are taken over.
//!
//! That operator gives its objects the same names, labels and controller reference. What differs are its selectors, which name
//! two labels more, and its pod template, which starts the server with a file that an init container writes.

use serde_json::{Map, Value, json};
use wellcake_crds::{annotations, labels};

use super::SERVER;
use super::metadata::applied_hash_of;
use crate::facts::ObjectState;
use crate::parse::OTHER_CONFIG;

/// Parts of a StatefulSet that stay as they are while its template is kept.
const KEPT: [&str; 5] = [
    "template",
    "volumeClaimTemplates",
    "selector",
    "serviceName",
    "podManagementPolicy",
];
/// Of these the parts that Kubernetes never allows to be changed.
const PINNED: [&str; 4] = [
    "volumeClaimTemplates",
    "selector",
    "serviceName",
    "podManagementPolicy",
];

/// How a Service or a PodDisruptionBudget stands that has the selector of another operator; `None` for one that has not.
pub fn state_by_selector(live: &Value) -> Option<ObjectState> {
    let selector = live.pointer("/spec/selector")?;
    let labels_of = selector.get("matchLabels").unwrap_or(selector);
    labels_of.get(labels::PART_OF)?;
    Some(if applied_hash_of(live).is_some() {
        ObjectState::TakenBack
    } else {
        ObjectState::Theirs
    })
}

/// Whether the pod template of a StatefulSet is that of another operator.
pub fn has_other_template(live: &Value) -> bool {
    let containers = live
        .pointer("/spec/template/spec/containers")
        .and_then(Value::as_array);
    let starts_with = |container: &Value| {
        let first = container.pointer("/args/0").and_then(Value::as_str);
        let named = container.get("name").and_then(Value::as_str) == Some(SERVER);
        named && first.is_some_and(|file| file.ends_with(OTHER_CONFIG))
    };
    containers.into_iter().flatten().any(starts_with)
}

/// Whether a StatefulSet was taken over with the template that it had.
pub fn is_taken(live: &Value) -> bool {
    note_of(live, "/metadata/annotations", annotations::KEPT_TEMPLATE).is_some()
}

/// Whether a StatefulSet keeps the template of another operator: it has pods of it, or was not taken over, and no restart was
/// asked for that its pods were not made for.
fn keeps_template(desired: &Value, live: &Value) -> bool {
    let replicas = live.pointer("/spec/replicas").and_then(Value::as_u64);
    let without_pods = is_taken(live) && replicas == Some(0);
    has_other_template(live) && !without_pods && !is_roll_asked(desired, live)
}

/// Whether a restart is asked for that the live template was not made for.
pub fn is_roll_asked(desired: &Value, live: &Value) -> bool {
    let token = |object| {
        let annotations = "/spec/template/metadata/annotations";
        note_of(object, annotations, annotations::RESTARTED_AT)
    };
    // One that has not been taken over is taken as it is first.
    let asked = token(desired);
    is_taken(live) && asked.is_some() && asked != token(live)
}

fn note_of<'a>(object: &'a Value, annotations: &str, key: &str) -> Option<&'a str> {
    object.pointer(annotations)?.get(key)?.as_str()
}

/// What `applied` has to take over from the live StatefulSet: all that pods are made from while the template is kept, and what
/// cannot be changed where another operator made it.
pub fn keep(applied: &mut Value, live: &Value) {
    let keeps = keeps_template(applied, live);
    let parts: &[&str] = match (keeps, has_other_selector(live)) {
        (true, _) => &KEPT,
        (false, true) => &PINNED,
        (false, false) => return,
    };
    if let Some(spec) = applied.get_mut("spec").and_then(Value::as_object_mut) {
        for part in parts {
            match live.get("spec").and_then(|spec| spec.get(*part)) {
                Some(value) => spec.insert((*part).to_owned(), value.clone()),
                None => spec.remove(*part),
            };
        }
    }
    let notes = applied
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut);
    if let Some(notes) = notes.filter(|_| keeps) {
        notes.insert(annotations::KEPT_TEMPLATE.to_owned(), json!("true"));
        // They speak of a template that is not applied.
        for note in [annotations::APPLIED_HASH, annotations::ASKED_FOR] {
            if let Some(kept) = note_of(live, "/metadata/annotations", note) {
                notes.insert(note.to_owned(), json!(kept));
            }
        }
    }
}

/// Whether the selector of a StatefulSet is that of another operator; it stays for ever.
fn has_other_selector(live: &Value) -> bool {
    let selector = live.pointer("/spec/selector/matchLabels");
    selector.is_some_and(|all| all.get(labels::PART_OF).is_some())
}

/// The managed fields of an object as they must be for an apply of `manager` to take away what it does not name: what any other
/// manager set by updates becomes what `manager` applied. Entries of a subresource, as of controllers, stay. `None` when there is
/// nothing to change.
pub fn managed_fields(live: &[Value], manager: &str) -> Option<Vec<Value>> {
    let text = |entry: &Value, key: &str| {
        let value = entry.get(key).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let is_updated = |entry: &Value| {
        text(entry, "operation") == "Update" && text(entry, "subresource").is_empty()
    };
    let is_applied = |entry: &Value| {
        let ours = text(entry, "manager") == manager;
        text(entry, "operation") == "Apply" && ours && text(entry, "subresource").is_empty()
    };
    let merged = live.iter().filter(|it| is_updated(it) || is_applied(it));
    let newest = merged.clone().max_by_key(|entry| text(entry, "time"))?;
    if !live.iter().any(is_updated) {
        return None;
    }
    let mut fields = json!({});
    for entry in merged {
        unite(&mut fields, entry.get("fieldsV1").unwrap_or(&Value::Null));
    }
    let entry = json!({
        "manager": manager,
        "operation": "Apply",
        "apiVersion": newest.get("apiVersion"),
        "time": newest.get("time"),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    });
    let others = live.iter().filter(|it| !is_updated(it) && !is_applied(it));
    Some(std::iter::once(entry).chain(others.cloned()).collect())
}

/// Adds the keys of one set of fields to another, on every level.
fn unite(into: &mut Value, from: &Value) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else {
        return;
    };
    for (key, inner) in from {
        unite(
            into.entry(key.clone())
                .or_insert_with(|| Value::Object(Map::new())),
            inner,
        );
    }
}
