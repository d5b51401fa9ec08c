//! The operator, installed with the project's own chart.

use anyhow::{Context, Result};

use crate::command::{logged, output};
use crate::install::target::Target;
use crate::paths::Layout;
use crate::progress::Progress;

/// The chart, from the root of the work tree.
pub const CHART: &str = "helm/valkey-operator";
/// The release's name and its namespace.
pub const RELEASE: &str = "valkey-operator";

/// Installs or upgrades the operator and waits until it runs. `image` is `REPOSITORY:TAG`.
pub fn install(layout: &Layout, progress: &Progress, target: &Target, image: &str) -> Result<()> {
    let (repository, tag) = split(image)?;
    progress.step(
        "operator-install",
        "Installing the operator with its Helm chart",
        |note| {
            note.set(image);
            let upgrade = logged(
                target
                    .helm()
                    .args([
                        "upgrade",
                        "--install",
                        RELEASE,
                        CHART,
                        "--namespace",
                        RELEASE,
                        "--create-namespace",
                    ])
                    .args(["--set-string", &format!("image.repository={repository}")])
                    .args(["--set-string", &format!("image.tag={tag}")])
                    .args(["--set-string", "image.pullPolicy=IfNotPresent"])
                    .args(["--wait", "--timeout=3m"])
                    .current_dir(&layout.repo),
                &layout.log("helm"),
            );
            upgrade.with_context(|| format!("the operator does not run\n{}", story(target)))
        },
    )
}

/// Forgets an installation that was killed half-way: Helm would refuse every later one. Only for a Kubernetes where
/// nobody else installs.
pub fn forget_interrupted(target: &Target) -> Result<()> {
    let interrupted = format!(
        "owner=helm,name={RELEASE},status in (pending-install,pending-upgrade,pending-rollback)"
    );
    output(target.kubectl().args([
        "delete",
        "secrets",
        "--namespace",
        RELEASE,
        "--selector",
        &interrupted,
    ]))?;
    Ok(())
}

/// What is known about pods that do not come up.
fn story(target: &Target) -> String {
    let ask = |arguments: &[&str]| -> String {
        output(
            target
                .kubectl()
                .args(["--namespace", RELEASE])
                .args(arguments),
        )
        .unwrap_or_else(|why| why.to_string())
    };
    format!(
        "{}\n{}\n{}",
        ask(&["get", "pods", "--output=wide"]),
        ask(&[
            "get",
            "events",
            "--sort-by=.lastTimestamp",
            "--field-selector=type=Warning"
        ]),
        ask(&[
            "logs",
            "--selector=app.kubernetes.io/name=valkey-operator",
            "--tail=12",
            "--prefix"
        ]),
    )
}

/// Repository and tag of a reference; a colon before the last slash belongs to a port.
fn split(image: &str) -> Result<(&str, &str)> {
    image
        .rsplit_once(':')
        .filter(|(repository, tag)| !repository.is_empty() && !tag.is_empty() && !tag.contains('/'))
        .with_context(|| format!("the image {image} has no tag: name it as REPOSITORY:TAG"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_repository_and_tag() {
        assert_eq!(
            split("localhost/valkey-operator:12ab").ok(),
            Some(("localhost/valkey-operator", "12ab"))
        );
        assert_eq!(
            split("registry.test:5000/a/b:v1").ok(),
            Some(("registry.test:5000/a/b", "v1"))
        );
        assert!(split("registry.test:5000/a/b").is_err());
        assert!(split("valkey-operator").is_err());
    }
}
