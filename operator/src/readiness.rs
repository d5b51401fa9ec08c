//! What `/readyz` waits for.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the caches hold what is in the cluster, so that this operator could lead. Leadership is no part of it.
#[derive(Debug, Default)]
pub struct Readiness(AtomicBool);

impl Readiness {
    /// Says that the caches are filled, or not any more.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    /// Whether the caches are filled.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
