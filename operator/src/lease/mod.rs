//! Which of several operators acts: one holds a `coordination.k8s.io/v1` Lease.
//!
//! * [`decide`]: what to do next, a pure function of the record and the local clock;
//! * [`run`]: the loop that watches and writes the Lease.

pub mod decide;
pub mod run;

/// Whether this process may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It may not.
    Follower,
    /// It may, until then.
    Leader {
        /// `spec.leaseTransitions`: what is planned in an older epoch is not carried out in a newer one.
        epoch: u64,
        /// No effect begins after this.
        valid_until: tokio::time::Instant,
    },
}
