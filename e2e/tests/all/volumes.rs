//! Volumes grow with the spec, where their class lets them.

use anyhow::ensure;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wellcake_e2e::apply::{Applied, MAKING, durable};
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::{Space, beside_others};

/// A class of volumes that may not grow, on the provisioner of the default one. That one may, and nothing makes them larger.
const RIGID: &str = "e2e-rigid";

fn sized(class: Option<&str>, size: &str) -> Value {
    let mut spec = durable();
    spec["storage"]["size"] = json!(size);
    if let Some(class) = class {
        spec["storage"]["storageClassName"] = json!(class);
    }
    spec
}

async fn requested(space: &Space) -> anyhow::Result<Vec<Value>> {
    let claims = space.api::<PersistentVolumeClaim>();
    let all = claims.list(&ListParams::default()).await?;
    let of = |claim: &PersistentVolumeClaim| {
        let claim = serde_json::to_value(claim).unwrap_or_default();
        claim["spec"]["resources"]["requests"]["storage"].clone()
    };
    Ok(all.items.iter().map(of).collect())
}

/// Says of every claim that its volume is as large as was asked, as the storage's driver does.
async fn grown(space: &Space) -> anyhow::Result<()> {
    let claims = space.api::<PersistentVolumeClaim>();
    let done = json!({ "status": { "capacity": { "storage": "128Mi" } } });
    for claim in claims.list(&ListParams::default()).await?.items {
        let patch = Patch::Merge(&done);
        claims
            .patch_status(&claim.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_of_a_class_that_cannot_grow_are_named_and_everything_goes_on() {
    beside_others("rigid", |space| async move {
        let classes: Api<StorageClass> = Api::all(space.client.clone());
        let default = classes.list(&ListParams::default()).await?.items;
        ensure!(
            !default.is_empty(),
            "no class of volumes: run `cargo xtask up`"
        );
        let class = json!({
            "metadata": { "name": RIGID },
            "provisioner": default[0].provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": false,
        });
        classes.delete(RIGID, &DeleteParams::default()).await.ok();
        classes
            .create(&PostParams::default(), &serde_json::from_value(class)?)
            .await?;
        let cluster = Applied::ready(&space, "rigid", sized(Some(RIGID), "64Mi")).await?;
        let load = Load::start(&cluster).await?;
        let mut larger = sized(Some(RIGID), "128Mi");
        larger["podDisruptionBudget"] = json!({ "maxUnavailable": 2 });
        cluster.apply(larger).await?;
        cluster
            .wait("the refusal is named", RECOVERY, |look| {
                look.says("Degraded", "True", "VolumeNotGrown")
                    && look.says("Available", "True", "PrimaryServes")
            })
            .await?;
        let budgets = space.api::<k8s_openapi::api::policy::v1::PodDisruptionBudget>();
        let budget = serde_json::to_value(budgets.get(&cluster.name.disruption_budget()).await?)?;
        ensure!(budget["spec"]["maxUnavailable"] == json!(2), "{budget}");
        ensure!(
            requested(&space).await? == vec![json!("64Mi"); 3],
            "a claim was changed"
        );
        load.progress().await?;
        // The class lets them grow now, as an administrator would have it.
        let expandable = json!({ "allowVolumeExpansion": true });
        let params = PatchParams::default();
        classes
            .patch(RIGID, &params, &Patch::Merge(&expandable))
            .await?;
        cluster
            .wait("growing is tried again", MAKING, |look| {
                look.says("Progressing", "True", "WaitingForVolume")
            })
            .await?;
        grown(&space).await?;
        cluster.wait_ready(RECOVERY).await?;
        load.finish(&cluster).await?.nothing_lost()?;
        classes.delete(RIGID, &DeleteParams::default()).await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_grow_without_new_pods_and_the_volumes_are_waited_for() {
    beside_others("grows", |space| async move {
        let cluster = Applied::ready(&space, "grows", sized(None, "64Mi")).await?;
        let before: Vec<_> = cluster.pods().await?.iter().map(ResourceExt::uid).collect();
        cluster.apply(sized(None, "128Mi")).await?;
        cluster
            .wait("the volumes are waited for", RECOVERY, |look| {
                look.says("Progressing", "True", "WaitingForVolume")
            })
            .await?;
        ensure!(
            requested(&space).await? == vec![json!("128Mi"); 3],
            "not all claims grew"
        );
        grown(&space).await?;
        cluster.wait_ready(RECOVERY).await?;
        let after: Vec<_> = cluster.pods().await?.iter().map(ResourceExt::uid).collect();
        ensure!(before == after, "pods were replaced");
        // A new pod gets a claim of the first size from the StatefulSet, which grows then.
        let mut more = sized(None, "128Mi");
        more["replicas"] = json!(4);
        cluster.apply(more).await?;
        cluster
            .wait("the new volume is waited for", MAKING, |look| {
                look.pods.len() == 4 && look.says("Progressing", "True", "WaitingForVolume")
            })
            .await?;
        ensure!(
            requested(&space).await? == vec![json!("128Mi"); 4],
            "the new claim is smaller"
        );
        Ok(())
    })
    .await;
}
