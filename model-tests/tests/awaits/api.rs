//! The API server: what it answers to the requests that the interpreter sends.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};
use wellcake_core::facts::Ordinal;

use crate::cluster::Cluster;
use crate::objects::{Kind, merge, set};

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: String,
    /// What it is about.
    pub kind: Kind,
    /// Name of the object, if it is about one.
    pub name: Option<String>,
    /// Subresource.
    pub part: Option<String>,
    /// Query.
    pub query: BTreeMap<String, String>,
    /// Media type of the body.
    pub media: String,
    /// Body.
    pub body: Value,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub code: u16,
    /// Body.
    pub body: Bytes,
}

impl Request {
    /// From the parts of an HTTP request: `/api/v1/…` or `/apis/GROUP/VERSION/…`, then `namespaces/NAMESPACE` or nothing. `None`
    /// for a kind that is not known here.
    pub fn read(method: &str, uri: &http::Uri, media: &str, body: &[u8]) -> Option<Self> {
        let mut path = uri.path().split('/').filter(|part| !part.is_empty());
        let groups = if path.next() == Some("api") { 1 } else { 2 };
        let mut rest: Vec<&str> = path.skip(groups).collect();
        if rest.first() == Some(&"namespaces") {
            rest.drain(..2);
        }
        let text = |n: usize| rest.get(n).map(|part| (*part).to_owned());
        let kind = rest.first().and_then(|plural| Kind::parse(plural))?;
        let pairs = uri.query().unwrap_or_default().split('&');
        let decode = |text: &str| {
            text.replace("%3D", "=")
                .replace("%2F", "/")
                .replace("%2C", ",")
        };
        Some(Self {
            method: method.to_owned(),
            kind,
            name: text(1),
            part: text(2),
            query: pairs
                .filter_map(|pair| pair.split_once('='))
                .map(|(key, value)| (key.to_owned(), decode(value)))
                .collect(),
            media: media.to_owned(),
            body: serde_json::from_slice(body).unwrap_or_default(),
        })
    }

    /// Whether it changes something that somebody acts on.
    pub fn is_write(&self) -> bool {
        self.method != "GET" && self.kind != Kind::Event
    }

    /// Whether it writes the primary record.
    pub fn is_record(&self) -> bool {
        self.body.pointer("/status/primaryRecord/epoch").is_some()
    }

    /// Labels that are asked for.
    pub fn labels(&self) -> Vec<(String, String)> {
        let selector = self.query.get("labelSelector").map_or("", String::as_str);
        let pairs = selector.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Answer {
    fn of(value: &Value) -> Self {
        Self {
            code: 200,
            body: Bytes::from(value.to_string()),
        }
    }

    /// A refusal (`k8s.io/apimachinery/pkg/api/errors`).
    pub fn refusal(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        Self {
            code,
            ..Self::of(&body)
        }
    }

    fn conflict() -> Self {
        Self::refusal(409, "Conflict", "the object has been modified")
    }

    fn success() -> Self {
        Self::of(&json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }))
    }
}

impl Cluster {
    /// Answers a request.
    pub fn answer(&mut self, request: &Request) -> Answer {
        match (
            request.method.as_str(),
            request.name.is_some(),
            request.part.as_deref(),
        ) {
            ("GET", false, _) => self.list(request),
            ("GET", true, None) => match self.objects.get(request.kind, request.name()) {
                Some(object) => Answer::of(object),
                None => missing(request),
            },
            ("POST", false, _) => self.create(request),
            ("POST", true, Some("eviction")) => self.evict(request),
            ("PATCH", true, part) => self.patch(request, part),
            ("DELETE", true, None) => self.delete(request),
            _ => panic!("the simulated API server does not know {request:?}"),
        }
    }

    fn list(&self, request: &Request) -> Answer {
        let (api_version, kind) = request.kind.types();
        let labels = request.labels();
        Answer::of(&json!({
            "apiVersion": api_version,
            "kind": format!("{kind}List"),
            "metadata": { "resourceVersion": self.objects.version.to_string() },
            "items": self.objects.all(request.kind, &labels),
        }))
    }

