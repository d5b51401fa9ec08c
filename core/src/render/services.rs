//! Services.

use serde_json::{Map, Value, json};
use wellcake_crds::labels;
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

use super::metadata::{POD_NAME_LABEL, metadata, selector};
use super::{CLIENT_PORT, Owner, SERVER};
use crate::facts::Ordinal;

/// Gives every data pod a name in DNS, before it is ready too.
pub fn headless(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let body = json!({
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": true,
        "selector": selector(owner, spec),
        "ports": ports(),
    });
    service(owner, spec, &owner.name.headless_service(), body)
}

/// Leads to one pod, which the operator chose. It does so whether or not the pod is ready: the operator knows earlier
/// and better than a probe, and a Service that loses its only endpoint because of a late probe is an outage of its own.
pub fn routed(owner: &Owner<'_>, spec: &ValkeyClusterSpec, name: String, route: Ordinal) -> Value {
    let mut pods = selector(owner, spec);
    let pod = owner.name.pod(u32::from(route.0));
    pods.insert(POD_NAME_LABEL.to_owned(), Value::String(pod));
    let body = json!({
        "type": "ClusterIP",
        "publishNotReadyAddresses": true,
        "selector": pods,
        "ports": ports(),
    });
    service(owner, spec, &name, body)
}

/// Leads to the replicas that are ready.
pub fn replicas(owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> Value {
    let mut pods = selector(owner, spec);
    pods.insert(labels::ROLE.to_owned(), json!(labels::ROLE_REPLICA));
    let body = json!({
        "type": "ClusterIP",
        "publishNotReadyAddresses": false,
        "selector": pods,
        "ports": ports(),
    });
    service(owner, spec, &owner.name.replicas_service(), body)
}

/// The pod that a live Service leads to, if its selector names one of this cluster.
pub fn routed_pod(live: &Value, cluster: &ClusterName) -> Option<Ordinal> {
    let selector: &Map<String, Value> = live.get("spec")?.get("selector")?.as_object()?;
    crate::parse::ordinal(selector.get(POD_NAME_LABEL)?.as_str()?, cluster)
}

fn ports() -> Value {
    json!([{ "name": SERVER, "port": CLIENT_PORT, "targetPort": CLIENT_PORT, "protocol": "TCP" }])
}

fn service(owner: &Owner<'_>, spec: &ValkeyClusterSpec, name: &str, body: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(owner, spec, name),
        "spec": body,
    })
}
