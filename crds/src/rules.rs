//! Rules that speak of more than one field, of a change, or whose refusal needs a sentence: CEL expressions that the API
//! server evaluates (`x-kubernetes-validations`).
//!
//! Rules about a change stand on the whole spec and compare what a field *means* (its value or its default), because a
//! rule on the field itself is skipped when the field, or the block around it, is added or removed.

/// A kind of this API group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ValkeyCluster.
    Cluster,
    /// ValkeyACL.
    Acl,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Short name, unique; tests are keyed by it.
    pub id: &'static str,
    /// The kind it belongs to.
    pub kind: Kind,
    /// Path of the schema node that `self` is, from the object's root; `[]` steps into a list's items.
    pub at: &'static str,
    /// CEL expression that must be true.
    pub cel: &'static str,
    /// What the user reads when it is not: what is wrong and what to do.
    pub message: &'static str,
    /// The field to blame, relative to `at`; empty for `at` itself.
    pub field: &'static str,
}

const fn cluster(
    id: &'static str,
    at: &'static str,
    field: &'static str,
    cel: &'static str,
    message: &'static str,
) -> Rule {
    Rule {
        id,
        kind: Kind::Cluster,
        at,
        cel,
        message,
        field,
    }
}

const fn acl(
    id: &'static str,
    at: &'static str,
    field: &'static str,
    cel: &'static str,
    message: &'static str,
) -> Rule {
    Rule {
        id,
        kind: Kind::Acl,
        at,
        cel,
        message,
        field,
    }
}

/// All rules of both kinds.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        &IDENTITY[..],
        &TOPOLOGY,
        &STORAGE,
        &DISRUPTION,
        &SOURCE,
        &BACKUP,
        &CONFIG,
        &CHANGES,
        &USERS,
    ]
    .into_iter()
    .flatten()
}

/// The name, which other names are made of.
const IDENTITY: [Rule; 2] = [
    cluster(
        "name-length",
        "",
        ".metadata.name",
        "self.metadata.name.size() <= 40",
        "metadata.name is too long: use at most 40 characters, so that the names of Services, pods and volumes made from \
         it fit",
    ),
    cluster(
        "name-label",
        "",
        ".metadata.name",
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name cannot name a Service: start with a lower-case letter and use only lower-case letters, digits and \
         '-' (no dots)",
    ),
];

/// Which blocks belong to which topology.
const TOPOLOGY: [Rule; 8] = [
    cluster(
        "shards-required",
        "spec",
        "",
        "self.topology != 'Cluster' || has(self.shards)",
        "spec.shards is missing: topology Cluster needs the number of shards, at least 3",
    ),
    cluster(
        "shards-forbidden",
        "spec",
        ".shards",
        "self.topology == 'Cluster' || !has(self.shards)",
        "spec.shards is for topology Cluster only: remove it, or create the cluster with topology Cluster",
    ),
    cluster(
        "replicas-per-shard-forbidden",
        "spec",
        ".replicasPerShard",
        "self.topology == 'Cluster' || !has(self.replicasPerShard)",
        "spec.replicasPerShard is for topology Cluster only: remove it and set spec.replicas",
    ),
    cluster(
        "per-shard-workload-forbidden",
        "spec",
        ".perShardWorkload",
        "self.topology == 'Cluster' || !has(self.perShardWorkload)",
        "spec.perShardWorkload is for topology Cluster only: remove it",
    ),
    cluster(
        "sentinel-required",
        "spec",
        "",
        "self.topology != 'Sentinel' || has(self.sentinel)",
        "spec.sentinel is missing: topology Sentinel needs it, 'sentinel: {}' takes the defaults",
    ),
    cluster(
        "sentinel-forbidden",
        "spec",
        ".sentinel",
        "self.topology == 'Sentinel' || !has(self.sentinel)",
        "spec.sentinel is for topology Sentinel only: remove it, or create the cluster with topology Sentinel",
    ),
    cluster(
        "sentinel-quorum",
        "spec.sentinel",
        ".quorum",
        "!has(self.quorum) || self.quorum <= self.replicas",
        "spec.sentinel.quorum is larger than spec.sentinel.replicas, so no failover could ever start: lower it or leave \
         it out for a majority",
    ),
    cluster(
        "standalone-replicas",
        "spec",
        ".replicas",
        "self.topology != 'Standalone' || self.replicas == 1 || self.replicas == 3",
        "spec.replicas has no meaning for topology Standalone, which always has one pod: leave it out or write 1, or use \
         topology Replication",
    ),
];

