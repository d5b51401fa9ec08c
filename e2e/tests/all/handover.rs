//! The primary gives the lead away while it lives: asked for, or since its pod goes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use serde_json::json;
use wellcake_e2e::apply::{Applied, Look, durable, replication};
use wellcake_e2e::faults;
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::{alone, beside_others};
use wellcake_e2e::operator;

/// How long it is watched that nothing happens.
const STILL: Duration = Duration::from_secs(3);
/// Longest wait for another operator to lead: a lease of 15 seconds and its retries.
const SUCCESSION: Duration = Duration::from_secs(60);

fn served(look: &Look) -> Option<String> {
    look.status().last_failover_token
}

/// Full synchronisations that all servers of a cluster have served since they started.
async fn full_syncs(cluster: &Applied) -> Result<u64> {
    let mut all = 0;
    for pod in cluster.pods().await? {
        let count = cluster.connect(&pod).await?.info("stats", "sync_full")?;
        all += count.parse::<u64>()?;
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asked_handover_moves_the_lead_once_for_each_token_and_nothing_is_lost() {
    beside_others("asked", |space| async move {
        let cluster = Applied::ready(&space, "asked", replication()).await?;
        let syncs = full_syncs(&cluster).await?;
        for round in 1..=4 {
            let before = cluster.look().await?;
            let old = before.recorded().context("a record")?;
            // Every second time to a pod that is named.
            let target = (round % 2 == 0).then(|| (old + 1) % 3);
            let load = Load::start(&cluster).await?;
            let token = format!("round {round}");
            let name = target.map(|pod| cluster.name.pod(pod));
            cluster
                .annotate(json!({
                    "valkey.wellcake.io/failover": token,
                    "valkey.wellcake.io/failover-target": name,
                }))
                .await?;
            let look = cluster
                .wait(
                    "the token is served and another pod leads",
                    RECOVERY,
                    |look| {
                        let moved = look.recorded() != Some(old) && look.status().primary.is_some();
                        served(look).as_ref() == Some(&token) && moved
                    },
                )
                .await?;
            let new = look.recorded().context("a record")?;
            ensure!(target.is_none_or(|target| target == new), "pod {new} leads");
            let finished = load.finish(&cluster).await?;
            println!(
                "round {round}: longest gap {:?} at pods, {:?} through the Service",
                finished.at_pods.longest_gap(),
                finished.through_service.longest_gap()
            );
            finished.nothing_lost()?;
            let after = cluster.look().await?;
            let promotions = after.epoch() - before.epoch();
            ensure!(promotions == 1, "{promotions} promotions");
        }
        ensure!(
            full_syncs(&cluster).await? == syncs,
            "a server was copied anew"
        );
        let before = cluster.look().await?;
        tokio::time::sleep(STILL).await;
        ensure!(
            cluster.look().await?.epoch() == before.epoch(),
            "a token was served twice"
        );
        let events = cluster.events().await?;
        ensure!(
            events.iter().any(|(reason, _)| reason == "HandoverOrdered"),
            "no event tells it: {events:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_whose_pod_is_deleted_hands_over_before_it_ends() {
    beside_others("leaves", |space| async move {
        let cluster = Applied::ready(&space, "leaves", durable()).await?;
        for _ in 1..=2 {
            let before = cluster.look().await?;
            let (old, pod) = cluster.primary().await?;
            let load = Load::start(&cluster).await?;
            faults::delete(&space, &pod.name_any()).await?;
            cluster
                .wait("another pod leads", RECOVERY, |look| {
                    look.recorded() != Some(old) && look.status().primary.is_some()
                })
                .await?;
            let finished = load.finish(&cluster).await?;
            println!(
                "longest gap {:?} at pods, {:?} through the Service",
                finished.at_pods.longest_gap(),
                finished.through_service.longest_gap()
            );
            finished.nothing_lost()?;
            let after = cluster.look().await?;
            ensure!(
                after.epoch() == before.epoch() + 1,
                "more than one promotion"
            );
        }
        let events = cluster.events().await?;
        ensure!(
            events.iter().any(|(reason, _)| reason == "PrimaryLeaves"),
            "no event tells it: {events:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pods_are_evicted_in_turn_under_load_and_nothing_is_lost() {
    beside_others("evict", |space| async move {
        let cluster = Applied::ready(&space, "evict", replication()).await?;
        let load = Load::start(&cluster).await?;
        for pod in cluster.pods().await? {
            faults::evict(&space, &pod.name_any(), RECOVERY).await?;
            cluster
                .wait("the pod is another one", RECOVERY, |look| {
                    look.pods
                        .iter()
                        .any(|it| it.name_any() == pod.name_any() && it.uid() != pod.uid())
                })
                .await?;
            cluster.wait_ready(RECOVERY).await?;
        }
        let finished = load.finish(&cluster).await?;
        println!(
            "longest gap {:?} at pods, {:?} through the Service",
            finished.at_pods.longest_gap(),
            finished.through_service.longest_gap()
        );
        finished.nothing_lost()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_cannot_lead_is_refused_by_name_and_the_token_is_spent() {
    beside_others("target", |space| async move {
        let cluster = Applied::ready(&space, "target", replication()).await?;
        let before = cluster.look().await?;
        let primary = cluster.name.pod(before.recorded().context("a record")?);
        for (target, reason) in [("nobody-7", "TargetUnknown"), (&primary, "TargetLeads")] {
            cluster
                .annotate(json!({
                    "valkey.wellcake.io/failover": reason,
                    "valkey.wellcake.io/failover-target": target,
                }))
                .await?;
            cluster
                .wait("the token is spent", RECOVERY, |look| {
                    served(look).as_deref() == Some(reason)
                })
                .await?;
            let told = Instant::now();
            loop {
                let events = cluster.events().await?;
                if events.iter().any(|(name, _)| name == reason) {
                    break;
                }
                ensure!(told.elapsed() < RECOVERY, "no event tells it: {events:?}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        let after = cluster.wait_ready(RECOVERY).await?;
        ensure!(after.epoch() == before.epoch(), "somebody was promoted");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_in_the_middle_of_a_handover_costs_no_write() {
    alone("midway", |space| async move {
        let cluster = Applied::ready(&space, "midway", replication()).await?;
        for after in [4, 12] {
            let before = cluster.look().await?;
            let leader = operator::leader(&space.client).await?;
            let process = faults::Process::of(&leader)?;
            let load = Load::start(&cluster).await?;
            let token = format!("{after} ms");
            cluster
                .annotate(json!({"valkey.wellcake.io/failover": token}))
                .await?;
            tokio::time::sleep(Duration::from_millis(after)).await;
            process.kill()?;
            let look = cluster
                .wait("the token is served, or given up", SUCCESSION, |look| {
                    let record = look.status().primary_record;
                    let settled = record.is_some_and(|record| record.planned.is_none());
                    served(look).as_ref() == Some(&token) && settled && look.is_ready()
                })
                .await?;
            let promotions = look.epoch() - before.epoch();
            println!("killed after {after} ms: {promotions} records");
            ensure!((1..=2).contains(&promotions), "{promotions} promotions");
            load.finish(&cluster).await?.nothing_lost()?;
        }
        operator::wait_ready(&space.client, SUCCESSION).await
    })
    .await;
}
