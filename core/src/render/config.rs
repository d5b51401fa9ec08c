//! valkey.conf and the ConfigMap that holds it.
//!
//! Four parts, in this order: what no user may change; the operator's tuning, which `spec.config` replaces directive by
//! directive; what is computed from resources and profile, likewise; `spec.config` itself. Nothing in it is secret.
//!
//! The ConfigMap is named by what only the start of a server takes from it ([`config_digest`]): under one name that part never
//! changes, so that a container that restarts finds the file that its pod was made for. The directives that a running server
//! takes ([`super::directives`]) follow in the file once every server took them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wellcake_crds::defaults::{self, MAXMEMORY_PERCENT};
use wellcake_crds::v1beta1::{LogFormat, Profile, StorageMode, Topology, ValkeyClusterSpec};

use super::directives::is_live;
use super::hash::sha256_hex;
use super::metadata::metadata;
use super::quantity::Amount;
use super::stateful_set::{DATA_PATH, SECRET_PATH, SHUTDOWN_SECONDS};
use super::{ACL_KEY, CLIENT_PORT, FENCE_PORT, NOBODY, Owner, REPLICATION_CONFIG_KEY};
use crate::limits;

/// Key of valkey.conf in its ConfigMap, and name of the file.
pub const CONFIG_KEY: &str = "valkey.conf";

/// Snapshots after an hour with one change, five minutes with a hundred, one minute with ten thousand: the server's own
/// points (`config.c: appendServerSaveParams`).
const SAVE_POINTS: &str = "3600 1 300 100 60 10000";
/// Smallest backlog for partial resyncs that is computed from the memory limit, in bytes.
const BACKLOG_MIN: u64 = 16 << 20;
/// Largest such backlog, in bytes.
const BACKLOG_MAX: u64 = 256 << 20;
/// Share of the memory limit that becomes the backlog.
const BACKLOG_SHARE: u64 = 16;

/// Text of valkey.conf.
pub fn config(spec: &ValkeyClusterSpec) -> String {
    let mut lines = fixed(spec);
    let tuned = tuned(spec).into_iter();
    lines.extend(tuned.map(|(key, value)| format!("{key} {value}")));
    lines.extend(spec.config.iter().map(|(key, value)| user_line(key, value)));
    lines.push(String::new());
    lines.join("\n")
}

/// All directives but the fixed ones, with their values as they are written.
pub fn directives(spec: &ValkeyClusterSpec) -> BTreeMap<String, String> {
    let tuned = tuned(spec).into_iter();
    let tuned = tuned.map(|(key, value)| (key.to_owned(), value));
    let given = spec.config.clone();
    tuned.chain(given).collect()
}

/// What the operator sets where `spec.config` does not.
fn tuned(spec: &ValkeyClusterSpec) -> BTreeMap<&'static str, String> {
    let all = tuning(spec).into_iter().chain(computed(spec));
    all.filter(|(key, _)| !spec.config.contains_key(*key))
        .collect()
}

/// Digest of what only the start of a server takes from valkey.conf, 10 hex digits; it names the file's revision. The memory
/// limit, whose change replaces the pods anyway, is part of it: what is computed from it must not meet a container that still
/// has another limit.
pub fn config_digest(spec: &ValkeyClusterSpec) -> String {
    let mut lines = fixed(spec);
    let started = directives(spec).into_iter();
    let started = started.filter(|(key, value)| !is_live(key, value));
    lines.extend(started.map(|(key, value)| user_line(&key, &value)));
    lines.push(format!("# {:?}", memory_limit(spec)));
    let text = lines.join("\n");
    sha256_hex(text.as_bytes()).chars().take(10).collect()
}

/// The ConfigMap of the present revision.
pub fn config_map(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let name = owner.name.config_revision(&config_digest(spec));
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(owner, spec, &name),
        "data": { CONFIG_KEY: config(spec) },
    })
}

