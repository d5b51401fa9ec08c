//! An object with every field goes through both versions, and through the Rust types, without loss.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wellcake_crds::{schema, v1alpha1, v1beta1};

use crate::objects::{acl, cluster, parked};
use crate::server::in_namespace;

/// Objects that together set every field; no single one can, since some exclude each other.
fn full() -> [Value; 4] {
    [
        with_status(cluster("v1alpha1", replication()), cluster_status()),
        with_status(
            named_like(cluster("v1alpha1", sharded()), "sharded"),
            cluster_status(),
        ),
        named_like(
            cluster(
                "v1alpha1",
                json!({
                    "topology": "Sentinel",
                    "sentinel": {"replicas": 5, "quorum": 4, "image": "valkey/valkey:8.1"},
                    "podDisruptionBudget": {"enabled": true, "minAvailable": "50%"},
                }),
            ),
            "sentinels",
        ),
        with_status(
            acl(
                "v1alpha1",
                json!({
                    "clusterRef": {"name": "web"},
                    "users": [{"name": "app", "rules": "on ~app:* +@read", "passwordSecret": {"name": "p", "key": "k"}}],
                }),
            ),
            json!({
                "appliedUsers": ["app"],
                "appliedUserCount": 1,
                "observedGeneration": 2,
                "conditions": [condition("Available")],
            }),
        ),
    ]
}

fn named_like(mut object: Value, name: &str) -> Value {
    object["metadata"]["name"] = json!(name);
    object
}

fn with_status(mut object: Value, status: Value) -> Value {
    object["status"] = status;
    object
}

fn s3() -> Value {
    json!({"bucket": "b", "endpoint": "https://s3:9000", "region": "eu-1", "prefix": "p/q", "credentialsSecret": "c",
        "encryption": "KMS", "kmsKeyId": "alias/k"})
}

fn replication() -> Value {
    let peer = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}, "podSelector": {}});
    json!({
        "topology": "Replication",
        "profile": "Durable",
        "image": "valkey/valkey:8.1",
        "imagePullPolicy": "Never",
        "replicas": 1,
        "autoReshard": false,
        "resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": 1, "memory": "2Gi"}},
        "storage": {"size": "20Gi", "storageClassName": "fast", "mode": "both", "medium": "Disk"},
        "auth": {"enabled": false, "existingSecret": "a"},
        "tls": {"enabled": true, "existingSecret": "t", "mutualTLS": true,
            "issuerRef": {"name": "i", "kind": "ClusterIssuer", "group": "example.com"}},
        "metrics": {"enabled": true, "image": "e:1", "serviceMonitor": true},
        "config": {"timeout": "60", "save": ""},
        "logging": {"format": "logfmt"},
        "nodeSelector": {"crd-tests.invalid/nowhere": "true"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "podSecurityContext": {"runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containerSecurityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        "podDisruptionBudget": {"enabled": false, "maxUnavailable": 2},
        "networkPolicy": {"enabled": true, "allowFrom": [peer, {"ipBlock": {"cidr": "10.0.0.0/8"}}]},
        "backup": {"enabled": true, "schedule": "@daily", "retention": 3, "image": "i:1", "awsCLIImage": "w:1", "s3": s3()},
        "restoreFrom": {"s3": s3(), "sourceKey": "a/b.rdb", "awsCLIImage": "w:1"},
        "replicateFrom": {"host": "h.example", "port": 6380, "tls": true, "passwordSecret": {"name": "p", "key": "k"},
            "caSecret": {"name": "c", "key": "ca.pem"}},
    })
}

fn sharded() -> Value {
    json!({"topology": "Cluster", "shards": 3, "replicasPerShard": 1, "perShardWorkload": true})
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Test", "message": "m", "observedGeneration": 2,
        "lastTransitionTime": "2026-01-02T03:04:05Z"})
}

fn cluster_status() -> Value {
    let time = "2026-01-02T03:04:05Z";
    json!({
        "phase": "Updating", "replicas": 3, "readyReplicas": 2, "primary": "web-0", "internalEndpoint": "web.ns.svc:6379",
        "shards": 3, "readyShards": 2, "clusterInitialized": true, "lastAppliedReplicas": 6,
        "primaryDownSince": time, "quorumDownSince": time, "primaryDownFor": {"podUid": "u0", "epoch": 4},
        "discardedBytes": 9007199254740993i64,
        "lastDiscarded": {"pod": "web-1", "epoch": 4, "replid": "r", "bytes": 9007199254740993i64, "at": time},
        "primaryRecord": {"epoch": 4, "pod": "web-0", "podUid": "u0", "claimUid": "c0", "replid": "r", "continues": "b", "served": {"pod": "web-1", "podUid": "u1", "claimUid": "c1", "replid": "q"}, "planned": true, "recordedAt": time},
        "intents": [{"kind": "Handover", "id": "t1", "from": "web-0", "to": "web-1", "fromUid": "u0", "toUid": "u1",
            "epoch": 5, "generation": 2, "step": "pause", "startedAt": time}],
        "lastReshardToken": "a", "lastFailoverToken": "b", "lastPromoteToken": "web-1/4/c",
        "lastPasswordRotationToken": "d", "lastTLSCertFingerprint": "e", "lastGoodConfigDigest": "f",
        "shardDetails": [{"index": 0, "primary": "web-0", "primaryNodeID": "n0", "replicas": ["web-1"],
            "slotRanges": ["0-5460", "9000"], "slotCount": 5462, "health": "Degraded", "primaryOffset": 9007199254740993i64,
            "replicaOffsets": [{"pod": "web-1", "offset": 7}], "maxLagBytes": 3}],
        "observedGeneration": 2,
        "conditions": [condition("Ready"), condition("Available")],
    })
}

