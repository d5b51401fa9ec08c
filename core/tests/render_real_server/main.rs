//! Rendered files in the hands of a real server.

// A real server has a real clock; and lints see tests only in functions marked as such, not in their helpers.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod directives;
mod server;

use std::time::{Duration, Instant};

use serde_json::json;
use server::{
    Connection, OPERATOR_PASSWORD, Passwords, REPLICATION_PASSWORD, Server, USER_PASSWORD,
    free_port,
};
use wellcake_core::facts::{Interner, Link, PodUid, Port, Role, Tick, Upstream};
use wellcake_core::parse::{InfoRole, server_facts};
use wellcake_crds::v1beta1::ValkeyClusterSpec;

fn spec(value: serde_json::Value) -> ValkeyClusterSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_pod_of_replication_boots_fenced_as_a_replica_of_nobody() {
    let server = Server::start(&spec(json!({})));
    let info = server.info();
    let mut interner = Interner::default();
    let facts = server_facts(
        &info,
        Tick(0),
        PodUid(7),
        Port::Fence,
        |_, _| panic!("nobody has no address"),
        &mut interner,
    );
    assert_eq!(
        facts.role,
        Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            syncing: false
        }
    );
    assert!(!facts.is_synced_replica() && !facts.serves_writes() && !facts.loading);
    assert_eq!((facts.keys, info.tcp_port), (0, Some(server.port)));
}

#[test]
fn opening_the_client_port_keeps_the_operators_connection_and_closes_the_fence() {
    let server = Server::start(&spec(json!({})));
    let mut operator = server.operator();
    let client_port = free_port();
    assert_eq!(
        operator.ask(&["CONFIG", "SET", "port", &client_port.to_string()]),
        "+OK"
    );
    assert_eq!(operator.ask(&["PING"]), "+PONG");
    assert!(
        Connection::open(client_port)
            .ask(&["PING"])
            .starts_with("-NOAUTH")
    );
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err());
}

#[test]
fn users_can_do_what_they_need_and_nothing_else() {
    let server = Server::start(&spec(json!({})));
    assert!(server.connect().ask(&["GET", "a"]).starts_with("-NOAUTH"));
    for user in ["default", "valkey-operator", "replicator"] {
        assert!(
            server
                .connect()
                .ask(&["AUTH", user, "wrong"])
                .starts_with("-WRONGPASS"),
            "{user}"
        );
    }
    assert_eq!(
        server.login("default", USER_PASSWORD).ask(&["GET", "a"]),
        ""
    );

    let mut operator = server.operator();
    let needed: [&[&str]; 16] = [
        &["HELLO", "2"],
        &["PING"],
        &["INFO"],
        &["ROLE"],
        &["CONFIG", "GET", "maxmemory"],
        &["CONFIG", "SET", "min-replicas-to-write", "0"],
        &["CLIENT", "SETNAME", "operator"],
        &["CLIENT", "SETINFO", "LIB-NAME", "x"],
        &["CLIENT", "LIST"],
        &["CLIENT", "NO-EVICT", "on"],
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
        &["CLIENT", "KILL", "USER", "valkey-operator", "SKIPME", "yes"],
        &["CLIENT", "PAUSE", "10", "WRITE"],
        &["CLIENT", "UNPAUSE"],
        &["DBSIZE"],
        &["REPLICAOF", "NO", "ONE"],
    ];
    for command in needed {
        let reply = operator.ask(command);
        assert!(!reply.starts_with('-'), "{command:?}: {reply}");
    }
    assert_eq!(operator.ask(&["WAIT", "0", "1"]), ":0");
    let forbidden: [&[&str]; 10] = [
        &["FAILOVER"],
        &["GET", "a"],
        &["SET", "a", "b"],
        &["FLUSHALL"],
        &["FLUSHDB"],
        &["SHUTDOWN"],
        &["ACL", "LIST"],
        &["CONFIG", "REWRITE"],
        &["KEYS", "*"],
        &["EVAL", "return 1", "0"],
    ];
    for command in forbidden {
        let reply = operator.ask(command);
        assert!(reply.starts_with("-NOPERM"), "{command:?}: {reply}");
    }

    let mut replicator = server.login("replicator", REPLICATION_PASSWORD);
    assert_eq!(replicator.ask(&["PING"]), "+PONG");
    for command in [["GET", "a"], ["KEYS", "*"], ["INFO", "server"]] {
        assert!(
            replicator.ask(&command).starts_with("-NOPERM"),
            "{command:?}"
        );
    }
}

#[test]
fn a_standalone_opens_by_itself_as_a_primary() {
    let server = Server::start(&spec(json!({ "topology": "Standalone" })));
    assert_eq!(server.info().role, InfoRole::Primary);
    assert_eq!(
        server
            .login("default", USER_PASSWORD)
            .ask(&["SET", "a", "b"]),
        "+OK"
    );
    assert!(
        server
            .connect()
            .ask(&["AUTH", "replicator", REPLICATION_PASSWORD])
            .starts_with("-WRONGPASS")
    );
    assert_eq!(server.info().keys, 1);
}

#[test]
fn without_auth_clients_need_no_password_and_the_operator_still_does() {
    let spec = spec(json!({ "topology": "Standalone", "auth": { "enabled": false } }));
    let server = Server::start_with(
        &spec,
        &Passwords {
            user: None,
            ..Passwords::default()
        },
    );
    assert_eq!(server.connect().ask(&["SET", "a", "b"]), "+OK");
    assert!(
        server
            .connect()
            .ask(&["AUTH", "valkey-operator", "x"])
            .starts_with("-WRONGPASS")
    );
    server.operator();
}

