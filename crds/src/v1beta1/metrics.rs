//! Metrics of the servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exporter beside each server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct MetricsSpec {
    /// Whether each data pod gets an exporter container on port 9121. Default: `false`. Changing it restarts the pods
    /// one by one.
    #[serde(default)]
    pub enabled: bool,

    /// Image of the exporter. Default: `oliver006/redis_exporter:v1.62.0`. Changing it restarts the pods one by one.
    #[serde(default = "default_image")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9\[][A-Za-z0-9._/:@\[\]-]*$")
    )]
    pub image: String,

    /// Whether a ServiceMonitor of the Prometheus Operator is created. Default: `false`. Skipped where that kind is not
    /// installed.
    #[serde(default)]
    pub service_monitor: bool,
}

impl Default for MetricsSpec {
    fn default() -> Self {
        Self {
            enabled: false,
            image: default_image(),
            service_monitor: false,
        }
    }
}

fn default_image() -> String {
    "oliver006/redis_exporter:v1.62.0".to_owned()
}
