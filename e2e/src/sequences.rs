//! Random sequences of what people ask for and what goes wrong, under load. A seed gives the sequence; what meets what in it is up
//! to the machine.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::EvictParams;
use serde_json::{Value, json};

use crate::apply::{Applied, durable, restarts};
use crate::cluster::repo;
use crate::faults::{self, Process};
use crate::load::Load;
use crate::namespace::Space;
use crate::operator;

/// Steps of a sequence.
const STEPS: usize = 6;
/// How long a cluster may take to be whole after the last step. Containers that were killed three times wait 40 s for their next
/// start (`pkg/kubelet: MaxContainerBackOff`, doubled from 10 s).
pub const WHOLE: Duration = Duration::from_secs(180);
/// Pauses between steps, in milliseconds.
const PAUSES: [u64; 5] = [0, 200, 1_000, 3_000, 10_000];

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another value of a directive that running servers take.
    LiveDirective(u64),
    /// Another value of a directive that only a start takes.
    StartDirective(u64),
    /// This image.
    Image(&'static str),
    /// So many pods.
    Replicas(u64),
    /// The annotation `valkey.wellcake.io/restart`.
    Restart(u64),
    /// The annotation `valkey.wellcake.io/failover`.
    Handover(u64),
    /// No pods for a while.
    Sleep,
    /// The server of the primary is killed.
    KillPrimary,
    /// The server of some pod is killed.
    Kill(u64),
    /// Some pod is deleted in order.
    Delete(u64),
    /// Some pod is force-deleted.
    ForceDelete(u64),
    /// The eviction of some pod is asked for once.
    Evict(u64),
    /// The server of some pod is stopped for so many milliseconds.
    Freeze(u64, u64),
}

/// The steps of a seed, each with the pause before it.
pub fn steps(seed: u64) -> Vec<(Duration, Step)> {
    let mut random = Random(seed);
    (0..STEPS)
        .map(|_| {
            let pause = PAUSES[random.below(PAUSES.len() as u64) as usize];
            (Duration::from_millis(pause), step(&mut random))
        })
        .collect()
}

fn step(random: &mut Random) -> Step {
    let number = random.below(1_000);
    match random.below(13) {
        0 => Step::LiveDirective(number),
        1 => Step::StartDirective(512 + number),
        2 => Step::Image(["valkey/valkey:8.0", "valkey/valkey:8.1"][(number % 2) as usize]),
        3 => Step::Replicas(2 + number % 3),
        4 => Step::Restart(number),
        5 => Step::Handover(number),
        6 => Step::Sleep,
        7 => Step::KillPrimary,
        8 => Step::Kill(number),
        9 => Step::Delete(number),
        10 => Step::ForceDelete(number),
        11 => Step::Evict(number),
        _ => Step::Freeze(number, 500 + 5 * number),
    }
}

/// SplitMix64 (public domain): the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Plays the sequence of a seed on a cluster of profile Durable. Says what was lost, and fails when the cluster is not whole again
/// within [`WHOLE`].
///
/// # Errors
/// With the seed, the steps and all that is known of the cluster.
pub async fn play(space: &Space, seed: u64) -> Result<usize> {
    let name = format!("seed-{seed}");
    let cluster = Applied::ready(space, &name, durable()).await?;
    let load = Load::start(&cluster).await?;
    let mut spec = durable();
    let steps = steps(seed);
    for (pause, step) in &steps {
        tokio::time::sleep(*pause).await;
        take(space, &cluster, &mut spec, step)
            .await
            .with_context(|| format!("seed {seed}: {step:?}"))?;
    }
    let told = || format!("seed {seed}: {steps:?}");
    cluster.wait_ready(WHOLE).await.with_context(told)?;
    let finished = load.finish(&cluster).await.with_context(told)?;
    let outcome = &finished.outcome;
    if outcome.lost + outcome.altered > 0 {
        println!("{}\n{outcome:?}\n{}", told(), cluster.story().await);
        let trace = operator::trace(&space.client, &space.name, &name).await?;
        let file = repo().join(format!("target/bench/{name}.jsonl"));
        std::fs::write(&file, trace)?;
        println!("recorded decisions: {}", file.display());
    }
    ensure!(outcome.acknowledged > 0, "nothing was written: {}", told());
    cluster.delete().await?;
    Ok(outcome.lost + outcome.altered)
}

