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

use wellcake_core::facts::{Object, Ordinal};
use wellcake_core::reasons::{Nature, Reason};
use wellcake_core::render::{self, Owner};
use wellcake_crds::annotations::APPLIED_HASH;
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

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

/// Specs of which the digests of what pods are made from are pinned: one for each thing that a template depends on.
const PINNED: [(&str, &str); 14] = [
    ("nothing but defaults", "{}"),
    ("`topology: Standalone`", r#"{"topology":"Standalone"}"#),
    ("`profile: Durable`", r#"{"profile":"Durable"}"#),
    ("`storage.mode: none`", r#"{"storage":{"mode":"none"}}"#),
    ("`storage.mode: rdb`", r#"{"storage":{"mode":"rdb"}}"#),
    ("`storage.mode: aof`", r#"{"storage":{"mode":"aof"}}"#),
    ("`storage.mode: both`", r#"{"storage":{"mode":"both"}}"#),
    (
        "`storage.medium: Memory`",
        r#"{"storage":{"medium":"Memory"}}"#,
    ),
    (
        "`image: valkey/valkey:9.1`",
        r#"{"image":"valkey/valkey:9.1"}"#,
    ),
    (
        "a memory limit",
        r#"{"resources":{"limits":{"memory":"1Gi"}}}"#,
    ),
    (
        "a directive of the start",
        r#"{"config":{"io-threads":"2"}}"#,
    ),
    (
        "a directive of running servers",
        r#"{"config":{"timeout":"60"}}"#,
    ),
    ("a node selector", r#"{"nodeSelector":{"disk":"fast"}}"#),
    ("no password", r#"{"auth":{"enabled":false}}"#),
];

/// Digests of templates and files.
fn templates() -> String {
    let mut text = String::from(
        "# What pods are made from\n\nDigests of the pod template and of the file's part that only a start takes, for some specs. \
         A version of the operator in which one of them is another one does not replace pods by itself: the ValkeyCluster tells it \
         with condition `UpToDate`, and the template comes with the next change of what pods are made from or with a new value of \
         the annotation `valkey.wellcake.io/restart`.\n\n| spec | template | file |\n|---|---|---|\n",
    );
    let name = ClusterName::parse("web").expect("a name");
    let owner = Owner {
        name: &name,
        namespace: "shop",
        uid: "0b5c",
        restart: None,
        asleep: false,
    };
    for (title, spec) in PINNED {
        let spec: ValkeyClusterSpec = serde_json::from_str(spec).expect("a spec");
        let set = render::object(Object::StatefulSet, &owner, &spec, Ordinal(0));
        let set = set.expect("a StatefulSet");
        let hash = set["metadata"]["annotations"][APPLIED_HASH].as_str();
        let hash: String = hash.expect("a digest").chars().take(16).collect();
        let file = render::config_digest(&spec);
        text.push_str(&format!("| {title} | `{hash}` | `{file}` |\n"));
    }
    text
}

#[test]
fn a_template_that_is_another_one_is_seen_in_review() {
    check_or_write("docs/reference/templates.md", &templates());
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
