//! Files that are made from the code are what the code makes of them. `GENERATE=1 cargo test -p wellcake-core --test
//! generated` writes them.

// Lints see tests only in functions marked as such, not in their helpers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use std::fs;
use std::path::Path;

use wellcake_core::reasons::{Nature, Reason};

#[test]
fn the_reference_of_reasons_is_what_the_code_says() {
    check_or_write("docs/reference/reasons.md", &reasons());
}

fn reasons() -> String {
    let natures = [
        (
            Nature::Refusal,
            "Refusals",
            "The operator does not go on until a person or the world changes something. \
         Events of type Warning, and the conditions, carry the reason.",
        ),
        (
            Nature::Wait,
            "Waits",
            "The operator waits for something that comes by itself. The condition Progressing \
         carries the reason.",
        ),
        (
            Nature::Deed,
            "Deeds",
            "The operator did something. Events of type Normal carry the reason.",
        ),
        (
            Nature::Upkeep,
            "Upkeep",
            "Small steps, without an event: in metrics, logs and traces only.",
        ),
    ];
    let mut text = "<!-- Made from core/src/reasons.rs by `cargo xtask gen`. -->\n# Reasons\n\nWhy the operator does, \
                    waits for or refuses something, as it appears in conditions, events, metrics, logs and traces.\n"
        .to_owned();
    for (nature, title, what) in natures {
        text.push_str(&format!(
            "\n## {title}\n\n{what}\n\n| Reason | Meaning |\n|---|---|\n"
        ));
        for reason in Reason::ALL
            .iter()
            .filter(|reason| reason.nature() == nature)
        {
            let words: Vec<_> = reason.doc().split_whitespace().collect();
            // A pipe would end the cell.
            let meaning = words.join(" ").replace('|', "\\|");
            text.push_str(&format!("| `{}` | {meaning} |\n", reason.as_str()));
        }
    }
    text
}

/// With GENERATE=1 writes the file, else fails if it differs from the text.
fn check_or_write(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var("GENERATE").is_ok_and(|value| value == "1") {
        fs::create_dir_all(file.parent().expect("a file is in a folder"))
            .expect("the work tree can be written");
        fs::write(&file, text).expect("the work tree can be written");
        return;
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == text,
        "{path} is stale; run `cargo xtask gen` and commit what it writes"
    );
}
