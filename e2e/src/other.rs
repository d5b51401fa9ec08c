//! The objects of another operator of this API, with the names, labels and fields that it gives them, and without that operator.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wellcake_crds::labels;

use crate::apply::{Applied, MAKING, address, is_ready};
use crate::namespace::Space;
use crate::valkey::{Connection, PATIENT};

/// Password of clients, which that operator's replicas use, too.
pub const PASSWORD: &str = "of-another-operator";
/// Name under which it writes.
const MANAGER: &str = "manager";
/// Its finalizer.
pub const FINALIZER: &str = "valkey.wellcake.io/cleanup";

/// A spec that this operator does not serve because of one field, so that it makes nothing while the other's objects come.
pub fn not_served(mut spec: Value) -> Value {
    spec["metrics"] = json!({"enabled": true});
    spec
}

/// Makes a ValkeyCluster and all that another operator makes for it: three pods, the first one the primary.
pub async fn make(space: &Space, name: &str, spec: &Value) -> Result<Applied> {
    let cluster = Applied::create(space, name, not_served(spec.clone())).await?;
    let objects = Objects::of(&cluster).await?;
    create::<Secret>(space, objects.secret()).await?;
    create::<ConfigMap>(space, objects.config()).await?;
    let headless = json!({"clusterIP": "None", "publishNotReadyAddresses": true});
    let roles = |role: &str| json!({"selector": {labels::ROLE: role}});
    let table = [
        (cluster.name.headless_service(), headless),
        (cluster.name.client_service(), json!({})),
        (cluster.name.primary_service(), roles(labels::ROLE_PRIMARY)),
        (cluster.name.replicas_service(), roles(labels::ROLE_REPLICA)),
    ];
    for (service, extra) in table {
        create::<Service>(space, objects.service(&service, &extra)).await?;
    }
    create::<StatefulSet>(space, objects.stateful_set()).await?;
    create::<PodDisruptionBudget>(space, objects.budget()).await?;
    cluster
        .wait("three pods are ready", MAKING, |look| {
            look.pods.len() == 3 && look.pods.iter().all(is_ready)
        })
        .await?;
    label_roles(&cluster).await?;
    await_links(&cluster).await?;
    let finalizers = json!({"metadata": {"finalizers": [FINALIZER]}});
    let api = space.api::<wellcake_crds::v1beta1::ValkeyCluster>();
    api.patch(name, &writer(), &Patch::Merge(&finalizers))
        .await?;
    cluster.apply(spec.clone()).await?;
    Ok(cluster)
}

/// Makes the selector of the headless Service what it was, as the other operator does on each of its passes.
pub async fn take_back(cluster: &Applied) -> Result<bool> {
    let name = cluster.name.headless_service();
    let services = cluster.space.api::<Service>();
    let live = services.get(&name).await?;
    let selector = live.spec.and_then(|spec| spec.selector).unwrap_or_default();
    if selector.contains_key(labels::PART_OF) {
        return Ok(false);
    }
    let body = json!({"spec": {"selector": labels_of(cluster)}});
    services
        .patch(&name, &writer(), &Patch::Merge(&body))
        .await?;
    Ok(true)
}

fn writer() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

async fn create<K>(space: &Space, object: Value) -> Result<()>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + serde::Serialize,
    K::DynamicType: Default,
{
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    let object: K = serde_json::from_value(object)?;
    let name = object.name_any();
    space
        .api::<K>()
        .create(&params, &object)
        .await
        .with_context(|| format!("cannot create {name}"))?;
    Ok(())
}

/// Role labels, which that operator keeps up.
async fn label_roles(cluster: &Applied) -> Result<()> {
    for (n, pod) in cluster.pods().await?.iter().enumerate() {
        let role = if n == 0 {
            labels::ROLE_PRIMARY
        } else {
            labels::ROLE_REPLICA
        };
        let body = json!({"metadata": {"labels": {labels::ROLE: role}}});
        let pods = cluster.space.api::<Pod>();
        pods.patch(&pod.name_any(), &writer(), &Patch::Merge(&body))
            .await?;
    }
    Ok(())
}

