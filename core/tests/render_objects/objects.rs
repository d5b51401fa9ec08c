//! What each object is.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState, Ordinal};
use wellcake_core::render::routed_pod;
use wellcake_crds::annotations::APPLIED_HASH;

use crate::cases::*;

#[test]
fn each_topology_has_its_objects_and_every_name_can_be_looked_up() {
    let names = [
        "web-acl",
        "web-headless",
        "web-replicas",
        "web",
        "web-primary",
        "web",
        "web-pdb",
    ];
    let kinds = Object::ALL
        .into_iter()
        .filter(|kind| *kind != Object::Config);
    for (kind, wanted) in kinds.zip(names) {
        for topology in ["Standalone", "Replication"] {
            let spec = json!({ "topology": topology });
            assert_eq!(named(kind, spec.clone()), wanted);
            let object = rendered(kind, spec);
            let roles = matches!(
                kind,
                Object::ReplicasService | Object::PrimaryService | Object::DisruptionBudget
            );
            let there = kind != Object::Credentials && (topology == "Replication" || !roles);
            assert_eq!(object.is_some(), there, "{kind:?} {topology}");
            if let Some(object) = object {
                assert_eq!(object["metadata"]["name"], wanted);
            }
        }
    }
    assert_eq!(
        rendered(
            Object::DisruptionBudget,
            json!({ "podDisruptionBudget": { "enabled": false } })
        ),
        None
    );
}

#[test]
fn every_object_has_labels_its_owner_and_a_hash_and_the_same_bytes_each_time() {
    let full = json!({
        "resources": { "limits": { "memory": "1Gi" } },
        "config": { "timeout": "60", "hz": "20" },
        "nodeSelector": { "b": "1", "a": "2" },
    });
    for kind in Object::ALL
        .into_iter()
        .filter(|kind| *kind != Object::Credentials)
    {
        let object = must(kind, full.clone());
        assert_eq!(object.to_string(), must(kind, full.clone()).to_string());
        let meta = &object["metadata"];
        assert_eq!(meta["namespace"], "shop");
        assert_eq!(
            meta["labels"]["app.kubernetes.io/managed-by"],
            "valkey-operator"
        );
        assert_eq!(
            meta["labels"]["app.kubernetes.io/part-of"],
            "valkey-operator"
        );
        let owner = json!([{
            "apiVersion": "cache.wellcake.io/v1beta1",
            "kind": "ValkeyCluster",
            "name": "web",
            "uid": UID,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
        assert_eq!(meta["ownerReferences"], owner);
        assert_eq!(
            meta["annotations"][APPLIED_HASH].as_str().map(str::len),
            Some(64),
            "{kind:?}"
        );
        assert_eq!(
            state(kind, full.clone(), &stored(object)),
            Some(ObjectState::Matches),
            "{kind:?}"
        );
    }
}

#[test]
fn client_services_name_one_pod_and_their_hash_does_not() {
    for kind in [Object::ClientService, Object::PrimaryService] {
        let (first, second) = (
            must(kind, json!({})),
            routed_to(kind, json!({}), 2).expect("wanted"),
        );
        let mut selector = base();
        selector["statefulset.kubernetes.io/pod-name"] = json!("web-2");
        assert_eq!(second["spec"]["selector"], selector);
        assert_eq!(second["spec"]["publishNotReadyAddresses"], json!(true));
        assert_eq!(routed_pod(&second, &name()), Some(Ordinal(2)));
        assert_eq!(
            first["metadata"]["annotations"],
            second["metadata"]["annotations"]
        );
        assert_eq!(
            state(kind, json!({}), &stored(second)),
            Some(ObjectState::Differs)
        );
    }
    let replicas = must(Object::ReplicasService, json!({}));
    let mut selector = base();
    selector["valkey.wellcake.io/role"] = json!("replica");
    assert_eq!(replicas["spec"]["selector"], selector);
    assert_eq!(replicas["spec"]["publishNotReadyAddresses"], json!(false));
    assert_eq!(routed_pod(&replicas, &name()), None);
    let headless = must(Object::HeadlessService, json!({}));
    assert_eq!(
        (
            &headless["spec"]["clusterIP"],
            &headless["spec"]["selector"]
        ),
        (&json!("None"), &base())
    );
}

#[test]
fn pods_run_the_server_itself_with_little_rights() {
    let set = must(Object::StatefulSet, json!({}));
    assert_eq!(set["spec"]["podManagementPolicy"], "Parallel");
    assert_eq!(set["spec"]["updateStrategy"], json!({ "type": "OnDelete" }));
    assert_eq!(
        (&set["spec"]["replicas"], &set["spec"]["serviceName"]),
        (&json!(3), &json!("web-headless"))
    );
    assert_eq!(set["spec"]["selector"]["matchLabels"], base());
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], json!(false));
    assert_eq!(pod["terminationGracePeriodSeconds"], json!(25));
    assert_eq!(pod.get("initContainers"), None);
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["command"], &container["args"]),
        (
            &json!(["valkey-server"]),
            &json!(["/etc/valkey/valkey.conf"])
        )
    );
    assert_eq!(
        container["readinessProbe"]["tcpSocket"]["port"],
        json!(6379)
    );
    assert_eq!(
        (
            container.get("livenessProbe"),
            container.get("startupProbe")
        ),
        (None, None)
    );
    assert_eq!(
        container["securityContext"]["readOnlyRootFilesystem"],
        json!(true)
    );
    assert_eq!(
        container["securityContext"]["capabilities"]["drop"],
        json!(["ALL"])
    );
    assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true));
    let given = pod_spec(json!({
        "podSecurityContext": { "runAsUser": 7 },
        "containerSecurityContext": { "privileged": false },
    }));
    assert_eq!(given["securityContext"], json!({ "runAsUser": 7 }));
    assert_eq!(
        given["containers"][0]["securityContext"],
        json!({ "privileged": false })
    );
}

