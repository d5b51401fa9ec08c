//! One command at a time changes the cluster of a machine.

use std::fs::{File, TryLockError};

use anyhow::{Context, Result};

use crate::progress::Progress;

const FILE: &str = "/run/lock/wellcake";

/// Waits until no other `up`, `down` or `operator` is at work. The lock ends with the process, however that ends.
pub fn take(progress: &Progress) -> Result<File> {
    crate::prerequisites::root()?;
    std::fs::create_dir_all("/run/lock")?;
    let file = File::create(FILE).with_context(|| format!("cannot open {FILE}"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.say("Waiting for another `cargo xtask` that is at work");
            file.lock()?;
        }
        Err(TryLockError::Error(why)) => {
            return Err(why).with_context(|| format!("cannot lock {FILE}"));
        }
    }
    Ok(file)
}
