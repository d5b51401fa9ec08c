//! Effects on the Kubernetes API.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::Pod as FullPod;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::timeout;
use wellcake_core::facts::{Object, ObjectState};
use wellcake_core::render::{self, Owner, PASSWORD_KEY};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyCluster;
use wellcake_crds::{annotations, defaults, labels};

use super::{Failure, Request, valkey};
use crate::clock::Clock;
use crate::fetch::{Fetcher, secret_value, text_of, typed};
use crate::observe::View;
use crate::watch::{Caches, Claim, Cluster, Kept, LeanClaim, LeanPod, Live, Pod, resource_of};

/// Longest wait for one answer, in seconds.
const DEADLINE: u64 = 5;
/// Field manager of objects.
const MANAGER: &str = "valkey-operator";
/// Field manager of the status.
const STATUS_MANAGER: &str = "valkey-operator/status";
/// Bytes of randomness in a password: as base64url they give 32 characters.
const RANDOM: usize = 24;

/// A change of the status.
pub struct StatusPatch {
    /// The object as it was decided on; another version makes the API server refuse the change.
    pub cluster: Arc<Cluster>,
    /// Merge patch of the status.
    pub status: Value,
}

/// Carries out requests for one cluster.
#[derive(Clone)]
pub struct Kubernetes {
    /// The client.
    pub client: Client,
    /// The caches, into which each acknowledged write goes.
    pub caches: Arc<Caches>,
    /// The clock.
    pub clock: Clock,
    /// What is read by name.
    pub fetcher: Arc<Fetcher>,
    /// Namespace of the cluster.
    pub namespace: String,
    /// Name of the cluster.
    pub name: ClusterName,
}

impl Kubernetes {
    /// Carries a request out.
    pub async fn carry_out(&self, request: Request) -> Result<(), Failure> {
        match request {
            Request::CreateCredentials(cluster) => self.create_credentials(&cluster).await,
            Request::Apply {
                object,
                desired,
                uid,
                theirs,
            } => {
                if let Some(uid) = uid.as_deref().filter(|_| theirs) {
                    self.own_fields(object, &desired, uid).await?;
                }
                self.apply(object, &desired, uid).await
            }
            Request::Release(cluster) => self.release(&cluster).await,
            Request::Delete {
                object,
                name,
                uid,
                version,
            } => self.delete(object, &name, uid, version).await,
            Request::Status(patch) => self.patch_status(patch).await,
            Request::Keep { name, uid, record } => self.keep(&name, &uid, &record).await,
            Request::Label { name, uid, value } => self.label(&name, &uid, &value).await,
            Request::Grow { name, uid, size } => self.grow(&name, &uid, &size).await,
            Request::Evict { name, uid } => self.evict(&name, uid).await,
            Request::Valkey {
                server,
                connection,
                command,
            } => valkey::send(&server, connection, command, &self.clock).await,
        }
    }

    /// Server-side apply. What no cache holds is looked for first: an object under that name which lacks our label must not
    /// be taken over.
    async fn apply(
        &self,
        object: Object,
        desired: &Value,
        uid: Option<String>,
    ) -> Result<(), Failure> {
        let kind = resource_of(object);
        let api = self.objects(&kind);
        let name = desired
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut body = desired.clone();
        match uid {
            Some(uid) => set(&mut body, "/metadata", "uid", json!(uid)),
            None => {
                if let Some(found) = within(api.get_opt(name)).await? {
                    let live = typed(found, &kind);
                    self.fetcher.found_other(object, live);
                    return Err(Failure::Vanished("an object of this name is there already"));
                }
            }
        }
        let mut params = PatchParams::apply(MANAGER).force();
        params.field_validation = Some(kube::api::ValidationDirective::Strict);
        let applied = within(api.patch(name, &params, &Patch::Apply(&body))).await?;
        let live = typed(applied, &kind);
        let altered = object == Object::StatefulSet && is_altered(desired, &live);
        if object == Object::Config {
            self.fetcher.wrote_config(live);
        } else if let Some(store) = self.caches.of(object) {
            store.put(live, self.clock.now());
        }
        if altered {
            // To apply it again at once would be to no avail.
            return Err(Failure::Vanished(
                "something changes the StatefulSet when it is applied, such as an admission webhook",
            ));
        }
        Ok(())
    }

