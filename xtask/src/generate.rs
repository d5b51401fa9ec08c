//! Writing what is generated from code: CRD YAML, RBAC rules, reference tables.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command::shown_to_user;
use crate::paths::Layout;

/// Crates that may have generated files.
const CRATES: [&str; 4] = ["crds", "core", "operator", "model-tests"];

/// Runs the tests that compare generated files, told to write them instead.
pub fn generate(layout: &Layout) -> Result<()> {
    let packages = packages(&layout.repo);
    if packages.is_empty() {
        bail!("no crate has a test named `generated`, so there is nothing to write");
    }
    for package in packages {
        shown_to_user(
            Command::new("cargo")
                .args([
                    "test",
                    "--quiet",
                    "--package",
                    &package,
                    "--test",
                    "generated",
                ])
                .env("GENERATE", "1")
                .current_dir(&layout.repo),
        )?;
    }
    Ok(())
}

/// The packages that have a test target named `generated`, as a file or as a folder.
fn packages(repo: &Path) -> Vec<String> {
    CRATES
        .into_iter()
        .filter(|name| {
            let tests = repo.join(name).join("tests");
            tests.join("generated.rs").exists() || tests.join("generated/main.rs").exists()
        })
        .map(|name| format!("wellcake-{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_a_file_or_a_folder() {
        let repo = std::env::temp_dir().join(format!("wellcake-generate-{}", std::process::id()));
        std::fs::create_dir_all(repo.join("crds/tests/generated")).expect("a folder");
        std::fs::create_dir_all(repo.join("core/tests")).expect("a folder");
        std::fs::write(repo.join("crds/tests/generated/main.rs"), "").expect("a file");
        std::fs::write(repo.join("core/tests/generated.rs"), "").expect("a file");
        assert_eq!(packages(&repo), ["wellcake-crds", "wellcake-core"]);
        std::fs::remove_dir_all(&repo).expect("the folder goes");
    }
}
