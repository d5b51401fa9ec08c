//! What kind of Valkey a cluster is: topology, profile and the Sentinels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the pods of a cluster relate to each other.
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
pub enum Topology {
    /// One pod.
    Standalone,
    /// One primary with replicas; the operator fails over.
    #[default]
    Replication,
    /// One primary with replicas; Sentinels fail over.
    Sentinel,
    /// Valkey Cluster: slots spread over shards.
    Cluster,
}

impl Topology {
    /// The value as it is written in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standalone => "Standalone",
            Self::Replication => "Replication",
            Self::Sentinel => "Sentinel",
            Self::Cluster => "Cluster",
        }
    }

    /// The value in lower case, as in the label `app.kubernetes.io/component`.
    pub const fn as_component(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Replication => "replication",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }
}

/// What the data is worth; chooses the defaults of persistence, eviction and volume size.
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
pub enum Profile {
    /// The data can be made again: no persistence, keys may be evicted, volumes of 1Gi.
    #[default]
    Cache,
    /// The data must survive: RDB and AOF, no eviction, volumes of 10Gi.
    Durable,
}

impl Profile {
    /// The value as it is written in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "Cache",
            Self::Durable => "Durable",
        }
    }
}

/// The Sentinels that watch over a cluster of topology Sentinel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct SentinelSpec {
    /// Number of Sentinel pods, at least 3. Default: 3. Use an odd number: an even one tolerates no more failures than
    /// the odd number below it. Can be changed; no data pod restarts.
    #[serde(default = "default_sentinels")]
    #[schemars(range(min = 3, max = 99))]
    pub replicas: i32,

    /// Number of Sentinels that must agree that the primary is down before they fail over, from 1 up to `replicas`.
    /// Default: a majority, `replicas / 2 + 1`. Can be changed; nothing restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 99))]
    pub quorum: Option<i32>,

    /// Image of the Sentinel pods. Default, also when empty: `spec.image`. Changing it restarts the Sentinels one by
    /// one, no data pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 512),
        regex(pattern = r"^([A-Za-z0-9\[][A-Za-z0-9._/:@\[\]-]*)?$")
    )]
    pub image: Option<String>,
}

impl Default for SentinelSpec {
    fn default() -> Self {
        Self {
            replicas: default_sentinels(),
            quorum: None,
            image: None,
        }
    }
}

fn default_sentinels() -> i32 {
    3
}
