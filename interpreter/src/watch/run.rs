//! The watches.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta};
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use wellcake_core::facts::Object;
use wellcake_crds::labels;
use wellcake_crds::v1beta1::ValkeyCluster;

use super::kinds::{Claim, Cluster, LeanClaim, LeanNode, LeanPod, Live, Node, Pod};
use super::store::{Kept, Key, Store};
use crate::clock::Clock;
use crate::router::Router;

/// Where to watch.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Everywhere.
    All,
    /// In these namespaces.
    Namespaces(Vec<String>),
}

impl Scope {
    /// The namespaces to watch, one watch for each; `None` stands for all of them at once.
    fn each(&self) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::Namespaces(names) => names.iter().cloned().map(Some).collect(),
        }
    }
}

/// All caches.
#[derive(Debug)]
pub struct Caches {
    /// ValkeyClusters.
    pub clusters: Store<Cluster>,
    /// Data pods.
    pub pods: Store<Pod>,
    /// Claims of data pods.
    pub claims: Store<Claim>,
    /// Nodes.
    pub nodes: Store<Node>,
    /// Services.
    pub services: Store<Live>,
    /// StatefulSets.
    pub stateful_sets: Store<Live>,
    /// PodDisruptionBudgets.
    pub budgets: Store<Live>,
}

/// Kind of the object on the wire.
pub fn resource_of(object: Object) -> ApiResource {
    let (group, version, kind, plural) = match object {
        Object::Credentials => ("", "v1", "Secret", "secrets"),
        Object::Config => ("", "v1", "ConfigMap", "configmaps"),
        Object::HeadlessService
        | Object::ReplicasService
        | Object::ClientService
        | Object::PrimaryService => ("", "v1", "Service", "services"),
        Object::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
        Object::DisruptionBudget => (
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
        ),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

impl Caches {
    /// Empty caches.
    pub fn new(scope: &Scope) -> Self {
        let watches = scope.each().len();
        Self {
            clusters: Store::new(watches),
            pods: Store::new(watches),
            claims: Store::new(watches),
            nodes: Store::new(1),
            services: Store::new(watches),
            stateful_sets: Store::new(watches),
            budgets: Store::new(watches),
        }
    }

    /// Whether every watch has brought its first list.
    pub fn are_complete(&self) -> bool {
        self.clusters.is_complete()
            && self.pods.is_complete()
            && self.claims.is_complete()
            && self.nodes.is_complete()
            && self.services.is_complete()
            && self.stateful_sets.is_complete()
            && self.budgets.is_complete()
    }

    /// The cache of objects of a kind that is watched.
    pub fn of(&self, object: Object) -> Option<&Store<Live>> {
        match object {
            Object::Credentials | Object::Config => None,
            Object::HeadlessService
            | Object::ReplicasService
            | Object::ClientService
            | Object::PrimaryService => Some(&self.services),
            Object::StatefulSet => Some(&self.stateful_sets),
            Object::DisruptionBudget => Some(&self.budgets),
        }
    }

    /// Starts all watches; they end with `stop`. A watch that fails is tried again after a growing pause, without an effect
    /// on the others.
    pub fn watch(
        self: &Arc<Self>,
        client: &Client,
        scope: &Scope,
        clock: Clock,
        router: &Arc<Router>,
        stop: &CancellationToken,
    ) {
        let start = Starter {
            caches: self,
            clock,
            router,
            stop,
        };
        let ours = || {
            let selector = format!("{}={}", labels::MANAGED_BY, labels::OPERATOR);
            watcher::Config::default().labels(&selector)
        };
        for namespace in scope.each() {
            let within = namespace.as_deref();
            start.watch(
                api::<DeserializeGuard<ValkeyCluster>>(client, within),
                watcher::Config::default(),
                namespace.clone(),
                guarded,
                |caches| &caches.clusters,
            );
            let pods = api::<LeanPod>(client, within);
            start.watch(
                pods,
                ours(),
                namespace.clone(),
                |pod| Some(Pod::from(pod)),
                |c| &c.pods,
            );
            let claims = api::<LeanClaim>(client, within);
            start.watch(
                claims,
                ours(),
                namespace.clone(),
                |one| Some(Claim::from(one)),
                |c| &c.claims,
            );
            let objects: [(Object, StoreOf<Live>); 3] = [
                (Object::ClientService, |caches| &caches.services),
                (Object::StatefulSet, |caches| &caches.stateful_sets),
                (Object::DisruptionBudget, |caches| &caches.budgets),
            ];
            for (object, store) in objects {
                let kind = resource_of(object);
                let api: Api<DynamicObject> = match within {
                    Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
                    None => Api::all_with(client.clone(), &kind),
                };
                let types = TypeMeta {
                    api_version: kind.api_version.clone(),
                    kind: kind.kind.clone(),
                };
                let keep = move |mut object: DynamicObject| {
                    object.types = Some(types.clone());
                    Some(Live::from(object))
                };
                start.watch(api, ours(), namespace.clone(), keep, store);
            }
        }
        let nodes = Api::<LeanNode>::all(client.clone());
        let all = watcher::Config::default();
        start.watch(
            nodes,
            all,
            None,
            |node| Some(Node::from(node)),
            |caches| &caches.nodes,
        );
    }
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// An object that cannot be read must not take the others with it.
fn guarded(object: DeserializeGuard<ValkeyCluster>) -> Option<Cluster> {
    match object.0 {
        Ok(cluster) => Some(Cluster::from(cluster)),
        Err(why) => {
            let namespace = why.metadata.namespace.unwrap_or_default();
            let name = why.metadata.name.unwrap_or_default();
            tracing::warn!(
                namespace,
                name,
                error = why.error,
                "cannot read this ValkeyCluster; it is left alone"
            );
            None
        }
    }
}

/// Which cache.
type StoreOf<V> = fn(&Caches) -> &Store<V>;

struct Starter<'a> {
    caches: &'a Arc<Caches>,
    clock: Clock,
    router: &'a Arc<Router>,
    stop: &'a CancellationToken,
}

impl Starter<'_> {
    fn watch<K, V>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        namespace: Option<String>,
        keep: impl Fn(K) -> Option<V> + Send + 'static,
        store: StoreOf<V>,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        V: Kept + Send + Sync + 'static,
    {
        let filler = Filler {
            caches: Arc::clone(self.caches),
            store,
            clock: self.clock,
            router: Arc::clone(self.router),
            namespace,
            listing: None,
            complete: false,
        };
        let path = api.resource_url().to_owned();
        let work = fill(watcher(api, config), keep, filler, path);
        tokio::spawn(self.stop.clone().run_until_cancelled_owned(work));
    }
}

async fn fill<K, V: Kept>(
    events: impl futures::Stream<Item = watcher::Result<watcher::Event<K>>>,
    keep: impl Fn(K) -> Option<V>,
    mut filler: Filler<V>,
    path: String,
) {
    let mut events = pin!(events.default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => filler.listing = Some(Listing::default()),
            Ok(watcher::Event::InitApply(object)) => {
                if let Some(value) = keep(object) {
                    filler.list(value);
                }
            }
            Ok(watcher::Event::InitDone) => filler.listed(),
            Ok(watcher::Event::Apply(object)) => {
                if let Some(value) = keep(object) {
                    filler.put(value);
                }
            }
            Ok(watcher::Event::Delete(object)) => {
                if let Some(value) = keep(object) {
                    filler.remove(&value);
                }
            }
            Err(why) => tracing::warn!(path, error = %why, "a watch failed; it is tried again"),
        }
    }
}

