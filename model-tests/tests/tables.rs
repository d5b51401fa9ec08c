//! Tables in `docs/` that name tests and incidents name ones that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const TABLES: [&str; 2] = ["field-reports.md", "peer-defects.md"];
/// Folders with tests.
const CODE: [&str; 6] = [
    "core",
    "crds",
    "e2e",
    "interpreter",
    "model-tests",
    "operator",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, out: &mut String) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|end| end == "rs") {
            out.push_str(&fs::read_to_string(path).expect("sources can be read"));
        }
    }
}

/// Names of functions that have `test` in an attribute above them, or are in `proptest!`.
fn tests() -> BTreeSet<String> {
    let mut text = String::new();
    for folder in CODE {
        for part in ["src", "tests"] {
            let path = root().join(folder).join(part);
            if path.exists() {
                sources(&path, &mut text);
            }
        }
    }
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        let name = line
            .split_once("fn ")
            .filter(|(before, _)| before.is_empty() || *before == "async ")
            .map(|(_, rest)| rest.split('(').next().unwrap_or_default());
        match name {
            Some(name) if is_test => {
                names.insert(name.to_owned());
                is_test = false;
            }
            Some(_) => is_test = false,
            None => is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
        }
    }
    names
}

/// The rows of a table, each with its cells.
fn rows(table: &str) -> Vec<Vec<String>> {
    let path = root().join("docs").join(table);
    let text = fs::read_to_string(&path).expect("the table can be read");
    let is_row = |line: &&str| line.starts_with("| B") || line.starts_with("| D");
    text.lines()
        .filter(is_row)
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// Words between single backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_that_a_table_names_exists() {
    let tests = tests();
    assert!(tests.len() > 400, "{} tests found", tests.len());
    for table in TABLES {
        let rows = rows(table);
        assert!(rows.len() > 30, "{table} has {} rows", rows.len());
        for cells in rows.iter().filter(|cells| cells.len() > 5) {
            let missing: Vec<&str> = quoted(&cells[4])
                .filter(|name| !tests.contains(*name))
                .collect();
            assert!(
                missing.is_empty(),
                "{table}, row {}: there is no test {missing:?}; name one that shows it",
                cells[1]
            );
            assert!(
                quoted(&cells[4]).next().is_some(),
                "{table}, row {}: no test is named",
                cells[1]
            );
        }
    }
}

#[test]
fn every_incident_that_a_table_names_exists_and_every_incident_is_named() {
    let mut named = BTreeSet::new();
    for table in TABLES {
        for cells in rows(table).iter().filter(|cells| cells.len() > 6) {
            for link in cells[5].split("(incidents/").skip(1) {
                let page = link.split(')').next().unwrap_or_default();
                let path = root().join("docs/incidents").join(page);
                assert!(path.exists(), "{table}, row {}: no {page}", cells[1]);
                named.insert(page.to_owned());
            }
        }
    }
    let pages = fs::read_dir(root().join("docs/incidents")).expect("the folder can be read");
    for page in pages {
        let page = page.expect("it can be listed").file_name();
        let page = page.to_string_lossy().into_owned();
        assert!(
            page == "README.md" || named.contains(&page),
            "no table names docs/incidents/{page}"
        );
    }
}