#[test]
fn the_full_objects_set_every_field_of_the_schema() {
    let mut wanted = BTreeSet::new();
    for definition in schema::definitions() {
        let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        fields(
            root,
            definition["spec"]["names"]["kind"].as_str().expect("kind"),
            &mut wanted,
        );
    }
    let mut have = BTreeSet::new();
    full()
        .iter()
        .for_each(|object| values(object, object["kind"].as_str().expect("kind"), &mut have));
    let missing: Vec<_> = wanted.difference(&have).collect();
    assert!(missing.is_empty(), "no full object sets {missing:?}");
}

/// Paths of our own fields; those of embedded Kubernetes types end at their root.
fn fields(node: &Value, path: &str, found: &mut BTreeSet<String>) {
    let embedded = schema::EMBEDDED
        .iter()
        .any(|e| path.ends_with(&format!(".{e}")));
    for (name, child) in node["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|_| !embedded)
    {
        if name == "metadata" || name == "apiVersion" || name == "kind" {
            continue;
        }
        found.insert(format!("{path}.{name}"));
        fields(child, &format!("{path}.{name}"), found);
    }
    if let Some(items) = node.get("items").filter(|_| !embedded) {
        fields(items, path, found);
    }
}

fn values(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, child)| {
            found.insert(format!("{path}.{name}"));
            values(child, &format!("{path}.{name}"), found);
        }),
        Value::Array(items) => items.iter().for_each(|item| values(item, path, found)),
        _ => {}
    }
}

#[tokio::test]
async fn a_full_object_survives_both_versions_both_ways() {
    in_namespace("round-trip", |server| async move {
        for (written, read) in [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")] {
            for object in full() {
                let object = parked(in_version(&object, written));
                server.store(&object).await;
                if let Some(status) = object.get("status") {
                    server.set_status(&object, status).await;
                }
                let seen = server.get(&in_version(&object, read)).await;
                assert_eq!(seen["apiVersion"], format!("cache.wellcake.io/{read}"));
                contains(&seen["spec"], &object["spec"], "spec");
                if let Some(status) = object.get("status") {
                    assert_eq!(
                        &seen["status"], status,
                        "written as {written}, read as {read}"
                    );
                }
                let back = server.get(&in_version(&object, written)).await;
                assert_eq!(
                    (&back["spec"], &back["status"]),
                    (&seen["spec"], &seen["status"])
                );
                server.release(&object).await;
            }
        }
    })
    .await;
}

fn in_version(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(format!("cache.wellcake.io/{version}"));
    object
}

/// Every value of `wanted` is in `seen`; the server may have filled in defaults beside them.
fn contains(seen: &Value, wanted: &Value, path: &str) {
    match (seen, wanted) {
        (Value::Object(seen), Value::Object(wanted)) => wanted.iter().for_each(|(name, value)| {
            contains(
                seen.get(name).unwrap_or(&Value::Null),
                value,
                &format!("{path}.{name}"),
            );
        }),
        (Value::Array(seen), Value::Array(wanted)) if seen.len() == wanted.len() => {
            seen.iter()
                .zip(wanted)
                .for_each(|(seen, wanted)| contains(seen, wanted, path));
        }
        _ => assert_eq!(seen, wanted, "{path}"),
    }
}

#[test]
fn the_rust_types_read_and_write_every_field() {
    let [replication, sharded, sentinels, users] = full();
    for object in [replication, sharded, sentinels] {
        let old: v1alpha1::ValkeyCluster =
            serde_json::from_value(object.clone()).expect("readable");
        contains(
            &quantities_as_strings(&json!(old)),
            &quantities_as_strings(&object),
            "v1alpha1",
        );
        let hub = v1beta1::ValkeyCluster::from(old.clone());
        contains(
            &quantities_as_strings(&json!(hub)),
            &quantities_as_strings(&in_version(&object, "v1beta1")),
            "v1beta1",
        );
        assert_eq!(v1alpha1::ValkeyCluster::from(hub), old);
    }
    let old: v1alpha1::ValkeyACL = serde_json::from_value(users.clone()).expect("readable");
    assert_eq!(json!(old), users);
    assert_eq!(
        v1alpha1::ValkeyACL::from(v1beta1::ValkeyACL::from(old.clone())),
        old
    );
}

/// The Rust type holds `cpu: 1` as `"1"`, which means the same.
fn quantities_as_strings(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(cpu) = object
        .pointer_mut("/spec/resources/limits/cpu")
        .filter(|cpu| cpu.is_number())
    {
        *cpu = json!(cpu.to_string());
    }
    object
}
