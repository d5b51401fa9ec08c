//! Pages that are made from the museum are what its pieces make of them. `GENERATE=1 cargo test -p wellcake-model-tests --test
//! generated` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wellcake_model_tests::museum::page::{index, page};
use wellcake_model_tests::museum::read;

#[test]
fn the_pages_of_incidents_are_what_the_museum_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pieces = read(&root.join("model-tests/museum")).unwrap_or_else(|why| panic!("{why}"));
    let mut wanted = BTreeMap::from([("README.md".to_owned(), index(&pieces))]);
    for piece in &pieces {
        let text = page(piece).unwrap_or_else(|why| panic!("{}: {why}", piece.name));
        wanted.insert(format!("{}.md", piece.name), text);
    }
    let folder = root.join("docs/incidents");
    let there: BTreeMap<String, String> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("the folder can be read").path())
        .map(|path| {
            let name = path
                .file_name()
                .expect("a file has a name")
                .to_string_lossy();
            let text = fs::read_to_string(&path).expect("pages can be read");
            (name.into_owned(), text)
        })
        .collect();
    if std::env::var("GENERATE").is_ok_and(|value| value == "1") {
        fs::create_dir_all(&folder).expect("the work tree can be written");
        for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
            fs::remove_file(folder.join(name)).expect("the work tree can be written");
        }
        for (name, text) in &wanted {
            fs::write(folder.join(name), text).expect("the work tree can be written");
        }
        return;
    }
    let stale: Vec<&String> = wanted
        .keys()
        .chain(there.keys())
        .filter(|name| wanted.get(*name) != there.get(*name))
        .collect();
    assert!(
        stale.is_empty(),
        "docs/incidents: {stale:?} are stale; run `cargo xtask gen` and commit what it writes"
    );
}
