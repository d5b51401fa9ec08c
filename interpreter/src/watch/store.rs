//! A cache of one kind that never goes back: of two versions of an object the newer stays, whether a watch brought it or
//! the answer to an own write. So an own acknowledged write is seen at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use wellcake_core::facts::Tick;

/// Namespace and name; the namespace is empty for what has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// Of these two.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What a cache holds.
pub trait Kept {
    /// Its key.
    fn key(&self) -> &Key;
    /// Its uid.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`, which may be compared as a number (Kubernetes 1.35, KEP-5504, and true of etcd before).
    fn version(&self) -> u64;
    /// The ValkeyCluster that it belongs to; `None` for what concerns all.
    fn cluster(&self) -> Option<Key>;
    /// Whether the other one would change a decision.
    fn is_like(&self, other: &Self) -> bool;
}

/// An object and when it came to be known in this form.
#[derive(Debug)]
pub struct Seen<V> {
    /// When.
    pub at: Tick,
    /// The object.
    pub value: Arc<V>,
}

impl<V> Clone for Seen<V> {
    fn clone(&self) -> Self {
        Self {
            at: self.at,
            value: Arc::clone(&self.value),
        }
    }
}

#[derive(Debug)]
struct Inner<V> {
    /// Watches whose first list is not complete.
    missing: usize,
    entries: BTreeMap<Key, Seen<V>>,
}

/// The cache of a kind.
#[derive(Debug)]
pub struct Store<V>(RwLock<Inner<V>>);

impl<V: Kept> Store<V> {
    /// An empty cache that this many watches fill.
    pub fn new(watches: usize) -> Self {
        Self(RwLock::new(Inner {
            missing: watches,
            entries: BTreeMap::new(),
        }))
    }

    /// Whether every watch has brought its first list.
    pub fn is_complete(&self) -> bool {
        self.read().missing == 0
    }

    /// One watch has brought its first list.
    pub fn completed(&self) {
        let mut inner = self.write();
        inner.missing = inner.missing.saturating_sub(1);
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<Seen<V>> {
        self.read().entries.get(key).cloned()
    }

    /// All objects of a namespace whose names begin with `prefix`.
    pub fn named(&self, namespace: &str, prefix: &str) -> Vec<Seen<V>> {
        let inner = self.read();
        let from = inner.entries.range(Key::new(namespace, prefix)..);
        from.take_while(|(key, _)| key.namespace == namespace && key.name.starts_with(prefix))
            .map(|(_, seen)| seen.clone())
            .collect()
    }

    /// All objects.
    pub fn all(&self) -> Vec<Seen<V>> {
        self.read().entries.values().cloned().collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.read().entries.len()
    }

    /// Takes a version of an object in, unless that one or a newer one is there. Says whether anything that matters
    /// changed.
    pub fn put(&self, value: V, now: Tick) -> bool {
        let mut inner = self.write();
        let before = inner.entries.get(value.key());
        if before.is_some_and(|seen| seen.value.version() >= value.version()) {
            return false;
        }
        let same = before
            .filter(|seen| seen.value.is_like(&value))
            .map(|seen| seen.at);
        let at = same.unwrap_or(now);
        let key = value.key().clone();
        inner.entries.insert(
            key,
            Seen {
                at,
                value: Arc::new(value),
            },
        );
        same.is_none()
    }

    /// Takes an object out that was deleted, unless another object of that name came since.
    pub fn remove(&self, value: &V) -> bool {
        let mut inner = self.write();
        let same = inner
            .entries
            .get(value.key())
            .is_some_and(|seen| seen.value.uid() == value.uid());
        same && inner.entries.remove(value.key()).is_some()
    }

    /// Takes out what a complete list of `namespace` (of all when `None`) does not hold and what is not newer than it; says
    /// what went.
    pub fn retain(
        &self,
        namespace: Option<&str>,
        listed: &BTreeSet<Key>,
        newest: u64,
    ) -> Vec<Arc<V>> {
        let mut inner = self.write();
        let gone: Vec<Key> = inner
            .entries
            .iter()
            .filter(|(key, _)| namespace.is_none_or(|namespace| namespace == key.namespace))
            .filter(|(key, seen)| !listed.contains(key) && seen.value.version() <= newest)
            .map(|(key, _)| key.clone())
            .collect();
        gone.iter()
            .filter_map(|key| inner.entries.remove(key))
            .map(|seen| seen.value)
            .collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner<V>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner<V>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
