//! A ValkeyCluster that is deleted takes its objects with it, and leaves its data.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::ListParams;
use wellcake_e2e::apply::{Applied, MAKING, durable};
use wellcake_e2e::namespace::{Space, beside_others};

/// Kubernetes removes what belongs to a deleted object in its own time.
const REMOVAL: Duration = Duration::from_secs(90);

async fn names<K>(space: &Space) -> Result<Vec<String>>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let items = space.api::<K>().list(&ListParams::default()).await?.items;
    Ok(items
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| name != "kube-root-ca.crt")
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_removes_every_object_and_keeps_the_claims_and_a_new_cluster_finds_its_data() {
    beside_others("deletion", |space| async move {
        let cluster = Applied::ready(&space, "gone", durable()).await?;
        let (_, pod) = cluster.primary().await?;
        let mut primary = cluster.connect(&pod).await?;
        primary.ok(&["SET", "key", "value"])?;
        primary.ok(&["WAITAOF", "1", "2", "5000"])?;
        cluster.delete().await?;
        let start = Instant::now();
        loop {
            let mut left = names::<Pod>(&space).await?;
            left.extend(names::<StatefulSet>(&space).await?);
            left.extend(names::<Service>(&space).await?);
            left.extend(names::<ConfigMap>(&space).await?);
            left.extend(names::<Secret>(&space).await?);
            left.extend(names::<PodDisruptionBudget>(&space).await?);
            if left.is_empty() {
                break;
            }
            ensure!(start.elapsed() < REMOVAL, "still there: {left:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let claims = names::<PersistentVolumeClaim>(&space).await?;
        ensure!(claims.len() == 3, "{claims:?}");

        // The record went with the cluster: who leads is for a person to say, and it is said how.
        let again = Applied::create(&space, "gone", durable()).await?;
        let look = again
            .wait("Ready is False for DataWithoutRecord", MAKING, |look| {
                look.says("Ready", "False", "DataWithoutRecord")
            })
            .await?;
        let message = look.condition("Ready").map(|it| it.message.clone()).unwrap_or_default();
        ensure!(message.contains("valkey.wellcake.io/promote"), "no way out is named: {message}");
        let order = serde_json::json!({"metadata": {"annotations": {"valkey.wellcake.io/promote": "gone-0/0/once"}}});
        space
            .api::<wellcake_crds::v1beta1::ValkeyCluster>()
            .patch("gone", &Default::default(), &kube::api::Patch::Merge(order))
            .await?;
        again.wait_ready(MAKING).await?;
        let (_, pod) = again.primary().await?;
        ensure!(again.connect(&pod).await?.text(&["GET", "key"])? == "value");
        Ok(())
    })
    .await;
}
