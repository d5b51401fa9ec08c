//! Objects of Kubernetes as the API server keeps them: one version counter, a log that watches read, optimistic locking.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use wellcake_crds::v1beta1::GROUP;

/// Namespace of everything.
pub const NAMESPACE: &str = "shop";

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    ValkeyCluster,
    Pod,
    Claim,
    Node,
    Service,
    StatefulSet,
    Budget,
    Secret,
    ConfigMap,
    Event,
}

impl Kind {
    /// By the plural in a path.
    pub fn parse(plural: &str) -> Option<Self> {
        Some(match plural {
            "valkeyclusters" => Self::ValkeyCluster,
            "pods" => Self::Pod,
            "persistentvolumeclaims" => Self::Claim,
            "nodes" => Self::Node,
            "services" => Self::Service,
            "statefulsets" => Self::StatefulSet,
            "poddisruptionbudgets" => Self::Budget,
            "secrets" => Self::Secret,
            "configmaps" => Self::ConfigMap,
            "events" => Self::Event,
            _ => return None,
        })
    }

    /// `apiVersion` and `kind`.
    pub fn types(self) -> (String, &'static str) {
        let (version, kind) = match self {
            Self::ValkeyCluster => return (format!("{GROUP}/v1beta1"), "ValkeyCluster"),
            Self::Pod => ("v1", "Pod"),
            Self::Claim => ("v1", "PersistentVolumeClaim"),
            Self::Node => ("v1", "Node"),
            Self::Service => ("v1", "Service"),
            Self::StatefulSet => ("apps/v1", "StatefulSet"),
            Self::Budget => ("policy/v1", "PodDisruptionBudget"),
            Self::Secret => ("v1", "Secret"),
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Event => ("events.k8s.io/v1", "Event"),
        };
        (version.to_owned(), kind)
    }

    /// Whether `metadata.generation` counts changes of its spec.
    const fn has_generation(self) -> bool {
        matches!(self, Self::ValkeyCluster | Self::StatefulSet | Self::Budget)
    }
}

/// A change as watches see it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Version of the object that it made.
    pub version: u64,
    /// When it was made, in milliseconds.
    pub at: u64,
    /// Of what.
    pub kind: Kind,
    /// The line of a watch.
    pub line: Bytes,
}

/// All objects.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Version of the newest change.
    pub version: u64,
    live: BTreeMap<(Kind, String), Value>,
    /// All changes, oldest first.
    pub log: Vec<Change>,
}

impl Objects {
    /// An object.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.live.get(&(kind, name.to_owned()))
    }

    /// All of a kind that have a label, `key=value`.
    pub fn all<'a>(&'a self, kind: Kind, labels: &'a [(String, String)]) -> Vec<&'a Value> {
        let of_kind = self.live.iter().filter(|((of, _), _)| *of == kind);
        let has = |object: &Value, (key, value): &(String, String)| {
            let found = object
                .pointer("/metadata/labels")
                .and_then(|all| all.get(key));
            found.and_then(Value::as_str) == Some(value)
        };
        of_kind
            .map(|(_, object)| object)
            .filter(|object| labels.iter().all(|label| has(object, label)))
            .collect()
    }

    /// Creates or replaces an object at a moment. One that is the same stays as it is (no new version:
    /// `k8s.io/apiserver/pkg/storage/etcd3/store.go: GuaranteedUpdate`). Answers what is there then.
    pub fn put(&mut self, kind: Kind, name: &str, object: Value, at: u64) -> Value {
        let before = self.get(kind, name).cloned();
        let mut object = with_identity(kind, name, object, before.as_ref(), self.version, at);
        if let Some(before) = &before {
            let version = before.pointer("/metadata/resourceVersion").cloned();
            set(&mut object, "resourceVersion", version.unwrap_or_default());
            if object == *before {
                return object;
            }
        }
        self.version += 1;
        set(
            &mut object,
            "resourceVersion",
            json!(self.version.to_string()),
        );
        let what = if before.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        self.tell(kind, what, &object, at);
        self.live.insert((kind, name.to_owned()), object.clone());
        object
    }

    /// Takes an object away.
    pub fn delete(&mut self, kind: Kind, name: &str, at: u64) {
        if let Some(mut object) = self.live.remove(&(kind, name.to_owned())) {
            self.version += 1;
            set(
                &mut object,
                "resourceVersion",
                json!(self.version.to_string()),
            );
            self.tell(kind, "DELETED", &object, at);
        }
    }

    fn tell(&mut self, kind: Kind, what: &str, object: &Value, at: u64) {
        let line = json!({ "type": what, "object": object }).to_string() + "\n";
        self.log.push(Change {
            version: self.version,
            at,
            kind,
            line: Bytes::from(line),
        });
    }
}

/// What the API server adds to an object: types, name, uid, time of creation, generation.
fn with_identity(
    kind: Kind,
    name: &str,
    mut object: Value,
    before: Option<&Value>,
    version: u64,
    at: u64,
) -> Value {
    let (api_version, kind_name) = kind.types();
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), json!(api_version));
        object.insert("kind".to_owned(), json!(kind_name));
    }
    let of = |object: Option<&Value>, key: &str| {
        object.and_then(|it| it.get("metadata")?.get(key)).cloned()
    };
    let given = of(Some(&object), "uid");
    let uid = of(before, "uid").or(given);
    set(&mut object, "name", json!(name));
    if kind != Kind::Node {
        set(&mut object, "namespace", json!(NAMESPACE));
    }
    set(
        &mut object,
        "uid",
        uid.unwrap_or_else(|| json!(format!("object-{version}"))),
    );
    let created = of(before, "creationTimestamp").unwrap_or_else(|| json!(time(at)));
    set(&mut object, "creationTimestamp", created);
    if kind.has_generation() {
        let generation = of(before, "generation")
            .and_then(|it| it.as_i64())
            .unwrap_or(0);
        let same = before.is_some_and(|before| before.get("spec") == object.get("spec"));
        set(
            &mut object,
            "generation",
            json!(generation + i64::from(!same)),
        );
    }
    object
}

/// Sets a field of the metadata.
pub fn set(object: &mut Value, key: &str, value: Value) {
    if object.get("metadata").is_none()
        && let Some(object) = object.as_object_mut()
    {
        object.insert("metadata".to_owned(), Value::Object(Map::new()));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(key.to_owned(), value);
    }
}

/// A time as Kubernetes writes it, in whole seconds.
pub fn time(at: u64) -> String {
    let seconds = i64::try_from(at / 1000).expect("a time of this age");
    jiff::Timestamp::from_second(seconds)
        .expect("a time of this age")
        .to_string()
}

/// RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
