//! Who may reach the pods over the network.

use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The NetworkPolicy `<name>-allow`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct NetworkPolicySpec {
    /// Whether incoming traffic is restricted to `allowFrom`, the cluster's own pods and the operator. Default:
    /// `false`. Can be changed at any time; nothing restarts.
    #[serde(default)]
    pub enabled: bool,

    /// Peers that may connect to the client port, as in a Kubernetes NetworkPolicy. Default, also when empty: all pods
    /// of the same namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub allow_from: Vec<NetworkPolicyPeer>,
}
