//! The simulated replication beside real servers: what a real `valkey-server` does must be one of the things that the model
//! allows.
//!
//! * [`script`]: commands and faults from a seed;
//! * [`process`], [`resp`], [`links`]: real servers, and a network between them that can be cut;
//! * [`view`]: what can be told of servers whatever their identities are;
//! * [`model`]: every world that is possible after a script;
//! * [`run`], [`many`]: both side by side.

pub mod links;
pub mod many;
pub mod model;
pub mod process;
pub mod resp;
pub mod run;
pub mod script;
pub mod view;
