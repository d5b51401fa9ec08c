//! Directives that a running server takes by `CONFIG SET`.
//!
//! They are outside the digest by which pods are rolled. All others are read at the start of a server only, or are not to be
//! changed under one (replication's safety, ports, persistence files), and a change of them replaces the pods.

use std::collections::{BTreeMap, BTreeSet};

use wellcake_crds::v1beta1::ValkeyClusterSpec;

use super::config::directives;

/// Directives and the defaults of servers without any, as `CONFIG GET` prints them. All are the same with 8.0.1 and 9.1.2
/// (measured: `CONFIG GET *`, and each set to its own value by `CONFIG SET`); those whose defaults differ between versions, whose
/// values depend on one another, or that have a second name which may be used beside them, are not here.
pub const LIVE: [(&str, &str); 71] = [
    ("acllog-max-len", "128"),
    ("active-defrag-cycle-max", "25"),
    ("active-defrag-cycle-min", "1"),
    ("active-defrag-ignore-bytes", "104857600"),
    ("active-defrag-max-scan-fields", "1000"),
    ("active-defrag-threshold-lower", "10"),
    ("active-defrag-threshold-upper", "100"),
    ("active-expire-effort", "1"),
    ("activedefrag", "no"),
    ("activerehashing", "yes"),
    ("aof-rewrite-incremental-fsync", "yes"),
    ("aof-timestamp-enabled", "no"),
    ("appendfsync", "everysec"),
    ("auto-aof-rewrite-min-size", "67108864"),
    ("auto-aof-rewrite-percentage", "100"),
    ("busy-reply-threshold", "5000"),
    (OUTPUT_BUFFERS, OUTPUT_BUFFERS_DEFAULT),
    ("client-query-buffer-limit", "1073741824"),
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hll-sparse-max-bytes", "3000"),
    ("hz", "10"),
    ("jemalloc-bg-thread", "yes"),
    ("latency-monitor-threshold", "0"),
    ("latency-tracking", "yes"),
    ("latency-tracking-info-percentiles", "50 99 99.9"),
    ("lazyfree-lazy-eviction", "yes"),
    ("lazyfree-lazy-expire", "yes"),
    ("lazyfree-lazy-server-del", "yes"),
    ("lazyfree-lazy-user-del", "yes"),
    ("lazyfree-lazy-user-flush", "yes"),
    ("lfu-decay-time", "1"),
    ("lfu-log-factor", "10"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("loglevel", "notice"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("maxmemory-clients", "0"),
    ("maxmemory-eviction-tenacity", "10"),
    ("maxmemory-policy", "noeviction"),
    ("maxmemory-samples", "5"),
    ("no-appendfsync-on-rewrite", "no"),
    ("notify-keyspace-events", ""),
    ("proto-max-bulk-len", "536870912"),
    ("rdb-save-incremental-fsync", "yes"),
    ("rdbcompression", "yes"),
    ("repl-backlog-size", "10485760"),
    ("repl-backlog-ttl", "3600"),
    ("repl-disable-tcp-nodelay", "no"),
    ("repl-diskless-sync", "yes"),
    ("repl-diskless-sync-delay", "5"),
    ("repl-diskless-sync-max-replicas", "0"),
    ("repl-timeout", "60"),
    ("replica-lazy-flush", "yes"),
    ("replica-priority", "100"),
    ("save", "3600 1 300 100 60 10000"),
    ("set-max-intset-entries", "512"),
    ("set-max-listpack-entries", "128"),
    ("set-max-listpack-value", "64"),
    ("shutdown-timeout", "10"),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("stop-writes-on-bgsave-error", "yes"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("tcp-keepalive", "300"),
    ("timeout", "0"),
    ("tracking-table-max-keys", "1000000"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
];

/// One line of a file may speak of some classes of clients only; the others have their defaults then.
const OUTPUT_BUFFERS: &str = "client-output-buffer-limit";
const OUTPUT_BUFFERS_DEFAULT: &str =
    "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";

/// Whether a server takes this value of a directive while it runs, written as it is in a file: one with quotes or escapes within
/// is left to files.
pub fn is_live(name: &str, value: &str) -> bool {
    default_of(name).is_some() && !unquoted(value).contains(['"', '\'', '\\'])
}

/// What running servers are to be sent, by name: all that the spec, the operator's tuning and the limits ask for, and the
/// defaults of `before`, names that were in force and are not asked for any more.
pub fn live(spec: &ValkeyClusterSpec, before: &BTreeSet<String>) -> BTreeMap<String, String> {
    let asked = directives(spec);
    let dropped = before
        .iter()
        .filter(|name| !asked.contains_key(name.as_str()))
        .filter_map(|name| Some((name.clone(), default_of(name)?.to_owned())));
    let kept = asked
        .iter()
        .filter(|(name, value)| is_live(name, value))
        .map(|(name, value)| (name.clone(), sent(name, value)));
    dropped.chain(kept).collect()
}

/// Names of the live directives in a valkey.conf.
pub fn live_names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(name, value)| is_live(name, value))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn default_of(name: &str) -> Option<&'static str> {
    let found = LIVE.iter().find(|(live, _)| *live == name);
    found.map(|(_, default)| *default)
}

/// A value as `CONFIG SET` takes it.
fn sent(name: &str, value: &str) -> String {
    let value = unquoted(value);
    if name == OUTPUT_BUFFERS {
        format!("{OUTPUT_BUFFERS_DEFAULT} {value}")
    } else {
        value.to_owned()
    }
}

/// Without the quotes around all of it.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(value)
}
