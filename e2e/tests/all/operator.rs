//! The operator itself is lost.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use wellcake_e2e::apply::{Applied, address, replication, restarts};
use wellcake_e2e::faults::Process;
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::{Space, alone};
use wellcake_e2e::operator;
use wellcake_e2e::valkey::{Connection, LIMIT_OF_LOOKS};

/// How long the operator is away.
const ABSENCE: Duration = Duration::from_secs(60);
/// A leader that was killed is replaced after its lease of 15 s, and a retry of 2 s.
const TAKEOVER: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_of_the_operators_and_the_primary_are_killed_in_the_same_second_writes_go_on_within_20_seconds()
 {
    alone("both", |space| async move {
        operator::wait_ready(&space.client, RECOVERY).await?;
        let cluster = Applied::ready(&space, "both", replication()).await?;
        let (_, pod) = cluster.primary().await?;
        let leader = Process::of(&operator::leader(&space.client).await?)?;
        let primary = Process::of(&pod)?;
        let load = Load::start(&cluster).await?;
        leader.kill()?;
        let fault = primary.kill()?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        let (at_pods, service) = finished
            .recovery(fault)
            .context("no writes after the fault")?;
        println!("writes after {at_pods:?} at pod level, {service:?} through the Service");
        ensure!(service <= TAKEOVER, "writes went on after {service:?}");
        operator::wait_ready(&space.client, RECOVERY).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_operator_ends_as_asked_another_one_leads_at_once_and_tells_nothing_that_is_not_so()
 {
    alone("handover", |space| async move {
        operator::wait_ready(&space.client, RECOVERY).await?;
        let cluster = Applied::ready(&space, "handover", replication()).await?;
        let told = cluster.look().await?.status().conditions;
        let before = operator::holder(&space.client).await?;
        Process::of(&operator::leader(&space.client).await?)?.terminate()?;
        let start = std::time::Instant::now();
        another_holder(&space, &before, Duration::from_secs(5)).await?;
        println!("another leader after {:?}", start.elapsed());
        operator::wait_ready(&space.client, RECOVERY).await?;
        // Whoever begins to lead knows nothing yet, and that is nothing to tell.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = cluster.look().await?.status().conditions;
        ensure!(after == told, "the status changed: {told:?} → {after:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_frozen_beyond_its_lease_acts_no_more_when_it_wakes() {
    alone("stale", |space| async move {
        operator::wait_ready(&space.client, RECOVERY).await?;
        let cluster = Applied::ready(&space, "stale", replication()).await?;
        let before = cluster.look().await?;
        let (_, pod) = cluster.primary().await?;
        let load = Load::start(&cluster).await?;
        let old = operator::holder(&space.client).await?;
        let frozen = Process::of(&operator::leader(&space.client).await?)?.freeze()?;
        let new = another_holder(&space, &old, TAKEOVER).await?;
        let fault = Process::of(&pod)?.kill()?;
        cluster
            .wait("the new leader promotes", RECOVERY, |look| {
                look.epoch() == before.epoch() + 1 && look.is_ready()
            })
            .await?;
        let promoted = cluster.look().await?.recorded();
        drop(frozen);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = cluster.look().await?;
        ensure!(
            after.epoch() == before.epoch() + 1 && after.recorded() == promoted,
            "somebody was promoted again"
        );
        ensure!(
            operator::holder(&space.client).await? == Some(new),
            "the lease moved again"
        );
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        println!("writes after {:?}", finished.recovery(fault));
        operator::wait_ready(&space.client, RECOVERY).await
    })
    .await;
}

/// Waits until somebody else than `old` holds the lease.
async fn another_holder(space: &Space, old: &Option<String>, limit: Duration) -> Result<String> {
    let start = std::time::Instant::now();
    loop {
        match operator::holder(&space.client).await? {
            Some(holder) if Some(&holder) != old.as_ref() => return Ok(holder),
            _ => ensure!(start.elapsed() < limit, "{old:?} still holds the lease"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_operator_is_away_restarted_servers_wait_behind_the_fence_and_nothing_is_lost() {
    alone("away", |space| async move {
        operator::wait_ready(&space.client, RECOVERY).await?;
        let cluster = Applied::ready(&space, "away", replication()).await?;
        let (primary, pod) = cluster.primary().await?;
        let replica = cluster
            .pod((0..3).find(|it| *it != primary).context("a replica")?)
            .await?;
        let load = Load::start(&cluster).await?;
        let start = std::time::Instant::now();
        let absent = operator::remove(&space.client).await?;

        // Without anybody to lead, writes go on; a replica that restarts waits behind the fence.
        load.progress().await?;
        restart(&cluster, &replica).await?;
        load.progress().await?;
        stays_closed(&replica, Duration::from_secs(3)).await?;

        // Once the primary's server restarts as well, writes stop, and nobody finds it empty.
        restart(&cluster, &pod).await?;
        stays_closed(&pod, ABSENCE.saturating_sub(start.elapsed())).await?;
        drop(absent);
        operator::wait_ready(&space.client, RECOVERY).await?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        println!("dark for {:?}", finished.through_service.longest_gap());
        Ok(())
    })
    .await;
}

/// Kills a pod's server and waits until its container runs again.
async fn restart(cluster: &Applied, pod: &k8s_openapi::api::core::v1::Pod) -> Result<()> {
    Process::of(pod)?.kill()?;
    let (name, before) = (pod.name_any(), restarts(pod));
    cluster
        .wait("the container runs again", RECOVERY, |look| {
            look.pods
                .iter()
                .any(|it| it.name_any() == name && restarts(it) > before)
        })
        .await?;
    Ok(())
}

/// The client port refuses connections for this long.
async fn stays_closed(pod: &k8s_openapi::api::core::v1::Pod, time: Duration) -> Result<()> {
    let start = std::time::Instant::now();
    while start.elapsed() < time {
        let open = Connection::open(address(pod)?, None, LIMIT_OF_LOOKS);
        ensure!(
            open.is_err(),
            "the client port of {} is open",
            pod.name_any()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
