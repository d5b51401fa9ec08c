//! What is kept of each kind. A full pod takes 70 KiB in memory, what is used of it 3 (measured).

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use kube::api::{DynamicObject, ObjectMeta};
use kube::{Resource, ResourceExt};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wellcake_core::facts::{Container, RoleLabel, Trouble};
use wellcake_core::parse;
use wellcake_core::render::{Amount, SERVER};
use wellcake_crds::annotations;
use wellcake_crds::labels;
use wellcake_crds::v1beta1::ValkeyCluster;

use super::store::{Kept, Key};

/// Taint by which a person says that nothing runs on a node any more
/// (<https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown>).
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Label by which the StatefulSet controller marks each pod with the revision of the template that it was made from
/// (`k8s.io/api/apps/v1: StatefulSetRevisionLabel`).
const REVISION_LABEL: &str = "controller-revision-hash";

/// What every kept object has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    key: Key,
    uid: String,
    version: u64,
    cluster: Option<Key>,
}

impl Identity {
    fn of(meta: &ObjectMeta) -> Self {
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let instance = meta
            .labels
            .as_ref()
            .and_then(|all| all.get(labels::INSTANCE));
        Self {
            key: Key::new(namespace, meta.name.as_deref().unwrap_or_default()),
            uid: meta.uid.clone().unwrap_or_default(),
            version: version_of(meta),
            cluster: instance.map(|name| Key::new(namespace, name)),
        }
    }
}

fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

macro_rules! kept {
    ($kind:ty, |$one:ident, $other:ident| $like:expr) => {
        impl Kept for $kind {
            fn key(&self) -> &Key {
                &self.identity.key
            }
            fn uid(&self) -> &str {
                &self.identity.uid
            }
            fn version(&self) -> u64 {
                self.identity.version
            }
            fn cluster(&self) -> Option<Key> {
                self.identity.cluster.clone()
            }
            fn is_like(&self, other: &Self) -> bool {
                let ($one, $other) = (self, other);
                $one.identity.uid == $other.identity.uid && $like
            }
        }
    };
}

/// A ValkeyCluster, in full.
#[derive(Clone, Debug)]
pub struct Cluster {
    identity: Identity,
    /// The object, without its managed fields.
    pub object: ValkeyCluster,
}

kept!(Cluster, |one, other| one.identity.version
    == other.identity.version);

impl From<ValkeyCluster> for Cluster {
    fn from(mut object: ValkeyCluster) -> Self {
        object.metadata.managed_fields = None;
        let mut identity = Identity::of(&object.metadata);
        identity.cluster = Some(identity.key.clone());
        Self { identity, object }
    }
}

/// What is used of a pod on the wire.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = "api::Pod")]
pub struct LeanPod {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    container_statuses: Vec<ContainerStatus>,
    conditions: Vec<PodCondition>,
}

#[derive(Clone, Debug, Deserialize)]
struct PodCondition {
    #[serde(rename = "type")]
    kind: String,
    reason: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    restart_count: i32,
    state: ContainerStates,
    last_state: ContainerStates,
}

/// Each state as it comes; only which one is there counts, and why a container waits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStates {
    running: Option<serde::de::IgnoredAny>,
    terminated: Option<Terminated>,
    waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Terminated {
    message: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<String>,
}

/// A data pod.
#[derive(Clone, Debug)]
pub struct Pod {
    identity: Identity,
    /// Its address.
    pub address: Option<IpAddr>,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// The server's container.
    pub container: Container,
    /// The role label.
    pub label: RoleLabel,
    /// Its node.
    pub node: Option<String>,
    /// The revision of the template that it was made from.
    pub revision: Option<String>,
    /// Digest of the configuration that it was made with.
    pub config: Option<String>,
    /// The restart that it was made for.
    pub restarted_at: Option<String>,
    /// Why it does not run.
    pub trouble: Option<Trouble>,
    /// What its server did not understand of its configuration when it ended last.
    pub config_error: Option<String>,
}

