//! The kind ValkeyCluster: what the operator says about it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Intent, LastDiscarded, PrimaryDownFor, PrimaryRecord, ShardStatus};

/// Short overview of a cluster, for people; decisions never read it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline)]
pub enum Phase {
    /// Seen, nothing created yet.
    Pending,
    /// Objects exist, no pod is ready.
    Creating,
    /// Everything that the spec asks for is there.
    Ready,
    /// On the way from one state to another.
    Updating,
    /// Cannot go on without a person.
    Failed,
    /// Scaled to zero on request.
    Hibernated,
}

impl Phase {
    /// The value as it is written in a status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Creating => "Creating",
            Self::Ready => "Ready",
            Self::Updating => "Updating",
            Self::Failed => "Failed",
            Self::Hibernated => "Hibernated",
        }
    }
}

/// What the operator says about a cluster. Every field is optional; the schema's default is `observedGeneration: -1`, so
/// that tools that read kstatus see a cluster in progress before the operator has looked at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyClusterStatus {
    /// Short overview: Pending, Creating, Ready, Updating, Failed or Hibernated. For people; use the conditions in scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Phase")]
    pub phase: Option<Phase>,

    /// Data pods that the spec asks for, computed for every topology (1 for Standalone, shards times one plus
    /// replicasPerShard for Cluster).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Data pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,

    /// Name of the pod that is the primary, as seen on the servers. Topologies Standalone, Replication and Sentinel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,

    /// Where clients connect inside Kubernetes: `<name>.<namespace>.svc:<port>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_endpoint: Option<String>,

    /// Shards that exist. Topology Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<i32>,

    /// Shards whose health is Ready. Topology Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_shards: Option<i32>,

    /// Whether the slots were assigned for the first time; once true, it is never done again. Topology Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_initialized: Option<bool>,

    /// Data pods that the last finished scaling led to. Topology Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_replicas: Option<i32>,

    /// When the operator first saw the present primary unreachable; gone when it answers again. `primaryDownFor` says
    /// which primary is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_down_since: Option<Time>,

    /// Which primary `primaryDownSince` speaks of: a marker of another pod or epoch is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_down_for: Option<PrimaryDownFor>,

    /// Bytes of the replication stream that demotions of second primaries threw away, all in all. A second primary is one that was
    /// succeeded while it was silent and went on to take writes, or one that was made by hand. It counts
    /// acknowledged writes that are lost, 14 bytes for each 10 s in which the primary still took its replicas for connected, and
    /// what it deleted by itself because it expired or to free memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub discarded_bytes: Option<i64>,

    /// The last demotion that `discardedBytes` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_discarded: Option<LastDiscarded>,

    /// When the operator first saw the cluster without a majority of primaries; gone when it has one again. Topology
    /// Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum_down_since: Option<Time>,

    /// The primary record: which server holds the truth, written before each promotion. After all pods were gone it
    /// decides who may lead again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_record: Option<PrimaryRecord>,

    /// Operations of several steps that are under way, each recorded before its first step, so that they are resumed or
    /// given up after a restart of the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "id"])
    )]
    pub intents: Vec<Intent>,

    /// Value of the annotation `valkey.wellcake.io/reshard` that was served last; the same value is not served twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reshard_token: Option<String>,

    /// Value of the annotation `valkey.wellcake.io/failover` that was served last; the same value is not served twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failover_token: Option<String>,

    /// Value of the annotation `valkey.wellcake.io/promote` (`<pod>/<epoch>/<token>`) that was served last; the same
    /// value is not served twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_promote_token: Option<String>,

    /// Value of the annotation `valkey.wellcake.io/rotate-password` that was served last; the same value is not served
    /// twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_password_rotation_token: Option<String>,

    /// SHA-256 of the server certificate that all pods use; a renewed certificate is loaded without a restart.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "lastTLSCertFingerprint"
    )]
    pub last_tls_cert_fingerprint: Option<String>,

    /// Digest of the last configuration that every server accepted; what a refused directive is reverted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good_config_digest: Option<String>,

    /// State of each shard. Topology Cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["index"])
    )]
    pub shard_details: Vec<ShardStatus>,

    /// The `metadata.generation` that this status speaks of; -1 until the operator has looked at the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready (everything asked for is there and true), Available (a primary takes writes), Progressing, Degraded,
    /// ClusterInitialized, ShardsHealthy, and Fenced where a cluster was taken over from another operator (whether its pods start
    /// behind the boot fence); each with reason, message and the generation it speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}
