//! The model tester: taken by itself.

use std::process::Command;

use anyhow::{Context, Result};
use wellcake_e2e::cluster::repo;

use crate::figures::{Figure, folder};

/// Runs it and takes its figures over; which bounds are kept is judged with all others.
pub fn run(taken: &mut Vec<Figure>) -> Result<()> {
    Command::new("cargo")
        .args(["run", "--release", "--package", "wellcake-model-tests"])
        .args(["--bin", "valkey-model", "--", "bench"])
        .current_dir(repo())
        .status()
        .context("cannot run cargo")?;
    let text = std::fs::read_to_string(folder().join("model.json"))
        .context("the model tester wrote no figures")?;
    taken.extend(serde_json::from_str::<Vec<Figure>>(&text)?);
    Ok(())
}
