//! More and fewer pods under load: the primary and a copy in sync always stay, and nothing is lost.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use serde_json::{Value, json};
use wellcake_e2e::apply::{Applied, MAKING, durable};
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::beside_others;

fn of(pods: usize) -> Value {
    let mut spec = durable();
    spec["replicas"] = json!(pods);
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_come_and_go_under_load_and_nothing_is_lost() {
    beside_others("scale", |space| async move {
        let cluster = Applied::ready(&space, "scale", of(3)).await?;
        // The primary is the pod that goes first.
        cluster
            .annotate(json!({
                "valkey.wellcake.io/failover": "to the last",
                "valkey.wellcake.io/failover-target": cluster.name.pod(2),
            }))
            .await?;
        cluster
            .wait("the last pod leads", RECOVERY, |look| {
                look.recorded() == Some(2) && look.is_ready()
            })
            .await?;
        let load = Load::start(&cluster).await?;
        for pods in [2, 1, 3, 4, 1, 2] {
            cluster.apply(of(pods)).await?;
            let look = cluster
                .wait("there are as many pods as asked for", MAKING, |look| {
                    look.pods.len() == pods && look.is_ready()
                })
                .await?;
            let leads = look.recorded().context("a record")? as usize;
            ensure!(leads < pods, "pod {leads} of {pods} leads");
            load.progress().await?;
        }
        cluster.wait_ready(RECOVERY).await?;
        let finished = load.finish(&cluster).await?;
        println!(
            "longest gap {:?} at pods, {:?} through the Service",
            finished.at_pods.longest_gap(),
            finished.through_service.longest_gap()
        );
        finished.nothing_lost()?;
        let claims = space.api::<PersistentVolumeClaim>();
        let kept = claims.list(&ListParams::default()).await?.items.len();
        ensure!(kept == 4, "{kept} claims are kept");
        let events = cluster.events().await?;
        for reason in ["ScaledIn", "PrimaryIsScaledIn"] {
            ensure!(
                events.iter().any(|(told, _)| told == reason),
                "no event tells {reason}: {events:?}"
            );
        }
        Ok(())
    })
    .await;
}
