//! Pods are not replaced because the operator was: a pod template that is another one although nobody asked for another waits
//! until somebody does.

use serde_json::{Map, Value, json};
use wellcake_crds::annotations::{APPLIED_HASH, ASKED_FOR};
use wellcake_crds::v1beta1::ValkeyClusterSpec;

use super::Owner;
use super::adoption::has_other_template;
use super::compare::covers;
use super::directives::is_live;
use super::hash::value_hash;
use super::metadata::applied_hash_of;

const NOTES: &str = "/metadata/annotations";
const TEMPLATE: &str = "/spec/template";

/// Fields of the spec that say nothing of a single pod: another value of theirs changes no StatefulSet but for `replicas`.
const OF_NO_POD: [&str; 5] = [
    "autoReshard",
    "backup",
    "networkPolicy",
    "podDisruptionBudget",
    "replicas",
];

/// Digest of all that a person asked for and that a pod template may depend on.
pub fn asked_for(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> String {
    let mut asked = serde_json::to_value(spec).unwrap_or_default();
    if let Some(asked) = asked.as_object_mut() {
        for field in OF_NO_POD {
            asked.remove(field);
        }
        let config = spec
            .config
            .iter()
            .filter(|(key, value)| !is_live(key, value));
        let config: Map<String, Value> = config
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        asked.insert("config".to_owned(), Value::Object(config));
    }
    let digest = value_hash(&json!([asked, owner.restart]));
    digest.chars().take(10).collect()
}

/// Whether the live StatefulSet has the template of an operator of another version, for what is still asked for.
pub fn waits(desired: &Value, live: &Value) -> bool {
    let asked = |object: &Value| {
        let notes = object.pointer(NOTES)?;
        notes.get(ASKED_FOR)?.as_str().map(str::to_owned)
    };
    let same_asked = asked(desired).is_some() && asked(desired) == asked(live);
    // A template that somebody else changed has the hash of what was applied here.
    let other_hash = applied_hash_of(desired) != applied_hash_of(live);
    let same_template = match (desired.pointer(TEMPLATE), live.pointer(TEMPLATE)) {
        (Some(desired), Some(live)) => covers(desired, live, ""),
        _ => true,
    };
    // What another operator's template waits for is another matter.
    same_asked && other_hash && !same_template && !has_other_template(live)
}

/// Has `applied` keep the template of the live StatefulSet while another one waits.
pub fn keep(applied: &mut Value, live: &Value) {
    if !waits(applied, live) {
        return;
    }
    if let (Some(template), Some(kept)) = (applied.pointer_mut(TEMPLATE), live.pointer(TEMPLATE)) {
        *template = kept.clone();
    }
    let notes = applied.pointer_mut(NOTES).and_then(Value::as_object_mut);
    if let (Some(notes), Some(hash)) = (notes, applied_hash_of(live)) {
        notes.insert(APPLIED_HASH.to_owned(), json!(hash));
    }
}
