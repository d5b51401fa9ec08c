//! The StatefulSet of the data pods.

use serde_json::{Map, Value, json};
use wellcake_crds::names::DATA_VOLUME;
use wellcake_crds::v1beta1::{StorageMedium, ValkeyClusterSpec};
use wellcake_crds::{annotations, defaults};

use super::config::{CONFIG_KEY, config_digest};
use super::held::asked_for;
use super::metadata::{labels, metadata, selector};
use super::{CLIENT_PORT, Owner, SERVER};

/// Where the data is mounted.
pub const DATA_PATH: &str = "/data";
/// Where valkey.conf is mounted.
const CONFIG_PATH: &str = "/etc/valkey";
/// Where the ACL file and the replication credentials are mounted.
pub const SECRET_PATH: &str = "/etc/valkey/secret";

/// How long a server that ends waits for its replicas (`shutdown-timeout`): it takes no more writes and goes once they have
/// everything (`server.c: prepareForShutdown`). Until a terminating primary is handed over, a pause before that (a preStop
/// hook) would only add to the outage: clients come back with the failover that follows.
pub const SHUTDOWN_SECONDS: u32 = 10;
/// What is left for ending, with nothing or little to be written.
const MARGIN_SECONDS: u32 = 15;
/// What is left for writing a snapshot of everything, where that is all that the volume gets: a gigabyte takes seconds.
const SNAPSHOT_SECONDS: u32 = 110;
/// User and group of the servers.
const USER: u32 = 1000;

/// The StatefulSet. Pods start in parallel and are replaced by nobody but the operator.
pub fn stateful_set(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let replicas = if owner.asleep {
        0
    } else {
        defaults::data_pods(spec)
    };
    let mut body = json!({
        "replicas": replicas,
        "serviceName": owner.name.headless_service(),
        "podManagementPolicy": "Parallel",
        "updateStrategy": { "type": "OnDelete" },
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
        "selector": { "matchLabels": selector(owner, spec) },
        "template": template(owner, spec),
    });
    if let (Some(claim), Some(body)) = (claim_template(owner, spec), body.as_object_mut()) {
        body.insert("volumeClaimTemplates".to_owned(), json!([claim]));
    }
    let mut metadata = metadata(owner, spec, &owner.name.stateful_set());
    if let Some(metadata) = metadata.as_object_mut() {
        let notes = json!({ annotations::ASKED_FOR: asked_for(owner, spec) });
        metadata.insert("annotations".to_owned(), notes);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": body,
    })
}

fn template(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    json!({
        "metadata": {
            "labels": labels(owner, spec),
            "annotations": template_annotations(owner, spec),
        },
        "spec": pod(owner, spec),
    })
}

fn margin(spec: &ValkeyClusterSpec) -> u32 {
    let mode = defaults::storage(spec).mode;
    if mode.has_rdb() && !mode.has_aof() {
        SNAPSHOT_SECONDS
    } else {
        MARGIN_SECONDS
    }
}

fn template_annotations(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let mut all = Map::new();
    all.insert(
        annotations::CONFIG_HASH.to_owned(),
        json!(config_digest(spec)),
    );
    if let Some(token) = owner.restart {
        all.insert(annotations::RESTARTED_AT.to_owned(), json!(token));
    }
    Value::Object(all)
}

fn pod(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let mut pod = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": SHUTDOWN_SECONDS + margin(spec),
        "securityContext": pod_security(spec),
        "containers": [container(spec)],
        "volumes": volumes(owner, spec),
        "affinity": affinity(owner, spec),
        "topologySpreadConstraints": spread(owner, spec),
    });
    if let Some(pod) = pod.as_object_mut() {
        if !spec.node_selector.is_empty() {
            pod.insert("nodeSelector".to_owned(), json!(spec.node_selector));
        }
        if !spec.tolerations.is_empty() {
            pod.insert("tolerations".to_owned(), json!(spec.tolerations));
        }
    }
    pod
}

fn container(spec: &ValkeyClusterSpec) -> Value {
    let mut container = json!({
        "name": SERVER,
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy.as_str(),
        "command": ["valkey-server"],
        "args": [format!("{CONFIG_PATH}/{CONFIG_KEY}")],
        "ports": [{ "name": SERVER, "containerPort": CLIENT_PORT, "protocol": "TCP" }],
        "readinessProbe": readiness(),
        // The last words of a server that does not understand its configuration.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(spec),
        "volumeMounts": [
            { "name": "config", "mountPath": CONFIG_PATH, "readOnly": true },
            { "name": "secret", "mountPath": SECRET_PATH, "readOnly": true },
            { "name": DATA_VOLUME, "mountPath": DATA_PATH },
        ],
    });
    if let (Some(resources), Some(container)) = (&spec.resources, container.as_object_mut()) {
        container.insert("resources".to_owned(), json!(resources));
    }
    container
}

/// An open client port means verified, in sync once and loaded, since the operator opens it. There is no liveness probe:
/// it would kill servers that are fenced or loading, and the kernel accepts connections for a process that hangs.
fn readiness() -> Value {
    json!({
        "tcpSocket": { "port": CLIENT_PORT },
        "periodSeconds": 1,
        "timeoutSeconds": 1,
        "failureThreshold": 3,
    })
}

fn pod_security(spec: &ValkeyClusterSpec) -> Value {
    match &spec.pod_security_context {
        Some(given) => json!(given),
        None => json!({
            "runAsNonRoot": true,
            "runAsUser": USER,
            "fsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        }),
    }
}

fn container_security(spec: &ValkeyClusterSpec) -> Value {
    match &spec.container_security_context {
        Some(given) => json!(given),
        None => json!({
            "runAsNonRoot": true,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
            "seccompProfile": { "type": "RuntimeDefault" },
        }),
    }
}

fn volumes(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let config = owner.name.config_revision(&config_digest(spec));
    let mut volumes = vec![
        json!({ "name": "config", "configMap": { "name": config } }),
        json!({ "name": "secret", "secret": { "secretName": owner.name.acl_secret() } }),
    ];
    let storage = defaults::storage(spec);
    if storage.medium == StorageMedium::Memory {
        volumes.push(json!({
            "name": DATA_VOLUME,
            "emptyDir": { "medium": "Memory", "sizeLimit": storage.size },
        }));
    }
    Value::Array(volumes)
}

/// The claim of each pod; none in memory.
fn claim_template(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Option<Value> {
    let storage = defaults::storage(spec);
    if storage.medium == StorageMedium::Memory {
        return None;
    }
    let mut body = Map::new();
    body.insert("accessModes".to_owned(), json!(["ReadWriteOnce"]));
    body.insert(
        "resources".to_owned(),
        json!({ "requests": { "storage": storage.size } }),
    );
    if let Some(class) = storage.storage_class_name {
        body.insert("storageClassName".to_owned(), Value::String(class));
    }
    Some(json!({
        "metadata": { "name": DATA_VOLUME, "labels": labels(owner, spec) },
        "spec": body,
    }))
}

/// Pods of one cluster prefer different nodes.
fn affinity(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    match &spec.affinity {
        Some(given) => json!(given),
        None => json!({
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": { "matchLabels": selector(owner, spec) },
                    },
                }],
            },
        }),
    }
}

/// Pods of one cluster are spread over zones where that is possible.
fn spread(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    if !spec.topology_spread_constraints.is_empty() {
        return json!(spec.topology_spread_constraints);
    }
    json!([{
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": selector(owner, spec) },
    }])
}
