//! How often the servers of a cluster are asked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use wellcake_core::facts::{Millis, Tick};

/// When nothing is in flight.
const SETTLED: Duration = Duration::from_millis(1_000);
/// While something is.
const UNSETTLED: Duration = Duration::from_millis(100);
/// Right after a connection broke: the other servers see that within milliseconds, and a proof of death waits for it.
const BURST: Duration = Duration::from_millis(20);
/// How long that lasts.
const BURST_FOR: Millis = Millis(1_000);

/// The pace of one cluster.
#[derive(Debug)]
pub struct Pace {
    settled: AtomicBool,
    burst_until: AtomicU64,
    changed: Notify,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            settled: AtomicBool::new(false),
            burst_until: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }
}

impl Pace {
    /// Something is in flight, or nothing is any more.
    pub fn set_settled(&self, settled: bool) {
        if self.settled.swap(settled, Ordering::Relaxed) && !settled {
            self.changed.notify_waiters();
        }
    }

    /// A connection broke: all servers are asked at once, and often for a second.
    pub fn burst(&self, now: Tick) {
        self.burst_until
            .store(now.after(BURST_FOR).0, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Pause before the next look.
    pub fn pause(&self, now: Tick) -> Duration {
        if now.0 < self.burst_until.load(Ordering::Relaxed) {
            BURST
        } else if self.settled.load(Ordering::Relaxed) {
            SETTLED
        } else {
            UNSETTLED
        }
    }

    /// Comes when the pace quickens after this call.
    pub fn quickened(&self) -> Notified<'_> {
        self.changed.notified()
    }
}
