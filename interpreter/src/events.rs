//! Events of `events.k8s.io/v1` on transitions, so that `kubectl describe` tells the story of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use wellcake_crds::v1beta1::GROUP;

use crate::brief::Brief;

/// Longest wait for the API server.
const DEADLINE: Duration = Duration::from_secs(5);
/// An event is not told again within this time.
const AGAIN: Duration = Duration::from_secs(60);
/// Events that wait to be written; more are dropped, since they must not cost memory while the API server is away.
const QUEUE: usize = 256;
/// Who reports.
const CONTROLLER: &str = "valkey-operator";
/// Longest note that the API server takes (`events.k8s.io/v1`: 1 kB).
const NOTE: usize = 1000;

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// Namespace.
    pub namespace: String,
    /// Name of the ValkeyCluster.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Name of a pod that has to do with it.
    pub pod: Option<String>,
    /// Reason.
    pub reason: &'static str,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Told {
    /// What it is about.
    pub about: About,
    /// Whether a person should look.
    pub warning: bool,
    /// What was done, in CamelCase.
    pub action: &'static str,
    /// A sentence.
    pub note: String,
}

/// Where events are handed over.
#[derive(Clone)]
pub struct Teller(mpsc::Sender<Told>);

impl Teller {
    /// Starts the writer, one for the process; `instance` names the process.
    pub fn start(client: Client, instance: String) -> Self {
        let (send, receive) = mpsc::channel(QUEUE);
        tokio::spawn(write_all(client, instance, receive));
        Self(send)
    }

    /// Tells, without waiting.
    pub fn tell(&self, told: Told) {
        if self.0.try_send(told).is_err() {
            tracing::debug!("too many events wait; one is dropped");
        }
    }
}

async fn write_all(client: Client, instance: String, mut told: mpsc::Receiver<Told>) {
    let mut recent: BTreeMap<About, Instant> = BTreeMap::new();
    while let Some(one) = told.recv().await {
        let now = Instant::now();
        recent.retain(|_, at| now.duration_since(*at) < AGAIN);
        if recent.insert(one.about.clone(), now).is_some() {
            continue;
        }
        let api: Api<Event> = Api::namespaced(client.clone(), &one.about.namespace);
        let event = event(one, &instance);
        match timeout(DEADLINE, api.create(&PostParams::default(), &event)).await {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => tracing::warn!(error = %Brief(&why), "cannot write an event"),
            Err(_) => tracing::warn!("no answer when writing an event"),
        }
    }
}

fn event(told: Told, instance: &str) -> Event {
    let about = told.about;
    let now = MicroTime(jiff::Timestamp::now());
    let reference = |kind: &str, version: &str, name: &str, uid: Option<String>| ObjectReference {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(about.namespace.clone()),
        name: Some(name.to_owned()),
        uid,
        ..ObjectReference::default()
    };
    let own = format!("{GROUP}/v1beta1");
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{:x}", about.name, now.0.as_nanosecond())),
            namespace: Some(about.namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(now),
        type_: Some(if told.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(about.reason.to_owned()),
        action: Some(told.action.to_owned()),
        note: Some(told.note.chars().take(NOTE).collect()),
        regarding: Some(reference(
            "ValkeyCluster",
            &own,
            &about.name,
            Some(about.uid.clone()),
        )),
        related: about
            .pod
            .as_deref()
            .map(|pod| reference("Pod", "v1", pod, None)),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        ..Event::default()
    }
}
