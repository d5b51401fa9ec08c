//! The reference of all fields, as Markdown.

use std::fmt::Write;

use serde_json::Value;
use wellcake_crds::rules::{self, Kind};
use wellcake_crds::schema;

const HEAD: &str = "# Fields

Made from the types in `crds/` by `cargo xtask gen`; do not edit.

Both kinds belong to `cache.wellcake.io` and are namespaced. `v1beta1` is stored; `v1alpha1` is served with the identical
schema, so either can be written and read. `kubectl explain vk.spec` shows the same texts.

A default in the table is written into the object by the API server. Where the table has none, the text says what is used
in its place; such a default depends on other fields and is never written back.

## Where a default is not what it seems

* **Standalone has one pod.** The schema's default for `replicas` is 3 in every topology, so a written 3 cannot be told
  from an absent field: for topology Standalone both mean one pod, 1 does too, and any other number is refused.
* **A storage block changes the persistence.** Without the block the profile decides (Cache `none`, Durable `both`). With
  a block that does not name `mode`, the schema's default `rdb` is written, for both profiles. Since the mode can never
  change, a Durable cluster with a storage block should say `mode: both`.
* **A size is never written by the schema.** A storage block without `size` gets the profile's value, 1Gi or 10Gi.
* **No auth block means a password.** Only `auth.enabled: false` turns it off.
* **`minAvailable` replaces `maxUnavailable`.** The default of one pod away holds only when neither is given.
* **An empty string counts as absent** wherever the text says \"also when empty\".
* **The status of a new object is `observedGeneration: -1`**, so that tools which read kstatus do not take an object that
  nobody has looked at for a finished one.

## Names

A ValkeyCluster's name has at most 40 characters, starts with a letter and holds lower-case letters, digits and `-`:
Services, StatefulSets, claims and labels are named after it and have limits of their own.
";

/// The whole page.
pub fn reference(definitions: &[Value; 2]) -> String {
    let mut page = HEAD.to_owned();
    for (definition, kind) in definitions.iter().zip([Kind::Cluster, Kind::Acl]) {
        let version = &definition["spec"]["versions"][0];
        let root = &version["schema"]["openAPIV3Schema"];
        let names = &definition["spec"]["names"];
        let short: Vec<_> = names["shortNames"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let _ = write!(
            page,
            "\n# {}\n\n{}\n",
            text(&names["kind"]),
            text(&root["description"])
        );
        let _ = writeln!(
            page,
            "\nShort names: `{}`. Columns: {}.",
            short.join("`, `"),
            columns(version)
        );
        for part in ["spec", "status"] {
            let _ = write!(
                page,
                "\n## {} {part}\n\n| Field | Type | Default | Allowed | |\n|---|---|---|---|---|\n",
                text(&names["kind"])
            );
            rows(&mut page, &root["properties"][part], part, part);
        }
        let _ = write!(
            page,
            "\n## {}: what is refused beyond that\n\n| Rule | Sentence |\n|---|---|\n",
            text(&names["kind"])
        );
        for rule in rules::all().filter(|rule| rule.kind == kind) {
            let _ = writeln!(page, "| {} | {} |", rule.id, rule.message);
        }
    }
    page
}

fn columns(version: &Value) -> String {
    let columns = version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten();
    columns
        .map(|column| {
            format!(
                "{} (`{}`)",
                text(&column["name"]),
                text(&column["jsonPath"])
            )
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn rows(page: &mut String, node: &Value, path: &str, part: &str) {
    let required: Vec<_> = node["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let short = path.trim_start_matches(part).trim_start_matches('.');
        let default = match (child.get("default"), required.contains(&name.as_str())) {
            (Some(default), _) => format!(
                "`{}`",
                default
                    .as_str()
                    .map_or_else(|| default.to_string(), str::to_owned)
            ),
            (None, true) if part == "spec" => "required".to_owned(),
            (None, _) => String::new(),
        };
        let words = text(&child["description"])
            .replace('|', "\\|")
            .replace('\n', " ");
        let _ = writeln!(
            page,
            "| `{short}` | {} | {default} | {} | {words} |",
            type_of(child, &path),
            allowed(child)
        );
        if !schema::EMBEDDED.contains(&path.as_str()) && name != "conditions" {
            rows(page, child, &path, part);
            if let Some(items) = child.get("items") {
                rows(page, items, &format!("{path}[]"), part);
            }
        }
    }
}

fn type_of(node: &Value, path: &str) -> String {
    if schema::EMBEDDED.contains(&path) {
        return "as in Kubernetes".to_owned();
    }
    if node.get("x-kubernetes-int-or-string").is_some() {
        return "number or string".to_owned();
    }
    match (text(&node["type"]), text(&node["format"])) {
        ("array", _) => format!("list of {}s", text(&node["items"]["type"])),
        ("object", _) if node.get("additionalProperties").is_some() => "map of strings".to_owned(),
        ("string", "date-time") => "time".to_owned(),
        (kind, "int32" | "int64") => format!("{kind} ({})", text(&node["format"])),
        (kind, _) => kind.to_owned(),
    }
}

fn allowed(node: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(words) = node["enum"].as_array() {
        parts.push(
            words
                .iter()
                .map(|word| format!("`{}`", text(word)))
                .collect::<Vec<_>>()
                .join(", "),
        );
    }
    match (node.get("minimum"), node.get("maximum")) {
        (Some(min), Some(max)) => parts.push(format!("{min} to {max}")),
        (Some(min), None) => parts.push(format!("from {min}")),
        (None, Some(max)) => parts.push(format!("to {max}")),
        (None, None) => {}
    }
    for (bound, words) in [
        ("maxLength", "characters"),
        ("maxItems", "entries"),
        ("maxProperties", "entries"),
    ] {
        if let Some(max) = node.get(bound) {
            parts.push(format!("at most {max} {words}"));
        }
    }
    parts.join("; ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
