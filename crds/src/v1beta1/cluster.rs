//! The kind ValkeyCluster: what a user asks for.

// Each printer column repeats the words `name` and `type_`, which clippy takes for one attribute given twice.
#![allow(clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, PodSecurityContext, ResourceRequirements, SecurityContext, Toleration,
    TopologySpreadConstraint,
};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    AuthSpec, BackupSpec, LoggingSpec, MetricsSpec, NetworkPolicySpec, PodDisruptionBudgetSpec,
    Profile, ReplicateFromSpec, RestoreSpec, SentinelSpec, StorageSpec, TlsSpec, Topology,
    ValkeyClusterStatus, enabled,
};

/// When the kubelet pulls an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ImagePullPolicy {
    /// Before every start.
    Always,
    /// Never; the image must be on the node.
    Never,
    /// Only when the node does not have it.
    #[default]
    IfNotPresent,
}

impl ImagePullPolicy {
    /// The value as it is written in a pod.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Never => "Never",
            Self::IfNotPresent => "IfNotPresent",
        }
    }
}

/// The Valkey that a user wants to have.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cache.wellcake.io",
    version = "v1beta1",
    kind = "ValkeyCluster",
    plural = "valkeyclusters",
    shortname = "vk",
    shortname = "vkc",
    namespaced,
    status = "ValkeyClusterStatus",
    derive = "PartialEq",
    doc = "A Valkey: one server, a primary with replicas, or a Valkey Cluster, run by the operator.",
    printcolumn(
        name = "Topology",
        type_ = "string",
        json_path = ".spec.topology",
        description = "How the pods relate"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Data pods that the spec asks for, in every topology"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Ready data pods"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Short overview"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyClusterSpec {
    /// `Standalone` (one pod), `Replication` (a primary with replicas, the operator fails over), `Sentinel` (a primary
    /// with replicas, Sentinels fail over) or `Cluster` (slots spread over shards). Default: `Replication`. Cannot be
    /// changed later.
    #[serde(default)]
    pub topology: Topology,

    /// What the data is worth: `Cache` (can be made again: no persistence, eviction, 1Gi) or `Durable` (must survive:
    /// RDB and AOF, no eviction, 10Gi). Chooses the defaults of other fields. Default: `Cache`. Cannot be changed later.
    #[serde(default)]
    pub profile: Profile,

    /// Image of the servers. Default: `valkey/valkey:8.0`. Changing it restarts the pods one by one, replicas first,
    /// the primary after a handover.
    #[serde(default = "default_image")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9\[][A-Za-z0-9._/:@\[\]-]*$")
    )]
    pub image: String,

    /// When images are pulled: `Always`, `Never` or `IfNotPresent`. Default: `IfNotPresent`.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,

    /// Number of data pods, primary included, at least 1. Default: 3. Topology Standalone always has one pod: leave the
    /// field out or write 1; 3 cannot be told from the default and also gives one pod; other numbers are refused. In
    /// topology Cluster it is ignored, `shards` and `replicasPerShard` count. Can be changed; no data is lost.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 100))]
    pub replicas: i32,

    /// Number of shards, at least 3. Topology Cluster only, and required there. It may grow; it may shrink only with
    /// `perShardWorkload: true`, after the slots of the leaving shards were moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3, max = 1000))]
    pub shards: Option<i32>,

    /// Number of replicas of each shard's primary, 0 or more. Topology Cluster only. Default: 0. Can be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub replicas_per_shard: Option<i32>,

    /// Whether each shard gets a StatefulSet and a headless Service of its own (`<name>-sh<n>`), which keeps the pods of
    /// a shard on different nodes and lets shards go again. Experimental. Topology Cluster only. Default: one
    /// StatefulSet for all. Cannot be changed, added or removed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_shard_workload: Option<bool>,

    /// Whether slots are spread anew by the operator when shards come or go. Topology Cluster only. Default: `true`;
    /// with `false` you move slots yourself.
    #[serde(default = "enabled")]
    pub auto_reshard: bool,

    /// The Sentinels. Topology Sentinel only, and required there (`sentinel: {}` takes the defaults).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<SentinelSpec>,

    /// Requests and limits of the server container, as in a pod. Default: none. `maxmemory` is set to 60% of
    /// `limits.memory` unless `config` sets it. Changing it restarts the pods one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// Volumes and persistence. Default: by profile; see the fields. A block that is added later must mean the same
    /// mode, medium and class as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageSpec>,

    /// Password of the default user. Default: on, with a generated password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthSpec>,

    /// Encryption of connections. Default: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,

    /// Metrics of the servers. Default: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSpec>,

    /// Directives for `valkey.conf`, name to value, for example `timeout: "60"`. Default: none. They override the
    /// operator's tuning. Refused are the directives that the operator sets itself (ports, addresses, replication,
    /// cluster identity, passwords, files) and any control character. Changes are applied without a restart where the
    /// server allows that, else the pods restart one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "config_schema")]
    pub config: BTreeMap<String, String>,

    /// Log of the servers. Default: what the server does by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<LoggingSpec>,

    /// Labels that a node must have to run data pods. Default: none. Changing it restarts the pods one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: BTreeMap<String, String>,

    /// Taints that data pods tolerate, as in a pod. Default: none. Changing it restarts the pods one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tolerations: Vec<Toleration>,

    /// Affinity of data pods, as in a pod. Default: pods of one cluster prefer different nodes. Changing it restarts the
    /// pods one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Topology spread of data pods, as in a pod. Default, also when empty: spread over zones where possible. Changing
    /// it restarts the pods one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,

    /// Security context of all pods, as in a pod; replaces the default as a whole. Default: user, group and fsGroup
    /// 1000, not root, seccomp RuntimeDefault. Changing it restarts the pods one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,

    /// Security context of every container, as in a container; replaces the default as a whole. Default: not root, no
    /// privilege escalation, no capabilities, seccomp RuntimeDefault. Changing it restarts the pods one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_security_context: Option<SecurityContext>,

    /// How many pods evictions may take at once. Default: at most one, when there is more than one pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<PodDisruptionBudgetSpec>,

    /// Who may reach the pods over the network. Default: no restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicySpec>,

    /// Scheduled snapshots to S3. Default: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupSpec>,

    /// A snapshot that is loaded before the cluster first starts. Default: none, the cluster starts empty. Without
    /// effect on a cluster that has data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreSpec>,

    /// An external primary that this cluster follows as a replica. Topologies Standalone and Replication only. Default:
    /// none. Removing it makes the cluster independent, with the data it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicate_from: Option<ReplicateFromSpec>,
}

impl Default for ValkeyClusterSpec {
    /// What the API server stores for `spec: {}`.
    fn default() -> Self {
        Self {
            topology: Topology::default(),
            profile: Profile::default(),
            image: default_image(),
            image_pull_policy: ImagePullPolicy::default(),
            replicas: default_replicas(),
            shards: None,
            replicas_per_shard: None,
            per_shard_workload: None,
            auto_reshard: true,
            sentinel: None,
            resources: None,
            storage: None,
            auth: None,
            tls: None,
            metrics: None,
            config: BTreeMap::new(),
            logging: None,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: None,
            topology_spread_constraints: Vec::new(),
            pod_security_context: None,
            container_security_context: None,
            pod_disruption_budget: None,
            network_policy: None,
            backup: None,
            restore_from: None,
            replicate_from: None,
        }
    }
}

fn default_image() -> String {
    "valkey/valkey:8.0".to_owned()
}

fn default_replicas() -> i32 {
    3
}

/// A bounded map to strings without control characters: a line break would smuggle in a second directive.
fn config_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": { "type": "string", "maxLength": 4096, "pattern": r"^[^\x00-\x1f\x7f]*$" },
    })
}
