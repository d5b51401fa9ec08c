//! Schema defaults as the server fills them in, and the effective defaults that follow.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use wellcake_crds::defaults::{self, Budget};
use wellcake_crds::schema;
use wellcake_crds::v1beta1::{
    StorageMedium, StorageMode, ValkeyACL, ValkeyCluster, ValkeyClusterSpec,
};

use crate::objects::{acl, cluster, s3};
use crate::server::{Server, VERSIONS, in_namespace};

/// Where each default stands and what it is.
fn filled_in() -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("spec.topology", json!("Replication")),
        ("spec.profile", json!("Cache")),
        ("spec.image", json!("valkey/valkey:8.0")),
        ("spec.imagePullPolicy", json!("IfNotPresent")),
        ("spec.replicas", json!(3)),
        ("spec.autoReshard", json!(true)),
        ("spec.sentinel.replicas", json!(3)),
        ("spec.storage.mode", json!("rdb")),
        ("spec.storage.medium", json!("Disk")),
        ("spec.auth.enabled", json!(true)),
        ("spec.tls.enabled", json!(false)),
        ("spec.tls.mutualTLS", json!(false)),
        ("spec.tls.issuerRef.kind", json!("Issuer")),
        ("spec.metrics.enabled", json!(false)),
        (
            "spec.metrics.image",
            json!("oliver006/redis_exporter:v1.62.0"),
        ),
        ("spec.metrics.serviceMonitor", json!(false)),
        ("spec.podDisruptionBudget.enabled", json!(true)),
        ("spec.networkPolicy.enabled", json!(false)),
        ("spec.backup.enabled", json!(false)),
        ("spec.backup.schedule", json!("0 3 * * *")),
        ("spec.backup.retention", json!(7)),
        ("spec.backup.awsCLIImage", json!("amazon/aws-cli:2.15.0")),
        ("spec.backup.s3.region", json!("us-east-1")),
        (
            "spec.restoreFrom.awsCLIImage",
            json!("amazon/aws-cli:2.15.0"),
        ),
        ("spec.restoreFrom.s3.region", json!("us-east-1")),
        ("spec.replicateFrom.port", json!(6379)),
        ("spec.replicateFrom.tls", json!(false)),
        ("spec.replicateFrom.passwordSecret.key", json!("password")),
        ("spec.replicateFrom.caSecret.key", json!("ca.crt")),
        ("spec.users[].rules", json!("off")),
        ("spec.users[].passwordSecret.key", json!("password")),
        ("status", json!({"observedGeneration": -1})),
    ])
}

#[test]
fn the_schema_has_these_defaults_and_no_others() {
    let mut found = BTreeMap::new();
    for definition in schema::definitions() {
        collect(
            &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            "",
            &mut found,
        );
    }
    let wanted: BTreeMap<String, Value> = filled_in()
        .into_iter()
        .map(|(path, value)| (path.to_owned(), value))
        .collect();
    // The only default inside a list of the status; statuses are written whole by the operator.
    found.remove("status.shardDetails[].replicaOffsets[].offset");
    assert_eq!(found, wanted);
}

fn collect(node: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    if let Some(default) = node.get("default") {
        found.insert(path.to_owned(), default.clone());
    }
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        let dot = if path.is_empty() { "" } else { "." };
        collect(child, &format!("{path}{dot}{name}"), found);
    }
    if let Some(items) = node.get("items") {
        collect(items, &format!("{path}[]"), found);
    }
}