#[test]
fn a_missing_password_closes_the_default_user_instead_of_opening_it() {
    let server = Server::start_with(
        &spec(json!({})),
        &Passwords {
            user: None,
            ..Passwords::default()
        },
    );
    for command in [["PING"].as_slice(), &["GET", "a"]] {
        assert!(server.connect().ask(command).starts_with("-NOAUTH"));
    }
    for password in ["", "x"] {
        assert!(server.connect().ask(&["AUTH", password]).starts_with('-'));
    }
}

#[test]
fn any_password_reaches_the_server_unchanged() {
    let odd = (1u8..=127)
        .map(char::from)
        .chain("äß€🎂".chars())
        .collect::<String>();
    for password in [odd.as_str(), " ", "\"", "\\", "# x", "a\" b", "\\x41"] {
        let passwords = Passwords {
            user: Some(password),
            operator: password,
            replication: password,
        };
        let server = Server::start_with(&spec(json!({})), &passwords);
        server.login("default", password);
        server.login("replicator", password);
        assert_eq!(
            server
                .login("valkey-operator", password)
                .directive("masterauth"),
            password
        );
    }
}

#[test]
fn every_profile_and_storage_mode_starts_and_means_what_it_says() {
    let table = [
        (json!({}), "no", ""),
        (
            json!({ "profile": "Durable" }),
            "yes",
            "3600 1 300 100 60 10000",
        ),
        (
            json!({ "storage": { "mode": "rdb" } }),
            "no",
            "3600 1 300 100 60 10000",
        ),
        (json!({ "storage": { "mode": "aof" } }), "yes", ""),
        (
            json!({ "storage": { "mode": "both" } }),
            "yes",
            "3600 1 300 100 60 10000",
        ),
        (json!({ "storage": { "mode": "none" } }), "no", ""),
        (
            json!({ "storage": { "mode": "rdb", "medium": "Memory" } }),
            "no",
            "",
        ),
    ];
    for topology in ["Standalone", "Replication"] {
        for (block, aof, save) in &table {
            let mut block = block.clone();
            block["topology"] = json!(topology);
            let server = Server::start(&spec(block.clone()));
            let mut operator = server.operator();
            assert_eq!(operator.directive("appendonly"), *aof, "{block}");
            assert_eq!(operator.directive("save"), *save, "{block}");
            assert_eq!(operator.directive("shutdown-timeout"), "10");
            assert_eq!(operator.directive("bind"), "* -::*");
        }
    }
}

#[test]
fn what_is_computed_and_what_the_user_sets_is_in_force() {
    let server = Server::start(&spec(json!({
        "profile": "Durable",
        "resources": { "limits": { "memory": "1Gi" } },
        "config": {
            "hash-max-listpack-entries": "64",
            "latency-tracking": "no",
            "notify-keyspace-events": "",
            "repl-timeout": "20",
            "save": "900 1",
        },
    })));
    let mut operator = server.operator();
    let table = [
        ("maxmemory", "644245094"),
        ("maxmemory-policy", "noeviction"),
        ("repl-backlog-size", "67108864"),
        ("hash-max-listpack-entries", "64"),
        ("latency-tracking", "no"),
        ("notify-keyspace-events", ""),
        ("repl-timeout", "20"),
        ("save", "900 1"),
        ("repl-diskless-sync", "yes"),
        ("repl-diskless-sync-delay", "0"),
        ("repl-ping-replica-period", "1"),
        ("min-replicas-to-write", "0"),
        ("min-replicas-max-lag", "10"),
        ("replica-announce-port", "6379"),
        ("masteruser", "replicator"),
        ("masterauth", REPLICATION_PASSWORD),
    ];
    for (directive, value) in table {
        assert_eq!(operator.directive(directive), value, "{directive}");
    }
}

#[test]
fn a_replica_copies_with_the_replication_user_and_both_sides_tell_it() {
    let spec = spec(json!({}));
    let (primary, replica) = (Server::start(&spec), Server::start(&spec));
    let mut operator = primary.operator();
    assert_eq!(operator.ask(&["REPLICAOF", "NO", "ONE"]), "+OK");
    assert_eq!(
        primary
            .login("default", USER_PASSWORD)
            .ask(&["SET", "a", "b"]),
        "+OK"
    );
    let start = Instant::now();
    assert_eq!(
        replica
            .operator()
            .ask(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]),
        "+OK"
    );

    let is_pod = |host: &str, port: u16| match (host, port) {
        ("127.0.0.1", port) if port == primary.port => Upstream::Pod(Default::default()),
        _ => Upstream::Other,
    };
    let until = start + Duration::from_secs(10);
    let facts = loop {
        let info = replica.info();
        let facts = server_facts(
            &info,
            Tick(0),
            PodUid(1),
            Port::Client,
            is_pod,
            &mut Interner::default(),
        );
        if facts.follows(Default::default()) && facts.keys == 1 {
            break facts;
        }
        assert!(
            Instant::now() < until,
            "the replica does not follow: {info:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    };
    println!("attached after {:?}", start.elapsed());
    assert_eq!(facts.keys, 1);
    let info = primary.info();
    let [seen] = info.replicas.as_slice() else {
        panic!("{info:?}")
    };
    assert_eq!((seen.port, seen.state.as_str()), (6379, "online"));
    assert_eq!(info.replid, replica.info().replid);
    // A replica of another cluster whose address was reused has another password.
    let wrong = Passwords {
        replication: "other",
        operator: OPERATOR_PASSWORD,
        user: None,
    };
    let stranger = Server::start_with(&spec, &wrong);
    stranger
        .operator()
        .ask(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    std::thread::sleep(Duration::from_millis(1500));
    let InfoRole::Replica(upstream) = stranger.info().role else {
        panic!("still a replica")
    };
    assert!(!upstream.link_up && upstream.link_down_seconds.is_none());
}
