//! Rules about an object as it stands.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wellcake_crds::rules::{self, Kind};

use crate::cases::{self, Case};
use crate::objects::parked;
use crate::server::{Server, VERSIONS, in_namespace};

#[test]
fn each_rule_has_a_case() {
    for kind in [Kind::Cluster, Kind::Acl] {
        let have: BTreeSet<_> = cases::of(kind).iter().map(|case| case.rule).collect();
        let want: BTreeSet<_> = rules::all()
            .filter(|rule| rule.kind == kind)
            .map(|rule| rule.id)
            .collect();
        assert_eq!(have, want, "left: rules with cases; right: rules");
    }
}

#[tokio::test]
async fn each_cluster_rule_accepts_and_refuses_on_creation_in_both_versions() {
    in_namespace("rules-create", |server| async move {
        on_creation(&server, Kind::Cluster).await
    })
    .await;
}

#[tokio::test]
async fn each_acl_rule_accepts_and_refuses_on_creation_in_both_versions() {
    in_namespace("rules-acl", |server| async move {
        on_creation(&server, Kind::Acl).await
    })
    .await;
}

async fn on_creation(server: &Server, kind: Kind) {
    for case in cases::of(kind).iter().filter(|case| case.before.is_none()) {
        for version in VERSIONS {
            let as_version = |object: &Value| {
                let mut object = object.clone();
                object["apiVersion"] = json!(format!("cache.wellcake.io/{version}"));
                object
            };
            let accepted = server.offer(&as_version(&case.accepted)).await;
            assert!(
                accepted.is_ok(),
                "{} ({version}) should accept {}: {accepted:?}",
                case.rule,
                case.accepted
            );
            refused_by(case, server.offer(&as_version(&case.refused)).await);
        }
    }
}

#[tokio::test]
async fn each_rule_refuses_an_update_too() {
    in_namespace("rules-update", |server| async move {
        let mut stored: BTreeMap<String, Value> = BTreeMap::new();
        for kind in [Kind::Cluster, Kind::Acl] {
            let standing = cases::of(kind)
                .into_iter()
                .filter(|case| case.before.is_none());
            // A name cannot be updated.
            for case in standing.filter(|case| !case.rule.starts_with("name-")) {
                let start = start_of(&case.refused);
                let key = start["spec"].to_string();
                if !stored.contains_key(&key) {
                    let mut start = parked(start);
                    start["metadata"]["name"] = json!(format!("start-{}", stored.len()));
                    stored.insert(key.clone(), server.store(&start).await);
                }
                let mut next = parked(case.refused.clone());
                next["metadata"] = stored[&key]["metadata"].clone();
                refused_by(&case, server.offer_update(&next).await);
            }
        }
        for object in stored.values() {
            server.release(object).await;
        }
        assert!(
            stored.len() > 4,
            "each topology and the other kind have been stored"
        );
    })
    .await;
}

/// The plainest object of the same topology and profile.
fn start_of(object: &Value) -> Value {
    let mut start = object.clone();
    let topology = object["spec"]["topology"].as_str().unwrap_or("Replication");
    start["spec"] = match (object["kind"].as_str(), topology) {
        (Some("ValkeyACL"), _) => json!({"clusterRef": {"name": "web"}}),
        (_, "Cluster") => json!({"topology": topology, "shards": 3}),
        (_, "Sentinel") => json!({"topology": topology, "sentinel": {}}),
        _ => json!({"topology": topology}),
    };
    if let Some(profile) = object["spec"].get("profile") {
        start["spec"]["profile"] = profile.clone();
    }
    start
}

/// The refusal holds the rule's sentence.
pub fn refused_by(case: &Case, answer: Result<Value, String>) {
    let rule = rules::all()
        .find(|rule| rule.id == case.rule)
        .expect("the case names a rule");
    match answer {
        Ok(_) => panic!("{} should refuse {}", case.rule, case.refused),
        Err(why) => assert!(
            why.contains(rule.message),
            "{} should say so, but: {why}",
            case.rule
        ),
    }
}
