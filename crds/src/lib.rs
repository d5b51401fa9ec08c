//! Types of the API group `cache.wellcake.io`: the kinds ValkeyCluster and ValkeyACL.
//!
//! * [`v1beta1`]: the types, stored version;
//! * [`defaults`]: what the operator uses where a field is absent;
//! * [`names`], [`labels`], [`annotations`]: how objects are called and marked.

pub mod annotations;
pub mod defaults;
pub mod labels;
pub mod names;
pub mod v1beta1;
