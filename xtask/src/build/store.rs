//! The cache: folders named by version and recipe, complete or absent.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::paths::digest;
use crate::progress::{Note, Progress};

/// Something that is built into a folder of the cache.
pub struct Item<'a> {
    /// The first part of the folder's name, and the key of its duration.
    pub name: &'a str,
    /// Shown while it is built.
    pub what: &'a str,
    /// Shown in the folder's name.
    pub version: &'a str,
    /// Everything that decides about the content.
    pub recipe: &'a str,
}

impl Item<'_> {
    /// The folder of this version and recipe.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        let recipe = digest(self.recipe.as_bytes());
        cache.join(format!("{}-{}-{}", self.name, self.version, &recipe[..12]))
    }

    /// Builds into a temporary folder and renames it when complete; does nothing when it is there.
    pub fn ensure(
        &self,
        cache: &Path,
        progress: &Progress,
        build: impl FnOnce(&Path, &Note) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.folder(cache);
        if folder.exists() {
            return Ok(folder);
        }
        let temporary = cache.join(format!(".{}-{}.new", self.name, std::process::id()));
        let _ = std::fs::remove_dir_all(&temporary);
        std::fs::create_dir_all(&temporary)
            .with_context(|| format!("cannot make the folder {}", temporary.display()))?;
        let built = progress.step(self.name, self.what, |note| build(&temporary, note));
        if let Err(why) = built {
            let _ = std::fs::remove_dir_all(&temporary);
            return Err(why);
        }
        std::fs::rename(&temporary, &folder).with_context(|| {
            format!(
                "cannot move {} to {}",
                temporary.display(),
                folder.display()
            )
        })?;
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(recipe: &str) -> Item<'_> {
        Item {
            name: "thing",
            what: "Making a thing",
            version: "1.0",
            recipe,
        }
    }

    #[test]
    fn a_folder_is_complete_or_absent() {
        let cache = std::env::temp_dir().join(format!("wellcake-store-{}", std::process::id()));
        std::fs::create_dir_all(&cache).expect("a folder");
        let progress = Progress::new(&cache);
        let failed = item("a").ensure(&cache, &progress, |folder, _| {
            std::fs::write(folder.join("half"), "")?;
            anyhow::bail!("out of luck")
        });
        assert!(failed.is_err() && !item("a").folder(&cache).exists());
        let folder = item("a")
            .ensure(&cache, &progress, |folder, _| {
                Ok(std::fs::write(folder.join("all"), "")?)
            })
            .expect("it is built");
        assert!(folder.join("all").exists());
        item("a")
            .ensure(&cache, &progress, |_, _| {
                anyhow::bail!("it is not built again")
            })
            .expect("it is there");
        std::fs::remove_dir_all(&cache).expect("the folder goes");
    }

    #[test]
    fn another_recipe_is_another_folder() {
        let cache = Path::new("/cache");
        assert_ne!(item("a").folder(cache), item("b").folder(cache));
    }
}
