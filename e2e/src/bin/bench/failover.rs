//! The primary is lost, or gives the lead away, under load.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use serde_json::json;
use wellcake_e2e::apply::{Applied, replication, restarts};
use wellcake_e2e::drain;
use wellcake_e2e::faults::{self, BlackHole, Frozen, Process};
use wellcake_e2e::hanging::HangingApply;
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::Space;
use wellcake_e2e::operator;

use crate::Options;
use crate::figures::Figure;

/// From here on it is told what the clients met.
const SLOW: Duration = Duration::from_millis(1_300);

/// What is done to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL of its server.
    Kill,
    /// The same while a replica is stopped.
    KillBesideFrozen,
    /// The same while an Apply of the operator hangs at the API server.
    KillWhileApplyHangs,
    /// `kubectl delete pod --force --grace-period=0`.
    ForceDelete,
    /// SIGKILL of its server and of the operator that leads.
    LeaderAndPrimary,
    /// No fault: the annotation `valkey.wellcake.io/failover`.
    Handover,
    /// `kubectl delete pod`.
    Delete,
    /// No fault: another configuration, with which every pod is replaced.
    Roll,
    /// No fault: the node of the primary is closed and its pods are evicted.
    Drain,
    /// The pod of the primary is cut off from everybody.
    BlackHole,
}

impl Fault {
    const fn title(self) -> &'static str {
        match self {
            Self::Kill => "server of the primary killed → first acknowledged write",
            Self::KillBesideFrozen => {
                "server of the primary killed beside a frozen replica → first acknowledged write"
            }
            Self::KillWhileApplyHangs => {
                "server of the primary killed while an Apply hangs → first acknowledged write"
            }
            Self::ForceDelete => "pod of the primary force-deleted → first acknowledged write",
            Self::LeaderAndPrimary => {
                "leading operator and primary killed → first acknowledged write"
            }
            Self::Handover => "planned handover, longest pause between acknowledged writes",
            Self::Delete => "pod of the primary deleted, longest pause between acknowledged writes",
            Self::Roll => "configuration rolled, longest pause between acknowledged writes",
            Self::Drain => "node of the primary drained, longest pause between acknowledged writes",
            Self::BlackHole => "pod of the primary cut off → first acknowledged write",
        }
    }

    /// Bounds at pod level and through the Service, in seconds.
    const fn bounds(self) -> (f64, f64) {
        match self {
            Self::Kill | Self::KillBesideFrozen | Self::KillWhileApplyHangs => (0.5, 0.8),
            Self::ForceDelete => (1.5, 2.0),
            Self::LeaderAndPrimary => (20.0, 20.0),
            Self::Handover => (0.05, 0.15),
            // Pods that come and go change where Services lead, too.
            Self::Roll | Self::Drain => (0.05, 1.2),
            Self::BlackHole => (22.0, 23.2),
            // Right after another change: the deletion itself changes where the Service leads.
            Self::Delete => (0.05, 1.2),
        }
    }

    /// Whether the primary lives on until another one leads.
    const fn is_planned(self) -> bool {
        matches!(
            self,
            Self::Handover | Self::Delete | Self::Roll | Self::Drain
        )
    }
}

/// What the runs gave.
#[derive(Default)]
struct Values {
    at_pods: Vec<f64>,
    through_service: Vec<f64>,
    lost: Vec<f64>,
    altered: Vec<f64>,
    empty_reads: Vec<f64>,
}

/// Takes the measure.
pub async fn run(
    client: Client,
    fault: Fault,
    options: &Options,
    taken: &mut Vec<Figure>,
) -> Result<()> {
    let space = Space::create(client, "bench").await?;
    let mut values = Values::default();
    let outcome = runs(&space, fault, options.runs, &mut values).await;
    let (pods, service) = fault.bounds();
    let title = fault.title();
    taken.push(Figure::new(
        &format!("{title}, pod level"),
        "s",
        &values.at_pods,
        Some(pods),
    ));
    taken.push(Figure::new(
        &format!("{title}, Service"),
        "s",
        &values.through_service,
        Some(service),
    ));
    taken.push(Figure::new(
        "acknowledged writes that were lost",
        "count",
        &values.lost,
        Some(0.0),
    ));
    taken.push(Figure::new(
        "acknowledged writes that were taken back",
        "count",
        &values.altered,
        Some(0.0),
    ));
    taken.push(Figure::new(
        "reads that found an empty server",
        "count",
        &values.empty_reads,
        Some(0.0),
    ));
    space.delete().await?;
    outcome
}

