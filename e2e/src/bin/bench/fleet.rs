//! Many clusters at once: memory, what a steady state costs, and how fast another operator knows them all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::TryStreamExt;
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::Client;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::time::timeout;
use wellcake_crds::v1beta1::ValkeyCluster;
use wellcake_e2e::apply::{Applied, replication};
use wellcake_e2e::audit;
use wellcake_e2e::faults::Process;
use wellcake_e2e::load::RECOVERY;
use wellcake_e2e::namespace::Space;
use wellcake_e2e::operator;

use crate::Options;
use crate::figures::Figure;

/// Clusters that are made at once: the kubelets of one machine start a few pods a second.
const BATCH: usize = 5;
/// Longest wait for a batch.
const BATCH_LIMIT: Duration = Duration::from_secs(300);
/// How long a fresh operator idles before its memory is read, where nothing is measured for ten minutes.
const SETTLING: Duration = Duration::from_secs(30);
/// Restarts of each kind.
const RESTARTS: usize = 5;
const MIB: f64 = 1024.0 * 1024.0;

/// Takes the measures.
pub async fn run(client: Client, options: &Options, taken: &mut Vec<Figure>) -> Result<()> {
    operator::wait_ready(&client, RECOVERY).await?;
    taken.push(memory(&client, "memory of the operator, idle", 15.0).await?);
    let space = Space::create(client.clone(), "fleet").await?;
    let outcome = with_fleet(&client, &space, options, taken).await;
    space.delete().await?;
    outcome
}

async fn with_fleet(
    client: &Client,
    space: &Space,
    options: &Options,
    taken: &mut Vec<Figure>,
) -> Result<()> {
    let count = options.clusters;
    let start = Instant::now();
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(BATCH) {
        try_join_all(batch.iter().map(|number| async move {
            let cluster = Applied::create(space, &format!("fleet-{number}"), replication()).await?;
            cluster.wait_ready(BATCH_LIMIT).await
        }))
        .await?;
    }
    let making = start.elapsed().as_secs_f64();
    taken.push(Figure::new(
        &format!("{count} clusters made, five at once"),
        "s",
        &[making],
        None,
    ));
    steady(client, options, taken).await?;
    taken.push(
        memory(
            client,
            &format!("memory of the operator, {count} clusters of 3 pods"),
            40.0,
        )
        .await?,
    );
    for (signal, bound, kill) in [("SIGTERM", 2.0, false), ("SIGKILL", 17.0, true)] {
        let mut values = Vec::new();
        for _ in 0..RESTARTS {
            values.push(heard_again(client, kill, count).await?.as_secs_f64());
        }
        let title = format!(
            "{signal} of the leading operator → every server of {count} clusters heard again"
        );
        taken.push(Figure::new(&title, "s", &values, Some(bound)));
        for (change, bound) in [(Change::Spec, Some(bound)), (Change::Object, None)] {
            let mut values = Vec::new();
            for round in 0..RESTARTS {
                let took = restart(client, space, kill, change, round).await?;
                values.push(took.as_secs_f64());
            }
            let title = format!(
                "{signal} of the leading operator → {count} {}",
                change.title()
            );
            taken.push(Figure::new(&title, "s", &values, bound));
        }
    }
    Ok(())
}

/// What is changed in every cluster to see that it is observed.
#[derive(Clone, Copy)]
enum Change {
    /// A field that no object depends on.
    Spec,
    /// A field that an object has to be applied for.
    Object,
}

impl Change {
    const fn title(self) -> &'static str {
        match self {
            Self::Spec => "clusters observed again",
            Self::Object => "clusters observed again, with an object of each to apply",
        }
    }

    fn patch(self, odd: bool) -> serde_json::Value {
        match self {
            Self::Spec => {
                let schedule = if odd { "0 3 * * *" } else { "0 4 * * *" };
                json!({"spec": {"backup": {"schedule": schedule}}})
            }
            Self::Object => {
                let most = if odd { 2 } else { 1 };
                json!({"spec": {"podDisruptionBudget": {"maxUnavailable": most}}})
            }
        }
    }
}

/// Memory of the leader. With less than ten minutes of steady state before it, it is no final figure.
async fn memory(client: &Client, title: &str, bound: f64) -> Result<Figure> {
    tokio::time::sleep(SETTLING).await;
    let bytes = Process::of(&operator::leader(client).await?)?.resident()?;
    Ok(Figure::new(
        title,
        "MiB",
        &[bytes as f64 / MIB],
        Some(bound),
    ))
}

