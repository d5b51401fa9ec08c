//! Pages that are made from the museum are what its pieces make of them, and so are the test and the diagram of the shrunk example.
//! `GENERATE=1 cargo test -p wellcake-model-tests --test generated` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wellcake_model_tests::museum::page::{index, page};
use wellcake_model_tests::museum::read;
use wellcake_model_tests::mutants;
use wellcake_model_tests::shrink::rust_test::rust_test;
use wellcake_model_tests::shrink::saved::Saved;
use wellcake_model_tests::shrink::sequence::sequence;

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

/// The real decisions pass the test: it is compiled and run with all others.
#[test]
fn the_shrunk_example_breaks_what_it_says_and_its_test_and_diagram_are_made_from_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("shrunk/example.jsonl")).expect("it can be read");
    let saved = Saved::parse(&text).unwrap_or_else(|why| panic!("{why}"));
    let wrong = saved.head.wrong.as_deref();
    let mutant = wrong.and_then(mutants::find);
    let brain = mutant.expect("it is among the mutants").brain;
    let violation = saved.replay(brain, None).expect_err("it breaks something");
    assert_eq!(violation.invariant, saved.head.breaks);
    let wanted = [
        ("tests/shrunk_example.rs", rust_test(&saved)),
        ("shrunk/example.mmd", sequence(&saved, brain)),
    ];
    for (name, text) in wanted {
        let path = root.join(name);
        if std::env::var("GENERATE").is_ok_and(|value| value == "1") {
            fs::write(&path, &text).expect("the work tree can be written");
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap_or_default(),
            text,
            "{name} is stale; run `cargo xtask gen` and commit what it writes"
        );
    }
}