async fn runs(space: &Space, fault: Fault, runs: usize, values: &mut Values) -> Result<()> {
    let cluster = Applied::ready(space, "bench", replication()).await?;
    for run in 1..=runs {
        operator::wait_ready(&space.client, RECOVERY).await?;
        let (old, pod) = cluster.primary().await?;
        let load = Load::start(&cluster).await?;
        let (at, lasting) = harm(space, fault, &cluster, &pod).await?;
        let recovered = recovered(&cluster, fault, old).await;
        let progress = load.progress().await;
        lasting.end().await?;
        recovered.and(progress)?;
        let finished = load.finish(&cluster).await?;
        let (at_pods, service) = if fault.is_planned() {
            let pods = finished.at_pods.longest_gap();
            (pods, finished.through_service.longest_gap())
        } else {
            finished.recovery(at).context("no write after the fault")?
        };
        println!(
            "run {run}: {at_pods:.3?} at pod level, {service:.3?} through the Service, {:?}",
            finished.outcome
        );
        if at_pods.max(service) > SLOW {
            println!(
                "met at pod level: {}through the Service: {}",
                finished.at_pods.failures(),
                finished.through_service.failures()
            );
        }
        values.at_pods.push(at_pods.as_secs_f64());
        values.through_service.push(service.as_secs_f64());
        values.lost.push(finished.outcome.lost as f64);
        values.altered.push(finished.outcome.altered as f64);
        values.empty_reads.push(finished.empty_reads as f64);
        refresh(space, &cluster).await?;
    }
    Ok(())
}

/// Waits until what was planned is done.
async fn recovered(cluster: &Applied, fault: Fault, old: u32) -> Result<()> {
    if fault.is_planned() {
        cluster
            .wait("another pod leads", RECOVERY, |look| {
                look.recorded() != Some(old) && look.status().primary.is_some()
            })
            .await?;
    }
    if matches!(fault, Fault::Roll | Fault::Drain) {
        cluster.wait_ready(RECOVERY).await?;
    }
    Ok(())
}

/// What lasts until writes go on.
#[derive(Default)]
struct Lasting {
    frozen: Option<Frozen>,
    hole: Option<BlackHole>,
    hanging: Option<HangingApply>,
    /// A node that takes no pods.
    closed: Option<(Space, String)>,
}

impl Lasting {
    async fn end(self) -> Result<()> {
        drop(self.frozen);
        drop(self.hole);
        if let Some((space, node)) = self.closed {
            drain::cordon(&space, &node, false).await?;
        }
        match self.hanging {
            Some(hanging) => hanging.end().await,
            None => Ok(()),
        }
    }
}

async fn harm(
    space: &Space,
    fault: Fault,
    cluster: &Applied,
    pod: &Pod,
) -> Result<(Instant, Lasting)> {
    let mut lasting = Lasting::default();
    let primary = Process::of(pod)?;
    let at = match fault {
        Fault::Kill => primary.kill(),
        Fault::KillBesideFrozen => {
            let pods = cluster.pods().await?;
            let other = pods.iter().find(|it| it.name_any() != pod.name_any());
            lasting.frozen = Some(Process::of(other.context("no replica")?)?.freeze()?);
            tokio::time::sleep(Duration::from_millis(500)).await;
            primary.kill()
        }
        Fault::KillWhileApplyHangs => {
            lasting.hanging = Some(HangingApply::start(space).await?);
            primary.kill()
        }
        Fault::Handover => {
            let token = format!("{:?}", Instant::now());
            cluster
                .annotate(json!({"valkey.wellcake.io/failover": token}))
                .await?;
            Ok(Instant::now())
        }
        Fault::Roll => {
            let mut spec = replication();
            // Another one each time.
            let backlog = 1_000 + cluster.look().await?.epoch();
            spec["config"] = json!({ "tcp-backlog": backlog.to_string() });
            cluster.apply(spec).await?;
            Ok(Instant::now())
        }
        Fault::Drain => {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            let node = node.context("the primary has no node")?;
            drain::cordon(space, &node, true).await?;
            lasting.closed = Some((space.clone(), node));
            faults::evict(space, &pod.name_any(), RECOVERY).await
        }
        Fault::BlackHole => {
            lasting.hole = Some(BlackHole::around(pod)?);
            Ok(Instant::now())
        }
        Fault::Delete => faults::delete(space, &pod.name_any()).await,
        Fault::ForceDelete => faults::force_delete(space, &pod.name_any()).await,
        Fault::LeaderAndPrimary => {
            let leader = Process::of(&operator::leader(&space.client).await?)?;
            leader.kill()?;
            primary.kill()
        }
    }?;
    Ok((at, lasting))
}

/// Replaces pods whose server was restarted: the kubelet waits longer before each further restart of a container, which
/// would be measured instead of the operator.
async fn refresh(space: &Space, cluster: &Applied) -> Result<()> {
    for pod in cluster.pods().await?.iter().filter(|pod| restarts(pod) > 0) {
        faults::force_delete(space, &pod.name_any()).await?;
        cluster
            .wait("the pod is another one", RECOVERY, |look| {
                look.pods
                    .iter()
                    .any(|it| it.name_any() == pod.name_any() && it.uid() != pod.uid())
            })
            .await?;
        cluster.wait_ready(RECOVERY).await?;
    }
    operator::replace_restarted(&space.client).await?;
    // Lets what the kubelet and the kernel tidy up after a pod be done.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}
