//! `docs/reference/metrics.md`.

use prometheus_client::registry::Registry;

use super::families::{Entry, Families};
use super::process::Process;

/// The reference of all metrics as Markdown.
pub fn markdown() -> String {
    let (_, mut entries) = Families::register(&mut Registry::default());
    entries.extend(Process::entries());
    let mut out = String::from(
        "# Metrics\n\n\
         `/metrics` of the operator (port 8080, flag `--metrics-addr`) speaks OpenMetrics 1.0.0 to whoever accepts it, and the \
         older text format to everyone else. Where controller-runtime has a name for the same thing, that name is used.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for entry in &entries {
        out.push_str(&row(entry));
    }
    out
}

fn row(entry: &Entry) -> String {
    let labels: Vec<String> = entry.labels.iter().map(|l| format!("`{l}`")).collect();
    format!(
        "| `{}` | {} | {} | {} |\n",
        entry.name,
        entry.kind,
        labels.join(", "),
        entry.help
    )
}
