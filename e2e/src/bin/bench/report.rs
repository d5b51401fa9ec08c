//! `docs/benchmarks.md`, from the files of the last measurements.

use anyhow::{Context, Result};
use jiff::Timestamp;
use wellcake_e2e::cluster::repo;

use crate::figures::{Figure, folder, rows};

const ORDER: [&str; 10] = [
    "startup",
    "kill",
    "kill-beside-frozen",
    "kill-while-apply-hangs",
    "force-delete",
    "leader-and-primary",
    "handover",
    "delete",
    "fleet",
    "step",
];

const HEAD: &str = "# Figures

Taken with `cargo xtask bench` on the local Kubernetes of three nodes that `cargo xtask up` starts, all on one machine.
`cargo xtask bench NAME` takes one of them again; every raw value is then in `target/bench/NAME.json`. This page is made
from those files.

How they are taken:

- Load: one client writes through the Service, one to the pod whose address it is told when the primary record changes, about
  500 writes a second each, one write in flight, connect and read limits of 50 ms, then at once again over a new
  connection. Two more read through the Services of the primary and of the replicas. The clients run on the host.
- A failover figure is the time from the fault to the first acknowledged write after the longest pause that ends later, of
  the slower client. Every acknowledged write is read back from the primary when all replicas are in sync again; lost
  writes count over all runs.
- The Service is what kube-proxy makes of it in its stock settings; pod level leaves it out.
- Requests of a steady state are counted in the API server's audit log, by the operator's user.
- A bound is on the median, for counts on the largest value.

What limits the figures:

- kube-proxy applies changes at most once a second. A failover whose route comes right after another change of any Service
  waits for the next time; that is the second in the p95 of every figure through the Service.
- A server that gets SIGTERM takes no more writes and ends once its replicas have confirmed everything, which they do once a
  second: a force-deleted primary ends about a second after its deletion, just when the address of its successor has used up
  kube-proxy's turn. Handing over at the deletion would take out both.
- While a replica is frozen, a refused connection is no proof of death, since that replica might still be fed: the proof is the
  restarted process, which the kubelet needs 0.6 to 0.9 seconds for.
- A new leader of 50 clusters first reads their Secrets and connects to 150 servers (1.2 s on two processors that these servers
  share); the change of every cluster, which shows that it was observed, costs 50 Applies and as many writes of a status.
- After SIGKILL of the leading operator its lease of 15 seconds has to run out.
";

/// Writes the page.
pub fn write() -> Result<()> {
    let mut text = format!("{HEAD}\n{}\n", place()?);
    for name in ORDER {
        let Ok(file) = std::fs::read_to_string(folder().join(format!("{name}.json"))) else {
            continue;
        };
        let figures: Vec<Figure> =
            serde_json::from_str(&file).with_context(|| format!("{name}.json is not readable"))?;
        text.push_str(&format!(
            "\n## {name}\n\n{}\n\n| measure | n | median | p95 | max | bound | unit | reached |\n|---|---|---|---|---|---|---|---|\n{}",
            commits(&figures),
            rows(&figures)
        ));
    }
    Ok(std::fs::write(repo().join("docs/benchmarks.md"), text)?)
}

fn commits(figures: &[Figure]) -> String {
    let mut all: Vec<&str> = figures.iter().map(|it| it.commit.as_str()).collect();
    all.dedup();
    format!("Commit {}.", all.join(", "))
}

/// Machine and date.
fn place() -> Result<String> {
    let processors = std::thread::available_parallelism()?;
    let memory = std::fs::read_to_string("/proc/meminfo")?;
    let kib: u64 = memory
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .context("no MemTotal")?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!(
        "Machine: {processors} processors, {} GiB, Linux {}. Written {}.",
        kib / 1024 / 1024,
        kernel.trim(),
        Timestamp::now().strftime("%Y-%m-%d"),
    ))
}
