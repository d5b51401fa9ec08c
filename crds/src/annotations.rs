//! Keys of annotations.

/// On a ValkeyCluster: a token; a new value restarts the data pods one by one.
pub const RESTART: &str = "valkey.wellcake.io/restart";
/// On a ValkeyCluster: a token; a new value rebalances the slots once (`status.lastReshardToken`).
pub const RESHARD: &str = "valkey.wellcake.io/reshard";
/// On a ValkeyCluster: a token; a new value hands the primary over once (`status.lastFailoverToken`).
pub const FAILOVER: &str = "valkey.wellcake.io/failover";
/// On a ValkeyCluster: name of the pod that [`FAILOVER`] should make primary.
pub const FAILOVER_TARGET: &str = "valkey.wellcake.io/failover-target";
/// On a ValkeyCluster: `<pod>/<epoch>/<token>`; a person's word that this pod shall lead although the operator cannot
/// prove that nothing is lost. Valid for that epoch of the primary record only, once (`status.lastPromoteToken`).
pub const PROMOTE: &str = "valkey.wellcake.io/promote";
/// On a ValkeyCluster: a token; a new value changes the generated password once (`status.lastPasswordRotationToken`).
pub const ROTATE_PASSWORD: &str = "valkey.wellcake.io/rotate-password";
/// On a ValkeyCluster: exactly `true` scales to zero.
pub const HIBERNATE: &str = "valkey.wellcake.io/hibernate";
/// On a ValkeyCluster: exactly `true` says that the operator that made its objects is gone, and that this one takes over.
pub const ADOPT: &str = "valkey.wellcake.io/adopt";
/// On a ValkeyCluster: `true` lets the operator roll pods by itself.
pub const PROACTIVE_ROLLOUT: &str = "valkey.wellcake.io/proactive-rollout";
/// On a ValkeyCluster: `true` or `false` forces the recovery from a lost majority on or off; else the profile decides.
pub const QUORUM_TAKEOVER: &str = "valkey.wellcake.io/quorum-takeover";
/// On a ValkeyCluster: exactly `true` accepts that asynchronous replication can lose the last writes of a Durable one.
pub const ACCEPT_REPLICATION_DURABILITY_RISK: &str =
    "valkey.wellcake.io/accept-replication-durability-risk";

/// On a pod template: digest of the configuration that the pod starts with.
pub const CONFIG_HASH: &str = "valkey.wellcake.io/config-hash";
/// On a StatefulSet: digest of a configuration that a server did not start with, and what it said; pods keep the one before.
pub const REFUSED_CONFIG: &str = "valkey.wellcake.io/refused-config";
/// On a StatefulSet: digest of what was asked for when its pod template was applied.
pub const ASKED_FOR: &str = "valkey.wellcake.io/asked-for";
/// On a pod template: the value of [`RESTART`] that it was made for.
pub const RESTARTED_AT: &str = "valkey.wellcake.io/restarted-at";
/// On objects that the operator applies: digest of the fields it owns.
pub const APPLIED_HASH: &str = "valkey.wellcake.io/applied-hash";
/// On a StatefulSet that was taken over: its pod template is still that of the operator before.
pub const KEPT_TEMPLATE: &str = "valkey.wellcake.io/kept-template";
/// On the claim of a primary: its primary record as JSON, so that the record survives the ValkeyCluster.
pub const PRIMARY_RECORD: &str = "valkey.wellcake.io/primary-record";

/// Finalizer that other operators of this API set; it is removed on adoption and never set here.
pub const FOREIGN_FINALIZER: &str = "valkey.wellcake.io/cleanup";
