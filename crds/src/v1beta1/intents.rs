//! Recorded operations of several steps.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of an operation of several steps.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline)]
pub enum IntentKind {
    /// Unplanned promotion: the primary is dead.
    Failover,
    /// Planned change of the primary.
    Handover,
    /// Rolling restart.
    Rollout,
    /// More pods or shards.
    ScaleOut,
    /// Fewer pods or shards.
    ScaleIn,
    /// Slots move between shards.
    Reshard,
    /// A new password.
    PasswordRotation,
}

/// An operation of several steps that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Intent {
    /// What is done: Failover, Handover, Rollout, ScaleOut, ScaleIn, Reshard or PasswordRotation.
    pub kind: IntentKind,

    /// Identity of the operation among those of its kind, for example the annotation's token or the new epoch.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,

    /// What it starts from, for example the pod that is primary or the old number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,

    /// What it leads to, for example the pod that becomes primary or the new number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,

    /// Uid of the pod in `from`: with another pod of that name the operation is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_uid: Option<String>,

    /// Uid of the pod in `to`: with another pod of that name the operation is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_uid: Option<String>,

    /// Epoch of the primary record that the operation was planned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,

    /// `metadata.generation` that the operation was planned for; it never counts for a newer spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,

    /// The step that was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub step: Option<String>,

    /// When the operation was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
}
