//! valkey.conf and the map that holds it.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState};
use wellcake_core::render::{self, compare, config_of, go_back, over_live, refused_config};
use wellcake_crds::annotations::CONFIG_HASH;

use crate::cases::*;

#[test]
fn what_only_a_start_takes_gets_another_map_and_another_template() {
    let (plain, tuned) = (json!({}), json!({ "config": { "io-threads": "2" } }));
    let map = must(Object::Config, tuned.clone());
    assert_eq!(
        map["metadata"]["name"],
        named(Object::Config, tuned.clone())
    );
    assert_ne!(
        named(Object::Config, plain.clone()),
        named(Object::Config, tuned.clone())
    );
    assert!(
        map["data"]["valkey.conf"]
            .as_str()
            .expect("a text")
            .ends_with("\nio-threads 2\n")
    );
    let set = must(Object::StatefulSet, tuned.clone());
    let digest = set["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH]
        .as_str()
        .expect("a digest");
    assert_eq!(
        named(Object::Config, tuned.clone()),
        format!("web-config-{digest}")
    );
    assert_eq!(
        pod_spec(tuned)["volumes"][0]["configMap"]["name"],
        format!("web-config-{digest}")
    );
}

#[test]
fn what_a_running_server_takes_changes_the_file_and_no_template() {
    let plain = json!({ "config": { "io-threads": "2" } });
    let tuned = json!({ "config": { "io-threads": "2", "timeout": "60", "maxmemory-policy": "noeviction" } });
    assert_eq!(
        must(Object::StatefulSet, plain.clone()),
        must(Object::StatefulSet, tuned.clone())
    );
    let (before, after) = (must(Object::Config, plain), must(Object::Config, tuned));
    assert_eq!(before["metadata"]["name"], after["metadata"]["name"]);
    assert_eq!(
        compare(Some(&after), Some(&before), UID),
        Some(ObjectState::Differs)
    );
    // A value with quotes within cannot be sent as it is written.
    let quoted = json!({ "config": { "io-threads": "2", "save": "\"900 1\" \"60 5\"" } });
    assert_ne!(
        must(Object::Config, quoted)["metadata"]["name"],
        after["metadata"]["name"]
    );
}

#[test]
fn another_memory_limit_is_another_file() {
    let with = |limit: &str| {
        let limits = json!({ "resources": { "limits": { "memory": limit } } });
        named(Object::Config, limits)
    };
    assert_ne!(with("1Gi"), with("2Gi"));
    assert_eq!(with("1Gi"), with("1024Mi"));
}

#[test]
fn a_refused_file_is_kept_away_until_another_one_is_asked_for() {
    let good = must(Object::StatefulSet, json!({}));
    let bad = must(
        Object::StatefulSet,
        json!({ "config": { "io-threads": "many" } }),
    );
    let digest = |set: &Value| config_of(set).expect("a digest").to_owned();
    let pinned = go_back(&bad, &name(), &digest(&good), "io-threads many: no integer");
    assert_eq!(pinned["spec"]["template"], good["spec"]["template"]);
    assert_eq!(
        refused_config(&pinned),
        Some((digest(&bad).as_str(), "io-threads many: no integer"))
    );
    // The API server keeps it as it is, and so does each later comparison and application.
    assert_eq!(over_live(&bad, Some(&pinned), None), pinned);
    assert_eq!(
        compare(Some(&bad), Some(&pinned), UID),
        Some(ObjectState::Matches)
    );
    let mended = must(
        Object::StatefulSet,
        json!({ "config": { "io-threads": "2" } }),
    );
    assert_eq!(over_live(&mended, Some(&pinned), None), mended);
    assert_eq!(
        compare(Some(&mended), Some(&pinned), UID),
        Some(ObjectState::Differs)
    );
}

#[test]
fn valkey_conf_is_deterministic_and_a_users_directive_replaces_the_operators() {
    let text = |value: Value| render::config(&spec(value));
    let default = text(json!({ "resources": { "limits": { "memory": "512Mi" } } }));
    let lines: Vec<_> = default.lines().collect();
    for line in [
        "port 6399",
        "replica-announce-port 6379",
        "replicaof 127.0.0.1 1",
        "include /etc/valkey/secret/replication.conf",
        "aclfile /etc/valkey/secret/users.acl",
        "bind * -::*",
        "dir /data",
        "appendonly no",
        "save \"\"",
        "rdb-del-sync-files yes",
        "repl-diskless-sync-delay 0",
        "maxmemory 322122547b",
        "maxmemory-policy allkeys-lru",
        "repl-backlog-size 33554432b",
    ] {
        assert_eq!(
            lines.iter().filter(|given| **given == line).count(),
            1,
            "{line}\n{default}"
        );
    }
    let standalone = text(json!({ "topology": "Standalone" }));
    assert!(standalone.starts_with("port 6379\n"), "{standalone}");
    for absent in [
        "replicaof",
        "include",
        "repl-",
        "min-replicas",
        "maxmemory ",
    ] {
        assert!(!standalone.contains(absent), "{absent}\n{standalone}");
    }
    let given = text(
        json!({ "config": { "maxmemory-policy": "volatile-ttl", "save": "", "notify-keyspace-events": "" } }),
    );
    assert!(
        given
            .ends_with("\nmaxmemory-policy volatile-ttl\nnotify-keyspace-events \"\"\nsave \"\"\n"),
        "{given}"
    );
    assert!(!given.contains("allkeys-lru"));
    let one_save = given
        .lines()
        .filter(|line| line.starts_with("save "))
        .count();
    assert_eq!(one_save, 1);
}

#[test]
fn the_backlog_stays_within_its_bounds() {
    let backlog = |memory: &str| {
        let text = render::config(&spec(
            json!({ "resources": { "limits": { "memory": memory } } }),
        ));
        text.lines()
            .find_map(|line| line.strip_prefix("repl-backlog-size ").map(str::to_owned))
    };
    assert_eq!(backlog("64Mi").as_deref(), Some("16777216b"));
    assert_eq!(backlog("2Gi").as_deref(), Some("134217728b"));
    assert_eq!(backlog("64Gi").as_deref(), Some("268435456b"));
    assert_eq!(backlog("0"), None);
    assert_eq!(backlog("nonsense"), None);
}

#[test]
fn log_formats_are_written_for_servers_that_know_them() {
    let has = |image: &str| {
        render::config(&spec(
            json!({ "image": image, "logging": { "format": "json" } }),
        ))
        .contains("log-format json\n")
    };
    assert!(has("valkey/valkey:9.1") && has("valkey/valkey:10.0"));
    assert!(!has("valkey/valkey:8.1") && !has("valkey/valkey:latest"));
}