/// Storage as it stands.
const STORAGE: [Rule; 2] = [
    cluster(
        "memory-durable",
        "spec",
        ".storage.medium",
        "self.profile != 'Durable' || !has(self.storage) || self.storage.medium != 'Memory'",
        "spec.storage.medium Memory is lost with the pod and cannot be Durable: use medium Disk, or profile Cache",
    ),
    cluster(
        "storage-size",
        "spec.storage",
        ".size",
        "!has(self.size) || (isQuantity(string(self.size)) && \
         quantity(string(self.size)).isGreaterThan(quantity('0')))",
        "spec.storage.size must be a quantity above 0, for example 10Gi",
    ),
];

/// Budgets that would never let a pod go block node drains and the operator's own rolling changes.
const DISRUPTION: [Rule; 4] = [
    cluster(
        "budget-one-of",
        "spec.podDisruptionBudget",
        "",
        "!(has(self.maxUnavailable) && has(self.minAvailable))",
        "spec.podDisruptionBudget has both maxUnavailable and minAvailable: give only one of them",
    ),
    cluster(
        "budget-max-unavailable",
        "spec.podDisruptionBudget",
        ".maxUnavailable",
        "!has(self.maxUnavailable) || (type(self.maxUnavailable) == int ? self.maxUnavailable > 0 : \
         string(self.maxUnavailable).matches('^[0-9]*[1-9][0-9]*%$'))",
        "spec.podDisruptionBudget.maxUnavailable must be a number above 0 or a percentage above 0%: with 0 no node could \
         be drained; set enabled to false for no budget",
    ),
    cluster(
        "budget-min-available",
        "spec.podDisruptionBudget",
        ".minAvailable",
        "!has(self.minAvailable) || (type(self.minAvailable) == int ? self.minAvailable >= 0 : \
         string(self.minAvailable).matches('^[0-9]{1,2}%$'))",
        "spec.podDisruptionBudget.minAvailable must be a number or a percentage below 100%: with 100% no node could be \
         drained; set enabled to false for no budget",
    ),
    cluster(
        "budget-below-pods",
        "spec",
        ".podDisruptionBudget.minAvailable",
        "!has(self.podDisruptionBudget) || !has(self.podDisruptionBudget.minAvailable) || \
         type(self.podDisruptionBudget.minAvailable) != int || self.podDisruptionBudget.minAvailable < \
         (self.topology == 'Standalone' ? 1 : self.topology == 'Cluster' ? (has(self.shards) ? self.shards : 0) * \
         (1 + (has(self.replicasPerShard) ? self.replicasPerShard : 0)) : self.replicas)",
        "spec.podDisruptionBudget.minAvailable must be below the number of data pods: else no node could be drained; \
         lower it, or set enabled to false for no budget",
    ),
];

/// Following an external primary.
const SOURCE: [Rule; 3] = [
    cluster(
        "source-topology",
        "spec",
        ".replicateFrom",
        "!has(self.replicateFrom) || self.topology == 'Standalone' || self.topology == 'Replication'",
        "spec.replicateFrom is for topologies Standalone and Replication only: remove it",
    ),
    cluster(
        "source-tls",
        "spec",
        ".replicateFrom.tls",
        "!has(self.replicateFrom) || !self.replicateFrom.tls || (has(self.tls) && self.tls.enabled)",
        "spec.replicateFrom.tls needs spec.tls.enabled: the pods present their own certificate to the source",
    ),
    cluster(
        "source-ca",
        "spec",
        ".replicateFrom.caSecret",
        "!has(self.replicateFrom) || !has(self.replicateFrom.caSecret) || (self.replicateFrom.tls && has(self.tls) && \
         self.tls.enabled)",
        "spec.replicateFrom.caSecret needs spec.replicateFrom.tls and spec.tls.enabled: set both to true, or remove it",
    ),
];

