//! Caches of an operator that lag, each kind by itself. A cache never goes back (`interpreter/src/watch/store.rs`), and a write that
//! was acknowledged is seen at once; what else happened is seen when events arrive again, or with a new list after the watch was
//! over (410, "Efficient detection of changes" of the Kubernetes API concepts).

use serde::{Deserialize, Serialize};
use wellcake_core::facts::{PasswordSource, SpecFacts};

use super::kind::Kind;
use crate::world::{Api, World};

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cache {
    /// Of the ValkeyCluster.
    Cluster,
    /// Of its pods.
    Pods,
    /// Of its Services.
    Services,
    /// Of its StatefulSet.
    StatefulSet,
    /// Of its claims.
    Claims,
    /// Of the Secret with the password.
    Secrets,
}

impl Cache {
    /// All caches.
    pub const ALL: [Self; 6] = [
        Self::Cluster,
        Self::Pods,
        Self::Services,
        Self::StatefulSet,
        Self::Claims,
        Self::Secrets,
    ];

    const fn kind(self) -> Kind {
        match self {
            Self::Cluster => Kind::ClusterCacheLags,
            Self::Pods => Kind::PodCacheLags,
            Self::Services => Kind::ServiceCacheLags,
            Self::StatefulSet => Kind::StatefulSetCacheLags,
            Self::Claims => Kind::ClaimCacheLags,
            Self::Secrets => Kind::SecretCacheLags,
        }
    }
}

/// A set of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caches(u8);

impl Caches {
    /// Adds one.
    pub const fn add(&mut self, cache: Cache) {
        self.0 |= 1 << cache as u8;
    }

    /// Whether one is in it.
    pub const fn has(self, cache: Cache) -> bool {
        self.0 & 1 << cache as u8 != 0
    }
}

impl World {
    /// A cache of operator `o` gets no events any more.
    pub(crate) fn lag(&mut self, o: usize, cache: Cache) {
        let spec = self.spec;
        let faults = self.faults_mut();
        let password = faults.password;
        let operator = faults.operator(o);
        operator.lags.add(cache);
        match cache {
            Cache::Cluster => operator.spec = operator.spec.or(Some(spec)),
            Cache::Secrets => operator.password = operator.password.or(Some(password)),
            _ => {}
        }
    }

    /// All caches of operator `o` get a new list.
    pub(crate) fn relist(&mut self, o: usize) {
        let operator = self.faults_mut().operator(o);
        operator.lags = Caches::default();
        operator.spec = None;
        operator.password = None;
        if self.misses_an_end(o) {
            self.fired(Kind::WatchGap);
        }
        self.watch(o);
    }

    /// The caches of operator `o` are complete.
    pub(crate) fn open_eyes(&mut self, o: usize) {
        if let Some(operator) = self
            .faults
            .as_deref_mut()
            .and_then(|faults| faults.operators.get_mut(o))
        {
            operator.blind = false;
        }
    }

    /// Whether a pod was replaced and operator `o` still knows the one before.
    fn misses_an_end(&self, o: usize) -> bool {
        let known = self.operators.get(o).into_iter().flat_map(|it| &it.pods);
        self.pods.iter().zip(known).any(|(pod, facts)| {
            let other = facts.object.value().is_some_and(|it| it.uid != pod.uid);
            pod.exists && other
        })
    }

    /// Whether a cache of operator `o` lags.
    pub(crate) fn is_lagging(&self, o: usize, cache: Cache) -> bool {
        self.on_operator(o).is_some_and(|it| it.lags.has(cache))
    }

    /// Notes that a cache lags, if there is something new in it.
    pub(crate) fn note_lag(&mut self, cache: Cache, news: bool) {
        if news {
            self.fired(cache.kind());
        }
    }

    /// What operator `o` gets of the newest that its caches ask for.
    pub(crate) fn api_as_cached(&mut self, o: usize) -> Api {
        let mut api = self.api.clone();
        let Some(old) = self.operators.get(o).map(|operator| operator.cache.clone()) else {
            return api;
        };
        if self.is_lagging(o, Cache::Cluster) {
            let spec = self.on_operator(o).and_then(|it| it.spec);
            let news = old.record != api.record
                || old.down_since != api.down_since
                || spec.is_some_and(|spec| spec != self.spec);
            self.note_lag(Cache::Cluster, news);
            (api.record, api.down_since) = (old.record, old.down_since);
        }
        if self.is_lagging(o, Cache::Services) {
            self.note_lag(Cache::Services, old.routes != api.routes);
            api.routes = old.routes;
        }
        if self.is_lagging(o, Cache::Claims) {
            self.note_lag(Cache::Claims, old.kept != api.kept);
            api.kept = old.kept;
        }
        if self.is_lagging(o, Cache::Secrets) {
            let known = self.on_operator(o).and_then(|it| it.password);
            let news = known.is_some_and(|known| Some(known) != self.password());
            self.note_lag(Cache::Secrets, news);
        }
        api
    }

    /// Replicas of the StatefulSet, as operator `o` gets them.
    pub(crate) fn replicas_as_cached(&mut self, o: usize) -> u8 {
        let known = self.operators.get(o).map(|operator| operator.replicas);
        let lagging = self.is_lagging(o, Cache::StatefulSet);
        match known.filter(|_| lagging) {
            Some(known) => {
                self.note_lag(Cache::StatefulSet, known != self.replicas);
                known
            }
            None => self.replicas,
        }
    }

    /// Notes that the cache of pods lags, if any of them is another one by now.
    pub(crate) fn note_pod_lag(&mut self, o: usize) {
        let known = self.operators.get(o).into_iter().flat_map(|it| &it.pods);
        let news = self.pods.iter().zip(known).any(|(pod, facts)| {
            let uid = facts
                .object
                .last()
                .map(|object| (object.uid, object.terminating));
            uid != pod.exists.then_some((pod.uid, pod.terminating))
        });
        self.note_lag(Cache::Pods, news);
    }

    fn password(&self) -> Option<PasswordSource> {
        self.faults.as_deref().map(|faults| faults.password)
    }

    /// The password as operator `o` sees it.
    pub(crate) fn seen_password(&self, o: usize) -> PasswordSource {
        let lagging = self.on_operator(o).and_then(|it| it.password);
        lagging
            .or(self.password())
            .unwrap_or(PasswordSource::Usable)
    }

    /// The spec as operator `o` sees it.
    pub(crate) fn seen_spec(&self, o: usize) -> SpecFacts {
        self.on_operator(o)
            .and_then(|it| it.spec)
            .unwrap_or(self.spec)
    }
}
