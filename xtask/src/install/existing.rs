//! The operator on a Kubernetes that the user already has.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{logged, output, succeeds};
use crate::install::{chart, example, target::Target};
use crate::paths::Layout;
use crate::progress::Progress;

/// Installs the operator and the example into the Kubernetes of a context. `image` is a tar or a reference.
pub fn run(
    layout: &Layout,
    progress: &Progress,
    context: &str,
    image: Option<&str>,
    operator: bool,
) -> Result<()> {
    if !operator {
        bail!("--context together with --no-operator leaves nothing to do: leave one of them out");
    }
    let Some(image) = image else {
        bail!(
            "--context needs --image: a reference that the nodes can pull, or a tar (`cargo xtask image` makes one)"
        );
    };
    std::fs::create_dir_all(layout.local.join("log"))?;
    let target = Target::existing(layout, progress, context)?;
    if !succeeds(target.kubectl().args(["get", "--raw=/readyz"])) {
        bail!(
            "the Kubernetes of context {context} does not answer: check it with `kubectl --context {context} get nodes`"
        );
    }
    let reference = if Path::new(image).is_file() {
        let archive = Path::new(image);
        let name = name_of(archive)?;
        progress.step(
            "operator-load",
            "Loading the operator's image into the nodes",
            |_| load(layout, context, archive, &name),
        )?;
        name
    } else {
        image.to_owned()
    };
    chart::install(layout, progress, &target, &reference)?;
    progress.say(&format!("\n{}", example::run(layout, progress, &target)?));
    Ok(())
}

/// The name of the image in an archive, as OCI or Docker format notes it.
fn name_of(archive: &Path) -> Result<String> {
    let member = |name: &str| -> Option<Value> {
        let text = output(Command::new("tar").arg("-xOf").arg(archive).arg(name)).ok()?;
        serde_json::from_str(&text).ok()
    };
    let docker =
        member("manifest.json").and_then(|it| it[0]["RepoTags"][0].as_str().map(str::to_owned));
    let oci = || {
        let index = member("index.json")?;
        let notes = &index["manifests"][0]["annotations"];
        [
            "io.containerd.image.name",
            "org.opencontainers.image.ref.name",
        ]
        .iter()
        .find_map(|key| notes[*key].as_str().map(str::to_owned))
    };
    docker.or_else(oci).with_context(|| {
        format!(
            "{} names no image: give an archive in OCI or Docker format with a name and tag inside",
            archive.display()
        )
    })
}

/// What loads an archive into the nodes of a context, by the name that its maker gives to the context.
fn loader(context: &str) -> Option<(&'static str, Vec<String>)> {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    if let Some(cluster) = context.strip_prefix("kind-") {
        return Some(("kind", words(&["load", "image-archive", "--name", cluster])));
    }
    if let Some(cluster) = context.strip_prefix("k3d-") {
        return Some(("k3d", words(&["image", "import", "--cluster", cluster])));
    }
    (context == "minikube").then(|| ("minikube", words(&["image", "load"])))
}

fn load(layout: &Layout, context: &str, archive: &Path, name: &str) -> Result<()> {
    let Some((program, arguments)) = loader(context) else {
        bail!(
            "no way is known to load a tar into the nodes of {context}: push {} as {name} to a registry that they pull from, and give --image that reference",
            archive.display()
        );
    };
    logged(
        Command::new(program).args(arguments).arg(archive),
        &layout.log("load"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_tells_how_an_archive_is_loaded() {
        let (program, arguments) = loader("kind-dev").expect("it is known");
        assert_eq!(
            (program, arguments.join(" ").as_str()),
            ("kind", "load image-archive --name dev")
        );
        assert_eq!(loader("minikube").map(|it| it.0), Some("minikube"));
        assert!(loader("production").is_none());
    }
}
