//! Files that are made from the types are what the types make of them. `GENERATE=1 cargo test -p wellcake-crds --test
//! generated` writes them.

mod fields;

use std::fs;
use std::path::{Path, PathBuf};

use wellcake_crds::{schema, yaml};

#[test]
fn committed_definitions_and_reference_are_what_the_types_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let definitions = schema::definitions();
    let [cluster, acl] = definitions.each_ref().map(yaml::to_yaml);
    let files = [
        ("crds/yaml/valkeyclusters.yaml", cluster.clone()),
        ("crds/yaml/valkeyacls.yaml", acl.clone()),
        (
            "helm/valkey-operator/files/crds/valkeyclusters.yaml",
            cluster,
        ),
        ("helm/valkey-operator/files/crds/valkeyacls.yaml", acl),
        ("docs/reference/fields.md", fields::reference(&definitions)),
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
