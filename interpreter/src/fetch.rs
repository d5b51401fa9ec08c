//! What is read by name instead of watched: the Secrets of a cluster, its present ConfigMap, and objects of other owners.
//!
//! A watch of Secrets would need the right to read all of them. They are read when a cluster's task starts, when
//! something about it changes that they explain, every few seconds while something is missing, and else every half hour.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta, TypeMeta};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use wellcake_core::facts::{Known, Object, ObjectState, PasswordSource, Tick};
use wellcake_core::render::{
    OPERATOR_PASSWORD_KEY, Owner, PASSWORD_KEY, REPLICATION_PASSWORD_KEY, credentials, name_of,
    password_matches, source,
};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyCluster;
use wellcake_crds::{defaults, labels};

use crate::clock::Clock;
use crate::valkey::unfenced::{Credentials, Resides};
use crate::watch::{Kept as _, LeanPod, Live, Pod, live_object, resource_of};

/// Longest wait for one object.
const DEADLINE: Duration = Duration::from_secs(5);
/// Pause while something is missing or belongs to somebody else.
const SOON: Duration = Duration::from_secs(3);
/// Pause when all is well.
const LATE: Duration = Duration::from_secs(1_800);

/// What was read.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The Secret with the ACL file.
    pub credentials: Known<ObjectState>,
    /// The password of clients.
    pub password: Known<PasswordSource>,
    /// Name of the ConfigMap that was looked for, when, and what was found.
    pub config: Option<(String, Tick, Option<Arc<Live>>)>,
    /// ConfigMaps of all configurations of the cluster: name, uid, version. Not looked for with the first read.
    pub configs: Arc<[(String, String, u64)]>,
    /// Objects under names that are needed which are not in the caches: they lack the label by which those select.
    pub others: BTreeMap<Object, Arc<Live>>,
}

/// Reads for one cluster.
pub struct Fetcher {
    client: Client,
    clock: Clock,
    namespace: String,
    name: ClusterName,
    fetched: Mutex<Fetched>,
    password: watch::Sender<Option<Arc<str>>>,
    /// Whether servers may be there that another operator's template started.
    expects_unfenced: AtomicBool,
    /// Whether everything was read once.
    has_read: AtomicBool,
    credentials: watch::Sender<Option<Credentials>>,
    /// Wakes the cluster's task.
    changed: Arc<Notify>,
    again: Arc<Notify>,
}

impl Fetcher {
    /// Nothing is read yet.
    pub fn new(
        client: Client,
        clock: Clock,
        namespace: &str,
        name: &ClusterName,
        changed: Arc<Notify>,
    ) -> Self {
        let now = clock.now();
        let fetched = Fetched {
            credentials: Known::unknown(now),
            password: Known::unknown(now),
            config: None,
            configs: Arc::default(),
            others: BTreeMap::new(),
        };
        Self {
            client,
            clock,
            namespace: namespace.to_owned(),
            name: name.clone(),
            fetched: Mutex::new(fetched),
            password: watch::Sender::new(None),
            expects_unfenced: AtomicBool::new(false),
            has_read: AtomicBool::new(false),
            credentials: watch::Sender::new(None),
            changed,
            again: Arc::new(Notify::new()),
        }
    }

    /// What was read last.
    pub fn fetched(&self) -> Fetched {
        self.state().clone()
    }

    /// The password of the operator's user, once it is known.
    pub fn password(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.password.subscribe()
    }

    /// What it takes to be let in by servers that another operator's template started, while there may be such.
    pub fn credentials(&self) -> watch::Receiver<Option<Credentials>> {
        self.credentials.subscribe()
    }

    /// Says whether there may be such servers; what they take is read then.
    pub fn expect_unfenced(&self, expected: bool) {
        let before = self.expects_unfenced.swap(expected, Ordering::Relaxed);
        if before != expected {
            self.again.notify_one();
        }
    }

    /// Asks for a new look.
    pub fn again(&self) -> Arc<Notify> {
        Arc::clone(&self.again)
    }

    /// A ConfigMap that this process just wrote.
    pub fn wrote_config(&self, live: Live) {
        let name = live.key().name.clone();
        self.state().config = Some((name, self.clock.now(), Some(Arc::new(live))));
    }

    /// A ConfigMap that was deleted.
    pub fn deleted_config(&self, name: &str) {
        let mut state = self.state();
        let left = state.configs.iter().filter(|(known, ..)| known != name);
        state.configs = left.cloned().collect();
    }

    /// An object under a needed name that no cache holds.
    pub fn found_other(&self, object: Object, live: Live) {
        self.state().others.insert(object, Arc::new(live));
    }