#[test]
fn data_is_on_claims_or_in_memory() {
    let claims =
        |spec: Value| must(Object::StatefulSet, spec)["spec"]["volumeClaimTemplates"].clone();
    let disk = claims(json!({ "profile": "Durable" }));
    assert_eq!(disk[0]["metadata"]["name"], "data");
    assert_eq!(disk[0]["spec"]["resources"]["requests"]["storage"], "10Gi");
    assert_eq!(disk[0]["spec"].get("storageClassName"), None);
    let class = claims(json!({ "storage": { "storageClassName": "", "size": "2Gi" } }));
    assert_eq!(class[0]["spec"]["storageClassName"], "");
    let memory = json!({ "storage": { "medium": "Memory", "size": "64Mi" } });
    assert_eq!(claims(memory.clone()), Value::Null);
    let volume = json!({ "name": "data", "emptyDir": { "medium": "Memory", "sizeLimit": "64Mi" } });
    assert!(
        pod_spec(memory)["volumes"]
            .as_array()
            .expect("a list")
            .contains(&volume)
    );
}

#[test]
fn a_budget_is_what_the_spec_says() {
    let body = |spec: Value| must(Object::DisruptionBudget, spec)["spec"].clone();
    assert_eq!(body(json!({}))["maxUnavailable"], json!(1));
    let fewest = body(json!({ "podDisruptionBudget": { "minAvailable": "50%" } }));
    assert_eq!(
        (&fewest["minAvailable"], fewest.get("maxUnavailable")),
        (&json!("50%"), None)
    );
    assert_eq!(fewest["selector"]["matchLabels"], base());
}

#[test]
fn the_only_pod_has_no_budget_and_a_pod_that_is_not_ready_can_always_be_evicted() {
    let of = |spec: Value| rendered(Object::DisruptionBudget, spec);
    assert_eq!(of(json!({ "replicas": 1 })), None);
    assert_eq!(of(json!({ "topology": "Standalone" })), None);
    let budget = of(json!({ "replicas": 2 })).expect("wanted");
    assert_eq!(
        budget["spec"]["unhealthyPodEvictionPolicy"],
        json!("AlwaysAllow")
    );
}

#[test]
fn a_server_has_time_to_write_a_snapshot_where_that_is_all_that_is_kept() {
    let grace = |spec: Value| {
        let set = must(Object::StatefulSet, json!({ "storage": spec }));
        set["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].clone()
    };
    assert_eq!(grace(json!({ "mode": "rdb" })), json!(120));
    for mode in ["none", "aof", "both"] {
        assert_eq!(grace(json!({ "mode": mode })), json!(25), "{mode}");
    }
}
