//! What the demotion of a second primary threw away.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the last demotion of a second primary that held more than the primary threw away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LastDiscarded {
    /// Name of the pod that was demoted.
    pub pod: String,

    /// Epoch of the primary record under which it was demoted.
    #[schemars(range(min = 0))]
    pub epoch: i64,

    /// Replication id of the history that it wrote. The same history of the same pod is counted once.
    pub replid: String,

    /// Bytes of its replication stream that the primary did not hold.
    #[schemars(range(min = 0))]
    pub bytes: i64,

    /// When it was counted.
    pub at: Time,
}