kept!(Pod, |one, other| {
    let facts = |pod: &Self| {
        (
            pod.address,
            pod.terminating,
            pod.container,
            pod.label,
            pod.trouble,
        )
    };
    let texts = |pod: &Self| {
        [
            &pod.node,
            &pod.revision,
            &pod.restarted_at,
            &pod.config_error,
        ]
        .map(Clone::clone)
    };
    facts(one) == facts(other) && texts(one) == texts(other)
});

impl From<LeanPod> for Pod {
    fn from(pod: LeanPod) -> Self {
        let label = |key| pod.metadata.labels.as_ref().and_then(|all| all.get(key));
        let role = label(labels::ROLE);
        let revision = label(REVISION_LABEL).cloned();
        let note = |key| {
            let all = pod.metadata.annotations.as_ref();
            all.and_then(|all| all.get(key)).cloned()
        };
        let (restarted_at, config) = (
            note(annotations::RESTARTED_AT),
            note(annotations::CONFIG_HASH),
        );
        Self {
            identity: Identity::of(&pod.metadata),
            address: pod.status.pod_ip.as_deref().and_then(|ip| ip.parse().ok()),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            container: container(&pod.status.container_statuses),
            label: match role.map(String::as_str) {
                Some(labels::ROLE_PRIMARY) => RoleLabel::Primary,
                Some(labels::ROLE_REPLICA) => RoleLabel::Replica,
                _ => RoleLabel::None,
            },
            trouble: trouble(&pod.status),
            config_error: server_of(&pod.status).and_then(config_error),
            node: pod.spec.node_name,
            revision,
            restarted_at,
            config,
        }
    }
}

/// What keeps a pod from running, by the words of the scheduler
/// (<https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions>) and of the kubelet
/// (`pkg/kubelet/images/types.go`, `pkg/kubelet/container/sync_result.go`).
fn trouble(status: &PodStatus) -> Option<Trouble> {
    let unscheduled = status.conditions.iter().any(|condition| {
        condition.kind == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
    });
    if unscheduled {
        return Some(Trouble::NoNode);
    }
    let server = server_of(status)?;
    match server.state.waiting.as_ref()?.reason.as_deref()? {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            Some(Trouble::Image)
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            Some(Trouble::Container)
        }
        "CrashLoopBackOff" if config_error(server).is_some() => Some(Trouble::Config),
        "CrashLoopBackOff" => Some(Trouble::Crashes),
        _ => None,
    }
}

fn server_of(status: &PodStatus) -> Option<&ContainerStatus> {
    let mut all = status.container_statuses.iter();
    all.find(|it| it.name == SERVER)
}

/// The termination message holds the end of the log (`terminationMessagePolicy: FallbackToLogsOnError`).
fn config_error(server: &ContainerStatus) -> Option<String> {
    let terminated = server.last_state.terminated.as_ref()?;
    parse::config_error(terminated.message.as_deref()?)
}

fn container(statuses: &[ContainerStatus]) -> Container {
    let Some(status) = statuses.iter().find(|status| status.name == SERVER) else {
        return Container::Waiting;
    };
    let restarts = u16::try_from(status.restart_count).unwrap_or(u16::MAX);
    if status.state.running.is_some() {
        Container::Running { restarts }
    } else if status.state.terminated.is_some() || status.last_state.terminated.is_some() {
        Container::Terminated { restarts }
    } else {
        Container::Waiting
    }
}