#[derive(Default)]
struct Listing {
    keys: BTreeSet<Key>,
    newest: u64,
}

/// Puts what one watch brings into its cache and wakes those whom it concerns.
struct Filler<V> {
    caches: Arc<Caches>,
    store: StoreOf<V>,
    clock: Clock,
    router: Arc<Router>,
    namespace: Option<String>,
    listing: Option<Listing>,
    complete: bool,
}

impl<V: Kept> Filler<V> {
    fn store(&self) -> &Store<V> {
        (self.store)(&self.caches)
    }

    fn put(&self, value: V) {
        let cluster = value.cluster();
        if self.store().put(value, self.clock.now()) {
            self.router.wake(cluster.as_ref());
        }
    }

    fn remove(&self, value: &V) {
        if self.store().remove(value) {
            self.router.wake(value.cluster().as_ref());
        }
    }

    fn list(&mut self, value: V) {
        if let Some(listing) = &mut self.listing {
            listing.keys.insert(value.key().clone());
            listing.newest = listing.newest.max(value.version());
        }
        self.put(value);
    }

    fn listed(&mut self) {
        if let Some(Listing { keys, newest }) = self.listing.take() {
            for gone in self
                .store()
                .retain(self.namespace.as_deref(), &keys, newest)
            {
                self.router.wake(gone.cluster().as_ref());
            }
        }
        if !self.complete {
            self.complete = true;
            self.store().completed();
            self.router.wake_all();
        }
    }
}