/// Snapshots. Values that reach a command line hold nothing that a shell would interpret.
const BACKUP: [Rule; 15] = [
    cluster(
        "backup-target",
        "spec.backup",
        "",
        "!self.enabled || has(self.s3)",
        "spec.backup.s3 is missing: enabled backups need a bucket and a credentialsSecret",
    ),
    cluster(
        "restore-per-shard",
        "spec",
        ".restoreFrom.sourceKey",
        "!has(self.restoreFrom) || self.topology != 'Cluster' || self.restoreFrom.sourceKey.contains('{shard}')",
        "spec.restoreFrom.sourceKey must hold {shard} for topology Cluster: it becomes each shard's number, so that every \
         shard loads its own snapshot",
    ),
    cluster(
        "restore-key",
        "spec.restoreFrom",
        ".sourceKey",
        S3_KEY,
        S3_KEY_MESSAGE,
    ),
    cluster(
        "backup-bucket",
        "spec.backup.s3",
        ".bucket",
        S3_BUCKET,
        S3_BUCKET_MESSAGE,
    ),
    cluster(
        "backup-endpoint",
        "spec.backup.s3",
        ".endpoint",
        S3_ENDPOINT,
        S3_ENDPOINT_MESSAGE,
    ),
    cluster(
        "backup-region",
        "spec.backup.s3",
        ".region",
        S3_REGION,
        S3_REGION_MESSAGE,
    ),
    cluster(
        "backup-prefix",
        "spec.backup.s3",
        ".prefix",
        S3_PREFIX,
        S3_PREFIX_MESSAGE,
    ),
    cluster(
        "backup-kms",
        "spec.backup.s3",
        ".kmsKeyId",
        S3_KMS,
        S3_KMS_MESSAGE,
    ),
    cluster(
        "restore-bucket",
        "spec.restoreFrom.s3",
        ".bucket",
        S3_BUCKET,
        S3_BUCKET_MESSAGE,
    ),
    cluster(
        "restore-endpoint",
        "spec.restoreFrom.s3",
        ".endpoint",
        S3_ENDPOINT,
        S3_ENDPOINT_MESSAGE,
    ),
    cluster(
        "restore-region",
        "spec.restoreFrom.s3",
        ".region",
        S3_REGION,
        S3_REGION_MESSAGE,
    ),
    cluster(
        "restore-prefix",
        "spec.restoreFrom.s3",
        ".prefix",
        S3_PREFIX,
        S3_PREFIX_MESSAGE,
    ),
    cluster(
        "restore-kms",
        "spec.restoreFrom.s3",
        ".kmsKeyId",
        S3_KMS,
        S3_KMS_MESSAGE,
    ),
    cluster(
        "backup-kms-unused",
        "spec.backup.s3",
        ".kmsKeyId",
        S3_KMS_USED,
        S3_KMS_USED_MESSAGE,
    ),
    cluster(
        "restore-kms-unused",
        "spec.restoreFrom.s3",
        ".kmsKeyId",
        S3_KMS_USED,
        S3_KMS_USED_MESSAGE,
    ),
];

const S3_BUCKET: &str = "self.bucket.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')";
const S3_BUCKET_MESSAGE: &str =
    "s3.bucket must start with a letter or digit and hold only letters, digits, '.', '_' and '-'";
