//! Rendered objects, and how live objects stand to them.

// Lints see tests only in functions marked as such, not in their helpers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState, Ordinal};
use wellcake_core::render::{
    self, ACL_KEY, OPERATOR_PASSWORD_KEY, Owner, PASSWORD_KEY, REPLICATION_CONFIG_KEY,
    REPLICATION_PASSWORD_KEY, compare, credentials, name_of, object, password_matches, routed_pod,
    source,
};
use wellcake_crds::annotations::{APPLIED_HASH, CONFIG_HASH};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

const UID: &str = "0b5c";

fn name() -> ClusterName {
    ClusterName::parse("web").expect("valid")
}

fn spec(value: Value) -> ValkeyClusterSpec {
    serde_json::from_value(value).expect("a spec")
}

fn rendered(kind: Object, spec_of: Value) -> Option<Value> {
    routed_to(kind, spec_of, 0)
}

fn routed_to(kind: Object, spec_of: Value, route: u8) -> Option<Value> {
    let name = name();
    let owner = Owner {
        name: &name,
        namespace: "shop",
        uid: UID,
    };
    object(kind, &owner, &spec(spec_of), Ordinal(route))
}

fn named(kind: Object, spec_of: Value) -> String {
    let name = name();
    name_of(
        kind,
        &Owner {
            name: &name,
            namespace: "shop",
            uid: UID,
        },
        &spec(spec_of),
    )
}

fn must(kind: Object, spec: Value) -> Value {
    rendered(kind, spec).expect("wanted")
}

fn pod_spec(spec: Value) -> Value {
    must(Object::StatefulSet, spec)["spec"]["template"]["spec"].clone()
}

fn base() -> Value {
    json!({
        "app.kubernetes.io/name": "valkey",
        "app.kubernetes.io/instance": "web",
        "app.kubernetes.io/component": "replication",
    })
}

fn state(kind: Object, desired: Value, live: &Value) -> Option<ObjectState> {
    compare(rendered(kind, desired).as_ref(), Some(live), UID)
}

