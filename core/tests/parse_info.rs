//! Replies of real servers (8.0.1, 8.1.1 and 9.1.2) and what is read from them.

// Lints see tests only in functions marked as such, not in their helpers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use std::path::PathBuf;

use proptest::prelude::*;
use wellcake_core::facts::{
    Interner, Link, Offset, Ordinal, PodUid, Port, Role, ServerFacts, Tick, Upstream,
};
use wellcake_core::parse::{Info, InfoError, InfoRole, file_lacks_copy, server_facts};

const VERSIONS: [&str; 3] = ["8.0.1", "8.1.1", "9.1.2"];

fn fixture(version: &str, name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!(
        "tests/fixtures/valkey-{version}/standalone-{name}.txt"
    ));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The sections that the operator asks for, as far as they were kept for this state of a server; the others are those of
/// a healthy primary of the same version.
fn reply(version: &str, state: &str) -> String {
    let persistence = match state {
        "loading" => "loading.info-persistence",
        _ => "primary-healthy.info-persistence",
    };
    let sections = [
        fixture(version, "primary-healthy.info-server"),
        fixture(version, persistence),
        fixture(version, &format!("{state}.info-replication")),
    ];
    sections.join("\n").replace('\n', "\r\n")
}

fn info(version: &str, state: &str) -> Info {
    Info::parse(&reply(version, state)).unwrap_or_else(|why| panic!("{version} {state}: {why}"))
}

fn facts(version: &str, state: &str) -> ServerFacts {
    let is_pod = |host: &str, port: u16| match (host, port) {
        ("127.0.3.1", 6379) => Upstream::Pod(Ordinal(0)),
        _ => Upstream::Other,
    };
    server_facts(
        &info(version, state),
        Tick(7),
        PodUid(5),
        Port::Client,
        is_pod,
        &mut Interner::default(),
    )
}

#[test]
fn a_whole_reply_of_a_primary_is_read() {
    for version in VERSIONS {
        let text = fixture(version, "primary-healthy.info-all");
        for text in [text.clone(), text.replace('\n', "\r\n")] {
            let info = Info::parse(&text).unwrap_or_else(|why| panic!("{version}: {why}"));
            assert_eq!(info.version.as_deref(), Some(version));
            assert_eq!(info.role, InfoRole::Primary);
            assert_eq!(info.run_id.len(), 40);
            assert_eq!(
                (info.tcp_port, info.keys, info.loading),
                (Some(6379), 200, false)
            );
            assert_eq!((info.replid2.as_deref(), info.second_offset), (None, None));
            assert_eq!(info.replicas.len(), 2);
            for replica in &info.replicas {
                assert!(
                    replica.ip.starts_with("127.0.") && replica.port == 6379,
                    "{replica:?}"
                );
                assert_eq!(replica.state, "online");
            }
        }
    }
}

#[test]
fn a_replica_in_sync_follows_its_primary() {
    for version in VERSIONS {
        let facts = facts(version, "replica-healthy");
        let Role::Replica {
            link: Link::Up,
            syncing: false,
            ..
        } = facts.role
        else {
            panic!("{version}: {facts:?}")
        };
        assert!(facts.is_synced_replica(), "{version}: {facts:?}");
        let InfoRole::Replica(upstream) = info(version, "replica-healthy").role else {
            panic!("a replica")
        };
        assert_eq!(facts.offset, Offset(upstream.offset));
        assert!(upstream.last_io_seconds.is_some() && upstream.link_down_seconds.is_none());
    }
    assert!(facts("8.0.1", "replica-healthy").follows(Ordinal(0)));
}

#[test]
fn a_replica_of_nobody_was_never_in_sync() {
    for version in VERSIONS {
        let facts = facts(version, "boot-replica-of-nobody");
        let wanted = Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            syncing: false,
        };
        assert_eq!(facts.role, wanted, "{version}");
        assert!(!facts.is_synced_replica());
    }
}

#[test]
fn a_replica_whose_primary_died_keeps_its_offset_and_counts_the_seconds() {
    for version in VERSIONS {
        let facts = facts(version, "replica-primary-dead");
        let Role::Replica {
            link: Link::Down { .. },
            syncing: false,
            ..
        } = facts.role
        else {
            panic!("{version}: {facts:?}")
        };
        assert!(facts.is_synced_replica(), "{version}: {facts:?}");
    }
}

