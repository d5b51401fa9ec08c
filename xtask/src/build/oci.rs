//! Writing an image archive in OCI format: one layer, one configuration, one manifest.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command::output;
use crate::paths::digest;

/// How containers of the image run unless they say otherwise.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// `uid:gid`.
    pub user: &'a str,
    pub entrypoint: &'a [&'a str],
    pub folder: &'a str,
}

/// Packs a layer (an uncompressed tar) into an archive that `ctr images import` and others read.
pub fn pack(archive: &Path, name: &str, layer: &Path, settings: &Settings) -> Result<()> {
    let work = archive.with_extension("oci");
    let blobs = work.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).with_context(|| format!("cannot make {}", blobs.display()))?;
    let hash = sha256_of_file(layer)?;
    let size = std::fs::metadata(layer)?.len();
    let target = blobs.join(&hash);
    if std::fs::hard_link(layer, &target).is_err() {
        std::fs::copy(layer, &target)?;
    }
    let blob = |value: &Value| -> Result<(String, usize)> {
        let text = value.to_string();
        let hash = digest(text.as_bytes());
        std::fs::write(blobs.join(&hash), &text)?;
        Ok((hash, text.len()))
    };
    let (config_hash, config_size) = blob(&configuration(&hash, settings))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config_hash, config_size as u64),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &hash, size)],
    });
    let (manifest_hash, manifest_size) = blob(&manifest)?;
    let mut entry = descriptor(MANIFEST, &manifest_hash, manifest_size as u64);
    // containerd takes the name from the first, other tools from the second.
    entry["annotations"] = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    });
    let index = json!({"schemaVersion": 2, "manifests": [entry]});
    std::fs::write(work.join("index.json"), index.to_string())?;
    std::fs::write(work.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar(archive, &work, &["oci-layout", "index.json", "blobs"])?;
    std::fs::remove_dir_all(&work)?;
    Ok(())
}

/// A tar whose bytes depend on the content alone; all files belong to root.
pub fn tar(archive: &Path, folder: &Path, members: &[&str]) -> Result<()> {
    output(
        Command::new("tar")
            .args([
                "--create",
                "--sort=name",
                "--mtime=@0",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
            ])
            .arg("--file")
            .arg(archive)
            .arg("--directory")
            .arg(folder)
            .args(members),
    )?;
    Ok(())
}

/// Takes the only layer out of an archive that `pack` made.
pub fn unpack_layer(archive: &Path, layer: &Path) -> Result<()> {
    let member = |name: &str| output(Command::new("tar").arg("-xOf").arg(archive).arg(name));
    let blob = |descriptor: &Value| -> Result<String> {
        let digest = descriptor["digest"]
            .as_str()
            .context("the archive names no digest")?;
        Ok(format!("blobs/{}", digest.replacen(':', "/", 1)))
    };
    let index: Value = serde_json::from_str(&member("index.json")?)?;
    let manifest: Value = serde_json::from_str(&member(&blob(&index["manifests"][0])?)?)?;
    let file =
        std::fs::File::create(layer).with_context(|| format!("cannot make {}", layer.display()))?;
    let name = blob(&manifest["layers"][0])?;
    let status = Command::new("tar")
        .arg("-xOf")
        .arg(archive)
        .arg(name)
        .stdout(file)
        .status()?;
    anyhow::ensure!(
        status.success(),
        "cannot take the layer out of {}",
        archive.display()
    );
    Ok(())
}

/// SHA-256 of a file, by the machine's own program: ours is slow in a debug build.
pub fn sha256_of_file(path: &Path) -> Result<String> {
    let line = output(Command::new("sha256sum").arg("--binary").arg(path))?;
    line.split(' ')
        .next()
        .filter(|hash| hash.len() == 64)
        .map(str::to_owned)
        .with_context(|| format!("sha256sum gave no sum of {}", path.display()))
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn descriptor(media: &str, hash: &str, size: u64) -> Value {
    json!({"mediaType": media, "digest": format!("sha256:{hash}"), "size": size})
}

fn configuration(layer: &str, settings: &Settings) -> Value {
    json!({
        "architecture": match std::env::consts::ARCH { "aarch64" => "arm64", _ => "amd64" },
        "os": "linux",
        "config": {
            "User": settings.user,
            "Entrypoint": settings.entrypoint,
            "WorkingDir": settings.folder,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_names_its_image_and_holds_its_layer() {
        let folder = std::env::temp_dir().join(format!("wellcake-oci-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("root")).expect("a folder");
        std::fs::write(folder.join("root/file"), "content").expect("a file");
        let (layer, archive) = (folder.join("layer.tar"), folder.join("image.tar"));
        tar(&layer, &folder.join("root"), &["file"]).expect("a layer");
        let settings = Settings {
            user: "1:1",
            entrypoint: &["/file"],
            folder: "/",
        };
        pack(&archive, "docker.io/some/thing:1", &layer, &settings).expect("an archive");
        let list = output(Command::new("tar").arg("-tf").arg(&archive)).expect("it is a tar");
        assert!(
            list.contains(&sha256_of_file(&layer).expect("a sum")),
            "{list}"
        );
        let index = output(
            Command::new("tar")
                .arg("-xOf")
                .arg(&archive)
                .arg("index.json"),
        );
        assert!(index.expect("an index").contains("docker.io/some/thing:1"));
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
