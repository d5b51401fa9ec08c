//! Types of the API group `cache.wellcake.io`: the kinds ValkeyCluster and ValkeyACL.
//!
//! * [`v1beta1`]: the types, stored version; [`v1alpha1`]: the same under the older version's name;
//! * [`rules`]: what the API server refuses beyond shape and bounds;
//! * [`defaults`]: what the operator uses where a field is absent;
//! * [`names`], [`labels`], [`annotations`]: how objects are called and marked;
//! * [`crds`], [`crds_yaml`]: the CustomResourceDefinitions.

pub mod annotations;
pub mod defaults;
pub mod labels;
pub mod names;
pub mod rules;
pub mod schema;
pub mod v1alpha1;
pub mod v1beta1;
pub mod yaml;

pub use schema::crds;

/// Both CustomResourceDefinitions as one YAML stream, ready for `kubectl apply -f -`.
pub fn crds_yaml() -> String {
    schema::definitions()
        .iter()
        .map(|crd| format!("---\n{}", yaml::to_yaml(crd)))
        .collect()
}
