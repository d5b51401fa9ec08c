//! The PodDisruptionBudget.

use serde_json::{Value, json};
use wellcake_crds::defaults::Budget;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

use super::Owner;
use super::metadata::{metadata, selector};

/// How many ready data pods evictions may take at once.
pub fn budget(owner: &Owner<'_>, spec: &ValkeyClusterSpec, budget: &Budget) -> Value {
    let selector = json!({ "matchLabels": selector(owner, spec) });
    let (bound, count) = match budget {
        Budget::MaxUnavailable(most) => ("maxUnavailable", most),
        Budget::MinAvailable(fewest) => ("minAvailable", fewest),
    };
    // A pod that is not ready serves nobody; without this none could be evicted while the budget is spent by itself.
    let body = json!({
        bound: count,
        "selector": selector,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    });
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, spec, &owner.name.disruption_budget()),
        "spec": body,
    })
}