    /// What was missing when it was read last may be there by now: it is not known until it is read again, at once.
    pub fn doubt_absence(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        let mut doubts = false;
        if state.credentials.is_absent() {
            state.credentials = state.credentials.failed(now);
            doubts = true;
        }
        if !matches!(state.password.value(), Some(PasswordSource::Usable) | None) {
            state.password = state.password.failed(now);
            doubts = true;
        }
        if matches!(state.config, Some((_, _, None))) {
            state.config = None;
            doubts = true;
        }
        drop(state);
        if doubts {
            self.again.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, Fetched> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads for ever. `cluster` gives the object as it is now.
    pub async fn run(&self, cluster: impl Fn() -> Option<Arc<crate::watch::Cluster>>) {
        loop {
            let Some(present) = cluster() else { return };
            let well = self.read(&present.object).await;
            let pause = if well { LATE } else { SOON };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.again.notified() => {}
            }
        }
    }

    /// Reads everything once; whether all is as it should be.
    pub async fn read(&self, cluster: &ValkeyCluster) -> bool {
        let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
        let owner = Owner {
            name: &self.name,
            namespace: &self.namespace,
            uid,
            restart: None,
            asleep: false,
        };
        let config_name = name_of(Object::Config, &owner, &cluster.spec);
        let acl_name = self.name.acl_secret();
        let acl = self.get(Object::Credentials, &acl_name);
        let auth = self.user_secret(cluster);
        let config = self.get(Object::Config, &config_name);
        // Only to clean up; a new leader of many clusters has more urgent things to ask.
        let listed = self.has_read.swap(true, Ordering::Relaxed);
        let configs = async {
            match listed {
                true => self.configs(uid).await,
                false => Err(()),
            }
        };
        let (acl, auth, config, configs) = tokio::join!(acl, auth, config, configs);
        let others = self.others().await;
        let acl_value = acl.as_ref().ok().and_then(Option::as_ref).map(secret_value);
        let known = self.read_credentials(cluster, acl_value.as_ref()).await;
        let now = self.clock.now();
        let mut state = self.state();
        let before = (
            state.credentials.value().copied(),
            state.password.value().copied(),
        );
        let had_config = state
            .config
            .as_ref()
            .map(|(name, _, live)| (name.clone(), live.is_some()));
        state.credentials = match &acl {
            Ok(_) => match credentials(acl_value.as_ref(), uid) {
                Some(found) => same_or(state.credentials, found, now),
                None => Known::Absent,
            },
            Err(()) => state.credentials.failed(now),
        };
        state.password = match auth {
            Ok(found) => same_or(
                state.password,
                password_source(found, acl_value.as_ref()),
                now,
            ),
            Err(()) => state.password.failed(now),
        };
        if let Ok(found) = config {
            let kind = resource_of(Object::Config);
            let live = found.map(|object| Arc::new(typed(object, &kind)));
            state.config = Some((config_name, now, live));
        }
        state.others = others;
        state.configs = configs.unwrap_or_else(|()| Arc::clone(&state.configs));
        let well = matches!(state.credentials.value(), Some(ObjectState::Matches))
            && matches!(state.password.value(), Some(PasswordSource::Usable))
            && state
                .config
                .as_ref()
                .is_some_and(|(_, _, live)| live.is_some())
            && state.others.is_empty();
        let after = (
            state.credentials.value().copied(),
            state.password.value().copied(),
        );
        let has_config = state
            .config
            .as_ref()
            .map(|(name, _, live)| (name.clone(), live.is_some()));
        drop(state);
        if let Some(password) = acl_value
            .as_ref()
            .and_then(|acl| text_of(acl, OPERATOR_PASSWORD_KEY))
        {
            self.password.send_if_modified(|known| {
                let changed = known.as_deref() != Some(password.as_str());
                *known = Some(password.into());
                changed
            });
        }
        if before != after || had_config != has_config {
            self.changed.notify_one();
        }
        well && known
    }

    /// Reads what servers take that another operator's template started, if there may be such. Whether nothing is missing.
    async fn read_credentials(&self, cluster: &ValkeyCluster, acl: Option<&Value>) -> bool {
        let expected = self.expects_unfenced.load(Ordering::Relaxed);
        let Some(acl) = acl.filter(|_| expected) else {
            self.credentials.send_replace(None);
            return !expected;
        };
        let mut clients = None;
        if defaults::auth_enabled(&cluster.spec) {
            let name = self.name.auth_secret(cluster.spec.auth.as_ref());
            let found = self.get(Object::Credentials, &name).await;
            let secret = found.ok().flatten().map(|secret| secret_value(&secret));
            let Some(password) = secret.and_then(|secret| text_of(&secret, PASSWORD_KEY)) else {
                return false;
            };
            clients = Some(Arc::from(password));
        }
        let found = Credentials {
            clients,
            replication: text_of(acl, REPLICATION_PASSWORD_KEY).map(Arc::from),
            resides: self.residences(),
        };
        self.credentials.send_if_modified(|known| {
            let same = known.as_ref().is_some_and(|known| known.is_like(&found));
            *known = Some(found);
            !same
        });
        true
    }

    /// Tells where the pods of this cluster are, by the word of the API server.
    fn residences(&self) -> Resides {
        let api: Api<LeanPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let selector = format!("{}={}", labels::INSTANCE, self.name.as_str());
        Arc::new(move |uid, address| {
            let (api, own) = (api.clone(), ListParams::default().labels(&selector));
            Box::pin(async move {
                let Ok(Ok(pods)) = timeout(DEADLINE, api.list(&own)).await else {
                    return false;
                };
                let mut pods = pods.items.into_iter().map(Pod::from);
                pods.any(|pod| pod.uid() == uid && pod.address == Some(address))
            })
        })
    }

    /// All ConfigMaps of the cluster.
    async fn configs(&self, owner: &str) -> Result<Arc<[(String, String, u64)]>, ()> {
        let kind = resource_of(Object::Config);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
        let selector = format!(
            "{}={},{}={}",
            labels::MANAGED_BY,
            labels::OPERATOR,
            labels::INSTANCE,
            self.name.as_str()
        );
        let asked = ListParams::default().labels(&selector);
        let Ok(Ok(found)) = timeout(DEADLINE, api.list_metadata(&asked)).await else {
            tracing::warn!(
                namespace = self.namespace,
                name = self.name.as_str(),
                "cannot list the ConfigMaps of a cluster"
            );
            return Err(());
        };
        let ours = |meta: &ObjectMeta| {
            let owners = meta.owner_references.as_deref().unwrap_or_default();
            owners.iter().any(|reference| reference.uid == owner)
        };
        let entry = |meta: ObjectMeta| {
            let version = meta.resource_version?.parse().ok()?;
            Some((meta.name?, meta.uid?, version))
        };
        let metas = found.items.into_iter().map(|object| object.metadata);
        Ok(metas.filter(ours).filter_map(entry).collect())
    }

    /// The Secret of clients that the spec names: none is needed without a password, and a generated one is not missed.
    async fn user_secret(&self, cluster: &ValkeyCluster) -> Result<UserSecret, ()> {
        let given = defaults::existing_auth_secret(&cluster.spec);
        if !defaults::auth_enabled(&cluster.spec) {
            return Ok(UserSecret::NotNeeded);
        }
        let Some(name) = given else {
            return Ok(UserSecret::NotNeeded);
        };
        let found = self.get(Object::Credentials, name).await?;
        Ok(found.map_or(UserSecret::Missing, |object| {
            UserSecret::There(secret_value(&object))
        }))
    }

    /// Looks again at the objects of other owners.
    async fn others(&self) -> BTreeMap<Object, Arc<Live>> {
        let before = self.state().others.clone();
        let mut after = BTreeMap::new();
        for (object, live) in before {
            let name = live.key().name.clone();
            match self.get(object, &name).await {
                Ok(Some(found)) => {
                    after.insert(object, Arc::new(typed(found, &resource_of(object))));
                }
                Ok(None) => self.changed.notify_one(),
                Err(()) => {
                    after.insert(object, live);
                }
            }
        }
        after
    }

    /// An object by name; an error is logged and is neither a yes nor a no.
    pub async fn get(&self, object: Object, name: &str) -> Result<Option<DynamicObject>, ()> {
        let kind = resource_of(object);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
        match timeout(DEADLINE, api.get_opt(name)).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(why)) => {
                tracing::warn!(namespace = self.namespace, kind = kind.kind, name, error = %crate::brief::Brief(&why), "cannot read an object");
                Err(())
            }
            Err(_) => {
                tracing::warn!(
                    namespace = self.namespace,
                    kind = kind.kind,
                    name,
                    "no answer when reading an object"
                );
                Err(())
            }
        }
    }
}

