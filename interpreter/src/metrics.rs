//! What is counted.

use std::time::Duration;

use wellcake_core::effects::Kind;
use wellcake_core::reasons::Reason;

/// Where the interpreter counts; the process that runs it gives the implementation.
pub trait Metrics: Send + Sync {
    /// A reason appeared in the decisions of a cluster.
    fn decision(&self, reason: Reason);
    /// An effect ended: `done`, `refused` by its guard, `failed`, or `timed_out`.
    fn effect(&self, kind: Kind, outcome: &'static str);
    /// A server gave no answer.
    fn poll_failure(&self, kind: &'static str);
    /// A decision took this long, without carrying anything out.
    fn pass(&self, duration: Duration);
    /// A whole pass took this long: to look, to decide, and to carry out the safety lane, of which an effect failed or not.
    fn reconciled(&self, duration: Duration, failed: bool);
    /// A cluster has another primary: `death` proven, `return` after a restart, or by `order`.
    fn failover(&self, namespace: &str, cluster: &str, kind: &'static str);
    /// The demotion of a second primary throws so many bytes of its replication stream away.
    fn discarded(&self, namespace: &str, cluster: &str, bytes: u64);
    /// So many ValkeyClusters exist.
    fn clusters(&self, n: usize);
    /// This process leads and has heard every server of one more ValkeyCluster since it began to, or one less.
    fn heard(&self, more: bool);
}
