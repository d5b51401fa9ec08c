//! The Kubernetes that is worked on, and the programs that speak to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::build::go;
use crate::command::output;
use crate::paths::Layout;
use crate::progress::Progress;

/// A Kubernetes, by what selects it on the command line.
#[derive(Clone, Debug)]
pub struct Target {
    kubectl: PathBuf,
    helm: PathBuf,
    /// The kubeconfig; the user's own when there is none.
    kubeconfig: Option<PathBuf>,
    /// The context in it; the current one when there is none.
    context: Option<String>,
}

impl Target {
    /// The local cluster of this work tree.
    pub fn local(layout: &Layout) -> Self {
        Self {
            kubectl: layout.bin("kubectl"),
            helm: layout.bin("helm"),
            kubeconfig: Some(layout.kubeconfig()),
            context: None,
        }
    }

    /// A context of the user's kubeconfig. Only Helm is built, and only when the user has none.
    pub fn existing(layout: &Layout, progress: &Progress, context: &str) -> Result<Self> {
        let Some(kubectl) = program("kubectl", layout) else {
            bail!(
                "kubectl is missing: install it, check it with `kubectl --context {context} get nodes`, then run this command again"
            );
        };
        let known =
            output(Command::new(&kubectl).args(["config", "get-contexts", "--output=name"]))?;
        if !known.lines().any(|name| name == context) {
            let names: Vec<&str> = known.lines().collect();
            bail!(
                "the kubeconfig has no context {context}: choose one of [{}]",
                names.join(", ")
            );
        }
        let helm = match program("helm", layout) {
            Some(helm) => helm,
            None => {
                crate::prerequisites::go()?;
                go::ensure_helm(layout, progress)?.join("helm")
            }
        };
        Ok(Self {
            kubectl,
            helm,
            kubeconfig: None,
            context: Some(context.to_owned()),
        })
    }

    /// kubectl for this Kubernetes.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        if let Some(path) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(path);
        }
        if let Some(context) = &self.context {
            command.arg("--context").arg(context);
        }
        command
    }

    /// Helm for this Kubernetes.
    pub fn helm(&self) -> Command {
        let mut command = Command::new(&self.helm);
        if let Some(path) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(path);
        }
        if let Some(context) = &self.context {
            command.arg("--kube-context").arg(context);
        }
        command
    }

    /// What a user types in front of kubectl's arguments.
    pub fn typed(&self) -> String {
        match &self.context {
            Some(context) => format!("kubectl --context {context}"),
            None => "kubectl".to_owned(),
        }
    }
}

/// A program of the user, or one that an earlier `up` put into `.local/bin`.
fn program(name: &str, layout: &Layout) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .chain([layout.bin(name)])
        .find(|candidate| Path::new(candidate).is_file())
}
