//! The ValkeyCluster and its status as facts.

// Lints see tests only in functions marked as such, not in their helpers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use wellcake_core::facts::{
    ClaimUid, Epoch, Interner, OVERFLOW, Ordinal, PodUid, PromoteOrder, Record, Replid, Served,
    Unserved,
};
use wellcake_core::parse::{RecordError, promote_token, record, record_status, spec_facts};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{PrimaryRecord, Profile, ServedPrimary, Topology, ValkeyCluster};

fn cluster(annotations: Value, spec: Value, status: Value) -> ValkeyCluster {
    let object = json!({
        "apiVersion": "cache.wellcake.io/v1beta1",
        "kind": "ValkeyCluster",
        "metadata": { "name": "web", "namespace": "default", "generation": 4, "annotations": annotations },
        "spec": spec,
        "status": status,
    });
    serde_json::from_value(object).expect("a ValkeyCluster")
}

fn with_spec(spec: Value) -> ValkeyCluster {
    cluster(json!({}), spec, json!({}))
}

fn name() -> ClusterName {
    ClusterName::parse("web").expect("valid")
}

#[test]
fn an_empty_spec_is_a_cache_of_three_pods() {
    let facts = spec_facts(&with_spec(json!({})));
    assert_eq!(
        (facts.topology, facts.profile, facts.pods),
        (Topology::Replication, Profile::Cache, 3)
    );
    assert_eq!(
        (facts.generation, facts.unserved, facts.promote),
        (4, None, None)
    );
    assert!(facts.persistence.claims && !facts.persistence.survives_restart());
    assert!(facts.failover.is_none() && !facts.rotation_asked && !facts.deleting);
}

#[test]
fn persistence_and_pods_follow_the_effective_defaults() {
    let durable = spec_facts(&with_spec(json!({ "profile": "Durable", "replicas": 5 })));
    assert!(durable.persistence.aof && durable.persistence.rdb && durable.pods == 5);
    let memory = spec_facts(&with_spec(json!({ "storage": { "medium": "Memory" } })));
    assert!(!memory.persistence.claims && !memory.persistence.survives_restart());
    assert_eq!(
        spec_facts(&with_spec(json!({ "topology": "Standalone" }))).pods,
        1
    );
    assert_eq!(
        spec_facts(&with_spec(json!({ "replicas": 2_000_000 }))).pods,
        100
    );
}

#[test]
fn a_durable_primary_needs_a_replica_unless_the_user_says_so_himself() {
    let needs = |spec: Value| {
        let facts = spec_facts(&with_spec(spec));
        (facts.needs_replica, facts.replica_lag)
    };
    assert_eq!(needs(json!({})), (false, 10));
    assert_eq!(needs(json!({ "profile": "Durable" })), (true, 10));
    for name in [
        "min-replicas-to-write",
        "min-slaves-to-write",
        "Min-Replicas-To-Write",
    ] {
        let spec = json!({ "profile": "Durable", "config": { name: "1" } });
        assert_eq!(needs(spec), (false, 10), "{name}");
    }
    for (lag, read) in [("60", 60), (" 5 ", 5), ("soon", u32::MAX)] {
        for name in ["min-replicas-max-lag", "min-slaves-max-lag"] {
            let spec = json!({ "profile": "Durable", "config": { name: lag } });
            assert_eq!(needs(spec), (true, read));
        }
    }
}

