//! A ValkeyCluster: created, looked at, waited for, and told of when it does not come.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::core::v1::{Event, Pod, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use wellcake_crds::labels;
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{ValkeyCluster, ValkeyClusterStatus};

use crate::ledger::Address;
use crate::namespace::Space;
use crate::operator;
use crate::valkey::{Connection, PATIENT};

/// Port of clients.
pub const PORT: u16 = 6379;
/// Longest wait for a cluster to be made, on two processors that also run Kubernetes and other tests.
pub const MAKING: Duration = Duration::from_secs(120);
const MANAGER: &str = "wellcake-e2e";
const POLL: Duration = Duration::from_millis(150);

/// A spec of topology Replication that keeps everything in memory, three pods.
pub fn replication() -> Value {
    json!({"topology": "Replication", "storage": {"medium": "Memory", "size": "64Mi"}})
}

/// The same without a volume of its own kind: what a user gets who only names the topology, on small claims.
pub fn on_claims() -> Value {
    json!({"topology": "Replication", "storage": {"size": "64Mi", "mode": "none"}})
}

/// A Durable spec of topology Replication with snapshots and the append-only file, three pods.
pub fn durable() -> Value {
    json!({"topology": "Replication", "profile": "Durable", "storage": {"size": "64Mi", "mode": "both"}})
}

/// A ValkeyCluster of a test.
#[derive(Clone)]
pub struct Applied {
    /// Its namespace.
    pub space: Space,
    /// Its name.
    pub name: ClusterName,
}

/// One look at a ValkeyCluster and its pods.
pub struct Look {
    /// The ValkeyCluster.
    pub cluster: ValkeyCluster,
    /// Its data pods, by ordinal.
    pub pods: Vec<Pod>,
}

impl Applied {
    /// Creates a ValkeyCluster.
    pub async fn create(space: &Space, name: &str, spec: Value) -> Result<Self> {
        let applied = Self {
            space: space.clone(),
            name: ClusterName::parse(name)?,
        };
        applied.apply(spec).await?;
        Ok(applied)
    }

    /// Creates a ValkeyCluster and waits until it is ready.
    pub async fn ready(space: &Space, name: &str, spec: Value) -> Result<Self> {
        let applied = Self::create(space, name, spec).await?;
        applied.wait_ready(MAKING).await?;
        Ok(applied)
    }