/// Waits until the replicas follow the first pod.
async fn await_links(cluster: &Applied) -> Result<()> {
    let end = std::time::Instant::now() + MAKING;
    loop {
        let first = cluster.pod(0).await?;
        let mut server = Connection::open(address(&first)?, Some(PASSWORD), PATIENT)?;
        let info = server.text(&["INFO", "replication"])?;
        let online = info.lines().filter(|line| line.contains("state=online"));
        if online.count() == 2 {
            return Ok(());
        }
        if std::time::Instant::now() > end {
            anyhow::bail!(
                "the replicas do not follow\n{info}\n{}",
                cluster.story().await
            );
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

fn labels_of(cluster: &Applied) -> Value {
    json!({
        labels::NAME: labels::NAME_VALKEY,
        labels::INSTANCE: cluster.name.as_str(),
        labels::PART_OF: labels::OPERATOR,
        labels::MANAGED_BY: labels::OPERATOR,
        labels::COMPONENT: "replication",
    })
}

struct Objects<'a> {
    cluster: &'a Applied,
    uid: String,
}

impl<'a> Objects<'a> {
    async fn of(cluster: &'a Applied) -> Result<Self> {
        let look = cluster.look().await?;
        let uid = look.cluster.uid().context("a uid")?;
        Ok(Self { cluster, uid })
    }

    fn labels(&self) -> Value {
        labels_of(self.cluster)
    }

    fn metadata(&self, name: &str) -> Value {
        json!({
            "name": name,
            "labels": self.labels(),
            "ownerReferences": [{
                "apiVersion": "cache.wellcake.io/v1beta1",
                "kind": "ValkeyCluster",
                "name": self.cluster.name.as_str(),
                "uid": self.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        })
    }

    fn secret(&self) -> Value {
        let name = self.cluster.name.generated_auth_secret();
        json!({"metadata": self.metadata(&name), "stringData": {"password": PASSWORD}})
    }

    fn config(&self) -> Value {
        let text = format!(
            "port 6379\nbind 0.0.0.0\nprotected-mode no\ndir /data\nrequirepass \"{PASSWORD}\"\n\
             masterauth \"{PASSWORD}\"\nmasteruser replicator\naclfile /data/users.acl\nappendonly no\nsave \"\"\n\
             maxmemory-policy allkeys-lru\n"
        );
        let name = self.cluster.name.config();
        json!({"metadata": self.metadata(&name), "data": {"valkey.conf": text}})
    }

    fn service(&self, name: &str, extra: &Value) -> Value {
        let mut spec = json!({
            "type": "ClusterIP",
            "selector": self.labels(),
            "ports": [{"name": "valkey", "port": 6379, "targetPort": 6379, "protocol": "TCP"}],
        });
        for (key, value) in extra.as_object().into_iter().flatten() {
            match (spec[key].as_object_mut(), value.as_object()) {
                (Some(into), Some(from)) => into.extend(from.clone()),
                _ => spec[key] = value.clone(),
            }
        }
        json!({"metadata": self.metadata(name), "spec": spec})
    }

    fn budget(&self) -> Value {
        let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": self.labels()}});
        let name = self.cluster.name.disruption_budget();
        json!({"metadata": self.metadata(&name), "spec": spec})
    }

    fn stateful_set(&self) -> Value {
        let mut metadata = self.metadata(&self.cluster.name.stateful_set());
        metadata["annotations"] = json!({"valkey.wellcake.io/applied-hash": "of another kind"});
        json!({
            "metadata": metadata,
            "spec": {
                "replicas": 3,
                "serviceName": self.cluster.name.headless_service(),
                "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "RollingUpdate"},
                "selector": {"matchLabels": self.labels()},
                "template": {
                    "metadata": {
                        "labels": self.labels(),
                        "annotations": {"valkey.wellcake.io/config-hash": "0123456789abcdef"},
                    },
                    "spec": self.pod(),
                },
                "volumeClaimTemplates": [{
                    "metadata": {"name": "data", "labels": self.labels()},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "64Mi"}},
                    },
                }],
            },
        })
    }

    /// The first pod boots as a primary every time, the others as its replicas, by its name.
    fn pod(&self) -> Value {
        let first = format!(
            "{}.{}.{}.svc.cluster.local",
            self.cluster.name.pod(0),
            self.cluster.name.headless_service(),
            self.cluster.space.name
        );
        let script = format!(
            "set -eu\ncp /etc/valkey/valkey.conf /data/runtime.conf\n\
             printf 'user default on >%s ~* &* +@all\\nuser replicator on >%s +psync +replconf +ping\\n' \
             '{PASSWORD}' '{PASSWORD}' > /data/users.acl\n\
             case \"$HOSTNAME\" in *-0) ;; *) echo 'replicaof {first} 6379' >> /data/runtime.conf ;; esac\n"
        );
        let mounts = json!([
            {"name": "config", "mountPath": "/etc/valkey", "readOnly": true},
            {"name": "data", "mountPath": "/data"},
        ]);
        let probe = |initial: i32, period: i32| {
            json!({"tcpSocket": {"port": 6379}, "initialDelaySeconds": initial, "periodSeconds": period,
                   "timeoutSeconds": 3, "failureThreshold": 5})
        };
        json!({
            "securityContext": {
                "fsGroup": 1000, "runAsUser": 1000, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [{
                "name": "config-init", "image": "valkey/valkey:8.0", "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sh", "-c", script], "volumeMounts": mounts,
            }],
            "containers": [{
                "name": "valkey", "image": "valkey/valkey:8.0", "imagePullPolicy": "IfNotPresent",
                "command": ["valkey-server"], "args": ["/data/runtime.conf"],
                "ports": [{"name": "valkey", "containerPort": 6379}],
                "readinessProbe": probe(1, 5), "livenessProbe": probe(15, 20),
                "volumeMounts": mounts,
            }],
            "volumes": [{
                "name": "config",
                "configMap": {
                    "name": self.cluster.name.config(),
                    "items": [{"key": "valkey.conf", "path": "valkey.conf"}],
                },
            }],
        })
    }
}
