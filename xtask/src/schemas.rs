//! What the versions of Kubernetes that the chart is made for know: every kind with its fields, as the module
//! `k8s.io/client-go` of each version describes it for server-side apply.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::command::output;

/// Minor versions of Kubernetes 1 that the chart is made for.
pub const MINORS: std::ops::RangeInclusive<u32> = 33..=37;
const FILE: &str = "applyconfigurations/internal/internal.go";
const BEGIN: &str = "typed.YAMLObject(`";

/// The kinds of one version.
pub struct Schema {
    types: BTreeMap<String, Atom>,
}

#[derive(Deserialize)]
struct Definitions {
    types: Vec<Definition>,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    #[serde(flatten)]
    atom: Atom,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Atom {
    scalar: Option<String>,
    list: Option<Box<Elements>>,
    map: Option<Box<Elements>>,
    named_type: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Elements {
    fields: Vec<Field>,
    element_type: Option<Atom>,
}

#[derive(Clone, Debug, Deserialize)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    of: Atom,
}

impl Schema {
    /// The schema of Kubernetes `1.minor`, from the cache of Go modules.
    pub fn of(minor: u32) -> Result<Self> {
        let module = format!("k8s.io/client-go@v0.{minor}.0");
        let told = output(Command::new("go").args(["mod", "download", "-json", &module]))
            .with_context(|| format!("cannot download {module}"))?;
        let told: Value = serde_json::from_str(&told)?;
        let dir = told["Dir"].as_str().context("go names no directory")?;
        let path = std::path::Path::new(dir).join(FILE);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(source: &str) -> Result<Self> {
        let begin = source.find(BEGIN).context("no schema in it")? + BEGIN.len();
        let rest = source.get(begin..).unwrap_or_default();
        let end = rest.find('`').context("the schema has no end")?;
        let definitions: Definitions = serde_saphyr::from_str(rest.get(..end).unwrap_or_default())?;
        let types = definitions.types.into_iter();
        Ok(Self {
            types: types.map(|it| (it.name, it.atom)).collect(),
        })
    }

    /// What is wrong with an object. Kinds of other groups than Kubernetes's own are not judged.
    pub fn problems(&self, object: &Value) -> Vec<String> {
        let (Some(api), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str())
        else {
            return vec!["an object without apiVersion or kind".to_owned()];
        };
        let (group, version) = api.split_once('/').unwrap_or(("core", api));
        let group = group.strip_suffix(".k8s.io").unwrap_or(group);
        let group = group.split('.').next().unwrap_or(group);
        let foreign =
            api.contains("wellcake.io") || group == "apiextensions" || api.contains(".coreos.com");
        if foreign {
            return Vec::new();
        }
        let name = format!("io.k8s.api.{group}.{version}.{kind}");
        let mut problems = Vec::new();
        if self.types.contains_key(&name) {
            let atom = Atom {
                named_type: Some(name),
                ..Atom::default()
            };
            self.check(object, &atom, kind, &mut problems);
        } else {
            problems.push(format!("{api} {kind} is not known"));
        }
        problems
    }

    fn check(&self, value: &Value, atom: &Atom, path: &str, problems: &mut Vec<String>) {
        if let Some(name) = &atom.named_type {
            match self.types.get(name) {
                Some(named) => self.check(value, named, path, problems),
                None => problems.push(format!("{path} is of the unknown type {name}")),
            }
            return;
        }
        let scalar = atom.scalar.as_deref();
        match value {
            Value::Null => {}
            Value::Object(map) => match &atom.map {
                Some(elements) => {
                    for (key, value) in map {
                        let path = format!("{path}.{key}");
                        let field = elements.fields.iter().find(|field| field.name == *key);
                        match field
                            .map(|field| &field.of)
                            .or(elements.element_type.as_ref())
                        {
                            Some(atom) => self.check(value, atom, &path, problems),
                            None => problems.push(format!("{path} is not known")),
                        }
                    }
                }
                None => problems.push(format!("{path} is no map")),
            },
            Value::Array(list) => {
                match atom.list.as_ref().and_then(|it| it.element_type.as_ref()) {
                    Some(element) => {
                        for (at, value) in list.iter().enumerate() {
                            self.check(value, element, &format!("{path}[{at}]"), problems);
                        }
                    }
                    None => problems.push(format!("{path} is no list")),
                }
            }
            Value::String(_) if matches!(scalar, Some("string" | "untyped")) => {}
            Value::Number(_) if matches!(scalar, Some("numeric" | "untyped")) => {}
            Value::Bool(_) if matches!(scalar, Some("boolean" | "untyped")) => {}
            other => problems.push(format!("{path} is {other}, expected {scalar:?}")),
        }
    }
}

/// Judges documents by the schema of every version; `render` gives them for one.
pub fn judge(render: impl Fn(u32) -> Result<String>) -> Result<()> {
    for minor in MINORS {
        let schema = Schema::of(minor)?;
        let text = render(minor)?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .with_context(|| format!("what is rendered for 1.{minor} is no YAML"))?;
        let problems: Vec<String> = documents
            .iter()
            .filter(|it| !it.is_null())
            .flat_map(|it| schema.problems(it))
            .collect();
        if !problems.is_empty() {
            bail!(
                "Kubernetes 1.{minor} does not take this: {}",
                problems.join("; ")
            );
        }
        println!(
            "Kubernetes 1.{minor} knows every field of {} objects",
            documents.len()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SOURCE: &str = "var schemaYAML = typed.YAMLObject(`types:
- name: io.k8s.api.core.v1.Service
  map:
    fields:
    - name: apiVersion
      type:
        scalar: string
    - name: kind
      type:
        scalar: string
    - name: ports
      type:
        list:
          elementType:
            namedType: Port
          elementRelationship: associative
          keys:
          - port
    - name: labels
      type:
        map:
          elementType:
            scalar: string
- name: Port
  map:
    fields:
    - name: port
      type:
        scalar: numeric
      default: 0
`)";

    fn problems(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Service", "labels": {"a": "b"}, "ports": [{"port": 6379}],
        });
        change(&mut object);
        Schema::parse(SOURCE).expect("a schema").problems(&object)
    }

    #[test]
    fn what_is_known_is_taken_and_what_is_not_is_named() {
        assert!(problems(|_| {}).is_empty());
        assert_eq!(
            problems(|it| it["ports"][0]["name"] = json!("x")),
            ["Service.ports[0].name is not known"]
        );
        assert_eq!(
            problems(|it| it["ports"][0]["port"] = json!("6379")),
            ["Service.ports[0].port is \"6379\", expected Some(\"numeric\")"]
        );
        assert_eq!(
            problems(|it| it["labels"] = json!([])),
            ["Service.labels is no list"]
        );
        assert_eq!(
            problems(|it| it["apiVersion"] = json!("v2")),
            ["v2 Service is not known"]
        );
    }
}
