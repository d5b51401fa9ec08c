//! Effective defaults: what the operator uses where a field is absent.
//!
//! A schema default is written into the object by the API server and is the same for everyone. The defaults here depend
//! on other fields (topology, profile) and are never written back; an empty string counts as absent. All functions are
//! pure.

use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::v1beta1::{
    BackupSpec, CertIssuerRef, Profile, SentinelSpec, StorageMedium, StorageMode, TlsSpec,
    Topology, ValkeyClusterSpec,
};

/// Share of `limits.memory` that becomes `maxmemory`, in percent, unless `spec.config` sets it.
pub const MAXMEMORY_PERCENT: u32 = 60;

/// API group of an issuer whose reference names none.
pub const CERT_MANAGER_GROUP: &str = "cert-manager.io";

/// Number of data pods that the spec asks for: 1 for Standalone (whatever `replicas` says, since the schema's default of
/// 3 cannot be told from a written 3), `replicas` for Replication and Sentinel, shards times one plus replicas per shard
/// for Cluster.
pub fn data_pods(spec: &ValkeyClusterSpec) -> u32 {
    match spec.topology {
        Topology::Standalone => 1,
        Topology::Replication | Topology::Sentinel => count(spec.replicas).max(1),
        Topology::Cluster => {
            shards(spec).saturating_mul(replicas_per_shard(spec).saturating_add(1))
        }
    }
}

/// Number of shards: `shards` for Cluster, else 1.
pub fn shards(spec: &ValkeyClusterSpec) -> u32 {
    match spec.topology {
        Topology::Cluster => count(spec.shards.unwrap_or(0)),
        _ => 1,
    }
}

/// Number of replicas of each primary in topology Cluster: 0 when absent.
pub fn replicas_per_shard(spec: &ValkeyClusterSpec) -> u32 {
    count(spec.replicas_per_shard.unwrap_or(0))
}

/// Whether each shard has a workload of its own: false when absent.
pub fn per_shard_workload(spec: &ValkeyClusterSpec) -> bool {
    spec.topology == Topology::Cluster && spec.per_shard_workload.unwrap_or(false)
}

/// Storage of a data pod with nothing left open.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveStorage {
    /// Size of the claim, or limit of the tmpfs for [`StorageMedium::Memory`].
    pub size: Quantity,
    /// Class of the claim; `None` means the cluster's default class, an empty string means no class.
    pub storage_class_name: Option<String>,
    /// Persistence; always `None` for [`StorageMedium::Memory`].
    pub mode: StorageMode,
    /// Claim or memory.
    pub medium: StorageMedium,
}

/// Storage of a data pod. Size by profile (Cache 1Gi, Durable 10Gi) when absent; mode by profile (Cache none, Durable
/// both) when the whole block is absent; mode none for medium Memory.
pub fn storage(spec: &ValkeyClusterSpec) -> EffectiveStorage {
    let block = spec.storage.as_ref();
    let medium = block.map_or(StorageMedium::Disk, |s| s.medium);
    let mode = match (medium, block) {
        (StorageMedium::Memory, _) => StorageMode::None,
        (StorageMedium::Disk, Some(s)) => s.mode,
        (StorageMedium::Disk, None) => default_mode(spec.profile),
    };
    EffectiveStorage {
        size: block
            .and_then(|s| s.size.clone())
            .unwrap_or_else(|| default_size(spec.profile)),
        storage_class_name: block.and_then(|s| s.storage_class_name.clone()),
        mode,
        medium,
    }
}

/// Persistence when there is no storage block.
pub const fn default_mode(profile: Profile) -> StorageMode {
    match profile {
        Profile::Cache => StorageMode::None,
        Profile::Durable => StorageMode::Both,
    }
}

/// Size of a volume when the spec names none.
pub fn default_size(profile: Profile) -> Quantity {
    match profile {
        Profile::Cache => Quantity("1Gi".to_owned()),
        Profile::Durable => Quantity("10Gi".to_owned()),
    }
}

/// Whether clients need a password: true when the auth block is absent.
pub fn auth_enabled(spec: &ValkeyClusterSpec) -> bool {
    spec.auth.as_ref().is_none_or(|auth| auth.enabled)
}

