//! Objects of another operator of this API, with the fields that it gives them.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState};
use wellcake_core::render::{compare, managed_fields, over_live};

use crate::cases::*;

fn their_labels() -> Value {
    json!({
        "app.kubernetes.io/name": "valkey",
        "app.kubernetes.io/instance": "web",
        "app.kubernetes.io/component": "replication",
        "app.kubernetes.io/part-of": "valkey-operator",
        "app.kubernetes.io/managed-by": "valkey-operator",
    })
}

fn their_metadata(name: &str, annotations: Value) -> Value {
    json!({
        "name": name,
        "namespace": "shop",
        "labels": their_labels(),
        "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": "cache.wellcake.io/v1beta1", "kind": "ValkeyCluster", "name": "web", "uid": UID,
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

fn their_service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": their_metadata(name, json!({})),
        "spec": {
            "type": "ClusterIP",
            "selector": their_labels(),
            "ports": [{"name": "valkey", "port": 6379, "targetPort": 6379, "protocol": "TCP"}],
        },
    })
}

fn their_stateful_set() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": their_metadata("web", json!({"valkey.wellcake.io/applied-hash": "of another kind"})),
        "spec": {
            "replicas": 3,
            "serviceName": "web-headless",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "selector": {"matchLabels": their_labels()},
            "template": {
                "metadata": {
                    "labels": their_labels(),
                    "annotations": {"valkey.wellcake.io/config-hash": "0123456789abcdef"},
                },
                "spec": {
                    "initContainers": [{"name": "config-init", "image": "valkey/valkey:8.0", "command": ["/bin/sh", "-c", "cp"]}],
                    "containers": [{
                        "name": "valkey", "image": "valkey/valkey:8.0",
                        "command": ["valkey-server"], "args": ["/data/runtime.conf"],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": "web-config"}}],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data", "labels": their_labels()},
                "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                         "resources": {"requests": {"storage": "1Gi"}}},
                "status": {"phase": "Pending"},
            }],
        },
    })
}

/// The StatefulSet as it is after it was taken over.
fn taken() -> Value {
    applied(None)
}

/// The StatefulSet as it is when what is asked for was applied over it.
fn applied(restart: Option<&str>) -> Value {
    applied_over(&their_stateful_set(), restart)
}

fn applied_over(live: &Value, restart: Option<&str>) -> Value {
    let desired = restarted(Object::StatefulSet, restart).expect("rendered");
    over_live(&desired, Some(live), None)
}

fn state_of(live: &Value, restart: Option<&str>) -> Option<ObjectState> {
    let desired = restarted(Object::StatefulSet, restart).expect("rendered");
    compare(Some(&desired), Some(live), UID)
}

#[test]
fn their_objects_are_told_from_ours_and_from_anybodys() {
    let table = [
        (Object::HeadlessService, "web-headless"),
        (Object::ClientService, "web"),
        (Object::PrimaryService, "web-primary"),
        (Object::ReplicasService, "web-replicas"),
    ];
    for (object, name) in table {
        let mut live = their_service(name);
        let is = |live: &Value| state(object, json!({}), live);
        assert_eq!(is(&live), Some(ObjectState::Theirs), "{name}");
        live["metadata"]["annotations"]["valkey.wellcake.io/applied-hash"] = json!("ours");
        assert_eq!(is(&live), Some(ObjectState::TakenBack), "{name}");
        live["metadata"]["ownerReferences"][0]["uid"] = json!("another");
        assert_eq!(is(&live), Some(ObjectState::Foreign), "{name}");
        let ours = stored(must(object, json!({})));
        assert_eq!(is(&ours), Some(ObjectState::Matches), "{name}");
    }
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": their_metadata("web-pdb", json!({})),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": their_labels()}},
    });
    let is = state(Object::DisruptionBudget, json!({}), &budget);
    assert_eq!(is, Some(ObjectState::Theirs));
    let mut live = their_stateful_set();
    assert_eq!(state_of(&live, None), Some(ObjectState::Theirs));
    assert_eq!(state_of(&live, Some("a token")), Some(ObjectState::Theirs));
    live["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    assert_eq!(state_of(&live, None), Some(ObjectState::Foreign));
}

