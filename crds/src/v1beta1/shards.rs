//! State of the shards of a Valkey Cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Health of a shard.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[schemars(inline)]
pub enum ShardHealth {
    /// Primary and all replicas are up.
    Ready,
    /// The primary is up, a replica is not.
    Degraded,
    /// The primary does not answer.
    Down,
    /// Not seen yet.
    #[default]
    Unknown,
}

/// State of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ShardStatus {
    /// Number of the shard, given by the operator and stable.
    #[schemars(range(min = 0))]
    pub index: i32,

    /// Name of the pod that owns the shard's slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,

    /// Node id of that pod inside Valkey.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "primaryNodeID"
    )]
    pub primary_node_id: Option<String>,

    /// Names of the pods that replicate this primary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub replicas: Vec<String>,

    /// Slots that the shard owns, such as `0-5460`. Empty for a new shard that has none yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16384))]
    pub slot_ranges: Vec<String>,

    /// Number of slots that the shard owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_count: Option<i32>,

    /// Ready, Degraded (primary up, a replica down), Down (primary does not answer) or Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShardHealth")]
    pub health: Option<ShardHealth>,

    /// Replication offset of the primary when it was last asked, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_offset: Option<i64>,

    /// Replication offset of each replica when it was last asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pod"])
    )]
    pub replica_offsets: Vec<ReplicaOffset>,

    /// Bytes that the furthest replica is behind; 0 when there is none or none is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lag_bytes: Option<i64>,
}

/// How far a replica has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ReplicaOffset {
    /// Name of the replica's pod.
    pub pod: String,

    /// Replication offset in bytes.
    #[serde(default)]
    pub offset: i64,
}
