//! The interpreter: feeds the core with what is and carries out what it decides.
//!
//! * [`watch`], [`fetch`]: what Kubernetes has;
//! * [`valkey`]: what the servers say;
//! * [`observe`]: both as facts;
//! * [`pass`]: one task for each ValkeyCluster that looks, decides and carries out;
//! * [`execute`]: one function for each effect;
//! * [`events`], [`tell`], [`record`]: what is told and recorded;
//! * [`outside`]: the network and the wall clock.
//!
//! There is no rule about Valkey in here.

mod brief;
pub mod clock;
mod events;
mod execute;
mod fetch;
mod leadership;
mod manager;
mod metrics;
mod observe;
pub mod outside;
mod pass;
mod record;
mod router;
mod tell;
pub mod valkey;
mod watch;

pub use leadership::Leadership;
pub use manager::{Error, Options, run};
pub use metrics::Metrics;
pub use record::Traces;