#[tokio::test]
async fn the_server_fills_in_each_default_in_both_versions() {
    in_namespace("defaults", |server| async move {
        for version in VERSIONS {
            let bare = [
                json!({"storage": {}, "auth": {}, "tls": {"issuerRef": {"name": "ca"}}, "metrics": {},
                    "podDisruptionBudget": {}, "networkPolicy": {}, "backup": {"s3": s3()},
                    "restoreFrom": {"s3": s3(), "sourceKey": "k"},
                    "replicateFrom": {"host": "h", "passwordSecret": {"name": "p"}}}),
                json!({"topology": "Sentinel", "sentinel": {}}),
                json!({"tls": {"enabled": true}, "replicateFrom": {"host": "h", "tls": true, "caSecret": {"name": "c"}}}),
            ];
            let mut answers = Vec::new();
            for spec in bare {
                answers.push(server.offer(&cluster(version, spec)).await.expect("accepted"));
            }
            let users = json!({"clusterRef": {"name": "web"}, "users": [{"name": "a", "passwordSecret": {"name": "p"}}]});
            answers.push(server.offer(&acl(version, users)).await.expect("accepted"));
            for (path, value) in filled_in() {
                let pointer = format!("/{}", path.replace("[]", ".0").replace('.', "/"));
                let seen: Vec<_> = answers.iter().filter_map(|answer| answer.pointer(&pointer)).collect();
                assert!(seen.contains(&&value), "{path} should be {value}, but the server has {seen:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_size_of_storage_is_never_filled_in() {
    in_namespace("no-size", |server| async move {
        for profile in ["Cache", "Durable"] {
            let answer = server
                .offer(&cluster(
                    "v1beta1",
                    json!({"profile": profile, "storage": {}}),
                ))
                .await;
            assert_eq!(
                answer.expect("accepted")["spec"]["storage"].get("size"),
                None
            );
        }
    })
    .await;
}

#[tokio::test]
async fn an_explicit_null_counts_as_absent() {
    in_namespace("null", |server| async move {
        let spec =
            json!({"replicas": null, "storage": null, "auth": {"enabled": null}, "shards": null});
        let answer = server
            .offer(&cluster("v1beta1", spec))
            .await
            .expect("accepted");
        assert_eq!(answer["spec"]["replicas"], 3);
        assert_eq!(answer["spec"]["auth"], json!({"enabled": true}));
        assert_eq!(answer["spec"].get("storage"), None);
    })
    .await;
}

#[tokio::test]
async fn rust_reads_the_same_defaults_as_the_server_fills_in() {
    in_namespace("rust-defaults", |server| async move {
        let filled = read(&server, json!({})).await;
        assert_eq!(filled, ValkeyClusterSpec::default());
        let parsed: ValkeyClusterSpec = serde_json::from_value(json!({})).expect("every field has a default");
        assert_eq!(parsed, filled);
        let blocks = json!({"storage": {}, "auth": {}, "tls": {}, "metrics": {}, "podDisruptionBudget": {},
            "networkPolicy": {}, "backup": {}, "logging": {}});
        let parsed: ValkeyClusterSpec = serde_json::from_value(blocks.clone()).expect("every block has defaults");
        assert_eq!(parsed, read(&server, blocks).await);
        let users = acl("v1beta1", json!({"clusterRef": {"name": "web"}, "users": [{"name": "a"}]}));
        let answer = server.offer(&users).await.expect("accepted");
        let from_server: ValkeyACL = serde_json::from_value(answer).expect("readable");
        let from_user: ValkeyACL = serde_json::from_value(users).expect("readable");
        assert_eq!(from_server.spec, from_user.spec);
    })
    .await;
}

async fn read(server: &Server, spec: Value) -> ValkeyClusterSpec {
    let answer = server
        .offer(&cluster("v1beta1", spec))
        .await
        .expect("accepted");
    let object: ValkeyCluster =
        serde_json::from_value(answer).expect("the type reads what the server answers");
    object.spec
}

#[tokio::test]
async fn the_number_of_pods_follows_the_topology() {
    in_namespace("pods", |server| async move {
        let table = [
            (json!({}), 3),
            (json!({"replicas": 5}), 5),
            (json!({"topology": "Standalone"}), 1),
            (json!({"topology": "Standalone", "replicas": 3}), 1),
            (json!({"topology": "Sentinel", "sentinel": {}}), 3),
            (json!({"topology": "Cluster", "shards": 3}), 3),
            (
                json!({"topology": "Cluster", "shards": 4, "replicasPerShard": 2, "replicas": 9}),
                12,
            ),
        ];
        for (spec, pods) in table {
            assert_eq!(
                defaults::data_pods(&read(&server, spec.clone()).await),
                pods,
                "{spec}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn storage_follows_the_profile_where_it_is_absent() {
    use StorageMedium::{Disk, Memory};
    use StorageMode::{Aof, Both, None, Rdb};
    in_namespace("storage", |server| async move {
        let table = [
            (json!({}), "1Gi", None, Disk),
            (json!({"profile": "Durable"}), "10Gi", Both, Disk),
            (json!({"storage": {}}), "1Gi", Rdb, Disk),
            (
                json!({"profile": "Durable", "storage": {}}),
                "10Gi",
                Rdb,
                Disk,
            ),
            (
                json!({"profile": "Durable", "storage": {"size": "20Gi", "mode": "aof"}}),
                "20Gi",
                Aof,
                Disk,
            ),
            (
                json!({"storage": {"medium": "Memory", "mode": "both"}}),
                "1Gi",
                None,
                Memory,
            ),
            (
                json!({"storage": {"mode": "none", "size": "3Gi"}}),
                "3Gi",
                None,
                Disk,
            ),
        ];
        for (spec, size, mode, medium) in table {
            let storage = defaults::storage(&read(&server, spec.clone()).await);
            assert_eq!(
                (storage.size.0.as_str(), storage.mode, storage.medium),
                (size, mode, medium),
                "{spec}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn authentication_is_on_unless_it_is_turned_off() {
    in_namespace("auth", |server| async move {
        let table = [
            (json!({}), true),
            (json!({"auth": {}}), true),
            (json!({"auth": {"existingSecret": "mine"}}), true),
            (json!({"auth": {"enabled": false}}), false),
        ];
        for (spec, on) in table {
            assert_eq!(
                defaults::auth_enabled(&read(&server, spec.clone()).await),
                on,
                "{spec}"
            );
        }
        let given = read(&server, json!({"auth": {"existingSecret": "mine"}})).await;
        assert_eq!(defaults::existing_auth_secret(&given), Some("mine"));
        let empty = read(&server, json!({"auth": {"existingSecret": ""}})).await;
        assert_eq!(defaults::existing_auth_secret(&empty), None);
    })
    .await;
}

#[tokio::test]
async fn what_is_off_unless_it_is_turned_on() {
    in_namespace("off", |server| async move {
        let bare = read(&server, json!({})).await;
        let blocks = read(&server, json!({"tls": {}, "metrics": {}, "backup": {}, "networkPolicy": {}})).await;
        for spec in [bare, blocks] {
            assert!(!defaults::tls_enabled(&spec) && !defaults::metrics_enabled(&spec));
            assert!(!defaults::backup_enabled(&spec) && defaults::allowed_peers(&spec).is_none());
            assert!(!defaults::per_shard_workload(&spec) && spec.auto_reshard);
        }
        let on = json!({"tls": {"enabled": true}, "metrics": {"enabled": true}, "networkPolicy": {"enabled": true},
            "backup": {"enabled": true, "s3": s3()}});
        let on = read(&server, on).await;
        assert!(defaults::tls_enabled(&on) && defaults::metrics_enabled(&on) && defaults::backup_enabled(&on));
        let peers = defaults::allowed_peers(&on).expect("restricted");
        assert!(peers.len() == 1 && peers[0].pod_selector.is_some() && peers[0].namespace_selector.is_none());
        let named = json!({"networkPolicy": {"enabled": true, "allowFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}});
        let named = defaults::allowed_peers(&read(&server, named).await).expect("restricted");
        assert!(named.len() == 1 && named[0].pod_selector.is_none());
    })
    .await;
}

#[tokio::test]
async fn a_budget_is_there_for_more_than_one_pod() {
    in_namespace("budget", |server| async move {
        let one = || Some(Budget::MaxUnavailable(IntOrString::Int(1)));
        let table = [
            (json!({}), one()),
            (json!({"replicas": 1}), None),
            (json!({"topology": "Standalone"}), None),
            (
                json!({"topology": "Cluster", "shards": 3, "replicas": 1}),
                one(),
            ),
            (json!({"replicas": 1, "podDisruptionBudget": {}}), one()),
            (json!({"podDisruptionBudget": {"enabled": false}}), None),
            (
                json!({"podDisruptionBudget": {"minAvailable": 2}}),
                Some(Budget::MinAvailable(IntOrString::Int(2))),
            ),
            (
                json!({"podDisruptionBudget": {"maxUnavailable": "50%"}}),
                Some(Budget::MaxUnavailable(IntOrString::String("50%".into()))),
            ),
        ];
        for (spec, budget) in table {
            assert_eq!(
                defaults::disruption_budget(&read(&server, spec.clone()).await),
                budget,
                "{spec}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn images_and_quorum_follow_other_fields() {
    in_namespace("follow", |server| async move {
        for (sentinel, quorum) in [(json!({}), 2), (json!({"replicas": 5}), 3), (json!({"quorum": 1}), 1)] {
            let spec = read(&server, json!({"topology": "Sentinel", "sentinel": sentinel})).await;
            let sentinel = spec.sentinel.as_ref().expect("given");
            assert_eq!(defaults::sentinel_quorum(sentinel), quorum);
            assert_eq!(defaults::sentinel_image(&spec, sentinel), spec.image);
        }
        let spec = json!({"image": "a/b:1", "topology": "Sentinel", "sentinel": {"image": "c/d:2"}, "backup": {"image": ""}});
        let spec = read(&server, spec).await;
        assert_eq!(defaults::sentinel_image(&spec, spec.sentinel.as_ref().expect("given")), "c/d:2");
        assert_eq!(defaults::backup_image(&spec, spec.backup.as_ref().expect("given")), "a/b:1");
        let tls = read(&server, json!({"tls": {"issuerRef": {"name": "ca"}}})).await.tls.expect("given");
        let issuer = defaults::tls_issuer(&tls).expect("no Secret is given");
        assert_eq!(defaults::issuer_group(issuer), "cert-manager.io");
        let both = json!({"tls": {"issuerRef": {"name": "ca"}, "existingSecret": "mine"}});
        assert_eq!(defaults::tls_issuer(&read(&server, both).await.tls.expect("given")), None);
    })
    .await;
}