    fn create(&mut self, request: &Request) -> Answer {
        let name = request
            .body
            .pointer("/metadata/name")
            .and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        if self.objects.get(request.kind, &name).is_some() {
            return Answer::refusal(409, "AlreadyExists", "an object of this name exists");
        }
        if request.kind == Kind::Event {
            // Nobody reads them here.
            return Answer::of(&request.body);
        }
        let made = self.put(request.kind, &name, request.body.clone());
        Answer {
            code: 201,
            ..Answer::of(&made)
        }
    }

    fn patch(&mut self, request: &Request, part: Option<&str>) -> Answer {
        let live = self.objects.get(request.kind, request.name()).cloned();
        if request.media.contains("apply") {
            return self.apply(request, live);
        }
        let Some(live) = live else {
            return missing(request);
        };
        if !is_meant(&request.body, &live) {
            return Answer::conflict();
        }
        let mut patched = live.clone();
        match part {
            // Metadata is a precondition here, and nothing else is written (`registry: statusStrategy`).
            Some("status") => {
                let patch = request.body.get("status").cloned().unwrap_or_default();
                if let Some(object) = patched.as_object_mut() {
                    merge(object.entry("status").or_insert(json!({})), &patch);
                }
            }
            _ => merge(&mut patched, &request.body),
        }
        Answer::of(&self.put(request.kind, request.name(), patched))
    }

    /// Server-side apply by the only manager that there is: what it does not name any more goes.
    fn apply(&mut self, request: &Request, live: Option<Value>) -> Answer {
        let uid = request.body.pointer("/metadata/uid");
        match &live {
            Some(live) if !is_meant(&request.body, live) => return Answer::conflict(),
            None if uid.is_some() => return Answer::conflict(),
            _ => {}
        }
        let mut applied = request.body.clone();
        if let (Some(status), Some(object)) = (
            live.and_then(|live| live.get("status").cloned()),
            applied.as_object_mut(),
        ) {
            object.insert("status".to_owned(), status);
        }
        Answer::of(&self.put(request.kind, request.name(), applied))
    }

    fn delete(&mut self, request: &Request) -> Answer {
        let Some(live) = self.objects.get(request.kind, request.name()) else {
            return missing(request);
        };
        let mut asked = json!({});
        for key in ["uid", "resourceVersion"] {
            if let Some(value) = request.body.pointer(&format!("/preconditions/{key}")) {
                set(&mut asked, key, value.clone());
            }
        }
        if !is_meant(&asked, live) {
            return Answer::conflict();
        }
        let now = self.now();
        self.objects.delete(request.kind, request.name(), now);
        Answer::success()
    }

    fn evict(&mut self, request: &Request) -> Answer {
        let Some(live) = self.objects.get(Kind::Pod, request.name()) else {
            return missing(request);
        };
        let asked = request.body.pointer("/deleteOptions/preconditions/uid");
        if asked.is_some() && asked != live.pointer("/metadata/uid") {
            return Answer::conflict();
        }
        let ordinal = wellcake_core::parse::ordinal(request.name(), &self.name);
        self.take_pods(&ordinal.map(Ordinal::index).into_iter().collect::<Vec<_>>());
        Answer {
            code: 201,
            ..Answer::success()
        }
    }
}

/// Whether uid and version, where a body names them, are those of the live object.
fn is_meant(body: &Value, live: &Value) -> bool {
    ["/metadata/uid", "/metadata/resourceVersion"]
        .iter()
        .all(|field| {
            let asked = body.pointer(field).filter(|asked| !asked.is_null());
            asked.is_none_or(|asked| live.pointer(field) == Some(asked))
        })
}

fn missing(request: &Request) -> Answer {
    let message = format!("{:?} {:?} not found", request.kind, request.name());
    Answer::refusal(404, "NotFound", &message)
}
