//! What the schema promises, read off the definitions without a server.

use serde_json::{Value, json};
use wellcake_crds::{annotations, crds, crds_yaml, names, rules, schema, yaml};

/// What a client-side `kubectl apply` can keep in its annotation.
const CLIENT_SIDE_APPLY: usize = 256 * 1024;

fn schemas() -> Vec<(String, Value)> {
    let all = schema::definitions().into_iter().flat_map(|definition| {
        let kind = definition["spec"]["names"]["kind"]
            .as_str()
            .expect("kind")
            .to_owned();
        let versions = definition["spec"]["versions"]
            .as_array()
            .expect("versions")
            .clone();
        versions
            .into_iter()
            .map(move |version| (kind.clone(), version["schema"]["openAPIV3Schema"].clone()))
    });
    all.collect()
}

/// Calls `check` for each property of ours with its path; Kubernetes' own types are visited, but not entered.
fn each_property(node: &Value, path: &str, check: &mut dyn FnMut(&str, &Value)) {
    if schema::EMBEDDED.contains(&path.trim_end_matches("[]")) || path == "metadata" {
        return;
    }
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{name}");
        check(&path, child);
        each_property(child, &path, check);
    }
    if let Some(items) = node.get("items") {
        each_property(items, &format!("{path}[]"), check);
    }
}

fn problems(mut find: impl FnMut(&str, &Value) -> Option<&'static str>) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, schema) in schemas() {
        each_property(&schema, "", &mut |path, node| {
            if let Some(problem) = find(path, node) {
                found.push(format!("{kind}.{path}: {problem}"));
            }
        });
    }
    found
}

