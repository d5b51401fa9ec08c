//! Which of several operators acts: one holds a `coordination.k8s.io/v1` Lease.
//!
//! * [`decide`]: what to do next, a pure function of the record and the local clock;
//! * [`run`]: the loop that watches and writes the Lease.

pub mod decide;
pub mod run;
