//! What all objects have in common: names, labels, the controller reference and the applied hash.

use serde_json::{Map, Value, json};
use wellcake_crds::v1beta1::{GROUP, ValkeyClusterSpec};
use wellcake_crds::{annotations, labels};

use super::Owner;
use super::hash::value_hash;

/// Name of the label by which the StatefulSet controller marks each pod with its own name
/// (<https://kubernetes.io/docs/reference/labels-annotations-taints/#statefulset-kubernetes-io-pod-name>).
pub const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";

/// Labels of every object and pod.
pub fn labels(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Map<String, Value> {
    let mut all = selector(owner, spec);
    all.insert(labels::PART_OF.to_owned(), json!(labels::OPERATOR));
    all.insert(labels::MANAGED_BY.to_owned(), json!(labels::OPERATOR));
    all
}

/// Labels that select the data pods. Selectors of a StatefulSet cannot be changed, so this set is fixed for ever.
pub fn selector(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Map<String, Value> {
    let table = [
        (labels::NAME, labels::NAME_VALKEY),
        (labels::INSTANCE, owner.name.as_str()),
        (labels::COMPONENT, spec.topology.as_component()),
    ];
    table
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect()
}

/// Metadata of an object.
pub fn metadata(owner: &Owner<'_>, spec: &ValkeyClusterSpec, name: &str) -> Value {
    json!({
        "name": name,
        "namespace": owner.namespace,
        "labels": labels(owner, spec),
        "ownerReferences": owner_references(owner),
    })
}

/// The reference by which Kubernetes deletes the object with its ValkeyCluster.
pub fn owner_references(owner: &Owner<'_>) -> Value {
    json!([{
        "apiVersion": format!("{GROUP}/v1beta1"),
        "kind": "ValkeyCluster",
        "name": owner.name.as_str(),
        "uid": owner.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// The object with the annotation that tells what it was made from.
///
/// A comparison with the live object alone cannot see a field that was taken out of the spec; a different hash can. For a
/// StatefulSet it covers what only new pods can follow, for a Service all but the pod that it names.
pub fn with_applied_hash(mut object: Value) -> Value {
    let hash = applied_hash(&object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let notes = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(notes) = notes.as_object_mut() {
            notes.insert(annotations::APPLIED_HASH.to_owned(), Value::String(hash));
        }
    }
    object
}

/// The applied hash that an object carries.
pub fn applied_hash_of(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(annotations::APPLIED_HASH)?
        .as_str()
}

fn applied_hash(object: &Value) -> String {
    if object.get("kind").and_then(Value::as_str) == Some("StatefulSet") {
        return value_hash(&super::compare::rolled_part(object));
    }
    let mut object = object.clone();
    if let Some(selector) = object
        .pointer_mut("/spec/selector")
        .and_then(Value::as_object_mut)
        && selector.contains_key(POD_NAME_LABEL)
    {
        selector.insert(POD_NAME_LABEL.to_owned(), Value::Null);
    }
    value_hash(&object)
}