/// What `spec.config` may not name.
fn fixed(spec: &ValkeyClusterSpec) -> Vec<String> {
    let mut lines = Vec::new();
    let standalone = spec.topology == Topology::Standalone;
    if standalone {
        lines.push(format!("port {CLIENT_PORT}"));
    } else {
        lines.push(format!("port {FENCE_PORT}"));
        // Replicas tell their primary this port, which it lists in INFO and ROLE.
        lines.push(format!("replica-announce-port {CLIENT_PORT}"));
        let (host, port) = NOBODY;
        lines.push(format!("replicaof {host} {port}"));
        lines.push(format!("include {SECRET_PATH}/{REPLICATION_CONFIG_KEY}"));
        // A ping moves the offset. Replicas of a primary without writes stand at offset 0, which proves nothing, until the
        // first one (measured with a period of 2: 2.0 s after REPLICAOF), and I/O within ten seconds tells a replica of a
        // live primary from one of a silent primary.
        lines.push("repl-ping-replica-period 1".to_owned());
    }
    // All addresses of both families; the dash lets a node without IPv6 start.
    lines.push("bind * -::*".to_owned());
    lines.push("protected-mode no".to_owned());
    lines.push(format!("dir {DATA_PATH}"));
    lines.push(format!("aclfile {SECRET_PATH}/{ACL_KEY}"));
    let aof = defaults::storage(spec).mode.has_aof();
    lines.push(format!("appendonly {}", if aof { "yes" } else { "no" }));
    lines
}

/// What the operator prefers.
fn tuning(spec: &ValkeyClusterSpec) -> Vec<(&'static str, String)> {
    let mode = defaults::storage(spec).mode;
    let save = if mode.has_rdb() { SAVE_POINTS } else { "\"\"" };
    let mut tuned = vec![
        ("save", save.to_owned()),
        ("shutdown-timeout", SHUTDOWN_SECONDS.to_string()),
        ("tcp-keepalive", "60".to_owned()),
    ];
    if spec.topology != Topology::Standalone {
        tuned.extend(replication(spec, mode));
    }
    if let Some(format) = log_format(spec) {
        tuned.push(("log-format", format.to_owned()));
    }
    tuned
}

fn replication(spec: &ValkeyClusterSpec, mode: StorageMode) -> Vec<(&'static str, String)> {
    let mut tuned = vec![
        ("repl-diskless-sync", "yes".to_owned()),
        // The server's default of 5 makes every new replica wait 5 s for others to join it (measured: 5.02 s).
        ("repl-diskless-sync-delay", "0".to_owned()),
        // A replica that is sent to an address which does not answer gives up after this long; the default is 60.
        ("repl-timeout", "15".to_owned()),
        (
            "min-replicas-max-lag",
            limits::REPLICA_LAG_SECONDS.to_string(),
        ),
    ];
    if mode == StorageMode::None {
        // A snapshot that only served a replica's copy must not be loaded at the next start.
        tuned.push(("rdb-del-sync-files", "yes".to_owned()));
    }
    if spec.profile == Profile::Durable {
        // The first primary has no replica yet and must take writes of its own.
        tuned.push(("min-replicas-to-write", "0".to_owned()));
    }
    tuned
}

/// Values that follow from the profile and from `limits.memory`.
fn computed(spec: &ValkeyClusterSpec) -> Vec<(&'static str, String)> {
    let policy = match spec.profile {
        Profile::Cache => "allkeys-lru",
        Profile::Durable => "noeviction",
    };
    let mut values = vec![("maxmemory-policy", policy.to_owned())];
    if let Some(limit) = memory_limit(spec) {
        let share = u128::from(limit) * u128::from(MAXMEMORY_PERCENT) / 100;
        values.push(("maxmemory", format!("{share}b")));
        if spec.topology != Topology::Standalone {
            let backlog = (limit / BACKLOG_SHARE).clamp(BACKLOG_MIN, BACKLOG_MAX);
            values.push(("repl-backlog-size", format!("{backlog}b")));
        }
    }
    values
}

/// `limits.memory` in bytes, if it is given and more than nothing.
fn memory_limit(spec: &ValkeyClusterSpec) -> Option<u64> {
    let limits = spec.resources.as_ref()?.limits.as_ref()?;
    let bytes = Amount::parse(&limits.get("memory")?.0).ok()?.units();
    (bytes > 0).then_some(bytes)
}

/// The format of log lines, for servers that know the directive: others refuse to start with it.
fn log_format(spec: &ValkeyClusterSpec) -> Option<&'static str> {
    let format = spec.logging.as_ref()?.format?;
    super::image::version(&spec.image).filter(|version| *version >= (9, 1))?;
    Some(match format {
        LogFormat::Json => "json",
        LogFormat::Logfmt => "logfmt",
        LogFormat::Legacy => "legacy",
    })
}

/// A user's directive; an empty value is written as one, since a directive without any is an error.
fn user_line(key: &str, value: &str) -> String {
    if value.trim().is_empty() {
        format!("{key} \"\"")
    } else {
        format!("{key} {value}")
    }
}