/// What is used of a claim on the wire.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = "api::PersistentVolumeClaim")]
pub struct LeanClaim {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ClaimSpec,
    #[serde(default)]
    status: ClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimSpec {
    resources: ClaimResources,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimResources {
    requests: Storage,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimStatus {
    capacity: Storage,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Storage {
    storage: Option<String>,
}

impl Storage {
    /// Bytes, if a size is given that can be read.
    fn bytes(&self) -> Option<u64> {
        let amount = Amount::parse(self.storage.as_deref()?).ok()?;
        Some(amount.units())
    }
}

/// A claim of a data pod.
#[derive(Clone, Debug)]
pub struct Claim {
    identity: Identity,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The copy of a primary record that it keeps.
    pub record: Option<String>,
    /// Bytes that it asks for.
    pub requested: Option<u64>,
    /// Bytes of its volume; none before it is bound.
    pub capacity: Option<u64>,
}

kept!(Claim, |one, other| {
    let sizes = |claim: &Self| (claim.requested, claim.capacity);
    one.created == other.created && one.record == other.record && sizes(one) == sizes(other)
});

impl From<LeanClaim> for Claim {
    fn from(claim: LeanClaim) -> Self {
        let created = claim
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        Self {
            identity: Identity::of(&claim.metadata),
            created,
            requested: claim.spec.resources.requests.bytes(),
            capacity: claim.status.capacity.bytes(),
            record: claim
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(annotations::PRIMARY_RECORD))
                .cloned(),
        }
    }
}

/// What is used of a node on the wire.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = "api::Node")]
pub struct LeanNode {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: NodeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    taints: Vec<Taint>,
}

#[derive(Clone, Debug, Deserialize)]
struct Taint {
    key: String,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    identity: Identity,
    /// Whether it is marked as out of service.
    pub out_of_service: bool,
}

kept!(Node, |one, other| one.out_of_service
    == other.out_of_service);

impl From<LeanNode> for Node {
    fn from(node: LeanNode) -> Self {
        let identity = Identity {
            cluster: None,
            ..Identity::of(&node.metadata)
        };
        let out_of_service = node
            .spec
            .taints
            .iter()
            .any(|taint| taint.key == OUT_OF_SERVICE);
        Self {
            identity,
            out_of_service,
        }
    }
}

/// An object that the operator applies, as text: a tenth of the memory of a parsed one, and it is compared rarely.
#[derive(Clone, Debug)]
pub struct Live {
    identity: Identity,
    text: Box<str>,
    /// Of a StatefulSet whose controller has seen its newest template: the revision of that.
    pub revision: Option<String>,
}

kept!(Live, |one, other| one.text == other.text
    && one.revision == other.revision);

impl Live {
    /// The object with those of its parts that are compared.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

impl From<DynamicObject> for Live {
    fn from(object: DynamicObject) -> Self {
        let identity = Identity::of(&object.metadata);
        Self {
            identity,
            text: live_object(&object).to_string().into_boxed_str(),
            revision: newest_revision(&object),
        }
    }
}

/// The revision of the newest template (`status.updateRevision`), unless the controller's word is of an older one.
fn newest_revision(object: &DynamicObject) -> Option<String> {
    let status = object.data.get("status")?;
    let seen = status.get("observedGeneration")?.as_i64();
    let revision = status.get("updateRevision")?.as_str()?;
    (seen.is_some() && seen == object.metadata.generation).then(|| revision.to_owned())
}

/// A live object reduced to what is compared: an item of a list comes without `apiVersion` and `kind`, which the caller
/// must have filled in.
pub fn live_object(object: &DynamicObject) -> Value {
    let types = object.types.clone().unwrap_or_default();
    let mut parts = Map::new();
    parts.insert("apiVersion".to_owned(), json!(types.api_version));
    parts.insert("kind".to_owned(), json!(types.kind));
    parts.insert(
        "metadata".to_owned(),
        json!({
            "name": object.name_any(),
            "namespace": object.namespace(),
            "labels": object.labels(),
            "annotations": object.annotations(),
            "ownerReferences": object.owner_references(),
        }),
    );
    for part in ["spec", "data", "immutable", "type"] {
        if let Some(value) = object.data.get(part) {
            parts.insert(part.to_owned(), value.clone());
        }
    }
    Value::Object(parts)
}
