//! Objects that tests offer.

use serde_json::{Value, json};

/// A ValkeyCluster with this spec, named `web`.
pub fn cluster(version: &str, spec: Value) -> Value {
    named(version, "ValkeyCluster", "web", spec)
}

/// A ValkeyACL with this spec, named `web-users`.
pub fn acl(version: &str, spec: Value) -> Value {
    named(version, "ValkeyACL", "web-users", spec)
}

/// An object of the group.
pub fn named(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("cache.wellcake.io/{version}"),
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// The same object, made so that an operator can start nothing for it: one pod that fits on no node.
pub fn parked(mut object: Value) -> Value {
    if object["kind"] == "ValkeyCluster" {
        let spec = object["spec"].as_object_mut().expect("a spec is an object");
        spec.entry("nodeSelector")
            .or_insert(json!({"crd-tests.invalid/nowhere": "true"}));
        spec.entry("replicas").or_insert(json!(1));
        spec.entry("imagePullPolicy").or_insert(json!("Never"));
    }
    object
}

/// Where snapshots of tests go.
pub fn s3() -> Value {
    json!({"bucket": "b", "credentialsSecret": "s3"})
}

/// Lays the second value over the first, object by object.
pub fn merged(mut base: Value, over: Value) -> Value {
    match (&mut base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                let old = base.remove(&key).unwrap_or(Value::Null);
                base.insert(key, merged(old, value));
            }
        }
        (base, over) => *base = over,
    }
    base
}
