//! Directives that a running server takes, and words of one that does not start.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use wellcake_core::parse::config_error;
use wellcake_core::render::directives::{LIVE, live, live_names};
use wellcake_core::render::{config, config_digest};

use super::server::{Connection, Server, free_port, program};
use super::spec;

fn configure(connection: &mut Connection, directives: &BTreeMap<String, String>) -> String {
    let pairs = directives
        .iter()
        .flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    let words: Vec<&str> = ["CONFIG", "SET"].into_iter().chain(pairs).collect();
    connection.ask(&words)
}

#[test]
fn every_live_directive_can_be_set_and_has_the_default_that_is_written_down() {
    let port = free_port();
    let mut child = Command::new(program())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "the server does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut connection = Connection::open(port);
    let wrong: Vec<_> = LIVE
        .iter()
        .filter(|(name, default)| connection.directive(name) != *default)
        .collect();
    let all = LIVE.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let answer = configure(&mut connection, &all.clone().into());
    let alone: Vec<_> = LIVE
        .iter()
        .filter(|(name, value)| connection.ask(&["CONFIG", "SET", name, value]) != "+OK")
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wrong.is_empty(), "other defaults: {wrong:?}");
    assert!(alone.is_empty(), "cannot be set: {alone:?}");
    assert_eq!(answer, "+OK");
    let sorted: BTreeMap<String, String> = all.clone().into();
    assert!(sorted.into_iter().eq(all), "names are sorted and unique");
}

#[test]
fn a_running_server_takes_what_the_operator_sends_for_a_spec() {
    let before = spec(json!({ "config": { "timeout": "60", "hz": "20" } }));
    let server = Server::start(&before);
    let mut operator = server.operator();
    let after = spec(json!({
        "profile": "Cache",
        "config": {
            "maxmemory": "100mb",
            "client-output-buffer-limit": "replica 512mb 128mb 60",
            "notify-keyspace-events": "\"Ex\"",
            "save": "900 1",
        },
    }));
    assert_eq!(config_digest(&before), config_digest(&after));
    let sent = live(&after, &live_names(&config(&before)));
    assert_eq!(configure(&mut operator, &sent), "+OK", "{sent:?}");
    for (name, value) in [
        ("timeout", "0"),
        ("hz", "10"),
        ("maxmemory", "104857600"),
        ("maxmemory-policy", "allkeys-lru"),
        ("notify-keyspace-events", "xE"),
        ("save", "900 1"),
        (
            "client-output-buffer-limit",
            "normal 0 0 0 slave 536870912 134217728 60 pubsub 33554432 8388608 60",
        ),
    ] {
        assert_eq!(operator.directive(name), value, "{name}");
    }
    // A server that starts with the new file has the same.
    let fresh = Server::start(&after);
    let mut other = fresh.operator();
    for (name, _) in LIVE {
        assert_eq!(operator.directive(name), other.directive(name), "{name}");
    }
}

#[test]
fn one_wrong_value_changes_nothing_and_is_named() {
    let server = Server::start(&spec(json!({})));
    let mut operator = server.operator();
    let wrong = spec(json!({ "config": { "hz": "often", "timeout": "60", "appendfsync": "no" } }));
    let answer = configure(&mut operator, &live(&wrong, &BTreeSet::new()));
    assert!(
        answer.starts_with("-ERR CONFIG SET failed") && answer.contains("'hz'"),
        "{answer}"
    );
    assert_eq!(operator.directive("timeout"), "0");
    assert_eq!(operator.directive("appendfsync"), "everysec");
}

#[test]
fn last_words_name_the_line_that_is_not_understood() {
    let file = std::env::temp_dir().join(format!("wellcake-{}.conf", std::process::id()));
    std::fs::write(&file, "port 0\nio-threads many\n").unwrap();
    let ended = Command::new(program()).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let log = [ended.stdout, ended.stderr].concat();
    let said = config_error(&String::from_utf8_lossy(&log));
    assert_eq!(
        said.as_deref(),
        Some("io-threads many: argument couldn't be parsed into an integer")
    );
}