#[test]
fn the_first_apply_changes_nothing_that_pods_are_made_from() {
    let live = their_stateful_set();
    // Also when a restart was asked for before: it was the other operator's to serve.
    for restart in [None, Some("a token")] {
        let applied = applied(restart);
        for part in [
            "template",
            "selector",
            "serviceName",
            "podManagementPolicy",
            "volumeClaimTemplates",
            "replicas",
        ] {
            assert_eq!(applied["spec"][part], live["spec"][part], "{part}");
        }
        let strategy = json!({"type": "OnDelete"});
        assert_eq!(applied["spec"]["updateStrategy"], strategy);
        let notes = &applied["metadata"]["annotations"];
        assert_eq!(notes["valkey.wellcake.io/kept-template"], "true");
    }
}

#[test]
fn the_template_is_kept_until_a_restart_is_asked_for() {
    let live = taken();
    assert_eq!(state_of(&live, None), Some(ObjectState::Kept));
    assert_eq!(
        applied_over(&live, None)["spec"]["template"],
        live["spec"]["template"]
    );
    let asked = Some("a token");
    assert_eq!(state_of(&live, asked), Some(ObjectState::RollAsked));
    // One that their template was made for already is no new one.
    let mut served = live.clone();
    served["spec"]["template"]["metadata"]["annotations"]["valkey.wellcake.io/restarted-at"] =
        json!("a token");
    assert_eq!(state_of(&served, asked), Some(ObjectState::Kept));
    // Other changes of the spec are served with the template that is kept.
    let mut fewer = live.clone();
    fewer["spec"]["replicas"] = json!(2);
    assert_eq!(state_of(&fewer, None), Some(ObjectState::Differs));
    let more = applied_over(&fewer, None);
    assert_eq!(more["spec"]["replicas"], 3);
    assert_eq!(more["spec"]["template"], live["spec"]["template"]);
}

#[test]
fn the_roll_brings_our_template_and_keeps_what_kubernetes_does_not_let_go() {
    let live = taken();
    let rolled = applied_over(&live, Some("a token"));
    let spec = &rolled["spec"];
    let args = &spec["template"]["spec"]["containers"][0]["args"];
    assert_eq!(args, &json!(["/etc/valkey/valkey.conf"]));
    assert_eq!(spec["template"]["spec"]["initContainers"], Value::Null);
    for part in [
        "selector",
        "serviceName",
        "podManagementPolicy",
        "volumeClaimTemplates",
    ] {
        assert_eq!(spec[part], live["spec"][part], "{part}");
    }
    let notes = &rolled["metadata"]["annotations"];
    assert_eq!(notes["valkey.wellcake.io/kept-template"], Value::Null);
    // It stays like this, also when the request is taken back.
    let matches = Some(ObjectState::Matches);
    assert_eq!(state_of(&rolled, Some("a token")), matches);
    let template = |object: &Value| object["spec"]["template"].clone();
    assert_eq!(template(&applied_over(&rolled, None)), template(&rolled));
    assert_eq!(
        applied_over(&rolled, None)["spec"]["selector"],
        live["spec"]["selector"]
    );
}

#[test]
fn without_any_pod_of_it_their_template_is_not_kept() {
    let mut asleep = taken();
    asleep["spec"]["replicas"] = json!(0);
    assert_eq!(state_of(&asleep, None), Some(ObjectState::Differs));
    let woken = applied_over(&asleep, None);
    let args = &woken["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(args, &json!(["/etc/valkey/valkey.conf"]));
    // One that was not taken over is never changed like this.
    let mut theirs = their_stateful_set();
    theirs["spec"]["replicas"] = json!(0);
    assert_eq!(state_of(&theirs, None), Some(ObjectState::Theirs));
}

#[test]
fn what_others_set_by_updates_becomes_ours_and_controllers_keep_theirs() {
    let live = [
        json!({"manager": "manager", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
               "fieldsType": "FieldsV1",
               "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:initContainers": {}}}}}}),
        json!({"manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-02T00:00:00Z",
               "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}}}),
        json!({"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1",
               "subresource": "status", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}}),
    ];
    let owned = managed_fields(&live, "valkey-operator").expect("something to change");
    assert_eq!(owned.len(), 2);
    let ours = &owned[0];
    assert_eq!(
        (&ours["manager"], &ours["operation"]),
        (&json!("valkey-operator"), &json!("Apply"))
    );
    assert_eq!(ours["time"], "2026-01-02T00:00:00Z");
    let fields = json!({"f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:initContainers": {}, "f:containers": {}}},
    }});
    assert_eq!(ours["fieldsV1"], fields);
    assert_eq!(owned[1], live[2]);
    // Once is enough; what is applied beside it stays in the same entry.
    assert_eq!(managed_fields(&owned, "valkey-operator"), None);
    assert_eq!(managed_fields(&[], "valkey-operator"), None);
}
