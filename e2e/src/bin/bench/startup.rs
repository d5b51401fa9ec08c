//! From the start of the last container to a cluster that says it is ready, and is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;
use wellcake_crds::v1beta1::ValkeyCluster;
use wellcake_e2e::apply::{Applied, Look, MAKING, replication};
use wellcake_e2e::faults::Process;
use wellcake_e2e::namespace::Space;
use wellcake_e2e::truth;

use crate::Options;
use crate::figures::Figure;

/// Takes the measure.
pub async fn run(client: Client, options: &Options, taken: &mut Vec<Figure>) -> Result<()> {
    let space = Space::create(client, "bench").await?;
    let (mut own, mut coarse, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let outcome = async {
        for run in 1..=options.runs {
            let start = Instant::now();
            let cluster = Applied::create(&space, &format!("start-{run}"), replication()).await?;
            let (at, look) = ready(&cluster).await?;
            // Ready must be true when it is said.
            truth::whole(&cluster, &look)
                .await
                .context("Ready came too early")?;
            let process = last_process(&look.pods, at)?;
            own.push(process.as_secs_f64());
            coarse.push(last_started(&look.pods, at)?);
            whole.push((at - start).as_secs_f64());
            println!(
                "run {run}: ready {process:.3?} after the last server, {:.3?} after the apply",
                at - start
            );
            cluster.delete().await?;
            gone(&cluster).await?;
        }
        Ok(())
    }
    .await;
    let title = "last server started → Ready with all replicas in sync, 3 pods";
    taken.push(Figure::new(
        &format!("{title} (start of the process)"),
        "s",
        &own,
        Some(1.5),
    ));
    taken.push(Figure::new(
        &format!("{title} (`startedAt`, whole seconds)"),
        "s",
        &coarse,
        None,
    ));
    taken.push(Figure::new("apply → Ready, 3 pods", "s", &whole, None));
    space.delete().await?;
    outcome
}

/// Waits for the first event of a watch that says ready; gives the time of its arrival.
async fn ready(cluster: &Applied) -> Result<(Instant, Look)> {
    let api = cluster.space.api::<ValkeyCluster>();
    let params = WatchParams::default().fields(&format!("metadata.name={}", cluster.name.as_str()));
    let watch = async {
        let mut events = Box::pin(api.watch(&params, "0").await?);
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(it) | WatchEvent::Modified(it) = event {
                let at = Instant::now();
                let look = Look {
                    cluster: it,
                    pods: Vec::new(),
                };
                if look.is_ready() {
                    return Ok((
                        at,
                        Look {
                            pods: cluster.pods().await?,
                            ..look
                        },
                    ));
                }
            }
        }
        bail!("the watch ended")
    };
    match tokio::time::timeout(MAKING, watch).await {
        Ok(outcome) => outcome,
        Err(_) => bail!("not ready after {MAKING:?}\n{}", cluster.story().await),
    }
}

async fn gone(cluster: &Applied) -> Result<()> {
    let start = Instant::now();
    while !cluster.pods().await?.is_empty() {
        if start.elapsed() > MAKING {
            bail!("the pods of {} do not go", json!(cluster.name.as_str()));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Time from the start of the youngest server process to `at`.
fn last_process(pods: &[Pod], at: Instant) -> Result<Duration> {
    let mut youngest = Duration::MAX;
    for pod in pods {
        youngest = youngest.min(Process::of(pod)?.age()?.saturating_sub(at.elapsed()));
    }
    Ok(youngest)
}

/// Seconds from the last `startedAt` to `at`; the former is cut to whole seconds, so this is up to one too much.
fn last_started(pods: &[Pod], at: Instant) -> Result<f64> {
    let statuses = pods
        .iter()
        .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref());
    let started = statuses
        .flatten()
        .filter_map(|it| it.state.as_ref()?.running.as_ref()?.started_at.as_ref())
        .map(|time| time.0)
        .max()
        .context("no container runs")?;
    let now = Timestamp::now();
    Ok((now.duration_since(started).as_secs_f64() - at.elapsed().as_secs_f64()).max(0.0))
}
