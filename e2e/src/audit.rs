//! What the API server was asked for, by whom: its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::local;

/// Requests of one user within a time, by what they are.
#[derive(Debug, Default)]
pub struct Requests {
    /// Renewals of leases.
    pub leases: u64,
    /// Watches that were started.
    pub watches: u64,
    /// Other reads, by `verb resource`.
    pub reads: BTreeMap<String, u64>,
    /// Writes, by `verb resource`.
    pub writes: BTreeMap<String, u64>,
}

impl Requests {
    /// Number of reads that are no watches.
    pub fn read_count(&self) -> u64 {
        self.reads.values().sum()
    }

    /// Number of writes that renew no lease.
    pub fn write_count(&self) -> u64 {
        self.writes.values().sum()
    }

    fn add(&mut self, verb: &str, resource: &str) {
        let what = format!("{verb} {resource}");
        match (verb, resource) {
            (_, "leases") => self.leases += 1,
            ("watch", _) => self.watches += 1,
            ("get" | "list", _) => *self.reads.entry(what).or_default() += 1,
            _ => *self.writes.entry(what).or_default() += 1,
        }
    }
}

/// Requests of a user between two times, in one namespace (and for leases) if one is named.
///
/// # Errors
/// When the audit log of the local Kubernetes cannot be read.
pub fn requests(
    user: &str,
    namespace: Option<&str>,
    from: Timestamp,
    to: Timestamp,
) -> Result<Requests> {
    let mut requests = Requests::default();
    let folder = local("log");
    let entries = std::fs::read_dir(&folder)
        .with_context(|| format!("no audit log in {}: run `cargo xtask up`", folder.display()))?;
    let needle = format!("\"username\":\"{user}\"");
    for entry in entries {
        let path = entry?.path();
        // The API server renames a log that has become large to `audit-<time>.log`.
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let young = path.metadata()?.modified()? >= from.into();
        if !name.starts_with("audit") || !young {
            continue;
        }
        for line in BufReader::new(File::open(&path)?).lines() {
            let line = line?;
            if line.contains(&needle) {
                // The last line may be half written.
                let Ok(event) = serde_json::from_str::<Value>(&line) else {
                    continue;
                };
                if is_in(&event, namespace) {
                    count(&event, from, to, &mut requests);
                }
            }
        }
    }
    Ok(requests)
}

fn is_in(event: &Value, namespace: Option<&str>) -> bool {
    let of = |key: &str| {
        event
            .pointer("/objectRef")
            .and_then(|object| object.get(key))
            .and_then(Value::as_str)
    };
    let elsewhere = |wanted: &str| of("namespace").is_some_and(|there| there != wanted);
    of("resource") == Some("leases") || !namespace.is_some_and(elsewhere)
}

fn count(event: &Value, from: Timestamp, to: Timestamp, requests: &mut Requests) {
    let text = |pointer: &str| {
        event
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let at = text("/requestReceivedTimestamp").parse::<Timestamp>();
    let watch = text("/verb") == "watch";
    // A watch is told of twice, when it starts and when it ends; everything else when it is complete.
    let stage = if watch {
        "ResponseStarted"
    } else {
        "ResponseComplete"
    };
    if text("/stage") == stage && at.is_ok_and(|at| (from..=to).contains(&at)) {
        let subresource = text("/objectRef/subresource");
        let resource = text("/objectRef/resource");
        let resource = if subresource.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}/{subresource}")
        };
        requests.add(text("/verb"), &resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_sorted_by_what_they_cost() {
        let event = |verb: &str, resource: &str, stage: &str, at: &str| json!({"verb": verb, "stage": stage, "objectRef": {"resource": resource}, "requestReceivedTimestamp": at});
        let inside = "2026-01-01T00:00:05.000001Z";
        let mut requests = Requests::default();
        for it in [
            event("update", "leases", "ResponseComplete", inside),
            event("watch", "pods", "ResponseStarted", inside),
            event("watch", "pods", "ResponseComplete", inside),
            event("get", "pods", "ResponseComplete", inside),
            event("patch", "services", "ResponseComplete", inside),
            event(
                "patch",
                "services",
                "ResponseComplete",
                "2026-01-01T00:01:00Z",
            ),
        ] {
            let (from, to) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z");
            count(
                &it,
                from.parse().unwrap(),
                to.parse().unwrap(),
                &mut requests,
            );
        }
        assert_eq!((requests.leases, requests.watches), (1, 1));
        assert_eq!((requests.read_count(), requests.write_count()), (1, 1));
    }
}
