//! What a machine must have. Each thing that is missing is one sentence that says what to do.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{logged, output, succeeds};
use crate::paths::Layout;
use crate::progress::Progress;

/// Debian packages, each with a file by which its presence is seen without asking dpkg.
const PACKAGES: [(&str, &str); 16] = [
    ("ca-certificates", "/usr/sbin/update-ca-certificates"),
    ("catatonit", "/usr/bin/catatonit"),
    ("conntrack", "/usr/sbin/conntrack"),
    ("containerd", "/usr/bin/containerd"),
    ("containernetworking-plugins", "/usr/lib/cni/bridge"),
    (
        "debian-archive-keyring",
        "/usr/share/keyrings/debian-archive-keyring.gpg",
    ),
    ("iproute2", "/sbin/ip"),
    ("iptables", "/usr/sbin/iptables"),
    ("mmdebstrap", "/usr/bin/mmdebstrap"),
    ("mount", "/bin/mount"),
    ("nftables", "/usr/sbin/nft"),
    ("python3-pip", "/usr/bin/pip3"),
    ("runc", "/usr/sbin/runc"),
    ("socat", "/usr/bin/socat"),
    ("unzip", "/usr/bin/unzip"),
    ("util-linux", "/usr/bin/setsid"),
];

/// What the tests need beside these.
const FOR_TESTS: [(&str, &str); 1] = [(
    "chromium-headless-shell",
    "/usr/bin/chromium-headless-shell",
)];

/// Space for sources, build cache and results when nothing is built yet, in GiB.
const COLD: u64 = 14;
/// Space for a cluster whose programs are built, in GiB.
const WARM: u64 = 3;

/// Only root can make bridges, mounts and containers.
pub fn root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "this needs root for bridges, mounts and containers: run it as root, for example in `sudo -i`"
        );
    }
    Ok(())
}

/// Go 1.21 or newer; it fetches by itself the newer one that a module asks for.
pub fn go() -> Result<()> {
    let answer = output(
        Command::new("go")
            .args(["env", "GOVERSION"])
            .env("GOTOOLCHAIN", "local"),
    )
    .ok();
    match answer.as_deref().and_then(minor) {
        Some(21..) => Ok(()),
        Some(_) => bail!(
            "Go is too old to build Kubernetes: install Go 1.21 or newer and put it first in PATH"
        ),
        None => bail!(
            "Go is missing and Kubernetes is built with it: install Go 1.21 or newer and put its `go` into PATH"
        ),
    }
}

/// Enough space where the cache and the cluster's data lie.
pub fn disk(layout: &Layout, built: bool) -> Result<()> {
    let needed = if built { WARM } else { COLD };
    enough(&layout.cache, needed)?;
    enough(&layout.local, WARM)
}

/// Installs the Debian packages that are not there and the local cluster needs.
pub fn packages(layout: &Layout, progress: &Progress) -> Result<()> {
    install(layout, progress, &PACKAGES)
}

/// Installs those that only tests need: a browser, in which pages are opened.
pub fn packages_for_tests(layout: &Layout, progress: &Progress) -> Result<()> {
    install(layout, progress, &FOR_TESTS)
}

fn install(layout: &Layout, progress: &Progress, packages: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !succeeds(Command::new("apt-get").arg("--version")) {
        bail!(
            "this machine has no apt-get, and {} is missing: use Debian 12 or newer, or `cargo xtask up --context NAME` with a Kubernetes that you have",
            missing.join(", ")
        );
    }
    let what = format!("Installing Debian packages ({})", missing.join(", "));
    progress.step("packages", &what, |_| {
        let log = layout.log("packages");
        logged(Command::new("apt-get").arg("update"), &log)?;
        logged(
            Command::new("apt-get")
                .args(["install", "--yes", "--no-install-recommends"])
                .args(&missing)
                .env("DEBIAN_FRONTEND", "noninteractive"),
            &log,
        )
    })
}

fn enough(path: &Path, needed: u64) -> Result<()> {
    let existing = path
        .ancestors()
        .find(|ancestor| ancestor.exists())
        .with_context(|| format!("{} has no existing parent", path.display()))?;
    let status = rustix::fs::statvfs(existing)?;
    let free = status.f_bavail * status.f_frsize / (1 << 30);
    if free < needed {
        bail!(
            "{} has {free} GiB free and {needed} GiB are needed: free some space there",
            existing.display()
        );
    }
    Ok(())
}

/// The minor version in `go1.26.8`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.trim().strip_prefix("go1.")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(minor("go1.26.8\n"), Some(26));
        assert_eq!(minor("go1.19"), Some(19));
        assert_eq!(minor("devel"), None);
    }

    #[test]
    fn too_little_disk_is_one_sentence() {
        let error = enough(Path::new("/nonexistent/folder"), 1 << 40).expect_err("nobody has that");
        assert!(
            error.to_string().ends_with("free some space there"),
            "{error}"
        );
    }
}
