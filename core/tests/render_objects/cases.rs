//! Specs, and the objects that are rendered from them.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState, Ordinal};
use wellcake_core::render::{Owner, compare, name_of, object};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

pub const UID: &str = "0b5c";

pub fn name() -> ClusterName {
    ClusterName::parse("web").expect("valid")
}

pub fn spec(value: Value) -> ValkeyClusterSpec {
    serde_json::from_value(value).expect("a spec")
}

pub fn rendered(kind: Object, spec_of: Value) -> Option<Value> {
    routed_to(kind, spec_of, 0)
}

pub fn routed_to(kind: Object, spec_of: Value, route: u8) -> Option<Value> {
    let name = name();
    let owner = Owner {
        name: &name,
        namespace: "shop",
        uid: UID,
        restart: None,
        asleep: false,
    };
    object(kind, &owner, &spec(spec_of), Ordinal(route))
}

pub fn restarted(kind: Object, restart: Option<&str>) -> Option<Value> {
    let name = name();
    let owner = Owner {
        name: &name,
        namespace: "shop",
        uid: UID,
        restart,
        asleep: false,
    };
    object(kind, &owner, &spec(json!({})), Ordinal(0))
}

pub fn named(kind: Object, spec_of: Value) -> String {
    let name = name();
    name_of(
        kind,
        &Owner {
            name: &name,
            namespace: "shop",
            uid: UID,
            restart: None,
            asleep: false,
        },
        &spec(spec_of),
    )
}

pub fn must(kind: Object, spec: Value) -> Value {
    rendered(kind, spec).expect("wanted")
}

pub fn pod_spec(spec: Value) -> Value {
    must(Object::StatefulSet, spec)["spec"]["template"]["spec"].clone()
}

pub fn base() -> Value {
    json!({
        "app.kubernetes.io/name": "valkey",
        "app.kubernetes.io/instance": "web",
        "app.kubernetes.io/component": "replication",
    })
}

pub fn state(kind: Object, desired: Value, live: &Value) -> Option<ObjectState> {
    compare(rendered(kind, desired).as_ref(), Some(live), UID)
}

/// What an object looks like after the API server filled in what it always does.
pub fn stored(object: Value) -> Value {
    let mut live = object;
    live["metadata"]["uid"] = json!("x");
    live["metadata"]["resourceVersion"] = json!("17");
    live["metadata"]["managedFields"] = json!([{ "manager": "valkey-operator" }]);
    live["status"] = json!({ "replicas": 3 });
    match live["kind"].as_str().expect("a kind") {
        "Service" => {
            live["spec"]["sessionAffinity"] = json!("None");
            live["spec"]["internalTrafficPolicy"] = json!("Cluster");
            live["spec"]["ipFamilies"] = json!(["IPv4"]);
            if live["spec"]["publishNotReadyAddresses"] == json!(false) {
                live["spec"]
                    .as_object_mut()
                    .expect("a map")
                    .remove("publishNotReadyAddresses");
            }
        }
        "StatefulSet" => {
            live["spec"]["revisionHistoryLimit"] = json!(10);
            let pod = &mut live["spec"]["template"]["spec"];
            pod["dnsPolicy"] = json!("ClusterFirst");
            pod["volumes"][0]["configMap"]["defaultMode"] = json!(420);
            pod["containers"][0]["readinessProbe"]["successThreshold"] = json!(1);
            pod["containers"][0]["terminationMessagePath"] = json!("/dev/termination-log");
            if let Some(claim) = live["spec"]
                .get_mut("volumeClaimTemplates")
                .and_then(|list| list.get_mut(0))
            {
                claim["spec"]["volumeMode"] = json!("Filesystem");
                claim["status"] = json!({ "phase": "Pending" });
            }
        }
        _ => {}
    }
    live
}