#[test]
fn a_replica_that_copies_is_not_in_sync() {
    for version in VERSIONS {
        for state in [
            "replica-sync-in-progress",
            "replica-sync-in-progress-dualchannel",
        ] {
            let facts = facts(version, state);
            assert!(!facts.is_synced_replica(), "{version} {state}: {facts:?}");
            assert!(
                matches!(facts.role, Role::Replica { syncing: true, .. }),
                "{version} {state}: {facts:?}"
            );
        }
    }
}

#[test]
fn a_replica_with_a_wrong_password_has_no_link() {
    for version in VERSIONS {
        let facts = facts(version, "replica-wrong-masterauth");
        let Role::Replica {
            link: Link::Down { .. } | Link::Never,
            ..
        } = facts.role
        else {
            panic!("{version}: {facts:?}")
        };
    }
}

#[test]
fn a_server_that_loads_says_so() {
    for version in VERSIONS {
        let facts = facts(version, "loading");
        assert!(
            facts.loading && !facts.serves_writes(),
            "{version}: {facts:?}"
        );
    }
}

#[test]
fn a_server_that_needs_a_replica_to_take_writes_says_so() {
    // The second one was killed off all but one replica; 8.1.1 was not recorded in these states.
    for version in ["8.0.1", "9.1.2"] {
        for state in ["min-replicas", "primary-frozen-replica"] {
            let facts = facts(version, state);
            assert!(facts.needs_replica, "{version} {state}: {facts:?}");
            assert!(facts.has_replica, "{version} {state}: {facts:?}");
        }
    }
    for version in VERSIONS {
        for state in ["primary-healthy", "replica-healthy", "promoted-no-replicas"] {
            let facts = facts(version, state);
            assert!(!facts.needs_replica, "{version} {state}: {facts:?}");
        }
    }
}

#[test]
fn a_promoted_server_names_the_history_before() {
    for version in VERSIONS {
        for state in ["promoted-no-replicas", "promoted-with-replica"] {
            let facts = facts(version, state);
            assert_eq!(facts.role, Role::Primary);
            let before = facts
                .replid2
                .unwrap_or_else(|| panic!("{version} {state}: {facts:?}"));
            assert_ne!(before, facts.replid);
            assert!(info(version, state).second_offset.is_some());
        }
    }
}

#[test]
fn a_copying_replica_is_listed_with_its_state() {
    for version in VERSIONS {
        let info = info(version, "primary-sync-in-progress");
        assert!(!info.replicas.is_empty(), "{version}");
        assert!(
            info.replicas
                .iter()
                .any(|replica| replica.state != "online"),
            "{version}: {info:?}"
        );
    }
}

#[test]
fn a_missing_field_is_named() {
    let whole = reply("8.0.1", "replica-healthy");
    let needed = [
        "run_id",
        "uptime_in_seconds",
        "role",
        "master_replid",
        "master_repl_offset",
        "master_link_status",
        "master_host",
        "master_port",
        "slave_repl_offset",
    ];
    for field in needed {
        let cut: String = whole
            .lines()
            .filter(|line| !line.starts_with(&format!("{field}:")))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(Info::parse(&cut), Err(InfoError::Missing(field)));
        let spoilt = cut + &format!("{field}:é\n");
        let text = matches!(field, "run_id" | "master_replid" | "master_host");
        assert_eq!(Info::parse(&spoilt).is_ok(), text, "{field}");
    }
    assert_eq!(Info::parse(""), Err(InfoError::Missing("run_id")));
}

#[test]
fn keys_of_all_databases_count() {
    let text = reply("8.0.1", "primary-healthy")
        + "\n# Keyspace\r\ndb0:keys=3,expires=0,avg_ttl=0\r\ndb11:keys=4,expires=1\r\ndbx:keys=9\r\n";
    assert_eq!(Info::parse(&text).map(|info| info.keys), Ok(7));
}

/// A replica in sync whose append-only file is written anew.
fn rewriting() -> Info {
    let text = reply("8.0.1", "replica-healthy")
        .replace("aof_rewrite_in_progress:0", "aof_rewrite_in_progress:1");
    let info = Info::parse(&text).expect("a reply");
    assert!(info.rewriting);
    info
}

