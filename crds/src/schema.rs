//! The CustomResourceDefinitions as the API server gets them: the schema that is derived from the types, made
//! structural, plus the rules.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::rules::{self, Kind, Rule};
use crate::{v1alpha1, v1beta1};

/// Fields whose schema is Kubernetes' own. Their inner descriptions are left out: `kubectl explain pod.spec` has them,
/// and with them the definition would not fit the annotation of a client-side `kubectl apply` (256 KiB).
pub const EMBEDDED: [&str; 7] = [
    "spec.resources",
    "spec.tolerations",
    "spec.affinity",
    "spec.topologySpreadConstraints",
    "spec.podSecurityContext",
    "spec.containerSecurityContext",
    "spec.networkPolicy.allowFrom",
];

/// Where quantities stand; `{}` steps into a map's values.
const QUANTITIES: [&str; 3] = [
    "spec.storage.size",
    "spec.resources.limits{}",
    "spec.resources.requests{}",
];

/// What a quantity looks like (the form that Kubernetes' own generator of definitions writes).
const QUANTITY: &str =
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// Both definitions as JSON: ValkeyCluster, then ValkeyACL.
pub fn definitions() -> [Value; 2] {
    [
        definition(Kind::Cluster, json!(v1beta1::ValkeyCluster::crd())),
        definition(Kind::Acl, json!(v1beta1::ValkeyACL::crd())),
    ]
}

/// Both definitions as Kubernetes types: ValkeyCluster, then ValkeyACL.
///
/// # Panics
/// Never for these definitions; a test builds them.
pub fn crds() -> [CustomResourceDefinition; 2] {
    definitions().map(|crd| match serde_json::from_value(crd) {
        Ok(crd) => crd,
        Err(why) => {
            unreachable!("a definition that was made from the type is not of the type: {why}")
        }
    })
}

fn definition(kind: Kind, mut crd: Value) -> Value {
    let mut stored = crd["spec"]["versions"][0].take();
    let schema = &mut stored["schema"]["openAPIV3Schema"];
    tidy(schema);
    for path in EMBEDDED {
        if let Some(node) = node_at(schema, path) {
            strip_inner_descriptions(node);
        }
    }
    for path in QUANTITIES {
        if let Some(node) = node_at(schema, path) {
            node["pattern"] = json!(QUANTITY);
        }
    }
    schema["properties"]["metadata"] = metadata_schema();
    schema["properties"]["status"]["default"] = json!({ "observedGeneration": -1 });
    for rule in rules::all().filter(|rule| rule.kind == kind) {
        insert(schema, rule);
    }
    let mut served = stored.clone();
    served["name"] = json!(v1alpha1::VERSION);
    served["storage"] = json!(false);
    crd["spec"]["versions"] = json!([stored, served]);
    crd["spec"]["conversion"] = json!({ "strategy": "None" });
    crd
}

/// Bounds that CEL's cost estimate needs; the API server itself allows no longer names.
fn metadata_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 253 },
            "generateName": { "type": "string", "maxLength": 253 },
        },
    })
}

/// Drops `nullable` (an explicit null is then pruned or defaulted like an absent field, and `has()` in a rule means what
/// it says) and titles, unwraps the lines of descriptions, and writes whole numbers without a fraction.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("nullable");
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text
                    .split("\n\n")
                    .map(|par| par.replace('\n', " "))
                    .collect::<Vec<_>>()
                    .join("\n\n");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Number(number) => {
            if let Some(whole) = number
                .as_f64()
                .filter(|f| f.fract() == 0.0 && number.is_f64())
            {
                *schema = json!(whole as i64);
            }
        }
        _ => {}
    }
}

/// The schema node at a dotted path of property names; `[]` at the end of a name steps into a list's items, `{}` into a
/// map's values.
pub fn node_at<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut node = schema;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        node = node
            .get_mut("properties")?
            .get_mut(name.trim_end_matches(['[', ']', '{', '}']))?;
        if name.ends_with("[]") {
            node = node.get_mut("items")?;
        } else if name.ends_with("{}") {
            node = node.get_mut("additionalProperties")?;
        }
    }
    Some(node)
}

/// Removes all descriptions beneath a node, not the node's own.
fn strip_inner_descriptions(node: &mut Value) {
    let Value::Object(map) = node else { return };
    for (key, child) in map.iter_mut() {
        match key.as_str() {
            "properties" => children(child, strip),
            "items" | "additionalProperties" => strip(child),
            _ => {}
        }
    }
}

fn strip(node: &mut Value) {
    if let Value::Object(map) = node {
        map.remove("description");
    }
    strip_inner_descriptions(node);
}

fn children(properties: &mut Value, visit: fn(&mut Value)) {
    if let Value::Object(map) = properties {
        map.values_mut().for_each(visit);
    }
}

fn insert(schema: &mut Value, rule: &Rule) {
    let Some(node) = node_at(schema, rule.at) else {
        unreachable!(
            "rule {} stands on {}, which the schema does not have",
            rule.id, rule.at
        )
    };
    let mut entry = Map::new();
    entry.insert("rule".to_owned(), json!(rule.cel));
    entry.insert("message".to_owned(), json!(rule.message));
    if !rule.field.is_empty() {
        entry.insert("fieldPath".to_owned(), json!(rule.field));
    }
    match node["x-kubernetes-validations"].as_array_mut() {
        Some(list) => list.push(Value::Object(entry)),
        None => node["x-kubernetes-validations"] = json!([entry]),
    }
}