/// What an object looks like after the API server filled in what it always does.
fn stored(object: Value) -> Value {
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
    assert_eq!(pod["terminationGracePeriodSeconds"], json!(30));
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
        container["lifecycle"]["preStop"]["sleep"]["seconds"],
        json!(5)
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
fn a_changed_configuration_gets_another_map_and_another_template() {
    let (plain, tuned) = (json!({}), json!({ "config": { "timeout": "60" } }));
    let map = must(Object::Config, tuned.clone());
    assert_eq!(map["immutable"], json!(true));
    assert_eq!(
        map["metadata"]["name"],
        named(Object::Config, tuned.clone())
    );
    assert_ne!(
        named(Object::Config, plain.clone()),
        named(Object::Config, tuned.clone())
    );
    assert!(
        map["data"]["valkey.conf"]
            .as_str()
            .expect("a text")
            .ends_with("\ntimeout 60\n")
    );
    let set = must(Object::StatefulSet, tuned.clone());
    let digest = set["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH]
        .as_str()
        .expect("a digest");
    assert_eq!(
        named(Object::Config, tuned.clone()),
        format!("web-config-{digest}")
    );
    assert_eq!(
        pod_spec(tuned)["volumes"][0]["configMap"]["name"],
        format!("web-config-{digest}")
    );
}

#[test]
fn valkey_conf_is_deterministic_and_a_users_directive_replaces_the_operators() {
    let text = |value: Value| render::config(&spec(value));
    let default = text(json!({ "resources": { "limits": { "memory": "512Mi" } } }));
    let lines: Vec<_> = default.lines().collect();
    for line in [
        "port 6399",
        "replica-announce-port 6379",
        "replicaof 127.0.0.1 1",
        "include /etc/valkey/secret/replication.conf",
        "aclfile /etc/valkey/secret/users.acl",
        "bind * -::*",
        "dir /data",
        "appendonly no",
        "save \"\"",
        "rdb-del-sync-files yes",
        "repl-diskless-sync-delay 0",
        "maxmemory 322122547b",
        "maxmemory-policy allkeys-lru",
        "repl-backlog-size 33554432b",
    ] {
        assert_eq!(
            lines.iter().filter(|given| **given == line).count(),
            1,
            "{line}\n{default}"
        );
    }
    let standalone = text(json!({ "topology": "Standalone" }));
    assert!(standalone.starts_with("port 6379\n"), "{standalone}");
    for absent in [
        "replicaof",
        "include",
        "repl-",
        "min-replicas",
        "maxmemory ",
    ] {
        assert!(!standalone.contains(absent), "{absent}\n{standalone}");
    }
    let given = text(
        json!({ "config": { "maxmemory-policy": "volatile-ttl", "save": "", "notify-keyspace-events": "" } }),
    );
    assert!(
        given
            .ends_with("\nmaxmemory-policy volatile-ttl\nnotify-keyspace-events \"\"\nsave \"\"\n"),
        "{given}"
    );
    assert!(!given.contains("allkeys-lru"));
    let one_save = given
        .lines()
        .filter(|line| line.starts_with("save "))
        .count();
    assert_eq!(one_save, 1);
}

#[test]
fn the_backlog_stays_within_its_bounds() {
    let backlog = |memory: &str| {
        let text = render::config(&spec(
            json!({ "resources": { "limits": { "memory": memory } } }),
        ));
        text.lines()
            .find_map(|line| line.strip_prefix("repl-backlog-size ").map(str::to_owned))
    };
    assert_eq!(backlog("64Mi").as_deref(), Some("16777216b"));
    assert_eq!(backlog("2Gi").as_deref(), Some("134217728b"));
    assert_eq!(backlog("64Gi").as_deref(), Some("268435456b"));
    assert_eq!(backlog("0"), None);
    assert_eq!(backlog("nonsense"), None);
}

#[test]
fn log_formats_are_written_for_servers_that_know_them() {
    let has = |image: &str| {
        render::config(&spec(
            json!({ "image": image, "logging": { "format": "json" } }),
        ))
        .contains("log-format json\n")
    };
    assert!(has("valkey/valkey:9.1") && has("valkey/valkey:10.0"));
    assert!(!has("valkey/valkey:8.1") && !has("valkey/valkey:latest"));
}

#[test]
fn an_object_of_somebody_else_is_foreign_where_its_name_is_needed() {
    let mut live = stored(must(Object::ClientService, json!({})));
    live["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Foreign)
    );
    assert_eq!(
        compare(None, Some(&live), UID),
        Some(ObjectState::NotWanted)
    );
    live["metadata"]["ownerReferences"][0]["uid"] = json!(UID);
    live["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Foreign)
    );
    assert_eq!(
        state(Object::ClientService, json!({}), &json!({})),
        Some(ObjectState::Foreign)
    );
}

#[test]
fn absent_superfluous_and_not_wanted_are_told_apart() {
    let wanted = must(Object::ReplicasService, json!({}));
    assert_eq!(compare(Some(&wanted), None, UID), None);
    assert_eq!(compare(None, None, UID), Some(ObjectState::NotWanted));
    assert_eq!(
        compare(None, Some(&wanted), UID),
        Some(ObjectState::Superfluous)
    );
}

#[test]
fn what_others_changed_differs_and_what_they_added_does_not() {
    let live = stored(must(Object::HeadlessService, json!({})));
    let changed = |path: &str, value: Value| {
        let mut live = live.clone();
        *live.pointer_mut(path).expect(path) = value;
        state(Object::HeadlessService, json!({}), &live)
    };
    let differs = Some(ObjectState::Differs);
    assert_eq!(changed("/spec/ports/0/port", json!(1)), differs);
    assert_eq!(changed("/spec/ports", json!([])), differs);
    assert_eq!(
        changed("/spec/publishNotReadyAddresses", json!(false)),
        differs
    );
    assert_eq!(changed("/metadata/labels", json!({})), differs);
    assert_eq!(changed("/spec/selector", Value::Null), differs);
    let mut more = live.clone();
    more["metadata"]["labels"]["team"] = json!("shop");
    more["metadata"]["annotations"]["note"] = json!("x");
    assert_eq!(
        state(Object::HeadlessService, json!({}), &more),
        Some(ObjectState::Matches)
    );
}

#[test]
fn more_pods_can_be_applied_and_everything_about_a_pod_needs_a_roll() {
    let live = stored(must(Object::StatefulSet, json!({ "replicas": 3 })));
    let to = |spec: Value| state(Object::StatefulSet, spec, &live);
    assert_eq!(to(json!({ "replicas": 3 })), Some(ObjectState::Matches));
    assert_eq!(to(json!({ "replicas": 5 })), Some(ObjectState::Differs));
    for needs_roll in [
        json!({ "replicas": 2 }),
        json!({ "image": "valkey/valkey:8.1" }),
        json!({ "replicas": 5, "image": "valkey/valkey:8.1" }),
        json!({ "config": { "timeout": "60" } }),
        json!({ "storage": { "size": "5Gi", "mode": "none" } }),
        json!({ "nodeSelector": { "disk": "fast" } }),
        json!({ "resources": { "limits": { "cpu": "1" } } }),
    ] {
        assert_eq!(
            to(needs_roll.clone()),
            Some(ObjectState::NeedsRoll),
            "{needs_roll}"
        );
    }
    let mut drifted = live.clone();
    drifted["spec"]["updateStrategy"] = json!({ "type": "RollingUpdate" });
    assert_eq!(
        state(Object::StatefulSet, json!({}), &drifted),
        Some(ObjectState::Differs)
    );
    drifted["metadata"]["annotations"] = json!({});
    assert_eq!(
        state(Object::StatefulSet, json!({}), &drifted),
        Some(ObjectState::Differs)
    );
}

#[test]
fn the_client_service_of_another_operator_of_this_api_is_foreign() {
    let mut live = stored(must(Object::ClientService, json!({})));
    live["metadata"]["annotations"] = json!({});
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Differs)
    );
    live["spec"]["selector"] = json!({ "app.kubernetes.io/instance": "web" });
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Foreign)
    );
}

