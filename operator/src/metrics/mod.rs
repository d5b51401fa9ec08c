//! What `/metrics` tells.
//!
//! * [`families`]: every metric, with its labels and what it means; `docs/reference/metrics.md` is made from it;
//! * [`process`]: memory, processor time and age of the process;
//! * [`Metrics`]: where the rest of the operator counts.

pub mod families;
pub mod process;
pub mod reference;

use std::time::Duration;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use wellcake_core::effects;
use wellcake_core::reasons;
use wellcake_interpreter as interpreter;

use families::{
    Build, Cluster, Controller, Effect, Failover, Families, Kind, Lease, Reason, Reconcile,
    Request, Unlabelled,
};

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

/// Label `controller`: kinds of objects in lower case, as controller-runtime writes them.
fn controller() -> Controller {
    Controller {
        controller: "valkeycluster".to_owned(),
    }
}

impl interpreter::Metrics for Metrics {
    fn decision(&self, reason: reasons::Reason) {
        let reason = Reason {
            reason: reason.as_str().to_owned(),
        };
        self.families.decisions.get_or_create(&reason).inc();
    }

    fn effect(&self, kind: effects::Kind, outcome: &'static str) {
        let effect = Effect {
            kind: kind.as_str().to_owned(),
            outcome: outcome.to_owned(),
        };
        self.families.effects.get_or_create(&effect).inc();
    }

    fn poll_failure(&self, kind: &'static str) {
        let kind = Kind {
            kind: kind.to_owned(),
        };
        self.families.poll_failures.get_or_create(&kind).inc();
    }

    fn pass(&self, duration: Duration) {
        let time = self.families.pass_time.get_or_create(&controller());
        time.observe(duration.as_secs_f64());
    }

    fn reconciled(&self, duration: Duration, failed: bool) {
        let Controller { controller } = controller();
        let result = if failed { "error" } else { "success" };
        let reconcile = Reconcile {
            controller,
            result: result.to_owned(),
        };
        self.families.reconciles.get_or_create(&reconcile).inc();
        let controller = self::controller();
        let time = self.families.reconcile_time.get_or_create(&controller);
        time.observe(duration.as_secs_f64());
        if failed {
            self.families
                .reconcile_errors
                .get_or_create(&controller)
                .inc();
        }
    }

    fn failover(&self, namespace: &str, cluster: &str, kind: &'static str) {
        let failover = Failover {
            namespace: namespace.to_owned(),
            cluster: cluster.to_owned(),
            kind: kind.to_owned(),
        };
        self.families.failovers.get_or_create(&failover).inc();
    }

    fn discarded(&self, namespace: &str, cluster: &str, bytes: u64) {
        let of = Cluster {
            namespace: namespace.to_owned(),
            cluster: cluster.to_owned(),
        };
        self.families.discarded.get_or_create(&of).inc_by(bytes);
    }

    fn heard(&self, more: bool) {
        let heard = self.families.heard.get_or_create(&Unlabelled {});
        if more {
            heard.inc();
        } else {
            heard.dec();
        }
    }

    fn clusters(&self, n: usize) {
        let clusters = self.families.clusters.get_or_create(&Unlabelled {});
        clusters.set(i64::try_from(n).unwrap_or(i64::MAX));
    }
}