async fn take(space: &Space, cluster: &Applied, spec: &mut Value, step: &Step) -> Result<()> {
    match step {
        Step::LiveDirective(value) => {
            spec["config"]["timeout"] = json!((3_600 + value).to_string());
            cluster.apply(spec.clone()).await
        }
        Step::StartDirective(value) => {
            spec["config"]["tcp-backlog"] = json!(value.to_string());
            cluster.apply(spec.clone()).await
        }
        Step::Image(image) => {
            spec["image"] = json!(image);
            cluster.apply(spec.clone()).await
        }
        Step::Replicas(count) => {
            spec["replicas"] = json!(count);
            cluster.apply(spec.clone()).await
        }
        Step::Restart(token) => annotate(cluster, "restart", json!(token.to_string())).await,
        Step::Handover(token) => annotate(cluster, "failover", json!(token.to_string())).await,
        Step::Sleep => {
            annotate(cluster, "hibernate", json!("true")).await?;
            tokio::time::sleep(Duration::from_secs(5)).await;
            annotate(cluster, "hibernate", Value::Null).await
        }
        Step::KillPrimary => {
            let primary = cluster.look().await?.recorded();
            let pods = cluster.pods().await?;
            let named = |pod: &&Pod| Some(pod.name_any()) == primary.map(|n| cluster.name.pod(n));
            kill(pods.iter().find(named))
        }
        Step::Kill(n) => kill(some(&cluster.pods().await?, *n)),
        Step::Delete(n) => {
            if let Some(pod) = some(&cluster.pods().await?, *n) {
                unless_gone(faults::delete(space, &pod.name_any()).await)?;
            }
            Ok(())
        }
        Step::ForceDelete(n) => {
            if let Some(pod) = some(&cluster.pods().await?, *n) {
                unless_gone(faults::force_delete(space, &pod.name_any()).await)?;
            }
            Ok(())
        }
        Step::Evict(n) => {
            if let Some(pod) = some(&cluster.pods().await?, *n) {
                // A budget may refuse it, and does so rightly.
                let api = space.api::<Pod>();
                let _ = api.evict(&pod.name_any(), &EvictParams::default()).await;
            }
            Ok(())
        }
        Step::Freeze(n, millis) => {
            let pods = cluster.pods().await?;
            let process = some(&pods, *n).and_then(|pod| Process::of(pod).ok());
            let frozen = process.and_then(|process| process.freeze().ok());
            tokio::time::sleep(Duration::from_millis(*millis)).await;
            drop(frozen);
            Ok(())
        }
    }
}

async fn annotate(cluster: &Applied, name: &str, value: Value) -> Result<()> {
    let key = format!("valkey.wellcake.io/{name}");
    cluster.annotate(json!({ key: value })).await
}

fn some(pods: &[Pod], number: u64) -> Option<&Pod> {
    let at = number.checked_rem(pods.len() as u64)?;
    pods.get(usize::try_from(at).ok()?)
}

/// A server that does not run is not killed, nor one whose container waits long for its next start already.
fn kill(pod: Option<&Pod>) -> Result<()> {
    let few = |pod: &&Pod| restarts(pod) < 3;
    if let Some(process) = pod.filter(few).and_then(|pod| Process::of(pod).ok()) {
        // It may have ended this moment.
        let _ = process.kill();
    }
    Ok(())
}

fn unless_gone<T>(outcome: Result<T>) -> Result<()> {
    let Err(why) = outcome else { return Ok(()) };
    let gone = why.chain().any(|cause| {
        let api = cause.downcast_ref::<kube::Error>();
        matches!(api, Some(kube::Error::Api(status)) if status.code == 404)
    });
    if gone { Ok(()) } else { Err(why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_steps_each_time_and_seeds_differ() {
        assert_eq!(steps(7), steps(7));
        assert_ne!(steps(7), steps(8));
        let all: Vec<_> = (0..100).flat_map(steps).map(|(_, step)| step).collect();
        let kinds: std::collections::BTreeSet<String> = all
            .iter()
            .map(|step| {
                format!("{step:?}")
                    .split('(')
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        assert_eq!(kinds.len(), 13, "{kinds:?}");
    }
}
