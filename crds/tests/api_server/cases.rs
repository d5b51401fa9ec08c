//! For each rule an object that is accepted and one that is refused. Where the rule is about a change, `before` is what
//! was stored.

use serde_json::{Value, json};
use wellcake_crds::rules::Kind;

use crate::objects::{acl, cluster, merged, named, s3};

/// A rule with objects on both sides of it.
pub struct Case {
    pub rule: &'static str,
    pub before: Option<Value>,
    pub accepted: Value,
    pub refused: Value,
}

/// A case of a rule about an object as it stands; `spec` makes an object of the rule's kind.
fn now(rule: &'static str, accepted: Value, refused: Value) -> Case {
    Case {
        rule,
        before: None,
        accepted: cluster("v1beta1", accepted),
        refused: cluster("v1beta1", refused),
    }
}

fn change(rule: &'static str, before: Value, accepted: Value, refused: Value) -> Case {
    Case {
        before: Some(cluster("v1beta1", before)),
        ..now(rule, accepted, refused)
    }
}

/// All cases of a kind.
pub fn of(kind: Kind) -> Vec<Case> {
    match kind {
        Kind::Cluster => [
            names(),
            topologies(),
            storage(),
            budgets(),
            sources(),
            backups(),
            configs(),
            changes(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        Kind::Acl => users(),
    }
}

fn names() -> Vec<Case> {
    let called = |name: &str| named("v1beta1", "ValkeyCluster", name, json!({}));
    let case = |rule, good: &str, bad: &str| Case {
        rule,
        before: None,
        accepted: called(good),
        refused: called(bad),
    };
    vec![
        case("name-length", &"a".repeat(40), &"a".repeat(41)),
        case("name-label", "web-1", "web.one"),
        case("name-label", "w", "1web"),
    ]
}

fn sharded(spec: Value) -> Value {
    merged(json!({"topology": "Cluster", "shards": 3}), spec)
}

fn sentinel(spec: Value) -> Value {
    merged(json!({"topology": "Sentinel", "sentinel": {}}), spec)
}

fn topologies() -> Vec<Case> {
    vec![
        now(
            "shards-required",
            sharded(json!({})),
            json!({"topology": "Cluster"}),
        ),
        now("shards-forbidden", json!({}), json!({"shards": 3})),
        now(
            "replicas-per-shard-forbidden",
            sharded(json!({"replicasPerShard": 1})),
            json!({"replicasPerShard": 1}),
        ),
        now(
            "per-shard-workload-forbidden",
            sharded(json!({"perShardWorkload": true})),
            json!({"perShardWorkload": false}),
        ),
        now(
            "sentinel-required",
            sentinel(json!({})),
            json!({"topology": "Sentinel"}),
        ),
        now("sentinel-forbidden", json!({}), json!({"sentinel": {}})),
        now(
            "sentinel-quorum",
            sentinel(json!({"sentinel": {"replicas": 5, "quorum": 5}})),
            sentinel(json!({"sentinel": {"replicas": 5, "quorum": 6}})),
        ),
        now(
            "standalone-replicas",
            json!({"topology": "Standalone"}),
            json!({"topology": "Standalone", "replicas": 2}),
        ),
        now(
            "standalone-replicas",
            json!({"topology": "Standalone", "replicas": 1}),
            json!({"topology": "Standalone", "replicas": 4}),
        ),
    ]
}

fn storage() -> Vec<Case> {
    vec![
        now(
            "memory-durable",
            json!({"storage": {"medium": "Memory"}}),
            json!({"profile": "Durable", "storage": {"medium": "Memory"}}),
        ),
        now(
            "storage-size",
            json!({"storage": {"size": "1.5Gi"}}),
            json!({"storage": {"size": "0"}}),
        ),
        now(
            "storage-size",
            json!({"storage": {"size": 1073741824}}),
            json!({"storage": {"size": "-1Gi"}}),
        ),
    ]
}

fn budget(block: Value) -> Value {
    json!({"podDisruptionBudget": block})
}

fn budgets() -> Vec<Case> {
    vec![
        now(
            "budget-one-of",
            budget(json!({"minAvailable": 1})),
            budget(json!({"minAvailable": 1, "maxUnavailable": 1})),
        ),
        now(
            "budget-max-unavailable",
            budget(json!({"maxUnavailable": 1})),
            budget(json!({"maxUnavailable": 0})),
        ),
        now(
            "budget-max-unavailable",
            budget(json!({"maxUnavailable": "30%"})),
            budget(json!({"maxUnavailable": "0%"})),
        ),
        now(
            "budget-max-unavailable",
            budget(json!({"maxUnavailable": "100%"})),
            budget(json!({"maxUnavailable": "all"})),
        ),
        now(
            "budget-min-available",
            budget(json!({"minAvailable": "99%"})),
            budget(json!({"minAvailable": "100%"})),
        ),
        now(
            "budget-min-available",
            budget(json!({"minAvailable": 0})),
            budget(json!({"minAvailable": -1})),
        ),
        now(
            "budget-below-pods",
            budget(json!({"minAvailable": 2})),
            budget(json!({"minAvailable": 3})),
        ),
        now(
            "budget-below-pods",
            sharded(json!({"replicasPerShard": 1, "podDisruptionBudget": {"minAvailable": 5}})),
            sharded(json!({"replicasPerShard": 1, "podDisruptionBudget": {"minAvailable": 6}})),
        ),
    ]
}

fn sources() -> Vec<Case> {
    let from = |source: Value, rest: Value| {
        merged(
            json!({"replicateFrom": merged(json!({"host": "h"}), source)}),
            rest,
        )
    };
    let tls = || json!({"tls": {"enabled": true}});
    vec![
        now(
            "source-topology",
            from(json!({}), json!({"topology": "Standalone"})),
            from(json!({}), sharded(json!({}))),
        ),
        now(
            "source-topology",
            from(json!({}), json!({})),
            from(json!({}), sentinel(json!({}))),
        ),
        now(
            "source-tls",
            from(json!({"tls": true}), tls()),
            from(json!({"tls": true}), json!({})),
        ),
        now(
            "source-ca",
            from(json!({"tls": true, "caSecret": {"name": "ca"}}), tls()),
            from(json!({"caSecret": {"name": "ca"}}), tls()),
        ),
        now(
            "source-ca",
            from(
                json!({"tls": true, "caSecret": {"name": "ca", "key": "x.crt"}}),
                tls(),
            ),
            from(
                json!({"tls": true, "caSecret": {"name": "ca"}}),
                json!({"tls": {"enabled": false}}),
            ),
        ),
    ]
}

fn backups() -> Vec<Case> {
    let restore = |over: Value| json!({"restoreFrom": merged(json!({"s3": s3(), "sourceKey": "dumps/a.rdb"}), over)});
    let mut cases = vec![
        now(
            "backup-target",
            json!({"backup": {"enabled": true, "s3": s3()}}),
            json!({"backup": {"enabled": true}}),
        ),
        now(
            "backup-target",
            json!({"backup": {}}),
            json!({"backup": {"enabled": true, "retention": 1}}),
        ),
        now(
            "restore-per-shard",
            merged(
                restore(json!({"sourceKey": "dumps/{shard}.rdb"})),
                sharded(json!({})),
            ),
            merged(restore(json!({})), sharded(json!({}))),
        ),
        now(
            "restore-key",
            restore(json!({"sourceKey": "a/b_c@d=1.rdb"})),
            restore(json!({"sourceKey": "a;reboot"})),
        ),
        now(
            "restore-key",
            restore(json!({"sourceKey": "2026:1,2.rdb"})),
            restore(json!({"sourceKey": "$(id)"})),
        ),
    ];
    let fields = [
        (
            "bucket",
            json!({"bucket": "my.bucket-1"}),
            json!({"bucket": "b`id`"}),
        ),
        (
            "endpoint",
            json!({"endpoint": "https://s3.local:9000/x"}),
            json!({"endpoint": "s3.local"}),
        ),
        (
            "endpoint",
            json!({"endpoint": ""}),
            json!({"endpoint": "https://s3.local/'; id"}),
        ),
        (
            "region",
            json!({"region": "eu-central-1"}),
            json!({"region": "eu central"}),
        ),
        (
            "prefix",
            json!({"prefix": "team/a=b"}),
            json!({"prefix": "a b"}),
        ),
        (
            "kms",
            json!({"encryption": "KMS", "kmsKeyId": "alias/key-1"}),
            json!({"encryption": "KMS", "kmsKeyId": "a|b"}),
        ),
        (
            "kms-unused",
            json!({"encryption": "KMS", "kmsKeyId": "k"}),
            json!({"kmsKeyId": "k"}),
        ),
        (
            "kms-unused",
            json!({"encryption": "KMS"}),
            json!({"encryption": "AES256", "kmsKeyId": "k"}),
        ),
    ];
    for (field, good, bad) in fields {
        let backup = |over: &Value| json!({"backup": {"s3": merged(s3(), over.clone())}});
        cases.push(now(rule_id("backup", field), backup(&good), backup(&bad)));
        let from = |over: &Value| restore(json!({"s3": over}));
        cases.push(now(rule_id("restore", field), from(&good), from(&bad)));
    }
    cases
}

/// The identifier as the rules spell it.
fn rule_id(block: &str, field: &str) -> &'static str {
    let id = format!("{block}-{field}");
    wellcake_crds::rules::all()
        .find(|rule| rule.id == id)
        .map(|rule| rule.id)
        .expect("a rule of this name")
}

fn configs() -> Vec<Case> {
    let set = |name: &str| json!({"config": {name: "1"}});
    let mut cases: Vec<Case> = [
        "Port",
        "time out",
        "a\nport",
        "-a",
        "1a",
        "",
        "näme",
        "a.b",
        &"a".repeat(49),
    ]
    .into_iter()
    .map(|bad| now("config-names", set("maxmemory-policy"), set(bad)))
    .collect();
    let managed = [
        "port",
        "tls-port",
        "bind",
        "protected-mode",
        "dir",
        "dbfilename",
        "appendonly",
        "aclfile",
        "requirepass",
        "masterauth",
        "masteruser",
        "primaryauth",
        "primaryuser",
        "user",
        "replicaof",
        "slaveof",
        "cluster-enabled",
        "cluster-config-file",
        "cluster-port",
        "cluster-announce-ip",
        "cluster-announce-hostname",
        "replica-announce-ip",
        "slave-announce-port",
        "loadmodule",
        "include",
        "rename-command",
        "daemonize",
        "pidfile",
        "unixsocket",
        "supervised",
        "enable-debug-command",
        "enable-module-command",
        "logfile",
        "syslog-enabled",
        "tls-cert-file",
        "repl-ping-replica-period",
        "repl-diskless-load",
        "replica-read-only",
    ];
    cases.extend(
        managed
            .into_iter()
            .map(|name| now("config-managed", set("save"), set(name))),
    );
    cases
}

fn changes() -> Vec<Case> {
    let disk = |storage: Value| json!({"storage": storage});
    let durable = |spec: Value| merged(json!({"profile": "Durable"}), spec);
    vec![
        change(
            "topology-immutable",
            json!({}),
            json!({"replicas": 5}),
            json!({"topology": "Standalone"}),
        ),
        change(
            "profile-immutable",
            json!({}),
            json!({"profile": "Cache"}),
            json!({"profile": "Durable"}),
        ),
        change(
            "per-shard-workload-immutable",
            sharded(json!({})),
            sharded(json!({"perShardWorkload": false})),
            sharded(json!({"perShardWorkload": true})),
        ),
        change(
            "per-shard-workload-immutable",
            sharded(json!({"perShardWorkload": true})),
            sharded(json!({"perShardWorkload": true, "shards": 4})),
            sharded(json!({})),
        ),
        change(
            "shards-grow",
            sharded(json!({"shards": 4})),
            sharded(json!({"shards": 5})),
            sharded(json!({})),
        ),
        change(
            "shards-grow",
            sharded(json!({"shards": 6, "perShardWorkload": true})),
            sharded(json!({"shards": 4, "perShardWorkload": true})),
            sharded(json!({"shards": 4})),
        ),
        change(
            "storage-class-immutable",
            disk(json!({"storageClassName": "fast"})),
            disk(json!({"storageClassName": "fast", "size": "2Gi"})),
            disk(json!({"storageClassName": "slow"})),
        ),
        change(
            "storage-class-immutable",
            disk(json!({})),
            disk(json!({"size": "2Gi"})),
            disk(json!({"storageClassName": ""})),
        ),
        change(
            "storage-class-immutable",
            disk(json!({"mode": "none", "storageClassName": "fast"})),
            disk(json!({"mode": "none", "storageClassName": "fast"})),
            json!({}),
        ),
        change(
            "storage-mode-immutable",
            disk(json!({"mode": "aof"})),
            disk(json!({"mode": "aof", "size": "2Gi"})),
            disk(json!({"mode": "none"})),
        ),
        change(
            "storage-mode-immutable",
            json!({}),
            disk(json!({"mode": "none"})),
            disk(json!({"size": "2Gi"})),
        ),
        change(
            "storage-mode-immutable",
            disk(json!({"mode": "none"})),
            json!({}),
            disk(json!({})),
        ),
        change(
            "storage-mode-immutable",
            durable(json!({})),
            durable(disk(json!({"mode": "both", "size": "20Gi"}))),
            durable(disk(json!({"size": "20Gi"}))),
        ),
        change(
            "storage-mode-immutable",
            disk(json!({})),
            disk(json!({"mode": "rdb"})),
            json!({}),
        ),
        change(
            "storage-medium-immutable",
            disk(json!({"medium": "Memory"})),
            disk(json!({"medium": "Memory", "size": "2Gi"})),
            disk(json!({})),
        ),
        change(
            "storage-medium-immutable",
            disk(json!({"medium": "Memory", "mode": "none"})),
            disk(json!({"medium": "Memory", "mode": "none"})),
            json!({}),
        ),
        change(
            "storage-medium-immutable",
            json!({}),
            disk(json!({"mode": "none", "medium": "Disk"})),
            disk(json!({"mode": "none", "medium": "Memory"})),
        ),
        change(
            "storage-size-grows",
            disk(json!({"size": "2Gi"})),
            disk(json!({"size": "2048Mi"})),
            disk(json!({"size": "2000M"})),
        ),
        change(
            "storage-size-grows",
            disk(json!({"size": "1Gi"})),
            disk(json!({})),
            disk(json!({"size": "1023Mi"})),
        ),
        change(
            "storage-size-grows",
            disk(json!({"size": "2Gi"})),
            disk(json!({"size": "3Gi"})),
            disk(json!({})),
        ),
        change(
            "storage-size-grows",
            disk(json!({"size": "2Gi", "mode": "none"})),
            disk(json!({"size": 2147483648u32, "mode": "none"})),
            json!({}),
        ),
        change(
            "storage-size-grows",
            durable(json!({})),
            durable(disk(json!({"mode": "both", "size": "10Gi"}))),
            durable(disk(json!({"mode": "both", "size": "9Gi"}))),
        ),
    ]
}

fn users() -> Vec<Case> {
    let user = |over: Value| {
        acl(
            "v1beta1",
            json!({"clusterRef": {"name": "web"}, "users": [merged(json!({"name": "app"}), over)]}),
        )
    };
    let case = |rule, good: Value, bad: Value| Case {
        rule,
        before: None,
        accepted: user(good),
        refused: user(bad),
    };
    let mut cases: Vec<Case> = wellcake_crds::names::RESERVED_USERS
        .into_iter()
        .map(|reserved| case("user-reserved", json!({}), json!({"name": reserved})))
        .collect();
    let fine = "on ~* &* %R~x* +@read -@dangerous resetkeys resetchannels allkeys";
    let words = [
        "on >secret ~*",
        "<secret",
        "on #5e88",
        "!5e88",
        "on NoPass ~*",
        "resetpass",
        "on reset",
        "reset ~*",
    ];
    cases.extend(words.map(|bad| {
        case(
            "user-rules-without-password",
            json!({"rules": fine}),
            json!({"rules": bad}),
        )
    }));
    cases
}
