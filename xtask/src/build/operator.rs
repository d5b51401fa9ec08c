//! The operator's image: the release binary, and of the machine's own libraries only those that it loads.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::build::oci::{Settings, pack, sha256_of_file, tar};
use crate::cluster::nodes::Image;
use crate::command::{logged, output};
use crate::paths::{Layout, digest, write};
use crate::progress::Progress;

/// The image's name without a tag. The first part names no registry, so that nothing is ever pulled.
pub const REPOSITORY: &str = "localhost/valkey-operator";

const BINARY: &str = "valkey-operator";
/// Nobody, by the number that images without a distribution use for it.
const USER: &str = "65532:65532";
const PASSWD: &str = "nonroot:x:65532:65532:nonroot:/:/\n";
/// The C library looks into the hosts file first and then asks the name server.
const NSSWITCH: &str = "hosts: files dns\n";

/// Builds the binary and packs it. The tag is made of the content, so that a changed operator is rolled out.
pub fn ensure(layout: &Layout, progress: &Progress) -> Result<Image> {
    let binary = progress.step("operator-binary", "Compiling the operator", |_| {
        compile(layout)
    })?;
    progress.step("operator-image", "Packing the operator's image", |_| {
        image(layout, &binary)
    })
}

fn compile(layout: &Layout) -> Result<PathBuf> {
    logged(
        Command::new("cargo")
            .args([
                "build",
                "--release",
                "--locked",
                "--package",
                "wellcake-operator",
                "--bin",
                BINARY,
            ])
            .current_dir(&layout.repo),
        &layout.log("operator-build"),
    )?;
    let metadata = output(
        Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(&layout.repo),
    )?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo names no target folder")?;
    Ok(Path::new(target).join("release").join(BINARY))
}

fn image(layout: &Layout, binary: &Path) -> Result<Image> {
    let settings = Settings {
        user: USER,
        entrypoint: &["/valkey-operator"],
        folder: "/",
    };
    let libraries = libraries(&output(Command::new("ldd").arg(binary))?)?;
    let mut content = format!(
        "{settings:?} {PASSWD} {NSSWITCH} {}",
        sha256_of_file(binary)?
    );
    for library in &libraries {
        content.push_str(&sha256_of_file(Path::new(library))?);
    }
    let tag = digest(content.as_bytes())[..12].to_owned();
    let name = format!("{REPOSITORY}:{tag}");
    let folder = layout.local.join("images");
    let archive = folder.join(format!("operator-{tag}.tar"));
    if !archive.exists() {
        // Those of earlier builds are of no more use.
        let _ = std::fs::remove_dir_all(&folder);
        let root = folder.join("root");
        fill(&root, binary, &libraries)?;
        let layer = folder.join("layer.tar");
        tar(&layer, &root, &["."])?;
        let unfinished = folder.join("image.tar");
        pack(&unfinished, &name, &layer, &settings)?;
        std::fs::remove_dir_all(&root)?;
        std::fs::remove_file(&layer)?;
        std::fs::rename(&unfinished, &archive)?;
    }
    Ok(Image { name, archive })
}

fn fill(root: &Path, binary: &Path, libraries: &[String]) -> Result<()> {
    let copy = |from: &Path, to: &Path| -> Result<()> {
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::copy(from, to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        Ok(())
    };
    copy(binary, &root.join(BINARY))?;
    for library in libraries {
        copy(
            Path::new(library),
            &root.join(library.trim_start_matches('/')),
        )?;
    }
    write(&root.join("etc/passwd"), PASSWD)?;
    write(&root.join("etc/nsswitch.conf"), NSSWITCH)
}

/// The files that `ldd` names: `libm.so.6 => /lib/libm.so.6 (0x7f…)` and the loader `/lib64/ld-linux-x86-64.so.2 (0x7f…)`.
fn libraries(listing: &str) -> Result<Vec<String>> {
    if listing.contains("not found") {
        bail!("the operator's binary needs a library that this machine lacks: {listing}");
    }
    let mut found: Vec<String> = listing
        .lines()
        .filter_map(|line| {
            let path = line.rsplit("=> ").next()?.split_whitespace().next()?;
            path.starts_with('/').then(|| path.to_owned())
        })
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_found() {
        let listing = "\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1a)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f19)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1b)
";
        let found = libraries(listing).expect("all are there");
        assert_eq!(
            found,
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib/x86_64-linux-gnu/libm.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        assert!(
            libraries("\tstatically linked\n")
                .expect("no library")
                .is_empty()
        );
        assert!(libraries("\tlibz.so.1 => not found\n").is_err());
    }
}