const S3_ENDPOINT: &str = "!has(self.endpoint) || self.endpoint.matches('^(https?://[A-Za-z0-9._:\\\\[\\\\]-]+(/[A-Za-z0-9._/-]*)?)?$')";
const S3_ENDPOINT_MESSAGE: &str = "s3.endpoint must be a URL such as https://s3.example.com:9000";
const S3_REGION: &str = "self.region.matches('^[A-Za-z0-9_-]+$')";
const S3_REGION_MESSAGE: &str =
    "s3.region must hold only letters, digits, '_' and '-', for example us-east-1";
const S3_PREFIX: &str = "!has(self.prefix) || self.prefix.matches('^[A-Za-z0-9_./=+@:,-]*$')";
const S3_PREFIX_MESSAGE: &str = "s3.prefix must hold only letters, digits and _ . / = + @ : , -";
const S3_KEY: &str = "self.sourceKey.matches('^[A-Za-z0-9_./=+@:,{}-]+$')";
const S3_KEY_MESSAGE: &str = "spec.restoreFrom.sourceKey must hold only letters, digits and _ . / = + @ : , - and, for topology Cluster, {shard}";
const S3_KMS: &str = "!has(self.kmsKeyId) || self.kmsKeyId.matches('^[A-Za-z0-9:/_-]*$')";
const S3_KMS_MESSAGE: &str =
    "s3.kmsKeyId must be a key id, an ARN or an alias: letters, digits and : / _ -";
const S3_KMS_USED: &str = "!has(self.kmsKeyId) || self.kmsKeyId == '' || (has(self.encryption) && self.encryption == 'KMS')";
const S3_KMS_USED_MESSAGE: &str = "s3.kmsKeyId is not used unless s3.encryption is KMS: set encryption to KMS, or remove kmsKeyId";

/// Directives. A map's keys have no length bound in the schema, so the names are checked character by character: an
/// expression over the whole key would exceed the API server's cost limit.
const CONFIG: [Rule; 2] = [
    cluster(
        "config-names",
        "spec.config",
        "",
        "self.all(k, k.size() > 0 && k.size() <= 48 && k >= 'a' && \
         [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,\
         41,42,43,44,45,46,47].all(i, i >= k.size() || k.charAt(i) in ['a','b','c','d','e','f','g','h','i','j','k','l','m',\
         'n','o','p','q','r','s','t','u','v','w','x','y','z','0','1','2','3','4','5','6','7','8','9','-']))",
        "spec.config has a key that is no directive: use lower-case letters, digits and '-', starting with a letter, at \
         most 48 characters",
    ),
    cluster(
        "config-managed",
        "spec.config",
        "",
        "self.all(k, !(k in ['port','tls-port','bind','bind-source-addr','protected-mode','unixsocket','unixsocketperm',\
         'dir','dbfilename','appendonly','appendfilename','appenddirname','aclfile','user','requirepass','masterauth',\
         'masteruser','primaryauth','primaryuser','replicaof','slaveof','repl-ping-replica-period',\
         'repl-ping-slave-period','repl-diskless-load','replica-read-only','slave-read-only','cluster-enabled','cluster-config-file',\
         'cluster-port','tls-cert-file','tls-key-file','tls-key-file-pass','tls-client-cert-file','tls-client-key-file',\
         'tls-client-key-file-pass','tls-ca-cert-file','tls-ca-cert-dir','tls-cluster','tls-replication',\
         'tls-auth-clients','loadmodule','include','rename-command','daemonize','pidfile','supervised','sentinel',\
         'enable-debug-command','enable-module-command','enable-protected-configs','logfile','syslog-enabled']) && \
         !k.startsWith('cluster-announce-') && !k.startsWith('replica-announce-') && !k.startsWith('slave-announce-'))",
        "spec.config has a directive that the operator sets itself (ports, addresses, files and modules, users and \
         passwords, replication and cluster identity, TLS files, debug switches, appendonly): remove it and use the field \
         of the spec that stands for it, such as spec.storage.mode, spec.auth or spec.tls",
    ),
];