    /// Makes the fields that others set by updates this operator's own, so that what it applies next replaces them: else fields
    /// of another operator that this one does not name would stay.
    async fn own_fields(&self, object: Object, desired: &Value, uid: &str) -> Result<(), Failure> {
        let api = self.objects(&resource_of(object));
        let name = desired
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let live = within(api.get(name)).await?;
        if live.metadata.uid.as_deref() != Some(uid) {
            return Err(Failure::Vanished("the object was replaced"));
        }
        let fields = serde_json::to_value(&live.metadata.managed_fields).unwrap_or_default();
        let fields = fields.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(owned) = render::managed_fields(fields, MANAGER) else {
            return Ok(());
        };
        let body = json!({
            "metadata": {
                "uid": uid,
                "resourceVersion": live.metadata.resource_version,
                "managedFields": owned,
            },
        });
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        within(api.patch(name, &params, &Patch::Merge(&body))).await?;
        Ok(())
    }

    /// Takes the finalizer of the operator before from exactly the version that was looked at.
    async fn release(&self, cluster: &Cluster) -> Result<(), Failure> {
        let meta = &cluster.object.metadata;
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        finalizers.retain(|one| one != annotations::FOREIGN_FINALIZER);
        let body = json!({
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "finalizers": finalizers,
            },
        });
        let api: Api<ValkeyCluster> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = within(api.patch(self.name.as_str(), &params, &Patch::Merge(&body))).await?;
        self.caches
            .clusters
            .put(Cluster::from(patched), self.clock.now());
        Ok(())
    }

    async fn delete(
        &self,
        object: Object,
        name: &str,
        uid: String,
        version: u64,
    ) -> Result<(), Failure> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid),
                resource_version: Some(version.to_string()),
            }),
            ..DeleteParams::default()
        };
        within(self.objects(&resource_of(object)).delete(name, &params)).await?;
        if object == Object::Config {
            self.fetcher.deleted_config(name);
        }
        Ok(())
    }

    /// Changes the status of exactly the version that was decided on.
    async fn patch_status(&self, patch: StatusPatch) -> Result<(), Failure> {
        let meta = &patch.cluster.object.metadata;
        let body = json!({
            "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
            "status": patch.status,
        });
        let api: Api<ValkeyCluster> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams {
            field_manager: Some(STATUS_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched =
            within(api.patch_status(self.name.as_str(), &params, &Patch::Merge(&body))).await?;
        self.caches
            .clusters
            .put(Cluster::from(patched), self.clock.now());
        Ok(())
    }

    /// Copies the record to the claim, where it survives the ValkeyCluster. The record in the status is the one that counts.
    async fn keep(&self, claim: &str, uid: &str, record: &str) -> Result<(), Failure> {
        let annotations = json!({ annotations::PRIMARY_RECORD: record });
        let body = json!({ "metadata": { "uid": uid, "annotations": annotations } });
        self.patch_claim(claim, &body).await
    }

    async fn grow(&self, claim: &str, uid: &str, size: &Value) -> Result<(), Failure> {
        let resources = json!({ "requests": { "storage": size } });
        let body = json!({ "metadata": { "uid": uid }, "spec": { "resources": resources } });
        self.patch_claim(claim, &body).await
    }

    async fn patch_claim(&self, claim: &str, body: &Value) -> Result<(), Failure> {
        let api: Api<LeanClaim> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = within(api.patch(claim, &params, &Patch::Merge(body))).await?;
        self.caches
            .claims
            .put(Claim::from(patched), self.clock.now());
        Ok(())
    }

    async fn label(&self, name: &str, uid: &str, value: &Value) -> Result<(), Failure> {
        let body = json!({ "metadata": { "uid": uid, "labels": { labels::ROLE: value } } });
        let api: Api<LeanPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = within(api.patch(name, &params, &Patch::Merge(&body))).await?;
        self.caches.pods.put(Pod::from(patched), self.clock.now());
        Ok(())
    }

    /// Evicts a pod, and looks at it once: the answer to an eviction does not hold it, and nothing else may be done before
    /// it is known to go.
    async fn evict(&self, name: &str, uid: String) -> Result<(), Failure> {
        let api: Api<FullPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = EvictParams {
            delete_options: Some(DeleteParams {
                preconditions: Some(Preconditions {
                    uid: Some(uid),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            }),
            ..EvictParams::default()
        };
        within(api.evict(name, &params)).await?;
        let api: Api<LeanPod> = Api::namespaced(self.client.clone(), &self.namespace);
        if let Some(pod) = within(api.get_opt(name)).await? {
            self.caches.pods.put(Pod::from(pod), self.clock.now());
        }
        Ok(())
    }

    /// Makes the Secrets that are missing; one that is there stays as it is.
    async fn create_credentials(&self, cluster: &Cluster) -> Result<(), Failure> {
        let uid = cluster.uid();
        let owner = Owner {
            name: &self.name,
            namespace: &self.namespace,
            uid,
            restart: None,
            asleep: false,
        };
        let spec = &cluster.object.spec;
        let (password, source) = self.client_password(cluster, &owner).await?;
        let source = source
            .as_ref()
            .map(|(uid, version)| (uid.as_str(), version.as_str()));
        let (operator, replication) = (random_password()?, random_password()?);
        let acl = render::acl_secret(
            &owner,
            spec,
            password.as_deref(),
            &operator,
            &replication,
            source,
        );
        self.create_secret(&acl).await?;
        self.fetcher.read(&cluster.object).await;
        Ok(())
    }

    /// The password of clients, with uid and version of the Secret that holds it: the user's, or a generated one.
    async fn client_password(
        &self,
        cluster: &Cluster,
        owner: &Owner<'_>,
    ) -> Result<(Option<String>, Option<(String, String)>), Failure> {
        let spec = &cluster.object.spec;
        if !defaults::auth_enabled(spec) {
            return Ok((None, None));
        }
        let name = self.name.auth_secret(spec.auth.as_ref());
        if View::generates_password(cluster) {
            self.create_secret(&render::auth_secret(owner, spec, &random_password()?))
                .await?;
        }
        let missing = Failure::Vanished("the Secret with the password is not there");
        let found = within(
            self.objects(&resource_of(Object::Credentials))
                .get_opt(&name),
        )
        .await?;
        let secret = secret_value(&found.ok_or(missing)?);
        let text = |pointer| {
            secret
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let source = text("/metadata/uid").zip(text("/metadata/resourceVersion"));
        let password = text_of(&secret, PASSWORD_KEY).filter(|password| !password.is_empty());
        let missing = Failure::Vanished("the Secret with the password has no password");
        Ok((Some(password.ok_or(missing)?), source))
    }

    async fn create_secret(&self, secret: &Value) -> Result<(), Failure> {
        let object: DynamicObject = serde_json::from_value(secret.clone())
            .map_err(|_| Failure::Vanished("the Secret was not rendered as an object"))?;
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        let api = self.objects(&resource_of(Object::Credentials));
        match within(api.create(&params, &object)).await {
            Err(Failure::Kubernetes(why)) if is_already_there(&why) => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    fn objects(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, kind)
    }
}

/// Whether an object that was just applied differs from what was applied.
fn is_altered(desired: &Value, live: &Live) -> bool {
    let owner = desired
        .pointer("/metadata/ownerReferences/0/uid")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let state = render::compare(Some(desired), Some(&live.value()), owner);
    state == Some(ObjectState::Differs)
}

fn is_already_there(why: &kube::Error) -> bool {
    matches!(why, kube::Error::Api(status) if status.is_already_exists())
}

async fn within<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(Duration::from_secs(DEADLINE), call).await {
        Ok(answer) => answer.map_err(|why| Failure::Kubernetes(Box::new(why))),
        Err(_) => Err(Failure::TimedOut(DEADLINE)),
    }
}

fn set(body: &mut Value, pointer: &str, key: &str, value: Value) {
    if let Some(object) = body.pointer_mut(pointer).and_then(Value::as_object_mut) {
        object.insert(key.to_owned(), value);
    }
}

/// 32 characters of base64url from the system's randomness.
fn random_password() -> Result<String, Failure> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes).map_err(|_| Failure::Vanished("the system gives no randomness"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_32_characters_and_differ() {
        let (one, other) = (
            random_password().expect("random"),
            random_password().expect("random"),
        );
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
        assert!(
            one.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'),
            "{one}"
        );
    }
}
