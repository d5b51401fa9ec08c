//! What each way of keeping data survives, when nobody is left who could have a copy in memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use serde_json::{Value, json};
use wellcake_e2e::apply::{Applied, Look, MAKING, restarts};
use wellcake_e2e::faults::{self, Process};
use wellcake_e2e::load::RECOVERY;
use wellcake_e2e::namespace::{Space, beside_others};
use wellcake_e2e::valkey::{Connection, Reply};

/// Keys before a snapshot is made, and as many after it.
const HALF: i64 = 100;

/// Keys that are left after all servers were killed, and after all pods were deleted in order.
struct Outcome {
    killed: i64,
    deleted: i64,
}

fn spec(medium: &str, mode: &str) -> Value {
    let durable = medium == "Disk" && matches!(mode, "aof" | "both");
    let profile = if durable { "Durable" } else { "Cache" };
    json!({
        "topology": "Replication",
        "profile": profile,
        "replicas": 2,
        "storage": { "medium": medium, "size": "64Mi", "mode": mode },
    })
}

async fn primary(cluster: &Applied) -> Result<Connection> {
    let (_, pod) = cluster.primary().await?;
    cluster.connect(&pod).await
}

async fn keys(cluster: &Applied) -> Result<i64> {
    match primary(cluster).await?.ok(&["DBSIZE"])? {
        Reply::Number(count) => Ok(count),
        other => anyhow::bail!("{other:?}"),
    }
}

fn write(server: &mut Connection, range: std::ops::Range<i64>) -> Result<()> {
    for key in range {
        server.ok(&["SET", &format!("key:{key}"), "x"])?;
    }
    server.ok(&["WAIT", "1", "2000"])?;
    Ok(())
}

/// Writes half of the keys, has every server make a snapshot if it makes any, and writes the other half.
async fn fill(cluster: &Applied, snapshots: bool) -> Result<()> {
    write(&mut primary(cluster).await?, 0..HALF)?;
    for pod in cluster.pods().await?.iter().filter(|_| snapshots) {
        cluster.connect(pod).await?.ok(&["SAVE"])?;
    }
    write(&mut primary(cluster).await?, HALF..2 * HALF)
}

async fn kill_all(cluster: &Applied) -> Result<()> {
    let before = cluster.pods().await?;
    let processes: Vec<Process> = before.iter().map(Process::of).collect::<Result<_>>()?;
    for process in processes {
        process.kill()?;
    }
    let restarted = |look: &Look| {
        let pairs = look.pods.iter().zip(&before);
        pairs
            .into_iter()
            .all(|(new, old)| restarts(new) > restarts(old))
    };
    cluster
        .wait("all servers restarted", RECOVERY, restarted)
        .await?;
    cluster.wait_ready(MAKING).await?;
    Ok(())
}

async fn delete_all(space: &Space, cluster: &Applied) -> Result<()> {
    let before = cluster.pods().await?;
    for pod in &before {
        faults::delete(space, &pod.name_any()).await?;
    }
    let old: Vec<Option<String>> = before.iter().map(ResourceExt::uid).collect();
    let replaced = |look: &Look| {
        look.pods.len() == old.len() && look.pods.iter().all(|pod| !old.contains(&pod.uid()))
    };
    cluster
        .wait("all pods are others", RECOVERY, replaced)
        .await?;
    cluster.wait_ready(MAKING).await?;
    Ok(())
}

async fn survives(space: &Space, medium: &str, mode: &str, wanted: Outcome) -> Result<()> {
    let name = format!("{}-{mode}", medium.to_lowercase());
    let cluster = Applied::ready(space, &name, spec(medium, mode)).await?;
    let started = Instant::now();
    let snapshots = medium == "Disk" && (mode == "rdb" || mode == "both");
    fill(&cluster, snapshots).await?;
    // A server that copied writes its append-only file anew; until that is done the file lacks what it copied.
    tokio::time::sleep(Duration::from_secs(2)).await;
    kill_all(&cluster).await?;
    let killed = keys(&cluster).await?;
    write(&mut primary(&cluster).await?, 0..2 * HALF)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    delete_all(space, &cluster).await?;
    let deleted = keys(&cluster).await?;
    println!(
        "{name}: {killed} keys after the kill, {deleted} after the deletion, {:?}",
        started.elapsed()
    );
    ensure!(
        (killed, deleted) == (wanted.killed, wanted.deleted),
        "{name}: {killed} keys after the kill, {deleted} after the deletion"
    );
    cluster.delete().await.context("cannot delete it")
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_keep_what_their_mode_says() {
    beside_others("modes", |space| async move {
        let all = 2 * HALF;
        for (mode, killed, deleted) in [
            ("none", 0, 0),
            ("rdb", HALF, all),
            ("aof", all, all),
            ("both", all, all),
        ] {
            survives(&space, "Disk", mode, Outcome { killed, deleted }).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_nothing_whatever_its_mode_says() {
    beside_others("medium", |space| async move {
        let nothing = || Outcome {
            killed: 0,
            deleted: 0,
        };
        for mode in ["none", "both"] {
            survives(&space, "Memory", mode, nothing()).await?;
        }
        Ok(())
    })
    .await;
}