#[test]
fn each_field_that_is_not_served_is_named_the_dangerous_first() {
    let s3 = json!({ "bucket": "b", "credentialsSecret": "c" });
    let table = [
        (json!({ "tls": { "enabled": true } }), Unserved::Tls),
        (
            json!({ "networkPolicy": { "enabled": true } }),
            Unserved::NetworkPolicy,
        ),
        (
            json!({ "topology": "Cluster", "shards": 3 }),
            Unserved::Cluster,
        ),
        (
            json!({ "topology": "Sentinel", "sentinel": {} }),
            Unserved::Sentinel,
        ),
        (
            json!({ "replicateFrom": { "host": "h" } }),
            Unserved::ReplicateFrom,
        ),
        (
            json!({ "restoreFrom": { "s3": s3, "sourceKey": "k" } }),
            Unserved::RestoreFrom,
        ),
        (
            json!({ "backup": { "enabled": true, "s3": s3 } }),
            Unserved::Backup,
        ),
        (json!({ "metrics": { "enabled": true } }), Unserved::Metrics),
    ];
    for (spec, field) in &table {
        assert_eq!(
            spec_facts(&with_spec(spec.clone())).unserved,
            Some(*field),
            "{spec}"
        );
    }
    let mut all = json!({});
    for (spec, field) in table.iter().rev() {
        for (key, value) in spec.as_object().expect("a map") {
            all[key] = value.clone();
        }
        assert_eq!(
            spec_facts(&with_spec(all.clone())).unserved,
            Some(*field),
            "{all}"
        );
    }
    let off = json!({
        "tls": { "enabled": false },
        "networkPolicy": { "enabled": false },
        "metrics": { "enabled": false },
        "backup": { "enabled": false, "s3": s3 },
    });
    assert_eq!(spec_facts(&with_spec(off)).unserved, None);
}

#[test]
fn only_the_exact_word_hibernates() {
    for (value, wanted) in [
        ("true", true),
        ("false", false),
        ("True", false),
        ("", false),
    ] {
        let annotations = json!({ "valkey.wellcake.io/hibernate": value });
        assert_eq!(
            spec_facts(&cluster(annotations, json!({}), json!({}))).hibernate,
            wanted,
            "{value}"
        );
    }
}

#[test]
fn a_request_counts_until_its_token_was_served() {
    let annotations = json!({
        "valkey.wellcake.io/failover": "f1",
        "valkey.wellcake.io/rotate-password": "r1",
    });
    let status = |failover: &str, rotation: &str| json!({ "lastFailoverToken": failover, "lastPasswordRotationToken": rotation });
    let asked = |status: Value| {
        let facts = spec_facts(&cluster(annotations.clone(), json!({}), status));
        (facts.failover.is_some(), facts.rotation_asked)
    };
    assert_eq!(asked(json!({})), (true, true));
    assert_eq!(asked(status("f1", "r0")), (false, true));
    assert_eq!(asked(status("f0", "r1")), (true, false));
    let empty = json!({ "valkey.wellcake.io/failover": "" });
    let none = spec_facts(&cluster(empty, json!({}), json!({})));
    assert_eq!(none.failover, None);
}

#[test]
fn an_order_to_promote_names_pod_and_epoch_and_is_served_once() {
    let order = |value: &str, served: Value| {
        let annotations = json!({ "valkey.wellcake.io/promote": value });
        cluster(
            annotations,
            json!({}),
            json!({ "lastPromoteToken": served }),
        )
    };
    let fresh = order("web-2/7/ann", Value::Null);
    let wanted = PromoteOrder {
        pod: Ordinal(2),
        epoch: Epoch(7),
    };
    assert_eq!(spec_facts(&fresh).promote, Some(wanted));
    assert_eq!(promote_token(&fresh), Some("web-2/7/ann"));
    assert_eq!(
        spec_facts(&order("web-2/7/ann", json!("web-2/7/ann"))).promote,
        None
    );
    assert_eq!(
        spec_facts(&order("web-2/7/bob", json!("web-2/7/ann"))).promote,
        Some(wanted)
    );
    for bad in [
        "web-2",
        "web-2/7",
        "web-2/7/",
        "web-2/x/t",
        "other-2/7/t",
        "web-02/7/t",
        "/",
        "web-2/-1/t",
        "7",
    ] {
        let read = spec_facts(&order(bad, Value::Null))
            .promote
            .expect("never overlooked");
        assert_eq!(
            (read.pod, read.epoch),
            (Ordinal(u8::MAX), Epoch(u32::MAX)),
            "{bad}"
        );
    }
}

