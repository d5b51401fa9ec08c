//! One decision of the core: taken by the core's own benchmark.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use wellcake_e2e::cluster::repo;

use crate::figures::{Figure, folder};

/// Runs it and takes its figures over.
pub fn run(taken: &mut Vec<Figure>) -> Result<()> {
    let status = Command::new("cargo")
        .args(["bench", "--package", "wellcake-core", "--bench", "step"])
        .current_dir(repo())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the benchmark of the core failed");
    let text = std::fs::read_to_string(folder().join("step.json"))?;
    taken.extend(serde_json::from_str::<Vec<Figure>>(&text)?);
    Ok(())
}
