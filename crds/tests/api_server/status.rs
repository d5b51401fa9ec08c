//! The status: what an untouched object shows, who may write which condition, what tables print.

use serde_json::{Value, json};

use crate::objects::{acl, cluster, parked};
use crate::server::in_namespace;

#[tokio::test]
async fn an_untouched_object_is_in_progress_for_kstatus_in_both_kinds() {
    in_namespace("untouched", |server| async move {
        for object in [
            cluster("v1beta1", json!({})),
            acl("v1alpha1", json!({"clusterRef": {"name": "web"}})),
        ] {
            let seen = server.offer(&object).await.expect("accepted");
            assert_eq!(
                seen["status"],
                json!({"observedGeneration": -1}),
                "generation is {}",
                seen["metadata"]
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_user_cannot_write_the_status_with_the_spec() {
    in_namespace("status-subresource", |server| async move {
        let mut object = cluster("v1beta1", json!({}));
        object["status"] = json!({"phase": "Ready", "observedGeneration": 1});
        let seen = server.offer(&object).await.expect("accepted");
        assert_eq!(seen["status"].get("phase"), None);
    })
    .await;
}

#[tokio::test]
async fn conditions_of_two_writers_live_side_by_side() {
    in_namespace("conditions", |server| async move {
        let object = parked(cluster("v1beta1", json!({"topology": "Sentinel", "sentinel": {}})));
        server.store(&object).await;
        for (manager, kind) in [("one", "TestOne"), ("two", "TestTwo")] {
            let condition = json!({"type": kind, "status": "True", "reason": "Test", "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z"});
            let part = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": "web"},
                "status": {"conditions": [condition]}});
            server.apply_status(&part, manager).await.expect("a condition can be applied");
        }
        let seen = server.get(&object).await;
        let conditions = seen["status"]["conditions"].as_array().expect("conditions");
        let kinds: Vec<_> = conditions.iter().filter_map(|c| c["type"].as_str()).collect();
        assert!(kinds.contains(&"TestOne") && kinds.contains(&"TestTwo"), "{kinds:?}");
        server.release(&object).await;
    })
    .await;
}

#[tokio::test]
async fn tables_print_the_columns_that_people_need() {
    in_namespace("columns", |server| async move {
        let stored = server
            .store(&parked(cluster(
                "v1beta1",
                json!({"topology": "Cluster", "shards": 3}),
            )))
            .await;
        server
            .set_status(
                &stored,
                &json!({"replicas": 6, "readyReplicas": 5, "phase": "Updating"}),
            )
            .await;
        let table = server.table(&stored).await;
        assert_eq!(
            columns(&table),
            ["Name", "Topology", "Replicas", "Ready", "Phase", "Age"]
        );
        assert_eq!(
            cells(&table)[..5],
            [
                json!("web"),
                json!("Cluster"),
                json!(6),
                json!(5),
                json!("Updating")
            ]
        );
        server.release(&stored).await;

        let stored = server
            .store(&acl("v1beta1", json!({"clusterRef": {"name": "web"}})))
            .await;
        server
            .set_status(
                &stored,
                &json!({"appliedUsers": ["a", "b"], "appliedUserCount": 2}),
            )
            .await;
        let table = server.table(&stored).await;
        assert_eq!(columns(&table), ["Name", "Cluster", "Users", "Age"]);
        assert_eq!(
            cells(&table)[..3],
            [json!("web-users"), json!("web"), json!(2)]
        );
    })
    .await;
}

fn columns(table: &Value) -> Vec<&str> {
    let definitions = table["columnDefinitions"].as_array().expect("a table");
    definitions
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect()
}

fn cells(table: &Value) -> Vec<Value> {
    table["rows"][0]["cells"]
        .as_array()
        .expect("one row")
        .clone()
}
