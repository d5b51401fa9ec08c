//! What Kubernetes has: one watch per kind, each into a cache of its own, with types as small as what is used of them.
//!
//! Secrets and ConfigMaps are not watched; [`crate::fetch`] reads the few that matter by name.

mod kinds;
mod run;
mod store;

pub use kinds::{Claim, Cluster, LeanClaim, LeanPod, Live, Pod, live_object};
pub use run::{Caches, Scope, resource_of};
pub use store::{Kept, Key, Seen};