enum UserSecret {
    NotNeeded,
    Missing,
    There(Value),
}

/// Keeps the stamp of a state that did not change, so that an unchanged world gives equal observations.
fn same_or<T: Copy + PartialEq>(before: Known<T>, found: T, now: Tick) -> Known<T> {
    if before.value() == Some(&found) {
        before
    } else {
        Known::seen(now, found)
    }
}

fn password_source(secret: UserSecret, acl: Option<&Value>) -> PasswordSource {
    let secret = match secret {
        UserSecret::NotNeeded => return PasswordSource::Usable,
        UserSecret::Missing => return PasswordSource::SecretMissing,
        UserSecret::There(secret) => secret,
    };
    let Some(password) = text_of(&secret, PASSWORD_KEY).filter(|text| !text.is_empty()) else {
        return PasswordSource::KeyMissing;
    };
    let Some(acl) = acl else {
        return PasswordSource::Usable;
    };
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str);
    let present = (text("/metadata/uid"), text("/metadata/resourceVersion"));
    let unchanged = source(acl).is_some_and(|(uid, version)| present == (Some(uid), Some(version)));
    if unchanged || password_matches(acl, &password) != Some(false) {
        PasswordSource::Usable
    } else {
        PasswordSource::Changed
    }
}

/// A Secret with what identifies its revision.
pub fn secret_value(object: &DynamicObject) -> Value {
    let mut value = live_object(object);
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".to_owned(), json!(object.metadata.uid));
        metadata.insert(
            "resourceVersion".to_owned(),
            json!(object.metadata.resource_version),
        );
    }
    value
}

/// A value of a Secret as text.
pub fn text_of(secret: &Value, key: &str) -> Option<String> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

/// An object with its kind, which the answer to a GET always has and a list's items have not.
pub fn typed(mut object: DynamicObject, kind: &ApiResource) -> Live {
    object.types.get_or_insert_with(|| TypeMeta {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
    });
    Live::from(object)
}
