//! Bringing the operator and a first ValkeyCluster into a Kubernetes, the local one or one that the user has.

pub mod chart;
pub mod example;
pub mod existing;
pub mod target;
