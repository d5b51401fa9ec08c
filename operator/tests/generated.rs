//! Files that are made from the code are what the code makes of them. `GENERATE=1 cargo test -p wellcake-operator --test
//! generated` writes them.

use std::fs;
use std::path::{Path, PathBuf};

use wellcake_operator::{flags, metrics, rbac};

const HEAD: &str = "# Made from operator/src/rbac.rs by `cargo xtask gen`.\n";

#[test]
fn committed_rules_and_references_are_what_the_code_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rules = "helm/valkey-operator/files/rbac";
    let files = [
        (
            format!("{rules}/namespaced-rules.yaml"),
            HEAD.to_owned() + &rbac::namespaced(),
        ),
        (
            format!("{rules}/cluster-rules.yaml"),
            HEAD.to_owned() + &rbac::cluster(),
        ),
        (
            format!("{rules}/leader-rules.yaml"),
            HEAD.to_owned() + &rbac::leader(),
        ),
        ("docs/reference/permissions.md".to_owned(), rbac::markdown()),
        (
            "docs/reference/metrics.md".to_owned(),
            metrics::reference::markdown(),
        ),
        (
            "docs/reference/flags.md".to_owned(),
            flags::reference::markdown(),
        ),
    ];
    let stale: Vec<PathBuf> = files
        .into_iter()
        .filter_map(|(path, text)| check_or_write(&root.join(path), &text))
        .collect();
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; run `cargo xtask gen` and commit what it writes"
    );
}

/// With GENERATE=1 writes the file, else returns its path if it differs from the text.
fn check_or_write(path: &Path, text: &str) -> Option<PathBuf> {
    if std::env::var("GENERATE").is_ok_and(|v| v == "1") {
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, text))
            .expect("the work tree can be written");
        return None;
    }
    (fs::read_to_string(path).ok().as_deref() != Some(text)).then(|| path.to_owned())
}
