//! The short name of the nodes' folder, and what is mounted below it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command::{output, succeeds};
use crate::paths::{Layout, RUN_PREFIX};

/// Binds `.local/nodes` to its short name.
pub fn ensure(layout: &Layout) -> Result<()> {
    std::fs::create_dir_all(&layout.run)?;
    if mounted().contains(&layout.run) {
        return Ok(());
    }
    output(
        Command::new("mount")
            .arg("--bind")
            .arg(layout.local.join("nodes"))
            .arg(&layout.run),
    )?;
    // Private first: what the nodes mount must not appear under the long name, too. Then shared among the nodes' own
    // processes, as mount propagation into pods needs it.
    output(Command::new("mount").arg("--make-private").arg(&layout.run))?;
    output(Command::new("mount").arg("--make-shared").arg(&layout.run))?;
    Ok(())
}

/// Unmounts everything below the short names of all work trees, last mounted first, and removes the names.
pub fn remove() {
    for _ in 0..3 {
        let ours: Vec<PathBuf> = mounted().into_iter().filter(|path| is_ours(path)).collect();
        if ours.is_empty() {
            break;
        }
        for path in ours.iter().rev() {
            succeeds(Command::new("umount").arg("--lazy").arg(path));
        }
    }
    for path in run_folders() {
        // Never recursively: a name that is still mounted shows the nodes' data.
        let _ = std::fs::remove_dir(path);
    }
}

/// The short names that exist on this machine.
pub fn run_folders() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/run") else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_ours(path))
        .collect()
}

fn is_ours(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().starts_with(RUN_PREFIX)
}

/// All mount points in the order in which they were mounted.
fn mounted() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .collect()
}
