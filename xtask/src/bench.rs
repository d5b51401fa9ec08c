//! Measuring: the cluster with the operator, and the program that takes the figures.

use std::process::Command;

use anyhow::Result;

use crate::command::shown_to_user;
use crate::paths::Layout;
use crate::progress::Progress;
use crate::{lock, up};

/// Measures that need no cluster.
const ALONE: [&str; 2] = ["step", "model"];

/// Brings the cluster with the operator to life, if a measure needs it, and takes the named measures, or all.
pub fn run(layout: &Layout, progress: &Progress, names: &[String]) -> Result<()> {
    let alone = names.iter().all(|name| ALONE.contains(&name.as_str()));
    if names.is_empty() || !alone {
        let _lock = lock::take(progress)?;
        up::up(layout, progress, true)?;
    }
    shown_to_user(
        Command::new("cargo")
            .args([
                "run",
                "--release",
                "--package",
                "wellcake-e2e",
                "--bin",
                "bench",
                "--",
            ])
            .args(names)
            .env("KUBECONFIG", layout.kubeconfig())
            .env("PATH", layout.path())
            .current_dir(&layout.repo),
    )
}
