//! The primary record and the marker of a primary that does not answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which server holds the truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct PrimaryRecord {
    /// Number of the promotion, growing by one with each; the first primary has 1.
    #[schemars(range(min = 1))]
    pub epoch: i64,

    /// Name of the pod.
    pub pod: String,

    /// Uid of the pod; another pod of the same name is another server.
    pub pod_uid: String,

    /// Uid of the pod's claim, when its data is on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_uid: Option<String>,

    /// Replication id (`master_replid`) that the promotion began, once it was seen: from then on it names all that the
    /// primary acknowledges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replid: Option<String>,

    /// Replication id of the data with which the server was chosen. What continues it is as good, until `replid` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,

    /// Until the promotion is seen through: the last primary that clients were led to. What it wrote counts if the promotion
    /// comes to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<ServedPrimary>,

    /// Whether the primary in `served` was alive when this was recorded: it hands over, and leads on if that comes to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<bool>,

    /// When the record was written. For people; nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<Time>,
}

/// A primary that clients were led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServedPrimary {
    /// Name of the pod.
    pub pod: String,

    /// Uid of the pod.
    pub pod_uid: String,

    /// Uid of the pod's claim, when its data is on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_uid: Option<String>,

    /// Replication id of what it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replid: Option<String>,
}

/// The primary that a debounce marker speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct PrimaryDownFor {
    /// Uid of the pod that does not answer.
    pub pod_uid: String,

    /// Epoch of the primary record at that time.
    #[schemars(range(min = 0))]
    pub epoch: i64,
}
