//! Where everything lives: the repository, its `.local/` folder, the user's cache and the short run folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The folders that the commands read and write.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The root of the work tree.
    pub repo: PathBuf,
    /// `.local/`: everything that belongs to the cluster of this work tree.
    pub local: PathBuf,
    /// `${XDG_CACHE_HOME:-~/.cache}/wellcake`: what was built, keyed by version and recipe.
    pub cache: PathBuf,
    /// A short name for `.local/nodes`, because the path of a Unix socket is limited to 107 bytes.
    pub run: PathBuf,
}

impl Layout {
    /// Finds the folders from the environment that `cargo run` gives.
    pub fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("run this as `cargo xtask ...`, so that it knows which work tree it serves")?;
        let repo = Path::new(&manifest)
            .parent()
            .context("the xtask package has no parent folder")?
            .canonicalize()?;
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
            .context("neither XDG_CACHE_HOME nor HOME is set: set one of them")?
            .join("wellcake");
        Ok(Self::new(repo, cache))
    }

    fn new(repo: PathBuf, cache: PathBuf) -> Self {
        let run = PathBuf::from(format!(
            "{RUN_PREFIX}{}",
            &digest(repo.as_os_str().as_encoded_bytes())[..8]
        ));
        Self {
            local: repo.join(".local"),
            repo,
            cache,
            run,
        }
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.local.join("kubeconfig")
    }

    /// A program in `.local/bin`.
    pub fn bin(&self, name: &str) -> PathBuf {
        self.local.join("bin").join(name)
    }

    /// The log of a process, or of one of our own steps.
    pub fn log(&self, name: &str) -> PathBuf {
        self.local.join("log").join(format!("{name}.log"))
    }

    /// A configuration file that `up` writes.
    pub fn conf(&self, name: &str) -> PathBuf {
        self.local.join("conf").join(name)
    }

    /// A certificate or key that `up` writes.
    pub fn pki(&self, name: &str) -> PathBuf {
        self.local.join("pki").join(name)
    }

    /// The folder of one node under its short name.
    pub fn node(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }

    /// `PATH` with `.local/bin` in front, so that children find `kubectl` and `helm`.
    pub fn path(&self) -> OsString {
        let mut path = self.local.join("bin").into_os_string();
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        path
    }

    /// Makes the folders below `.local/`.
    pub fn create(&self) -> Result<()> {
        for folder in ["bin", "conf", "etcd", "log", "nodes", "pki", "run"] {
            let path = self.local.join(folder);
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot make the folder {}", path.display()))?;
        }
        std::fs::create_dir_all(&self.cache)
            .with_context(|| format!("cannot make the folder {}", self.cache.display()))
    }
}

/// What the names of all run folders start with.
pub const RUN_PREFIX: &str = "/run/wellcake-";

/// SHA-256 in lower-case hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes a file only when its content differs, so that its time of change means something.
pub fn write(path: &Path, content: &str) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content.as_bytes()) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_a_deep_work_tree_stay_within_the_limit() {
        let deep = PathBuf::from("/home/somebody").join("folder".repeat(30));
        let layout = Layout::new(deep, PathBuf::from("/cache"));
        let socket = layout
            .node("node-1")
            .join("kubelet/pod-resources/kubelet.sock");
        assert!(socket.as_os_str().len() < 107, "{}", socket.display());
    }

    #[test]
    fn two_work_trees_have_two_run_folders() {
        let one = Layout::new(PathBuf::from("/a"), PathBuf::from("/cache"));
        let two = Layout::new(PathBuf::from("/b"), PathBuf::from("/cache"));
        assert_ne!(one.run, two.run);
    }

    #[test]
    fn digest_is_sha256() {
        assert_eq!(
            digest(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