/// Counts requests while nothing changes.
async fn steady(client: &Client, options: &Options, taken: &mut Vec<Figure>) -> Result<()> {
    tokio::time::sleep(SETTLING).await;
    let leader = Process::of(&operator::leader(client).await?)?;
    let (from, before) = (Timestamp::now(), leader.processor_seconds()?);
    tokio::time::sleep(Duration::from_secs(60 * options.minutes)).await;
    let used = leader.processor_seconds()? - before;
    let seen = audit::requests(operator::USER, None, from, Timestamp::now())?;
    println!("{seen:?}");
    let title = format!(
        "steady state of {} clusters, {} minutes",
        options.clusters, options.minutes
    );
    let count = |what: &str, value: u64, bound| {
        Figure::new(&format!("{title}: {what}"), "count", &[value as f64], bound)
    };
    taken.push(count("writes to the API", seen.write_count(), Some(0.0)));
    taken.push(count(
        "reads other than watches",
        seen.read_count(),
        Some(0.0),
    ));
    taken.push(count("watches begun again", seen.watches, None));
    taken.push(count("reads and renewals of leases", seen.leases, None));
    let minutes = options.minutes.max(1) as f64;
    taken.push(Figure::new(
        &format!("{title}: processor time"),
        "s/min",
        &[used / minutes],
        None,
    ));
    Ok(())
}

/// Ends the leader; gives the time until an operator that leads has heard every server of all clusters. Nothing else is asked of
/// the API server meanwhile.
async fn heard_again(client: &Client, kill: bool, count: usize) -> Result<Duration> {
    operator::replace_restarted(client).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pods = operator::pods(client).await?;
    let leader = operator::leader(client).await?;
    let process = Process::of(&leader)?;
    // What the old process said counts until it was seen to be gone.
    let mut is_new: Vec<bool> = pods.iter().map(|pod| pod.uid() != leader.uid()).collect();
    let at = if kill {
        process.kill()?
    } else {
        process.terminate()?
    };
    while at.elapsed() < Duration::from_secs(120) {
        for (pod, new) in pods.iter().zip(&mut is_new) {
            let heard = operator::gauge(pod, "valkey_operator_clusters_heard").ok();
            let all = heard.is_some_and(|heard| heard >= count as f64);
            if all && *new {
                println!("all heard after {:.3?}", at.elapsed());
                return Ok(at.elapsed());
            }
            *new |= !all;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("not all of {count} clusters were heard within two minutes")
}

/// Ends the leader and changes every cluster at the same time; gives the time until the status of each speaks of the
/// change.
async fn restart(
    client: &Client,
    space: &Space,
    kill: bool,
    change: Change,
    round: usize,
) -> Result<Duration> {
    operator::replace_restarted(client).await?;
    // The one that leads now has heard of everybody.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let api = space.api::<ValkeyCluster>();
    let clusters = api.list(&ListParams::default()).await?;
    let version = clusters.metadata.resource_version.unwrap_or_default();
    let names: Vec<String> = clusters
        .items
        .into_iter()
        .filter_map(|it| it.metadata.name)
        .collect();
    // A watch costs the API server less than asking for all of them again and again.
    let mut changes = Box::pin(api.watch(&WatchParams::default(), &version).await?);
    let leader = Process::of(&operator::leader(client).await?)?;
    let at = if kill {
        leader.kill()?
    } else {
        leader.terminate()?
    };
    let change = change.patch((round + usize::from(kill)).is_multiple_of(2));
    let patch = Patch::Merge(&change);
    let params = PatchParams::default();
    let patched = try_join_all(names.iter().map(|name| api.patch(name, &params, &patch))).await?;
    let mut behind: BTreeMap<String, i64> = patched
        .into_iter()
        .filter_map(|it| Some((it.metadata.name?, it.metadata.generation?)))
        .collect();
    let mut observed = |it: ValkeyCluster| {
        let name = it.metadata.name.unwrap_or_default();
        let observed = it.status.and_then(|it| it.observed_generation);
        behind.retain(|other, asked| *other != name || observed < Some(*asked));
        behind.len()
    };
    let mut left = names.len();
    while left > 0 {
        let limit = Duration::from_secs(120).saturating_sub(at.elapsed());
        let Ok(event) = timeout(limit, changes.try_next()).await else {
            bail!("{left} clusters were not observed within two minutes");
        };
        match event? {
            Some(WatchEvent::Modified(it)) => left = observed(it),
            Some(_) => {}
            // The API server ends watches at times.
            None => {
                let clusters = api.list(&ListParams::default()).await?;
                let version = clusters.metadata.resource_version.unwrap_or_default();
                for it in clusters.items {
                    left = observed(it);
                }
                changes = Box::pin(api.watch(&WatchParams::default(), &version).await?);
            }
        }
    }
    println!("all observed after {:.3?}", at.elapsed());
    Ok(at.elapsed())
}
