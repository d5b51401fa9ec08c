//! Keys and values of labels.

/// Name of the application; value [`NAME_VALKEY`].
pub const NAME: &str = "app.kubernetes.io/name";
/// Value of [`NAME`].
pub const NAME_VALKEY: &str = "valkey";
/// Name of the ValkeyCluster.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// What the application belongs to; value [`OPERATOR`].
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Who manages the object; value [`OPERATOR`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`PART_OF`] and [`MANAGED_BY`].
pub const OPERATOR: &str = "valkey-operator";
/// The topology in lower case ([`crate::v1beta1::Topology::as_component`]).
pub const COMPONENT: &str = "app.kubernetes.io/component";

/// On data pods of topology Replication: [`ROLE_PRIMARY`] or [`ROLE_REPLICA`], for people and the replicas Service.
pub const ROLE: &str = "valkey.wellcake.io/role";
/// Value of [`ROLE`].
pub const ROLE_PRIMARY: &str = "primary";
/// Value of [`ROLE`].
pub const ROLE_REPLICA: &str = "replica";

/// On objects of one shard, where each shard has a workload of its own: the shard's number.
pub const SHARD: &str = "cache.wellcake.io/shard";
/// On backup Jobs that a person started: `true`.
pub const MANUAL_BACKUP: &str = "valkey.wellcake.io/manual-backup";
