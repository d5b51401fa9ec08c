//! A file system of Debian packages, from the mirror that this machine is configured with.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{logged, output};

/// Which packages of which releases.
#[derive(Debug)]
pub struct Rootfs {
    /// Releases, the base first.
    pub suites: &'static [&'static str],
    /// Packages, as mmdebstrap's `--include` reads them.
    pub packages: &'static [&'static str],
    /// Shell commands after the installation; `$1` is the root of the file system.
    pub hooks: &'static [&'static str],
}

impl Rootfs {
    /// Makes the tar, with one more hook if there is one.
    pub fn build(&self, tar: &Path, hook: Option<&str>, log: &Path) -> Result<()> {
        let mirror = mirror()?;
        let mut command = Command::new("mmdebstrap");
        command
            .args(["--variant=essential", "--mode=root"])
            .args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")))
            .args(["--dpkgopt=path-include=/usr/share/doc/*/copyright"]);
        if !self.packages.is_empty() {
            command.arg(format!("--include={}", self.packages.join(",")));
        }
        for hook in self.hooks.iter().copied().chain(hook) {
            command.arg(format!("--customize-hook={hook}"));
        }
        command.arg(self.suites[0]).arg(tar);
        for suite in self.suites {
            command.arg(format!("deb {mirror} {suite} main"));
        }
        // What belongs to the user's session has no meaning inside.
        command.env_remove("TMPDIR").env("LC_ALL", "C");
        logged(&mut command, log)
    }

    /// Everything that decides about the content, except the day of the build.
    pub fn recipe(&self) -> String {
        format!("{self:?} {LEFT_OUT:?}")
    }
}

const LEFT_OUT: [&str; 3] = [
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
];

/// The address of the Debian archive in this machine's apt configuration.
fn mirror() -> Result<String> {
    let listing = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(ORIGIN) $(LABEL)",
        "Identifier: Packages",
    ]))?;
    archive(&listing)
        .map(str::to_owned)
        .context("apt knows no Debian archive: add one to /etc/apt/sources.list.d, then run `apt-get update`")
}

fn archive(listing: &str) -> Option<&str> {
    listing.lines().find_map(|line| {
        let (uri, kind) = line.split_once(' ')?;
        (kind == "Debian Debian").then_some(uri)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_neither_security_nor_a_third_party() {
        let listing = "\
http://mirror.test/debian-security/ Debian Debian-Security
http://packages.test/ Somebody Somebody
http://mirror.test/debian/ Debian Debian
";
        assert_eq!(archive(listing), Some("http://mirror.test/debian/"));
    }
}
