//! How many pods an eviction may take at once.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::enabled;

/// The PodDisruptionBudget `<name>-pdb`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct PodDisruptionBudgetSpec {
    /// Whether there is a budget. Default: `true`; when the whole block is absent there is one for more than one pod.
    #[serde(default = "enabled")]
    pub enabled: bool,

    /// Most pods that evictions may take at once, a number or a percentage, more than 0. Default: 1, unless
    /// `minAvailable` is set. Give one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,

    /// Fewest pods that evictions must leave, a number below the number of pods or a percentage below 100%. Default:
    /// none. Give one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
}

impl Default for PodDisruptionBudgetSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            max_unavailable: None,
            min_available: None,
        }
    }
}
