//! The programs that are built from the Go modules under `local/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::build::store::Item;
use crate::command::logged;
use crate::paths::Layout;
use crate::progress::Progress;

/// A module under `local/` and what it makes.
struct Module {
    /// The folder under `local/`.
    name: &'static str,
    what: &'static str,
    /// The requirement in `go.mod` whose version names the result.
    requirement: &'static str,
    /// What is built: the module's `tool` lines, or its own program.
    package: &'static str,
    /// Whether Kubernetes' version is written into the programs; without it they call themselves v0.0.0 and clients
    /// misjudge what they can do.
    stamped: bool,
}

const KUBERNETES: Module = Module {
    name: "kubernetes",
    what: "Building Kubernetes (the longest step, about 10 minutes on two cores)",
    requirement: "k8s.io/kubernetes",
    package: "tool",
    stamped: true,
};
const ETCD: Module = Module {
    name: "etcd",
    what: "Building etcd",
    requirement: "go.etcd.io/etcd/server/v3",
    package: "tool",
    stamped: false,
};
const COREDNS: Module = Module {
    name: "coredns",
    what: "Building the name server CoreDNS",
    requirement: "github.com/coredns/coredns",
    package: ".",
    stamped: false,
};
const PROVISIONER: Module = Module {
    name: "provisioner",
    what: "Building the volume provisioner",
    requirement: "github.com/rancher/local-path-provisioner",
    package: "tool",
    stamped: false,
};
const HELM3: Module = Module {
    name: "helm3",
    what: "Building Helm 3",
    requirement: "helm.sh/helm/v3",
    package: "tool",
    stamped: false,
};
const HELM4: Module = Module {
    name: "helm4",
    what: "Building Helm 4",
    requirement: "helm.sh/helm/v4",
    package: "tool",
    stamped: false,
};

/// Folders with the built programs.
pub struct Built {
    pub kubernetes: PathBuf,
    pub etcd: PathBuf,
    pub coredns: PathBuf,
    pub provisioner: PathBuf,
    pub helm3: PathBuf,
    pub helm4: PathBuf,
}

/// Builds what the cache lacks.
pub fn ensure(layout: &Layout, progress: &Progress) -> Result<Built> {
    Ok(Built {
        kubernetes: KUBERNETES.ensure(layout, progress)?,
        etcd: ETCD.ensure(layout, progress)?,
        coredns: COREDNS.ensure(layout, progress)?,
        provisioner: PROVISIONER.ensure(layout, progress)?,
        helm3: HELM3.ensure(layout, progress)?,
        helm4: HELM4.ensure(layout, progress)?,
    })
}

/// Whether anything must still be built.
pub fn complete(layout: &Layout) -> Result<bool> {
    for module in [KUBERNETES, ETCD, COREDNS, PROVISIONER, HELM3, HELM4] {
        if !module.folder(layout)?.exists() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Builds Helm 3 and kubectl's module only as far as an existing cluster needs them.
pub fn ensure_helm(layout: &Layout, progress: &Progress) -> Result<PathBuf> {
    HELM3.ensure(layout, progress)
}

impl Module {
    fn folder(&self, layout: &Layout) -> Result<PathBuf> {
        let (version, recipe) = self.recipe(layout)?;
        Ok(self.item(&version, &recipe).folder(&layout.cache))
    }

    fn ensure(&self, layout: &Layout, progress: &Progress) -> Result<PathBuf> {
        let (version, recipe) = self.recipe(layout)?;
        let source = layout.repo.join("local").join(self.name);
        self.item(&version, &recipe)
            .ensure(&layout.cache, progress, |folder, _| {
                logged(
                    Command::new("go")
                        .args(self.arguments(&version))
                        .arg("-o")
                        .arg(format!("{}/", folder.display()))
                        .arg(self.package)
                        .env("GOFLAGS", "")
                        .env("GOWORK", "off")
                        .current_dir(&source),
                    &layout.log("build"),
                )
            })
    }

    fn item<'a>(&'a self, version: &'a str, recipe: &'a str) -> Item<'a> {
        Item {
            name: self.name,
            what: self.what,
            version,
            recipe,
        }
    }

    /// The version, and everything that decides about the result.
    fn recipe(&self, layout: &Layout) -> Result<(String, String)> {
        let source = layout.repo.join("local").join(self.name);
        let module = read(&source.join("go.mod"))?;
        let version = version(&module, self.requirement).with_context(|| {
            format!("{} does not require {}", source.display(), self.requirement)
        })?;
        let mut recipe = format!("{module}\n{}\n", read(&source.join("go.sum"))?);
        recipe.push_str(&std::fs::read_to_string(source.join("main.go")).unwrap_or_default());
        recipe.push_str(&format!("{:?} {}", self.arguments(&version), self.package));
        Ok((version, recipe))
    }

    fn arguments(&self, version: &str) -> Vec<String> {
        let mut linker = String::from("-s -w");
        if self.stamped {
            let mut parts = version.trim_start_matches('v').split('.');
            let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"));
            for (name, value) in [
                ("Version", version),
                ("Major", major),
                ("Minor", minor),
                ("TreeState", "clean"),
            ] {
                linker.push_str(&format!(
                    " -X k8s.io/component-base/version.git{name}={value}"
                ));
            }
        }
        ["build", "-buildvcs=false", "-trimpath", "-ldflags", &linker]
            .map(str::to_owned)
            .to_vec()
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The version of a requirement in the text of a `go.mod`.
fn version(module: &str, requirement: &str) -> Option<String> {
    module.lines().find_map(|line| {
        let mut words = line
            .trim()
            .trim_start_matches("require ")
            .split_whitespace();
        (words.next()? == requirement)
            .then(|| words.next().filter(|word| word.starts_with('v')))?
            .map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_requirement() {
        let module = "tool a.b/c\n\nrequire (\n\ta.b/cd v1.0.0 // indirect\n\ta.b/c v2.3.4 // indirect\n)\n\nreplace a.b/c => a.b/c v9.9.9\n";
        assert_eq!(version(module, "a.b/c").as_deref(), Some("v2.3.4"));
        assert_eq!(
            version("require x/y v1.2.3\n", "x/y").as_deref(),
            Some("v1.2.3")
        );
        assert_eq!(version(module, "a.b/e"), None);
    }

    #[test]
    fn kubernetes_is_told_its_version() {
        let linker = KUBERNETES.arguments("v1.34.4")[4].clone();
        assert!(
            linker.contains("version.gitVersion=v1.34.4") && linker.contains("gitMinor=34"),
            "{linker}"
        );
        assert!(!ETCD.arguments("v3.6.16")[4].contains("gitVersion"));
    }
}