/// What may not change, or only in one direction.
const CHANGES: [Rule; 8] = [
    cluster(
        "topology-immutable",
        "spec",
        ".topology",
        "self.topology == oldSelf.topology",
        "spec.topology cannot change: create a new ValkeyCluster and move the data",
    ),
    cluster(
        "profile-immutable",
        "spec",
        ".profile",
        "self.profile == oldSelf.profile",
        "spec.profile cannot change: create a new ValkeyCluster and move the data",
    ),
    cluster(
        "per-shard-workload-immutable",
        "spec",
        "",
        "(has(self.perShardWorkload) && self.perShardWorkload) == (has(oldSelf.perShardWorkload) && \
         oldSelf.perShardWorkload)",
        "spec.perShardWorkload cannot change (absent means false): create a new ValkeyCluster and move the data",
    ),
    cluster(
        "shards-grow",
        "spec",
        ".shards",
        "!has(self.shards) || !has(oldSelf.shards) || self.shards >= oldSelf.shards || (has(self.perShardWorkload) && \
         self.perShardWorkload)",
        "spec.shards can only grow unless spec.perShardWorkload is true: keep the old number",
    ),
    cluster(
        "storage-class-immutable",
        "spec",
        "",
        "(has(self.storage) && has(self.storage.storageClassName)) == (has(oldSelf.storage) && \
         has(oldSelf.storage.storageClassName)) && (!has(self.storage) || !has(self.storage.storageClassName) || \
         self.storage.storageClassName == oldSelf.storage.storageClassName)",
        "spec.storage.storageClassName cannot change, come or go: write what the cluster was created with (nothing, if it \
         had none)",
    ),
    cluster(
        "storage-mode-immutable",
        "spec",
        "",
        "(has(self.storage) ? self.storage.mode : (self.profile == 'Durable' ? 'both' : 'none')) == \
         (has(oldSelf.storage) ? oldSelf.storage.mode : (oldSelf.profile == 'Durable' ? 'both' : 'none'))",
        "spec.storage.mode cannot change: write the mode that the cluster was created with. A storage block without mode \
         means rdb; no block means none for profile Cache and both for profile Durable",
    ),
    cluster(
        "storage-medium-immutable",
        "spec",
        "",
        "(has(self.storage) ? self.storage.medium : 'Disk') == (has(oldSelf.storage) ? oldSelf.storage.medium : 'Disk')",
        "spec.storage.medium cannot change (no storage block means Disk): create a new ValkeyCluster and move the data",
    ),
    cluster(
        "storage-size-grows",
        "spec",
        "",
        "quantity(has(self.storage) && has(self.storage.size) ? string(self.storage.size) : (self.profile == 'Durable' ? \
         '10Gi' : '1Gi')).compareTo(quantity(has(oldSelf.storage) && has(oldSelf.storage.size) ? \
         string(oldSelf.storage.size) : (oldSelf.profile == 'Durable' ? '10Gi' : '1Gi'))) >= 0",
        "spec.storage.size can only grow (absent means 1Gi for profile Cache, 10Gi for profile Durable): write the old \
         size or a larger one",
    ),
];

/// Users of a ValkeyACL.
const USERS: [Rule; 2] = [
    acl(
        "user-reserved",
        "spec.users[]",
        ".name",
        "!(self.name in ['default', 'replicator', 'sentinel-user', 'valkey-operator'])",
        "this user name is the operator's: choose another (reserved are default, replicator, sentinel-user and \
         valkey-operator)",
    ),
    acl(
        "user-rules-without-password",
        "spec.users[]",
        ".rules",
        "!self.rules.matches('(?i)(^|[ ])([><#!]|(nopass|reset|resetpass)([ ]|$))')",
        "rules must not set or clear passwords (>word, <word, #hash, !hash, nopass, resetpass, reset): put the password \
         into a Secret and name it in passwordSecret",
    ),
];
