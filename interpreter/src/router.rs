//! Who is woken when something changed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::watch::Key;

/// Wakes the task of the ValkeyCluster that a change concerns. Changes that come while it works are one change.
#[derive(Debug, Default)]
pub struct Router {
    tasks: RwLock<BTreeMap<Key, Arc<Notify>>>,
    /// Woken by every change of the set of ValkeyClusters and by what concerns all.
    pub all: Notify,
}

impl Router {
    /// Where the task of a cluster waits from now on.
    pub fn register(&self, key: &Key, task: Arc<Notify>) {
        self.tasks
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key.clone(), task);
    }

    /// The task of a cluster has ended.
    pub fn forget(&self, key: &Key) {
        self.tasks
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }

    /// Something of this cluster changed; `None` means that it concerns all.
    pub fn wake(&self, cluster: Option<&Key>) {
        let Some(key) = cluster else {
            return self.wake_all();
        };
        match self
            .tasks
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
        {
            Some(task) => task.notify_one(),
            None => self.all.notify_one(),
        }
    }

    /// Something changed that concerns all.
    pub fn wake_all(&self) {
        let tasks = self.tasks.read().unwrap_or_else(PoisonError::into_inner);
        tasks.values().for_each(|task| task.notify_one());
        self.all.notify_one();
    }
}
