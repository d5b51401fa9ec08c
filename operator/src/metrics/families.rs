//! Every metric, with its labels and what it means.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};

/// A set of labels and their names.
pub trait Labels {
    /// The names, in order.
    const NAMES: &'static [&'static str];
}

macro_rules! labels {
    ($($(#[$doc:meta])* $set:ident { $($(#[$label_doc:meta])* $label:ident),+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub struct $set { $($(#[$label_doc])* pub $label: String),+ }

        impl Labels for $set {
            const NAMES: &'static [&'static str] = &[$(stringify!($label)),+];
        }
    )+};
}

labels! {
    /// A kind of object that is reconciled.
    Controller {
        /// `valkeycluster`.
        controller
    }
    /// How a pass ended.
    Reconcile {
        /// `valkeycluster`.
        controller,
        /// `success` or `error`.
        result
    }
    /// An effect that was carried out, or not.
    Effect {
        /// The kind of effect.
        kind,
        /// How it ended.
        outcome
    }
    /// Something closed, such as what was polled.
    Kind {
        /// Its name.
        kind
    }
    /// Why something was decided.
    Reason {
        /// The reason of the decision, as in conditions and events.
        reason
    }
    /// A change of primary.
    Failover {
        /// Namespace of the ValkeyCluster.
        namespace,
        /// Name of the ValkeyCluster.
        cluster,
        /// How the new primary came to be.
        kind
    }
    /// A ValkeyCluster.
    Cluster {
        /// Namespace of the ValkeyCluster.
        namespace,
        /// Name of the ValkeyCluster.
        cluster
    }
    /// A Lease.
    Lease {
        /// Its name.
        name
    }
    /// A request to the Kubernetes API.
    Request {
        /// Status code of the answer, or `<error>` when there was none.
        code,
        /// HTTP method.
        method,
        /// Address and port of the API server.
        host
    }
    /// What runs.
    Build {
        /// Version of the operator.
        version
    }
}

/// No labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Unlabelled {}

impl Labels for Unlabelled {
    const NAMES: &'static [&'static str] = &[];
}

/// One metric in the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Full name, with the suffix that the text formats add.
    pub name: String,
    /// `counter`, `gauge`, `histogram`.
    pub kind: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

/// Every family of metrics.
pub struct Families {
    /// `controller_runtime_reconcile_total`
    pub reconciles: Family<Reconcile, Counter>,
    /// `controller_runtime_reconcile_errors_total`
    pub reconcile_errors: Family<Controller, Counter>,
    /// `controller_runtime_reconcile_time_seconds`
    pub reconcile_time: Family<Controller, Histogram, fn() -> Histogram>,
    /// `leader_election_master_status`
    pub leader: Family<Lease, Gauge>,
    /// `rest_client_requests_total`
    pub requests: Family<Request, Counter>,
    /// `valkey_operator_pass_seconds`
    pub pass_time: Family<Controller, Histogram, fn() -> Histogram>,
    /// `valkey_operator_decisions_total`
    pub decisions: Family<Reason, Counter>,
    /// `valkey_operator_effects_total`
    pub effects: Family<Effect, Counter>,
    /// `valkey_operator_poll_failures_total`
    pub poll_failures: Family<Kind, Counter>,
    /// `valkey_operator_failover_total`
    pub failovers: Family<Failover, Counter>,
    /// `valkey_operator_discarded_bytes_total`
    pub discarded: Family<Cluster, Counter>,
    /// `valkey_operator_clusters`
    pub clusters: Family<Unlabelled, Gauge>,
    /// `valkey_operator_clusters_heard`
    pub heard: Family<Unlabelled, Gauge>,
    /// `valkey_operator_build_info`
    pub build_info: Family<Build, Gauge>,
}

impl Families {
    /// Registers every family, and lists them in the order of the reference.
    pub fn register(registry: &mut Registry) -> (Self, Vec<Entry>) {
        let mut list = List {
            registry,
            entries: Vec::new(),
        };
        let families = Self {
            reconciles: list.add(
                "controller_runtime_reconcile",
                "Passes over a ValkeyCluster, by whether an effect that cannot wait failed.",
                Family::default(),
            ),
            reconcile_errors: list.add(
                "controller_runtime_reconcile_errors",
                "Passes in which such an effect failed.",
                Family::default(),
            ),
            reconcile_time: list.add(
                "controller_runtime_reconcile_time_seconds",
                "Time of a pass: to look, to decide, and to carry out what cannot wait.",
                Family::new_with_constructor(effect_times as fn() -> Histogram),
            ),
            leader: list.add(
                "leader_election_master_status",
                "1 on the operator that holds the lease, else 0.",
                Family::default(),
            ),
            requests: list.add(
                "rest_client_requests",
                "Requests to the Kubernetes API; a watch counts when it begins.",
                Family::default(),
            ),
            pass_time: list.add(
                "valkey_operator_pass_seconds",
                "Time to decide, without carrying anything out.",
                Family::new_with_constructor(decision_times as fn() -> Histogram),
            ),
            decisions: list.add(
                "valkey_operator_decisions",
                "Decisions to do, to wait for or to refuse something, by reason; counted when the reason appears.",
                Family::default(),
            ),
            effects: list.add(
                "valkey_operator_effects",
                "Effects by kind and by how they ended.",
                Family::default(),
            ),
            poll_failures: list.add(
                "valkey_operator_poll_failures",
                "Polls of a Valkey server that gave no answer, by how they failed.",
                Family::default(),
            ),
            failovers: list.add(
                "valkey_operator_failover",
                "Changes of the primary of a ValkeyCluster, by how the new one came to be.",
                Family::default(),
            ),
            discarded: list.add(
                "valkey_operator_discarded_bytes",
                "Bytes of the replication stream that demotions of second primaries of a ValkeyCluster threw away.",
                Family::default(),
            ),
            clusters: list.add(
                "valkey_operator_clusters",
                "ValkeyClusters that exist in the namespaces that are served.",
                Family::default(),
            ),
            heard: list.add(
                "valkey_operator_clusters_heard",
                "ValkeyClusters of which this process, while it leads, has looked at everything and heard every server that runs.",
                Family::default(),
            ),
            build_info: list.add(
                "valkey_operator_build_info",
                "Always 1; the label tells what runs.",
                Family::default(),
            ),
        };
        (families, list.entries)
    }
}

struct List<'r> {
    registry: &'r mut Registry,
    entries: Vec<Entry>,
}

impl List<'_> {
    fn add<L, M, C>(
        &mut self,
        name: &str,
        help: &'static str,
        family: Family<L, M, C>,
    ) -> Family<L, M, C>
    where
        L: Labels + Clone,
        M: TypedMetric,
        C: Clone,
        Family<L, M, C>: Metric,
    {
        let (kind, suffix) = match M::TYPE {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Gauge => ("gauge", ""),
            MetricType::Histogram => ("histogram", ""),
            MetricType::Info => ("info", "_info"),
            MetricType::Unknown => ("unknown", ""),
        };
        self.entries.push(Entry {
            name: format!("{name}{suffix}"),
            kind,
            labels: L::NAMES,
            help,
        });
        // The registry ends every help text with a full stop of its own.
        self.registry
            .register(name, help.trim_end_matches('.'), family.clone());
        family
    }
}

/// The buckets of controller-runtime's histogram, from 5 ms to 60 s.
fn effect_times() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0,
        15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ])
}

/// From a microsecond, where a converged decision lies, to 100 ms.
fn decision_times() -> Histogram {
    Histogram::new([
        1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1,
    ])
}
