//! All pods at once: what is on volumes is there again, and what was only in memory is gone without a wedge.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use wellcake_e2e::apply::{Applied, Look, MAKING, durable, on_claims, replication};
use wellcake_e2e::faults;
use wellcake_e2e::load::Load;
use wellcake_e2e::namespace::{Space, beside_others};
use wellcake_e2e::valkey::Reply;

/// Deletes all pods and waits until others are there.
async fn replace_all(space: &Space, cluster: &Applied, force: bool) -> Result<()> {
    let before = cluster.pods().await?;
    for pod in &before {
        if force {
            faults::force_delete(space, &pod.name_any()).await?;
        } else {
            faults::delete(space, &pod.name_any()).await?;
        }
    }
    let old: Vec<Option<String>> = before.iter().map(ResourceExt::uid).collect();
    let replaced = |look: &Look| {
        look.pods.len() == old.len() && look.pods.iter().all(|pod| !old.contains(&pod.uid()))
    };
    cluster
        .wait("all pods are others", Duration::from_secs(60), replaced)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_cluster_has_every_key_again_after_all_pods_were_deleted() {
    beside_others("all-durable", |space| async move {
        let cluster = Applied::ready(&space, "durable", durable()).await?;
        let load = Load::start(&cluster).await?;
        load.progress().await?;
        // A process that ends leaves its append-only file whole: only a crash of the machine costs the last second.
        replace_all(&space, &cluster, false).await?;
        cluster.wait_ready(MAKING).await?;
        let finished = load.finish(&cluster).await?;
        println!(
            "{:?}, longest gap {:?}",
            finished.outcome,
            finished.through_service.longest_gap()
        );
        finished.nothing_lost()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_cluster_has_every_write_that_was_synced_after_all_pods_were_deleted_twice() {
    beside_others("all-twice", |space| async move {
        let cluster = Applied::ready(&space, "synced", durable()).await?;
        for round in 0..2 {
            let (_, pod) = cluster.primary().await?;
            let mut primary = cluster.connect(&pod).await?;
            for key in 0..500 {
                primary.ok(&["SET", &format!("{round}:{key}"), "x"])?;
            }
            primary.ok(&["WAITAOF", "1", "0", "5000"])?;
            replace_all(&space, &cluster, true).await?;
            cluster.wait_ready(MAKING).await?;
            let (_, pod) = cluster.primary().await?;
            let mut primary = cluster.connect(&pod).await?;
            let count = primary.ok(&["DBSIZE"])?;
            ensure!(
                count == Reply::Number(500 * (round + 1)),
                "{count:?} keys in round {round}"
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_keeps_nothing_is_ready_and_empty_after_all_pods_were_deleted() {
    beside_others("all-none", |space| async move {
        for (name, spec) in [("memory", replication()), ("claims", on_claims())] {
            let cluster = Applied::ready(&space, name, spec).await?;
            let (_, pod) = cluster.primary().await?;
            cluster.connect(&pod).await?.ok(&["SET", "key", "value"])?;
            replace_all(&space, &cluster, true).await?;
            let look = cluster.wait_ready(MAKING).await?;
            let pod = cluster.pod(look.recorded().context("a record")?).await?;
            let count = cluster.connect(&pod).await?.ok(&["DBSIZE"])?;
            ensure!(count == Reply::Number(0), "{count:?} keys");
            cluster.delete().await?;
        }
        Ok(())
    })
    .await;
}
