//! A StatefulSet whose pods keep an earlier configuration, since a server did not start with the one that is asked for.

use serde_json::{Value, json};
use wellcake_crds::annotations::{CONFIG_HASH, REFUSED_CONFIG};
use wellcake_crds::names::ClusterName;

const NOTES: &str = "/metadata/annotations";
const TEMPLATE_NOTES: &str = "/spec/template/metadata/annotations";
const VOLUMES: &str = "/spec/template/spec/volumes";

/// Digest of the configuration that pods are made with.
pub fn config_of(stateful_set: &Value) -> Option<&str> {
    stateful_set
        .pointer(TEMPLATE_NOTES)?
        .get(CONFIG_HASH)?
        .as_str()
}

/// Digest of the configuration that was refused, and what the server said.
pub fn refused_config(stateful_set: &Value) -> Option<(&str, &str)> {
    let note = stateful_set.pointer(NOTES)?.get(REFUSED_CONFIG)?.as_str()?;
    Some(note.split_once(' ').unwrap_or((note, "")))
}

/// The StatefulSet with the configuration `good` instead of its own, on which is noted that that was refused and what the server
/// `said`.
pub fn go_back(desired: &Value, name: &ClusterName, good: &str, said: &str) -> Value {
    let mut applied = desired.clone();
    let refused = config_of(desired).unwrap_or_default();
    let note = format!("{refused} {said}");
    let volume = json!({ "name": name.config_revision(good) });
    put(&mut applied, good, &note, &volume);
    applied
}

/// Has `applied` keep the configuration of the live StatefulSet if what it asks for was refused.
pub fn keep(applied: &mut Value, live: &Value) {
    let refused = refused_config(live).filter(|(digest, _)| config_of(applied) == Some(*digest));
    let (Some((digest, said)), Some(good)) = (refused, config_of(live)) else {
        return;
    };
    let note = format!("{digest} {said}");
    let Some(volume) = config_volume(live).cloned() else {
        return;
    };
    let good = good.to_owned();
    put(applied, &good, &note, &volume);
}

fn config_volume(stateful_set: &Value) -> Option<&Value> {
    let volumes = stateful_set.pointer(VOLUMES)?.as_array()?;
    volumes.iter().find_map(|volume| volume.get("configMap"))
}

fn put(stateful_set: &mut Value, digest: &str, note: &str, volume: &Value) {
    let mut set = |pointer: &str, key: &str, value: Value| {
        if let Some(map) = stateful_set
            .pointer_mut(pointer)
            .and_then(Value::as_object_mut)
        {
            map.insert(key.to_owned(), value);
        }
    };
    set(NOTES, REFUSED_CONFIG, json!(note));
    set(TEMPLATE_NOTES, CONFIG_HASH, json!(digest));
    let volumes = stateful_set
        .pointer_mut(VOLUMES)
        .and_then(Value::as_array_mut);
    for config in volumes.into_iter().flatten() {
        if let Some(config) = config.get_mut("configMap") {
            // Only the name is ours: what the API server added is the same for each.
            if let (Some(config), Some(name)) = (config.as_object_mut(), volume.get("name")) {
                config.insert("name".to_owned(), name.clone());
            }
        }
    }
}