    /// Applies a spec.
    pub async fn apply(&self, spec: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "cache.wellcake.io/v1beta1",
            "kind": "ValkeyCluster",
            "metadata": {"name": self.name.as_str()},
            "spec": spec,
        });
        let params = PatchParams::apply(MANAGER).force().validation_strict();
        self.space
            .api::<ValkeyCluster>()
            .patch(self.name.as_str(), &params, &Patch::Apply(&object))
            .await
            .with_context(|| format!("cannot apply the ValkeyCluster {}", self.name.as_str()))?;
        Ok(())
    }

    /// Sets annotations of the ValkeyCluster; a value of null takes one away.
    pub async fn annotate(&self, annotations: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        self.space
            .api::<ValkeyCluster>()
            .patch(self.name.as_str(), &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Deletes the ValkeyCluster.
    pub async fn delete(&self) -> Result<()> {
        let api = self.space.api::<ValkeyCluster>();
        api.delete(self.name.as_str(), &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// A look at the cluster and its pods.
    pub async fn look(&self) -> Result<Look> {
        let cluster = self
            .space
            .api::<ValkeyCluster>()
            .get(self.name.as_str())
            .await?;
        Ok(Look {
            cluster,
            pods: self.pods().await?,
        })
    }

    /// The data pods, by ordinal.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let mine = ListParams::default().labels(&format!(
            "{}={},{}={}",
            labels::INSTANCE,
            self.name.as_str(),
            labels::NAME,
            labels::NAME_VALKEY
        ));
        let mut pods = self.space.api::<Pod>().list(&mine).await?.items;
        pods.sort_by_key(|pod| ordinal(&pod.name_any()));
        Ok(pods)
    }

    /// One data pod.
    pub async fn pod(&self, ordinal: u32) -> Result<Pod> {
        let name = self.name.pod(ordinal);
        self.space
            .api::<Pod>()
            .get(&name)
            .await
            .with_context(|| format!("cannot get the pod {name}"))
    }

    /// The pod of the recorded primary, and its ordinal.
    pub async fn primary(&self) -> Result<(u32, Pod)> {
        let look = self.look().await?;
        let ordinal = look.recorded().context("there is no primary record")?;
        Ok((ordinal, self.pod(ordinal).await?))
    }

    /// Waits until a look shows what is wanted.
    ///
    /// # Errors
    /// After `limit`, with everything that is known about the cluster.
    pub async fn wait(
        &self,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Look) -> bool,
    ) -> Result<Look> {
        let start = Instant::now();
        loop {
            let look = self.look().await?;
            if wanted(&look) {
                return Ok(look);
            }
            if start.elapsed() > limit {
                bail!("waited {limit:?} for this: {what}\n{}", self.story().await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the cluster says that it is ready, and the servers agree.
    pub async fn wait_ready(&self, limit: Duration) -> Result<Look> {
        let start = Instant::now();
        // The condition may be that of a moment before the fault; what the servers say decides.
        loop {
            let left = limit.saturating_sub(start.elapsed());
            let seen = self
                .wait("condition Ready is True", left, Look::is_ready)
                .await?;
            match crate::truth::whole(self, &seen).await {
                Ok(()) => return Ok(seen),
                Err(why) if left.is_zero() => {
                    return Err(why.context(format!("Ready is True\n{}", self.story().await)));
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// The password of clients.
    pub async fn password(&self) -> Result<String> {
        let cluster = self
            .space
            .api::<ValkeyCluster>()
            .get(self.name.as_str())
            .await?;
        let name = self.name.auth_secret(cluster.spec.auth.as_ref());
        let secret = self.space.api::<Secret>().get(&name).await?;
        let bytes = secret.data.and_then(|mut data| data.remove("password"));
        let bytes = bytes.with_context(|| format!("the Secret {name} has no key password"))?;
        Ok(String::from_utf8(bytes.0)?)
    }

    /// Address of one of the cluster's Services.
    pub async fn service(&self, name: &str) -> Result<SocketAddr> {
        let service = self.space.api::<Service>().get(name).await?;
        let ip = service
            .spec
            .and_then(|spec| spec.cluster_ip)
            .context("the Service has no address")?;
        Ok(SocketAddr::new(ip.parse()?, PORT))
    }

    /// Address of the client Service, for the ledger.
    pub async fn client_address(&self) -> Result<std::sync::Arc<Address>> {
        Ok(Address::fixed(
            self.service(&self.name.client_service()).await?,
        ))
    }

    /// A connection to one pod's client port.
    pub async fn connect(&self, pod: &Pod) -> Result<Connection> {
        let password = self.password().await?;
        let address = address(pod)?;
        Connection::open(address, Some(&password), PATIENT)
            .with_context(|| format!("cannot connect to {} at {address}", pod.name_any()))
    }

    /// Events about the cluster, oldest first, as `(reason, note)`.
    pub async fn events(&self) -> Result<Vec<(String, String)>> {
        let mut events = self
            .space
            .api::<Event>()
            .list(&ListParams::default())
            .await?
            .items;
        events.retain(|event| {
            event.involved_object.kind.as_deref() == Some("ValkeyCluster")
                && event.involved_object.name.as_deref() == Some(self.name.as_str())
        });
        events.sort_by(|a, b| {
            a.metadata
                .creation_timestamp
                .cmp(&b.metadata.creation_timestamp)
        });
        let pairs = events.into_iter().map(|event| {
            (
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            )
        });
        Ok(pairs.collect())
    }

    /// Everything that is known about the cluster, for the message of a failed test.
    pub async fn story(&self) -> String {
        let mut text = String::new();
        match self.look().await {
            Ok(look) => {
                let status = serde_json::to_string_pretty(&look.cluster.status).unwrap_or_default();
                let _ = writeln!(
                    text,
                    "-- status of {}/{}\n{status}",
                    self.space.name,
                    self.name.as_str()
                );
                text.push_str("-- pods\n");
                for pod in &look.pods {
                    let _ = writeln!(text, "{}", summary(pod));
                }
            }
            Err(why) => {
                let _ = writeln!(text, "-- no status: {why:#}");
            }
        }
        text.push_str("-- events\n");
        for (reason, note) in self.events().await.unwrap_or_default() {
            let _ = writeln!(text, "{reason}: {note}");
        }
        text.push_str("-- the operator's log\n");
        for line in operator::log_about(&self.space.client, &self.space.name).await {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

impl Look {
    /// The status; empty where there is none.
    pub fn status(&self) -> ValkeyClusterStatus {
        self.cluster.status.clone().unwrap_or_default()
    }

    /// A condition.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.cluster
            .status
            .as_ref()?
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind)
    }

    /// Whether a condition has a status and a reason.
    pub fn says(&self, kind: &str, status: &str, reason: &str) -> bool {
        self.condition(kind)
            .is_some_and(|it| it.status == status && it.reason == reason)
    }

    /// Whether the cluster says of its present generation that it is ready.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|it| {
            it.status == "True" && it.observed_generation == self.cluster.metadata.generation
        })
    }

    /// Ordinal of the recorded primary.
    pub fn recorded(&self) -> Option<u32> {
        ordinal(&self.cluster.status.as_ref()?.primary_record.as_ref()?.pod)
    }

    /// Epoch of the primary record; 0 without one.
    pub fn epoch(&self) -> i64 {
        self.status()
            .primary_record
            .map_or(0, |record| record.epoch)
    }
}

/// The number at the end of a pod's name.
pub fn ordinal(pod: &str) -> Option<u32> {
    pod.rsplit_once('-')?.1.parse().ok()
}

/// Where a pod's clients connect.
///
/// # Errors
/// When the pod has no address yet.
pub fn address(pod: &Pod) -> Result<SocketAddr> {
    let ip: IpAddr = pod
        .status
        .as_ref()
        .and_then(|status| status.pod_ip.as_deref())
        .ok_or_else(|| anyhow!("the pod {} has no address", pod.name_any()))?
        .parse()?;
    Ok(SocketAddr::new(ip, PORT))
}

/// Whether a pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|it| it.type_ == "Ready" && it.status == "True")
}

/// How often a pod's server was started again.
pub fn restarts(pod: &Pod) -> i32 {
    let containers = pod
        .status
        .iter()
        .flat_map(|it| it.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).sum()
}

fn summary(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let states: Vec<Value> = status
        .container_statuses
        .iter()
        .flatten()
        .map(|it| json!({"state": it.state, "restarts": it.restart_count, "ready": it.ready}))
        .collect();
    format!(
        "{} uid={} ip={} phase={} role={} deleting={} {}",
        pod.name_any(),
        pod.uid().unwrap_or_default(),
        status.pod_ip.unwrap_or_default(),
        status.phase.unwrap_or_default(),
        pod.labels().get(labels::ROLE).cloned().unwrap_or_default(),
        pod.metadata.deletion_timestamp.is_some(),
        json!(states),
    )
}