fn with_link(mut info: Info, up: bool, syncing: bool) -> Info {
    let InfoRole::Replica(upstream) = &mut info.role else {
        panic!("a replica");
    };
    upstream.link_up = up;
    upstream.sync_in_progress = syncing;
    info
}

#[test]
fn a_file_that_is_written_anew_lacks_what_may_have_been_copied_before() {
    let now = rewriting();
    assert!(file_lacks_copy(&now, None), "nothing is known of before");
    let away = with_link(rewriting(), false, false);
    assert!(file_lacks_copy(&now, Some((&away, false))), "its link came");
    let copied = with_link(rewriting(), false, true);
    assert!(file_lacks_copy(&now, Some((&copied, false))));
    assert!(
        file_lacks_copy(&away, Some((&copied, false))),
        "its primary died at once"
    );
    let elsewhere = Info {
        replid: "f".repeat(40),
        ..rewriting()
    };
    assert!(
        file_lacks_copy(&now, Some((&elsewhere, false))),
        "another history"
    );
    assert!(file_lacks_copy(&now, Some((&now, true))), "it is not done");
    assert!(file_lacks_copy(&away, Some((&now, true))));
}

#[test]
fn a_file_that_is_written_anew_since_it_has_grown_lacks_nothing() {
    let whole = info("8.0.1", "replica-healthy");
    let now = rewriting();
    assert!(!file_lacks_copy(&now, Some((&whole, false))));
    assert!(!file_lacks_copy(&now, Some((&now, false))), "it goes on");
    let away = with_link(rewriting(), false, false);
    assert!(
        !file_lacks_copy(&away, Some((&now, false))),
        "its primary died"
    );
    assert!(
        !file_lacks_copy(&away, Some((&away, false))),
        "and is still away"
    );
    assert!(!file_lacks_copy(&whole, Some((&now, true))), "it is done");
    let primary = Info {
        role: InfoRole::Primary,
        ..rewriting()
    };
    assert!(
        !file_lacks_copy(&primary, Some((&now, false))),
        "it was promoted"
    );
    assert!(file_lacks_copy(&primary, Some((&now, true))));
}

/// Only a number or a word that was cut short may be misread in a truncated reply; that is why a reply is taken from the
/// protocol as a whole, with its length.
#[test]
fn no_truncated_reply_makes_it_panic() {
    for version in VERSIONS {
        for state in [
            "replica-healthy",
            "primary-healthy",
            "promoted-with-replica",
            "loading",
        ] {
            let text = reply(version, state);
            let cuts = (0..text.len()).filter(|end| text.is_char_boundary(*end));
            let parsed = cuts
                .filter(|end| Info::parse(&text[..*end]).is_ok())
                .count();
            assert!(
                parsed < text.len() / 2,
                "{version} {state}: {parsed} of {}",
                text.len()
            );
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s).*") {
        let _ = Info::parse(&text);
    }

    #[test]
    fn no_values_make_it_panic(
        values in proptest::collection::vec("([0-9]{1,25}|-[0-9]{1,22}|[a-z]{0,8}|ip=.*,port=[0-9]*,state=x,offset=[0-9]*,lag=-?[0-9])?", 12)
    ) {
        let names = [
            "run_id", "uptime_in_seconds", "tcp_port", "master_replid", "master_replid2", "master_repl_offset",
            "slave_repl_offset", "master_port", "master_link_down_since_seconds", "slave0", "db0", "second_repl_offset",
        ];
        for role in ["master", "slave"] {
            let mut text = format!("role:{role}\r\nmaster_link_status:down\r\nmaster_host:h\r\n");
            for (name, value) in names.iter().zip(&values) {
                text.push_str(&format!("{name}:{value}\r\n"));
            }
            if let Ok(info) = Info::parse(&text) {
                server_facts(&info, Tick(0), PodUid(0), Port::Fence, |_, _| Upstream::Other, &mut Interner::default());
            }
        }
    }

    #[test]
    fn unknown_lines_change_nothing(line in "[a-z_]{1,20}[0-9]?zz:[^\r\n]*", at in 0usize..60) {
        let text = reply("9.1.2", "replica-healthy");
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(at.min(lines.len()), &line);
        prop_assert_eq!(Info::parse(&lines.join("\r\n")), Info::parse(&text));
    }
}
