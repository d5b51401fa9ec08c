//! The PodDisruptionBudget.

use serde_json::{Value, json};
use wellcake_crds::defaults::Budget;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

use super::Owner;
use super::metadata::{metadata, selector};

/// How many data pods evictions may take at once.
pub fn budget(owner: &Owner<'_>, spec: &ValkeyClusterSpec, budget: &Budget) -> Value {
    let selector = json!({ "matchLabels": selector(owner, spec) });
    let body = match budget {
        Budget::MaxUnavailable(most) => json!({ "maxUnavailable": most, "selector": selector }),
        Budget::MinAvailable(fewest) => json!({ "minAvailable": fewest, "selector": selector }),
    };
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, spec, &owner.name.disruption_budget()),
        "spec": body,
    })
}
