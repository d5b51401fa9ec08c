//! Nothing to do means nothing done; what somebody changed by hand is set right.

use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use wellcake_e2e::apply::{Applied, MAKING, replication};
use wellcake_e2e::audit;
use wellcake_e2e::load::RECOVERY;
use wellcake_e2e::namespace::{alone, beside_others};
use wellcake_e2e::operator;

/// How long nothing may happen.
const STEADY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_cluster_costs_no_request_and_no_event_in_a_minute() {
    alone("steady", |space| async move {
        operator::wait_ready(&space.client, RECOVERY).await?;
        let cluster = Applied::ready(&space, "steady", replication()).await?;
        // Other tests' namespaces may still be going.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = (cluster.look().await?.cluster, cluster.events().await?);
        let from = Timestamp::now();
        tokio::time::sleep(STEADY).await;
        let requests = audit::requests(operator::USER, Some(&space.name), from, Timestamp::now())?;
        println!("{requests:?}");
        ensure!(
            requests.leases > 0,
            "the audit log does not know the operator as {}",
            operator::USER
        );
        ensure!(requests.write_count() == 0, "{:?}", requests.writes);
        ensure!(requests.read_count() == 0, "{:?}", requests.reads);
        let after = (cluster.look().await?.cluster, cluster.events().await?);
        ensure!(
            before.0.metadata.resource_version == after.0.metadata.resource_version,
            "the status changed"
        );
        ensure!(before.1 == after.1, "events: {:?}", after.1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changes_or_deletes_by_hand_is_set_right() {
    beside_others("drift", |space| async move {
        let cluster = Applied::ready(&space, "drift", replication()).await?;
        let sets = space.api::<StatefulSet>();
        let name = cluster.name.stateful_set();
        let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
        sets.patch_scale(&name, &PatchParams::default(), &patch)
            .await?;
        cluster
            .wait(
                "the StatefulSet has three replicas again",
                RECOVERY,
                |look| look.pods.len() == 3,
            )
            .await?;
        cluster.wait_ready(MAKING).await?;
        let replicas = sets.get(&name).await?.spec.and_then(|spec| spec.replicas);
        ensure!(replicas == Some(3), "{replicas:?} replicas");

        let services = space.api::<Service>();
        let client = cluster.name.client_service();
        let uid = services.get(&client).await?.metadata.uid.context("a uid")?;
        services.delete(&client, &DeleteParams::default()).await?;
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = services.get_opt(&client).await?;
            if now.is_some_and(|now| now.metadata.uid.as_ref() != Some(&uid)) {
                cluster.wait_ready(RECOVERY).await?;
                return Ok(());
            }
        }
        anyhow::bail!("the Service did not come back\n{}", cluster.story().await)
    })
    .await;
}