/// Name of the user's own password Secret, if one is given.
pub fn existing_auth_secret(spec: &ValkeyClusterSpec) -> Option<&str> {
    given(spec.auth.as_ref()?.existing_secret.as_deref())
}

/// Whether the servers speak TLS: false when the block is absent.
pub fn tls_enabled(spec: &ValkeyClusterSpec) -> bool {
    spec.tls.as_ref().is_some_and(|tls| tls.enabled)
}

/// The issuer that signs `<name>-tls`, unless the user brings a Secret.
pub fn tls_issuer(tls: &TlsSpec) -> Option<&CertIssuerRef> {
    match given(tls.existing_secret.as_deref()) {
        Some(_) => None,
        None => tls.issuer_ref.as_ref(),
    }
}

/// API group of an issuer.
pub fn issuer_group(issuer: &CertIssuerRef) -> &str {
    given(issuer.group.as_deref()).unwrap_or(CERT_MANAGER_GROUP)
}

/// Whether data pods have an exporter: false when the block is absent.
pub fn metrics_enabled(spec: &ValkeyClusterSpec) -> bool {
    spec.metrics.as_ref().is_some_and(|metrics| metrics.enabled)
}

/// Sentinels that must agree: a majority when absent.
pub fn sentinel_quorum(sentinel: &SentinelSpec) -> u32 {
    sentinel
        .quorum
        .map_or_else(|| count(sentinel.replicas) / 2 + 1, count)
}

/// Image of the Sentinels: that of the servers when absent.
pub fn sentinel_image<'a>(spec: &'a ValkeyClusterSpec, sentinel: &'a SentinelSpec) -> &'a str {
    given(sentinel.image.as_deref()).unwrap_or(&spec.image)
}

/// Image of the step that takes a snapshot: that of the servers when absent.
pub fn backup_image<'a>(spec: &'a ValkeyClusterSpec, backup: &'a BackupSpec) -> &'a str {
    given(backup.image.as_deref()).unwrap_or(&spec.image)
}

/// Whether snapshots are taken on schedule: false when the block is absent.
pub fn backup_enabled(spec: &ValkeyClusterSpec) -> bool {
    spec.backup.as_ref().is_some_and(|backup| backup.enabled)
}

/// What a PodDisruptionBudget limits.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// Most pods that may be away.
    MaxUnavailable(IntOrString),
    /// Fewest pods that must stay.
    MinAvailable(IntOrString),
}

/// The budget of the data pods, if there is one: without a block for more than one pod, at most one away.
pub fn disruption_budget(spec: &ValkeyClusterSpec) -> Option<Budget> {
    let one_away = Budget::MaxUnavailable(IntOrString::Int(1));
    let Some(block) = &spec.pod_disruption_budget else {
        return (data_pods(spec) > 1).then_some(one_away);
    };
    if !block.enabled {
        return None;
    }
    let budget = match (&block.min_available, &block.max_unavailable) {
        (Some(min), _) => Budget::MinAvailable(min.clone()),
        (None, Some(max)) => Budget::MaxUnavailable(max.clone()),
        (None, None) => one_away,
    };
    Some(budget)
}

/// Peers that may reach the client port, if traffic is restricted: all pods of the namespace when none is named. The
/// cluster's own pods and the operator come on top.
pub fn allowed_peers(spec: &ValkeyClusterSpec) -> Option<Vec<NetworkPolicyPeer>> {
    let policy = spec
        .network_policy
        .as_ref()
        .filter(|policy| policy.enabled)?;
    if !policy.allow_from.is_empty() {
        return Some(policy.allow_from.clone());
    }
    let whole_namespace = NetworkPolicyPeer {
        pod_selector: Some(LabelSelector::default()),
        ..NetworkPolicyPeer::default()
    };
    Some(vec![whole_namespace])
}

/// A number that the schema bounds from below by 0; anything else counts as 0.
fn count(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// A string that was given; an empty one means that it was not.
fn given(value: Option<&str>) -> Option<&str> {
    value.filter(|v| !v.is_empty())
}
