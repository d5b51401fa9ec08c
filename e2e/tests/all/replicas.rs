//! Replicas come and go: the primary is not disturbed, and whoever still holds the data copies only what is missing.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use wellcake_e2e::apply::{Applied, MAKING, replication, restarts};
use wellcake_e2e::faults::{self, Process};
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::beside_others;
use wellcake_e2e::valkey::Connection;

fn count(server: &mut Connection, field: &str) -> Result<u64> {
    Ok(server.info("stats", field)?.parse()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_or_deleted_comes_back_without_a_promotion() {
    beside_others("replica", |space| async move {
        let cluster = Applied::ready(&space, "replica", replication()).await?;
        let before = cluster.look().await?;
        let primary = before.recorded().context("a record")?;
        let victim = (0..3)
            .find(|ordinal| *ordinal != primary)
            .context("a replica")?;
        let load = Load::start(&cluster).await?;

        let pod = cluster.pod(victim).await?;
        Process::of(&pod)?.kill()?;
        cluster
            .wait("the replica's container restarted", RECOVERY, |look| {
                look.pods
                    .iter()
                    .any(|it| it.name_any() == pod.name_any() && restarts(it) > restarts(&pod))
            })
            .await?;
        load.progress().await?;
        cluster.wait_ready(RECOVERY).await?;

        faults::delete(&space, &pod.name_any()).await?;
        cluster
            .wait("the replica's pod is another one", RECOVERY, |look| {
                look.pods
                    .iter()
                    .any(|it| it.name_any() == pod.name_any() && it.uid() != pod.uid())
            })
            .await?;
        cluster.wait_ready(MAKING).await?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        let after = cluster.look().await?;
        ensure!(
            after.epoch() == before.epoch() && after.recorded() == Some(primary),
            "somebody was promoted"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_the_other_replica_continues_with_a_partial_resync() {
    beside_others("partial", |space| async move {
        let cluster = Applied::ready(&space, "partial", replication()).await?;
        let (_, pod) = cluster.primary().await?;
        let load = Load::start(&cluster).await?;
        Process::of(&pod)?.kill()?;
        load.finish(&cluster).await?.nothing_lost()?;
        let (_, pod) = cluster.primary().await?;
        let mut primary = cluster.connect(&pod).await?;
        let (partial, full) = (
            count(&mut primary, "sync_partial_ok")?,
            count(&mut primary, "sync_full")?,
        );
        // The old primary kept nothing and copies everything; the other replica only what it misses.
        ensure!(partial >= 1, "no partial resync; full: {full}");
        ensure!(full <= 1, "{full} full resyncs; partial: {partial}");
        Ok(())
    })
    .await;
}