#[test]
fn every_field_of_ours_has_a_description_in_sentences() {
    let found = problems(|path, node| {
        let text = node["description"].as_str().unwrap_or_default();
        let exempt = path == "metadata" || path.ends_with("lastTransitionTime");
        match text {
            "" if !exempt => Some("has no description"),
            text if !exempt && text.len() < 15 => Some("is described too briefly"),
            text if path.starts_with("spec") && !text.ends_with('.') => {
                Some("does not end in a sentence")
            }
            _ => None,
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_optional_field_of_a_spec_names_its_default() {
    let mut required = std::collections::BTreeSet::new();
    for (kind, schema) in schemas() {
        each_property(
            &json!({"properties": {"spec": schema["properties"]["spec"]}}),
            "",
            &mut |path, node| {
                let names = node["required"]
                    .as_array()
                    .or(node["items"]["required"].as_array());
                for name in names.into_iter().flatten().filter_map(Value::as_str) {
                    let items = if node.get("items").is_some() {
                        "[]"
                    } else {
                        ""
                    };
                    required.insert(format!("{kind}.{path}{items}.{name}"));
                }
            },
        );
    }
    let mut found = Vec::new();
    for (kind, schema) in schemas() {
        each_property(&schema, "", &mut |path, node| {
            let text = node["description"].as_str().unwrap_or_default();
            let spoken = ["Default", "Required", "required"]
                .iter()
                .any(|word| text.contains(word));
            if path.starts_with("spec.") && !spoken && !required.contains(&format!("{kind}.{path}"))
            {
                found.push(format!("{kind}.{path}"));
            }
        });
    }
    assert!(
        found.is_empty(),
        "these say neither what is used when they are absent nor when they are needed: {found:#?}"
    );
}

#[test]
fn everything_that_a_rule_may_walk_is_bounded() {
    let found = problems(|path, node| {
        let scalar_bound = ["maxLength", "enum", "format", "x-kubernetes-int-or-string"];
        let embedded = schema::EMBEDDED.contains(&path);
        match node["type"].as_str() {
            Some("array") if node.get("maxItems").is_none() => Some("a list without maxItems"),
            Some("object")
                if node.get("additionalProperties").is_some()
                    && node.get("maxProperties").is_none() =>
            {
                Some("a map without maxProperties")
            }
            Some("string")
                if path.starts_with("spec")
                    && !embedded
                    && !scalar_bound.iter().any(|b| node.get(b).is_some()) =>
            {
                Some("a string without maxLength")
            }
            Some("integer")
                if path.starts_with("spec")
                    && (node.get("minimum").is_none() || node.get("maximum").is_none()) =>
            {
                Some("a number without bounds")
            }
            _ => None,
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn nothing_is_nullable_or_untyped_and_nothing_unknown_is_kept() {
    for (kind, schema) in schemas() {
        let text = schema.to_string();
        for word in [
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "$ref",
            "\"title\":\"",
        ] {
            assert!(!text.contains(word), "{kind} has {word}");
        }
    }
}

#[test]
fn embedded_types_bring_no_descriptions_of_their_own() {
    for (kind, mut schema) in schemas() {
        for path in schema::EMBEDDED {
            let Some(node) = schema::node_at(&mut schema, path) else {
                continue;
            };
            let own = usize::from(node.get("description").is_some());
            assert_eq!(own, 1, "{kind}.{path} is described");
            assert_eq!(
                node.to_string().matches("\"description\":\"").count(),
                own,
                "{kind}.{path}"
            );
        }
    }
}

#[test]
fn both_versions_have_the_identical_schema_and_columns() {
    for definition in schema::definitions() {
        let versions = definition["spec"]["versions"].as_array().expect("versions");
        assert_eq!(versions.len(), 2);
        for part in [
            "schema",
            "additionalPrinterColumns",
            "subresources",
            "served",
        ] {
            assert_eq!(versions[0][part], versions[1][part], "{part}");
        }
        assert_eq!(
            [&versions[0]["storage"], &versions[1]["storage"]],
            [&json!(true), &json!(false)]
        );
    }
}

#[test]
fn each_definition_fits_a_client_side_apply() {
    for definition in schema::definitions() {
        let (text, json) = (
            yaml::to_yaml(&definition).len(),
            definition.to_string().len(),
        );
        println!(
            "{}: {text} bytes of YAML, {json} of JSON",
            definition["metadata"]["name"]
        );
        assert!(
            text < CLIENT_SIDE_APPLY && json < CLIENT_SIDE_APPLY,
            "{text} and {json} of {CLIENT_SIDE_APPLY}"
        );
    }
}

#[test]
fn the_yaml_stream_is_the_definitions() {
    let stream = crds_yaml();
    let documents: Vec<_> = stream
        .split("---\n")
        .filter(|text| !text.is_empty())
        .collect();
    let parsed: Vec<Value> = documents
        .iter()
        .map(|text| serde_saphyr::from_str(text).expect("YAML"))
        .collect();
    assert!(
        parsed == schema::definitions(),
        "reading the YAML back gives something else"
    );
    let mut typed = json!(crds());
    whole_numbers(&mut typed);
    assert!(
        json!(parsed) == typed,
        "the Kubernetes type holds something else"
    );
}

/// The Kubernetes type keeps bounds as floating-point numbers; 1.0 and 1 are the same bound.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            *value = json!(number.as_f64().expect("a float") as i64)
        }
        _ => {}
    }
}

#[test]
fn each_rule_is_unique_and_blames_a_field_that_exists() {
    let [cluster, acl] = schema::definitions();
    let mut ids = std::collections::BTreeSet::new();
    for rule in rules::all() {
        assert!(ids.insert(rule.id), "{} stands twice", rule.id);
        assert!(
            rule.message.len() > 30 && rule.message.len() < 400,
            "{}: {}",
            rule.id,
            rule.message
        );
        let definition = if rule.kind == rules::Kind::Cluster {
            &cluster
        } else {
            &acl
        };
        let mut root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let node = schema::node_at(&mut root, rule.at).expect("the rule's place exists");
        assert!(
            schema::node_at(node, rule.field).is_some(),
            "{}: {}",
            rule.id,
            rule.field
        );
    }
}

#[test]
fn the_rule_about_reserved_users_knows_all_of_them() {
    let rule = rules::all()
        .find(|rule| rule.id == "user-reserved")
        .expect("the rule exists");
    for user in names::RESERVED_USERS {
        assert!(
            rule.cel.contains(&format!("'{user}'")) && rule.message.contains(user),
            "{user}"
        );
    }
}

#[test]
fn descriptions_name_the_annotations_that_exist() {
    let [cluster, _] = schema::definitions();
    let text = cluster.to_string();
    for key in [
        annotations::RESHARD,
        annotations::FAILOVER,
        annotations::PROMOTE,
        annotations::ROTATE_PASSWORD,
    ] {
        assert!(text.contains(key), "{key}");
    }
}
