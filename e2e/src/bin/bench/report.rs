//! `docs/benchmarks.md`, from the files of the last measurements.

use anyhow::{Context, Result};
use jiff::Timestamp;
use wellcake_e2e::cluster::repo;

use crate::figures::{Figure, folder, rows};

const ORDER: [&str; 15] = [
    "startup",
    "kill",
    "kill-beside-frozen",
    "kill-while-apply-hangs",
    "force-delete",
    "leader-and-primary",
    "handover",
    "delete",
    "roll",
    "drain",
    "black-hole",
    "sequences",
    "fleet",
    "step",
    "model",
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
  The deletion of a pod is such a change itself: what follows within a second of it reaches Service clients at its end.
- While a replica is frozen, a refused connection is no proof of death, since that replica might still be fed: the proof is the
  restarted process, which the kubelet needs 0.6 to 0.9 seconds for.
- That a new leader has looked at everything and heard every server shows in its own gauge `valkey_operator_clusters_heard`: \"heard
  again\". That it has observed a change shows in `status.observedGeneration` of each cluster: \"observed again\". The changes and these
  writes cost the API server about 7 ms of processor time each, on two processors of which 150 servers and the kubelets use one; with
  an object of each cluster to apply it is twice as many.
- Where the processors are not enough for 150 servers and something else, servers do not answer in time, and the status says so: in a run
  with a load above 60 the operator wrote 737 statuses in ten minutes. The steady state on this page had the machine for itself.
- A primary that is cut off is succeeded 20 seconds after the operator has written down that it does not answer, at the next look
  after that: servers are asked once a second, and a connection is given a second.
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
    match all.as_slice() {
        [one] => format!("Commit {one}."),
        all => format!("Rows of several runs, at commits {}.", all.join(", ")),
    }
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
