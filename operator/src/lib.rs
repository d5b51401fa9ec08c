//! The operator's process: flags, leader election, probes, metrics, and what it may do in Kubernetes. It decides nothing
//! about Valkey.

pub mod client;
pub mod flags;
pub mod http;
pub mod lease;
pub mod logging;
pub mod metrics;
pub mod rbac;
pub mod run;