#[test]
fn a_field_taken_out_of_the_spec_is_seen() {
    let live = stored(must(
        Object::StatefulSet,
        json!({ "nodeSelector": { "disk": "fast" } }),
    ));
    assert_eq!(
        state(Object::StatefulSet, json!({}), &live),
        Some(ObjectState::NeedsRoll)
    );
    let budget = |spec: Value| {
        must(
            Object::DisruptionBudget,
            json!({ "podDisruptionBudget": spec }),
        )
    };
    let live = stored(budget(json!({ "minAvailable": 1 })));
    assert_eq!(
        state(Object::DisruptionBudget, json!({}), &live),
        Some(ObjectState::Differs)
    );
}

#[test]
fn quantities_are_compared_by_value() {
    let desired = json!({ "resources": { "limits": { "memory": "1024Mi", "cpu": "0.5" }, "requests": { "cpu": "1000m" } } });
    let mut live = stored(must(Object::StatefulSet, desired.clone()));
    live["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "limits": { "memory": "1Gi", "cpu": "500m" }, "requests": { "cpu": "1" } });
    live["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] =
        json!("1024Mi");
    assert_eq!(
        state(Object::StatefulSet, desired.clone(), &live),
        Some(ObjectState::Matches)
    );
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] =
        json!("1G");
    assert_eq!(
        state(Object::StatefulSet, desired, &live),
        Some(ObjectState::NeedsRoll)
    );
}

/// The text under a key of a Secret.
fn entry(secret: &Value, key: &str) -> Option<String> {
    use base64::Engine;
    let bytes =
        base64::engine::general_purpose::STANDARD.decode(secret["data"].get(key)?.as_str()?);
    Some(String::from_utf8(bytes.expect("base64")).expect("text"))
}

#[test]
fn secrets_hold_hashes_for_the_servers_and_passwords_for_those_who_need_them() {
    let (name, spec) = (name(), spec(json!({})));
    let owner = Owner {
        name: &name,
        namespace: "shop",
        uid: UID,
    };
    let auth = render::auth_secret(&owner, &spec, "s3cret");
    assert_eq!(auth["metadata"]["name"], "web-auth");
    assert_eq!(entry(&auth, PASSWORD_KEY).as_deref(), Some("s3cret"));

    let acl = render::acl_secret(
        &owner,
        &spec,
        Some("s3cret"),
        "op",
        "rep",
        Some(("u1", "9")),
    );
    assert_eq!(acl["metadata"]["name"], "web-acl");
    assert_eq!(source(&acl), Some(("u1", "9")));
    let file = entry(&acl, ACL_KEY).expect("a file");
    assert_eq!(file.lines().count(), 3);
    assert!(
        !file.contains("s3cret") && !file.contains("nopass"),
        "{file}"
    );
    assert_eq!(entry(&acl, OPERATOR_PASSWORD_KEY).as_deref(), Some("op"));
    assert_eq!(
        entry(&acl, REPLICATION_PASSWORD_KEY).as_deref(),
        Some("rep")
    );
    let replication = "masteruser replicator\nmasterauth \"rep\"\n";
    assert_eq!(
        entry(&acl, REPLICATION_CONFIG_KEY).as_deref(),
        Some(replication)
    );
    assert_eq!(password_matches(&acl, "s3cret"), Some(true));
    assert_eq!(password_matches(&acl, "other"), Some(false));
    assert_eq!(password_matches(&json!({}), "s3cret"), None);

    assert_eq!(credentials(None, UID), None);
    assert_eq!(credentials(Some(&acl), UID), Some(ObjectState::Matches));
    assert_eq!(
        credentials(Some(&acl), "another"),
        Some(ObjectState::Foreign)
    );
    let config = render::config(&spec);
    assert!(!config.contains("masterauth") && !config.contains("requirepass"));
}