#[test]
fn a_deletion_timestamp_means_deleting() {
    let mut cluster = with_spec(json!({}));
    cluster.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-02T03:04:05Z")).expect("a time");
    assert!(spec_facts(&cluster).deleting);
}

fn status_record() -> PrimaryRecord {
    PrimaryRecord {
        epoch: 3,
        pod: "web-1".into(),
        pod_uid: "uid-of-pod".into(),
        claim_uid: Some("uid-of-claim".into()),
        replid: None,
        continues: None,
        served: None,
        planned: None,
        recorded_at: None,
    }
}

#[test]
fn a_record_that_cannot_be_read_is_an_error_and_not_an_absent_one() {
    let read = |change: fn(&mut PrimaryRecord)| {
        let mut status = status_record();
        change(&mut status);
        record(&status, &name(), &mut Interner::default())
    };
    assert!(read(|_| {}).is_ok());
    assert_eq!(read(|r| r.epoch = 0), Err(RecordError::Epoch(0)));
    assert_eq!(
        read(|r| r.epoch = 1 << 40),
        Err(RecordError::Epoch(1 << 40))
    );
    assert_eq!(
        read(|r| r.pod = "db-1".into()),
        Err(RecordError::Pod("db-1".into()))
    );
}

#[test]
fn a_record_with_an_unknown_identity_is_not_written() {
    let known = Record {
        epoch: Epoch(1),
        pod: Ordinal(0),
        pod_uid: PodUid(0),
        claim_uid: None,
        replid: None,
        continues: None,
        served: None,
        planned: false,
    };
    let mut interner = Interner::default();
    assert_eq!(record_status(&known, &name(), &interner), None);
    interner.number("uid");
    assert!(record_status(&known, &name(), &interner).is_some());
    for number in [1, OVERFLOW] {
        let unknown = [
            Record {
                pod_uid: PodUid(number),
                ..known
            },
            Record {
                claim_uid: Some(ClaimUid(number)),
                ..known
            },
            Record {
                replid: Some(Replid(number)),
                ..known
            },
            Record {
                continues: Some(Replid(number)),
                ..known
            },
            Record {
                served: Some(Served {
                    pod_uid: PodUid(number),
                    ..known.own()
                }),
                ..known
            },
        ];
        for record in unknown {
            assert_eq!(
                record_status(&record, &name(), &interner),
                None,
                "{record:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn a_record_survives_the_status(
        epoch in 1u32..,
        pod in 0u8..100,
        pod_uid in "[a-f0-9-]{1,36}",
        claim_uid in proptest::option::of("[a-f0-9-]{1,36}"),
        replid in proptest::option::of("[a-f0-9]{40}"),
        continues in proptest::option::of("[a-f0-9]{40}"),
        served in proptest::option::of((0u8..100, "[a-f0-9-]{1,36}", proptest::option::of("[a-f0-9]{40}"))),
    ) {
        let served = served.map(|(pod, pod_uid, replid)| ServedPrimary {
            pod: format!("web-{pod}"),
            pod_uid,
            claim_uid: None,
            replid,
        });
        let status = PrimaryRecord {
            epoch: i64::from(epoch),
            pod: format!("web-{pod}"),
            pod_uid,
            claim_uid,
            replid,
            continues,
            served,
            planned: Some(true),
            recorded_at: None,
        };
        let mut interner = Interner::default();
        let facts = record(&status, &name(), &mut interner).expect("readable");
        prop_assert_eq!(record_status(&facts, &name(), &interner), Some(status));
    }

    #[test]
    fn no_annotation_makes_it_panic(value in "(?s).*") {
        let annotations = json!({
            "valkey.wellcake.io/promote": value.clone(),
            "valkey.wellcake.io/failover": value.clone(),
            "valkey.wellcake.io/hibernate": value,
        });
        spec_facts(&cluster(annotations, json!({}), json!({})));
    }
}
