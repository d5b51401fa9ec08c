//! The background processes of the cluster: found by a mark in their environment, kept when unchanged, else restarted.
//!
//! The mark is the truth and no file is: it cannot outlive the process, be lost with a folder, or name a recycled pid.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::command;
use crate::paths::{Layout, digest};
use crate::ports;

const CLUSTER: &str = "WELLCAKE_CLUSTER";
const NAME: &str = "WELLCAKE_PROCESS";
const RECIPE: &str = "WELLCAKE_RECIPE";

/// A running process that carries the mark. Shims and helpers that a marked process started carry it, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    pub pid: i32,
    /// The work tree whose cluster it belongs to.
    pub cluster: PathBuf,
    pub name: String,
    pub recipe: String,
    /// The first word of its command line.
    pub program: PathBuf,
}

/// What a background process is started with.
#[derive(Debug)]
pub struct Daemon {
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Files that it reads only at its start: it is restarted when one of them changed.
    pub inputs: Vec<PathBuf>,
    /// Addresses that must be free before it starts.
    pub listens: Vec<String>,
}

impl Daemon {
    /// Keeps the running process if it was started the same way; else stops it and starts a new one.
    /// True when it was started.
    pub fn ensure(&self, layout: &Layout) -> Result<bool> {
        let recipe = self.recipe()?;
        let running = running(&layout.repo, &self.name, &self.program);
        if running.len() == 1 && running.iter().all(|process| process.recipe == recipe) {
            return Ok(false);
        }
        stop(&running, Duration::from_secs(10));
        for address in &self.listens {
            ports::check_free(address)?;
        }
        self.start(layout, &recipe)?;
        Ok(true)
    }

    /// An error with the end of the log when the process is gone.
    pub fn check_alive(&self, layout: &Layout) -> Result<()> {
        if running(&layout.repo, &self.name, &self.program).is_empty() {
            let log = layout.log(&self.name);
            bail!(
                "{} ended; the end of {}:\n{}",
                self.name,
                log.display(),
                command::tail(&log, 12)
            );
        }
        Ok(())
    }

    fn recipe(&self) -> Result<String> {
        let mut text = format!("{:?} {:?}", self.program, self.arguments);
        for input in &self.inputs {
            let content =
                std::fs::read(input).with_context(|| format!("cannot read {}", input.display()))?;
            text.push_str(&digest(&content));
        }
        Ok(digest(text.as_bytes())[..16].to_owned())
    }

    fn start(&self, layout: &Layout, recipe: &str) -> Result<()> {
        let log = layout.log(&self.name);
        keep_small(&log);
        let file = command::append(&log)?;
        // `setsid` replaces itself by the program, so the pid stays; the session of its own keeps it alive when the
        // terminal closes.
        let child = Command::new("setsid")
            .arg(&self.program)
            .args(&self.arguments)
            .env(CLUSTER, &layout.repo)
            .env(NAME, &self.name)
            .env(RECIPE, recipe)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .current_dir("/")
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let pid = layout.local.join("run").join(format!("{}.pid", self.name));
        std::fs::write(&pid, format!("{}\n", child.id()))
            .with_context(|| format!("cannot write {}", pid.display()))?;
        // Until `setsid` has replaced itself, the process does not look like the program.
        let deadline = Instant::now() + Duration::from_secs(5);
        while running(&layout.repo, &self.name, &self.program).is_empty()
            && Instant::now() < deadline
        {
            if !Path::new(&format!("/proc/{}/exe", child.id())).exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// All marked processes of this machine.
pub fn all() -> Vec<Marked> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            parse(pid, &environment, &line)
        })
        .collect()
}

/// The processes that are this program under this name, not what they started themselves.
pub fn running(cluster: &Path, name: &str, program: &Path) -> Vec<Marked> {
    all()
        .into_iter()
        .filter(|it| it.cluster == cluster && it.name == name && it.program == program)
        .collect()
}

/// Asks to end, waits, then kills.
pub fn stop(processes: &[Marked], patience: Duration) {
    signal(processes, Signal::TERM);
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline && processes.iter().any(is_same) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left: Vec<Marked> = processes.iter().filter(|it| is_same(it)).cloned().collect();
    signal(&left, Signal::KILL);
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline && left.iter().any(is_same) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(processes: &[Marked], signal: Signal) {
    for process in processes.iter().filter(|it| is_same(it)) {
        kill(process.pid, signal);
    }
}

/// Sends a signal; a process that is gone is no error.
pub fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether the pid still belongs to the process that was seen (a zombie has no environment and counts as gone).
fn is_same(process: &Marked) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{}/environ", process.pid)) else {
        return false;
    };
    let line = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    parse(process.pid, &environment, &line).is_some_and(|now| now == *process)
}

fn parse(pid: i32, environment: &[u8], line: &[u8]) -> Option<Marked> {
    let value = |key: &str| {
        environment.split(|byte| *byte == 0).find_map(|pair| {
            let text = std::str::from_utf8(pair).ok()?;
            text.strip_prefix(key)?.strip_prefix('=').map(str::to_owned)
        })
    };
    let program = line.split(|byte| *byte == 0).next()?;
    Some(Marked {
        pid,
        cluster: value(CLUSTER)?.into(),
        name: value(NAME)?,
        recipe: value(RECIPE)?,
        program: String::from_utf8_lossy(program).into_owned().into(),
    })
}

/// A log that grew beyond 50 MB moves aside before its process starts again.
fn keep_small(log: &Path) {
    if std::fs::metadata(log).is_ok_and(|data| data.len() > 50_000_000) {
        let _ = std::fs::rename(log, log.with_extension("log.old"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_from_the_environment() {
        let environment =
            b"PATH=/bin\0WELLCAKE_CLUSTER=/src/a\0WELLCAKE_PROCESS=etcd\0WELLCAKE_RECIPE=12ab\0";
        let process = parse(7, environment, b"/cache/etcd\0--flag\0").expect("it is marked");
        assert_eq!(process.cluster, Path::new("/src/a"));
        assert_eq!(process.name, "etcd");
        assert_eq!(process.program, Path::new("/cache/etcd"));
    }

    #[test]
    fn other_processes_have_no_mark() {
        assert_eq!(
            parse(7, b"PATH=/bin\0XWELLCAKE_CLUSTER=/src\0", b"sh\0"),
            None
        );
    }
}
