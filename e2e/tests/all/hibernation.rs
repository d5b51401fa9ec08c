//! A cluster sleeps without pods and wakes with all of its data.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use serde_json::{Value, json};
use wellcake_crds::v1beta1::Phase;
use wellcake_e2e::apply::{Applied, Look, MAKING, durable};
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::beside_others;

fn sleeps(look: &Look) -> bool {
    look.status().phase == Some(Phase::Hibernated)
}

fn hibernate(value: &str) -> Value {
    json!({ "valkey.wellcake.io/hibernate": value })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_sleeps_under_load_is_edited_and_wakes_with_every_acknowledged_write() {
    beside_others("sleep", |space| async move {
        let cluster = Applied::ready(&space, "sleep", durable()).await?;
        let load = Load::start(&cluster).await?;
        cluster.annotate(hibernate("true")).await?;
        let look = cluster.wait("it sleeps", MAKING, sleeps).await?;
        ensure!(look.pods.is_empty(), "{} pods are left", look.pods.len());
        for kind in ["Ready", "Available"] {
            ensure!(look.says(kind, "False", "Hibernated"), "{kind}");
        }
        ensure!(
            look.says("Degraded", "False", "Hibernated"),
            "it is degraded"
        );
        let claims = space.api::<PersistentVolumeClaim>();
        let kept = claims.list(&ListParams::default()).await?.items.len();
        ensure!(kept == 3, "{kept} claims are kept");
        // What is changed meanwhile is there when it wakes.
        let mut spec = durable();
        spec["image"] = json!("valkey/valkey:8.1");
        cluster.apply(spec).await?;
        cluster
            .wait("it sleeps on with the new spec", RECOVERY, |look| {
                let seen = look.status().observed_generation;
                sleeps(look) && seen == look.cluster.metadata.generation
            })
            .await?;
        cluster.annotate(hibernate("false")).await?;
        cluster.wait_ready(MAKING).await?;
        load.progress().await?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        let pod = cluster.pod(0).await?;
        let version = cluster
            .connect(&pod)
            .await?
            .info("server", "valkey_version")?;
        ensure!(version.starts_with("8.1"), "{version}");
        let events = cluster.events().await?;
        ensure!(
            events.iter().any(|(reason, _)| reason == "Hibernated"),
            "no event tells it: {events:?}"
        );
        let record = cluster.look().await?.recorded();
        record.context("a record")?;
        Ok(())
    })
    .await;
}
