//! What is done to pods, from the host: the local nodes are processes of this machine. Whatever lasts is undone when its
//! guard goes.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams};
use kube::{Api, ResourceExt};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::apply::PORT;
use crate::namespace::Space;
use crate::valkey::{Connection, PATIENT};

/// A process of a pod's first container.
#[derive(Clone, Copy, Debug)]
pub struct Process(Pid);

impl Process {
    /// The main process of a pod's first container.
    ///
    /// # Errors
    /// When the container does not run on this machine.
    pub fn of(pod: &Pod) -> Result<Self> {
        let name = pod.name_any();
        let container =
            container_id(pod).with_context(|| format!("no container of {name} runs"))?;
        let pids = pids_in_control_group(&container)?;
        // The first process of a container has the lowest number: it started all others.
        let first = pids.into_iter().min_by_key(|pid| pid.as_raw_nonzero());
        let first = first.with_context(|| {
            format!("no process of {name} runs on this machine: faults need the local Kubernetes of `cargo xtask up`")
        })?;
        Ok(Self(first))
    }

    /// SIGKILL. Gives the time of it.
    pub fn kill(self) -> Result<Instant> {
        self.signal(Signal::KILL)
    }

    /// SIGTERM. Gives the time of it.
    pub fn terminate(self) -> Result<Instant> {
        self.signal(Signal::TERM)
    }

    /// SIGSTOP, until the guard goes.
    pub fn freeze(self) -> Result<Frozen> {
        self.signal(Signal::STOP)?;
        Ok(Frozen(self))
    }

    /// Resident memory in bytes (`VmRSS` of `/proc/PID/status`).
    pub fn resident(self) -> Result<u64> {
        let text = std::fs::read_to_string(self.proc("status"))?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kib * 1024)
    }

    /// Processor time used so far, in seconds (`utime` and `stime` of `/proc/PID/stat`).
    pub fn processor_seconds(self) -> Result<f64> {
        let fields = self.stat()?;
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|it| it.parse::<f64>().ok())
                .context("no times")
        };
        Ok((ticks(11)? + ticks(12)?) / TICKS)
    }

    /// How long ago it started, to 10 ms (`starttime` of `/proc/PID/stat`).
    pub fn age(self) -> Result<Duration> {
        let started: f64 = self.stat()?.get(19).context("no start time")?.parse()?;
        let uptime = std::fs::read_to_string("/proc/uptime")?;
        let uptime: f64 = uptime.split(' ').next().context("no uptime")?.parse()?;
        Ok(Duration::from_secs_f64((uptime - started / TICKS).max(0.0)))
    }

    /// Whether it has ended.
    pub fn is_gone(self) -> bool {
        !self.proc("").exists()
    }

    /// Fields of `/proc/PID/stat` after the name in parentheses.
    fn stat(self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(self.proc("stat"))?;
        let (_, rest) = text.rsplit_once(") ").context("an unreadable stat file")?;
        Ok(rest.split(' ').map(str::to_owned).collect())
    }

    fn proc(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0.as_raw_nonzero()))
    }

    fn signal(self, signal: Signal) -> Result<Instant> {
        kill_process(self.0, signal).with_context(|| format!("cannot signal {:?}", self.0))?;
        Ok(Instant::now())
    }
}

/// Units of times in `/proc/PID/stat` (`USER_HZ`, 100 on all platforms that Kubernetes runs on).
const TICKS: f64 = 100.0;

/// A process that is stopped; it goes on when this goes.
pub struct Frozen(Process);

impl Drop for Frozen {
    fn drop(&mut self) {
        // It may have been killed meanwhile.
        let _ = kill_process(self.0.0, Signal::CONT);
    }
}

/// A pod that is cut off: everything in and out is dropped inside its network namespace, what the kubelet and pods of the
/// same node send included; only itself it reaches. Undone when this goes.
pub struct BlackHole(Process);

/// What is dropped: chain and interface.
const RULES: [[&str; 4]; 2] = [["INPUT", "!", "-i", "lo"], ["OUTPUT", "!", "-o", "lo"]];

impl BlackHole {
    /// Cuts a pod off.
    pub fn around(pod: &Pod) -> Result<Self> {
        let hole = Self(Process::of(pod)?);
        for rule in RULES {
            hole.iptables("-I", rule)?;
        }
        Ok(hole)
    }

    /// Connects to the server from inside, as a client on its side of the cut.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or the server refuses.
    pub fn connect_inside(&self, password: &str) -> Result<Connection> {
        let namespace = File::open(self.0.proc("ns/net")).context("no network namespace")?;
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let enter = Some(LinkNameSpaceType::Network);
        // The namespace is one of the thread, which ends; the socket stays in it.
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                move_into_link_name_space(namespace.as_fd(), enter)
                    .context("cannot enter the network namespace")?;
                Connection::open(server, Some(password), PATIENT).context("no connection inside")
            });
            client.join().map_err(|_| anyhow!("the thread panicked"))?
        })
    }

    fn iptables(&self, action: &str, rule: [&str; 4]) -> Result<()> {
        let [chain, not, flag, interface] = rule;
        let pid = self.0.0.as_raw_nonzero().to_string();
        let output = Command::new("nsenter")
            .args(["--target", &pid, "--net", "iptables", "-w"])
            .args([action, chain, not, flag, interface, "-j", "DROP"])
            .output()
            .context("cannot run nsenter")?;
        ensure!(
            output.status.success(),
            "iptables: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

impl Drop for BlackHole {
    fn drop(&mut self) {
        for rule in RULES {
            // The pod may be gone, and its namespace with it.
            let _ = self.iptables("-D", rule);
        }
    }
}

/// Deletes a pod as `kubectl delete pod` does. Gives the time of it.
pub async fn delete(space: &Space, pod: &str) -> Result<Instant> {
    remove(space, pod, &DeleteParams::default()).await
}

/// Evicts a pod, as a drain of its node does, once its disruption budget allows that. Gives the time of it.
pub async fn evict(space: &Space, pod: &str, limit: Duration) -> Result<Instant> {
    let start = Instant::now();
    let api: Api<Pod> = space.api();
    loop {
        match api.evict(pod, &EvictParams::default()).await {
            Ok(_) => return Ok(Instant::now()),
            Err(kube::Error::Api(status)) if status.code == 429 && start.elapsed() < limit => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(why) => return Err(why).with_context(|| format!("cannot evict {pod}")),
        }
    }
}

/// Deletes a pod as `kubectl delete pod --force --grace-period=0` does. Gives the time of it.
pub async fn force_delete(space: &Space, pod: &str) -> Result<Instant> {
    remove(space, pod, &DeleteParams::default().grace_period(0)).await
}

async fn remove(space: &Space, pod: &str, how: &DeleteParams) -> Result<Instant> {
    let at = Instant::now();
    let api: Api<Pod> = space.api();
    api.delete(pod, how)
        .await
        .with_context(|| format!("cannot delete the pod {pod}"))?;
    Ok(at)
}

fn container_id(pod: &Pod) -> Option<String> {
    let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    container.state.as_ref()?.running.as_ref()?;
    Some(
        container
            .container_id
            .as_ref()?
            .rsplit_once('/')?
            .1
            .to_owned(),
    )
}

/// Processes whose control group is that of a container.
fn pids_in_control_group(container: &str) -> Result<Vec<Pid>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let groups = std::fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if groups.contains(container) {
            let Some(pid) = Pid::from_raw(pid) else {
                bail!("a process without a number")
            };
            pids.push(pid);
        }
    }
    Ok(pids)
}
