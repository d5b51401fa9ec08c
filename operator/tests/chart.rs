//! The chart and the code speak of the same things.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;
use serde_json::Value;
use wellcake_operator::flags::CommandLine;

fn chart(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../helm/valkey-operator")
        .join(path)
}

fn yaml(path: &str) -> Value {
    let text = fs::read_to_string(chart(path)).expect("the chart has this file");
    serde_saphyr::from_str(&text).expect("it is YAML")
}

fn templates() -> String {
    let files = fs::read_dir(chart("templates")).expect("the chart has templates");
    files
        .map(|file| {
            fs::read_to_string(file.expect("it can be listed").path()).expect("it can be read")
        })
        .collect()
}

/// Paths of the values that have no values beneath them.
fn leaves(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value.as_object() {
        Some(map) if !map.is_empty() => {
            for (key, inner) in map {
                leaves(inner, &format!("{path}.{key}"), out);
            }
        }
        _ => {
            out.insert(path.to_owned());
        }
    }
}

#[test]
fn every_value_is_used_by_a_template() {
    let mut paths = BTreeSet::new();
    leaves(&yaml("values.yaml"), ".Values", &mut paths);
    let templates = templates();
    let unused: Vec<_> = paths
        .iter()
        // Whoever prints a whole object prints what is in it.
        .filter(|path| {
            !path
                .match_indices('.')
                .skip(2)
                .map(|(at, _)| &path[..at])
                .chain([path.as_str()])
                .any(|part| {
                    templates.contains(&format!("{part} "))
                        || templates.contains(&format!("{part})"))
                })
        })
        .collect();
    assert!(unused.is_empty(), "no template uses {unused:?}");
}

#[test]
fn the_schema_describes_every_value_and_allows_no_other() {
    let text = fs::read_to_string(chart("values.schema.json")).expect("the chart has a schema");
    let schema: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut paths = BTreeSet::new();
    leaves(&yaml("values.yaml"), "", &mut paths);
    for path in paths {
        let mut at = &schema;
        for key in path.split('.').skip(1) {
            // Whatever is defined apart needs no look inside.
            if at.get("$ref").is_some() {
                break;
            }
            assert_eq!(
                at["additionalProperties"],
                Value::Bool(false),
                "above {key} of {path}"
            );
            at = at["properties"]
                .get(key)
                .unwrap_or_else(|| panic!("{path} is not in the schema"));
        }
    }
}

#[test]
fn the_deployment_sets_variables_that_the_operator_reads() {
    let command = CommandLine::command();
    let run = command.find_subcommand("run").expect("run exists");
    let read: BTreeSet<String> = run
        .get_arguments()
        .filter_map(|flag| Some(flag.get_env()?.to_string_lossy().into_owned()))
        .collect();
    let templates = templates();
    let set: BTreeSet<String> = templates
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- name: VALKEY_OPERATOR_"))
        .map(|name| format!("VALKEY_OPERATOR_{name}"))
        .collect();
    let namespace = BTreeSet::from(["VALKEY_OPERATOR_LEASE_NAMESPACE".to_owned()]);
    assert_eq!(set, read.difference(&namespace).cloned().collect());
}

#[test]
fn the_chart_installs_the_version_that_it_comes_with() {
    let chart = yaml("Chart.yaml");
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}
