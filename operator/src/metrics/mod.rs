//! What `/metrics` tells.
//!
//! * [`families`]: every metric, with its labels and what it means; `docs/reference/metrics.md` is made from it;
//! * [`process`]: memory, processor time and age of the process;
//! * [`Metrics`]: where the rest of the operator counts.

pub mod families;
pub mod process;
pub mod reference;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

use families::{Build, Families, Lease, Request};

/// All metrics of the operator.
pub struct Metrics {
    registry: Registry,
    families: Families,
}

/// A text format that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/openmetrics-text`, version 1.0.0.
    OpenMetrics,
    /// `text/plain`, version 0.0.4.
    Text,
}

impl Format {
    /// The best format that an `Accept` header names.
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let (families, _) = Families::register(&mut registry);
        registry.register_collector(Box::new(process::Process));
        let build = Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        families.build_info.get_or_create(&build).set(1);
        Self { registry, families }
    }
}

impl Metrics {
    /// All metrics as text.
    pub fn encode(&self, format: Format) -> String {
        let mut out = String::new();
        let written = match format {
            Format::OpenMetrics => text::encode(&mut out, &self.registry),
            Format::Text => prometheus_text::encode(&mut out, &self.registry),
        };
        if let Err(why) = written {
            tracing::error!(error = %why, "cannot encode the metrics");
        }
        out
    }

    /// Leadership began or ended.
    pub fn leading(&self, lease: &str, leading: bool) {
        let name = Lease {
            name: lease.to_owned(),
        };
        let status = self.families.leader.get_or_create(&name);
        status.set(i64::from(leading));
    }

    /// A request to the Kubernetes API was answered with a status code, or with nothing.
    pub fn request(&self, method: &str, host: &str, code: Option<u16>) {
        let request = Request {
            code: code.map_or_else(|| "<error>".to_owned(), |code| code.to_string()),
            method: method.to_owned(),
            host: host.to_owned(),
        };
        self.families.requests.get_or_create(&request).inc();
    }
}
