//! Version `v1beta1`: the hub version, the one that is stored.
//!
//! One file per concern. The schema that the API server enforces is made from these types (shape, enums, bounds,
//! defaults, descriptions) and from [`crate::rules`] (rules that speak of more than one field). What the operator
//! uses where a field is absent is in [`crate::defaults`].

mod acl;
mod backup;
mod cluster;
mod discarded;
mod disruption;
mod intents;
mod logging;
mod metrics;
mod network;
mod record;
mod secret;
mod security;
mod shards;
mod source;
mod status;
mod storage;
mod topology;

pub use acl::{ClusterRef, ValkeyACL, ValkeyACLSpec, ValkeyACLStatus, ValkeyACLUser};
pub use backup::{BackupSpec, RestoreSpec, S3Encryption, S3Spec};
pub use cluster::{ImagePullPolicy, ValkeyCluster, ValkeyClusterSpec};
pub use discarded::LastDiscarded;
pub use disruption::PodDisruptionBudgetSpec;
pub use intents::{Intent, IntentKind};
pub use logging::{LogFormat, LoggingSpec};
pub use metrics::MetricsSpec;
pub use network::NetworkPolicySpec;
pub use record::{PrimaryDownFor, PrimaryRecord, ServedPrimary};
pub use secret::PasswordSecret;
pub use security::{AuthSpec, CertIssuerRef, IssuerKind, TlsSpec};
pub use shards::{ReplicaOffset, ShardHealth, ShardStatus};
pub use source::{ReplicateFromSpec, SourceCaSecret};
pub use status::{Phase, ValkeyClusterStatus};
pub use storage::{StorageMedium, StorageMode, StorageSpec};
pub use topology::{Profile, SentinelSpec, Topology};

/// API group of both kinds.
pub const GROUP: &str = "cache.wellcake.io";

/// `true`, for fields that are on unless someone turns them off.
fn enabled() -> bool {
    true
}
