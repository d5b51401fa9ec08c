//! One control group per node, below `wellcake`, in every hierarchy (version 1) or in the unified one (version 2).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::cluster::network::Node;
use crate::processes::kill;

const ROOT: &str = "/sys/fs/cgroup";
const OURS: &str = "wellcake";

/// The control group of a node, as the kubelet's `cgroupRoot`.
pub fn root_of(node: Node) -> String {
    format!("/{OURS}/{}", node.name())
}

/// Makes the control group of a node; the kubelet refuses to make its own root.
pub fn ensure(node: Node) -> Result<()> {
    if unified() {
        let parts = [ROOT.into(), Path::new(ROOT).join(OURS)];
        for parent in &parts {
            std::fs::create_dir_all(parent)?;
            delegate(parent)?;
        }
        return make(&parts[1].join(node.name()));
    }
    for hierarchy in hierarchies()? {
        let parent = hierarchy.join(OURS);
        make(&parent)?;
        inherit_cpuset(&hierarchy, &parent)?;
        let own = parent.join(node.name());
        make(&own)?;
        inherit_cpuset(&parent, &own)?;
    }
    Ok(())
}

/// Kills everything that still runs in our control groups and removes them.
pub fn remove() {
    let mut trees = vec![Path::new(ROOT).join(OURS)];
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Beside hierarchies of version 1 the unified one may be mounted, too; containers are in all of them.
    trees.extend(
        mounted(&mounts, &["cgroup", "cgroup2"])
            .iter()
            .map(|path| path.join(OURS)),
    );
    let groups: Vec<PathBuf> = trees.iter().flat_map(|tree| inside_first(tree)).collect();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let pids: BTreeSet<i32> = groups.iter().flat_map(|group| pids(group)).collect();
        if pids.is_empty() || Instant::now() > deadline {
            break;
        }
        for pid in pids {
            kill(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // A group stays busy for a moment after its last process.
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let left = groups
            .iter()
            .filter(|group| std::fs::remove_dir(group).is_err() && group.exists());
        if left.count() == 0 || Instant::now() > deadline {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn unified() -> bool {
    Path::new(ROOT).join("cgroup.controllers").exists()
}

/// The mounted hierarchies of version 1.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounted(&mounts, &["cgroup"]))
}

/// Where file systems of these types are mounted.
fn mounted(mounts: &str, types: &[&str]) -> Vec<PathBuf> {
    mounts
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let path = left.split(' ').nth(4)?;
            types
                .contains(&right.split(' ').next()?)
                .then(|| PathBuf::from(path))
        })
        .collect()
}

fn make(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path)
        .with_context(|| format!("cannot make the control group {}", path.display()))
}

/// A new cpuset group has neither processors nor memory and can hold no process before it gets some.
fn inherit_cpuset(parent: &Path, child: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let Ok(value) = std::fs::read_to_string(parent.join(file)) else {
            continue;
        };
        let own = child.join(file);
        if std::fs::read_to_string(&own).is_ok_and(|now| now.trim().is_empty()) {
            std::fs::write(&own, value.trim())
                .with_context(|| format!("cannot write {}", own.display()))?;
        }
    }
    Ok(())
}

/// Lets the children of a unified group use every controller that the group has.
fn delegate(group: &Path) -> Result<()> {
    let controllers = std::fs::read_to_string(group.join("cgroup.controllers"))?;
    for controller in controllers.split_whitespace() {
        // Some cannot be delegated (real-time groups in use); the kubelet names one that it misses.
        let _ = std::fs::write(
            group.join("cgroup.subtree_control"),
            format!("+{controller}"),
        );
    }
    Ok(())
}

/// A folder of control groups, children before parents.
fn inside_first(group: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(entries) = std::fs::read_dir(group) {
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(inside_first(&entry.path()));
            }
        }
        found.push(group.to_path_buf());
    }
    found
}

fn pids(group: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_those_of_version_one() {
        let mounts = "\
30 24 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
31 24 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
32 24 0:28 / /tmp rw - tmpfs tmpfs rw";
        assert_eq!(
            mounted(mounts, &["cgroup"]),
            [Path::new("/sys/fs/cgroup/cpu")]
        );
    }
}
