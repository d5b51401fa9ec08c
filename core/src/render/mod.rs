//! Kubernetes objects, valkey.conf and the ACL file as pure functions of the spec: the same intent gives the same bytes.
//!
//! Every object comes ready for server-side apply, with labels, a controller reference to its ValkeyCluster and the
//! annotation [`APPLIED_HASH`](wellcake_crds::annotations::APPLIED_HASH). Passwords occur in Secrets only.

mod adoption;
mod compare;
mod config;
pub mod directives;
mod disruption;
mod hash;
mod held;
mod image;
mod metadata;
mod quantity;
mod quote;
mod refused;
mod secrets;
mod services;
mod stateful_set;

use serde_json::Value;
use wellcake_crds::defaults;
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{Topology, ValkeyClusterSpec};

use crate::facts::{Object, Ordinal};

pub use adoption::{has_other_template, is_taken, managed_fields};
pub use compare::{compare, credentials, over_live};
pub use config::{CONFIG_KEY, config, config_digest};
pub use held::waits as template_waits;
pub use image::image_major;
pub use quantity::{Amount, QuantityError};
pub use quote::quote;
pub use refused::{config_of, go_back, refused_config};
pub use secrets::{
    ACL_KEY, OPERATOR_PASSWORD_KEY, PASSWORD_KEY, REPLICATION_CONFIG_KEY, REPLICATION_PASSWORD_KEY,
    SOURCE_ANNOTATION, acl_secret, auth_secret, operator_rules_unfenced, password_matches,
    replication_rules_beside, source,
};
pub use services::routed_pod;

/// Port of clients and replicas.
pub const CLIENT_PORT: u16 = 6379;
/// Port on which data pods of Replication boot: nobody but the operator connects to it, so a server that came back
/// without its data takes no writes and gives nothing to copy until the operator opened [`CLIENT_PORT`].
pub const FENCE_PORT: u16 = 6399;
/// Address of nobody, which data pods of Replication boot with as their primary.
pub const NOBODY: (&str, u16) = ("127.0.0.1", 1);
/// Name of the container of the server, and of its port.
pub const SERVER: &str = "valkey";

/// The ValkeyCluster that objects belong to.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Its name.
    pub name: &'a ClusterName,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// The value of its annotation [`RESTART`](wellcake_crds::annotations::RESTART): a new one is a new template of the pods.
    pub restart: Option<&'a str>,
    /// Whether it is to hibernate: no pods are asked for. Those that are there are taken away in order (see [`over_live`]).
    pub asleep: bool,
}

/// An object as the spec asks for it, or `None` when the spec asks for none: the Services of roles exist for topology
/// Replication only, the disruption budget as [`defaults::disruption_budget`] says, and [`Object::Credentials`] is never
/// rendered from the spec alone (see [`auth_secret`] and [`acl_secret`]).
///
/// `route` is the pod that the client Services name. It has no part in the applied hash; pass the pod that the live
/// Service names ([`routed_pod`]) where there is one, so that applying an object never moves traffic.
pub fn object(
    object: Object,
    owner: &Owner<'_>,
    spec: &ValkeyClusterSpec,
    route: Ordinal,
) -> Option<Value> {
    let roles = spec.topology == Topology::Replication;
    let rendered = match object {
        Object::Credentials => return None,
        Object::Config => config::config_map(owner, spec),
        Object::HeadlessService => services::headless(owner, spec),
        Object::ReplicasService if roles => services::replicas(owner, spec),
        Object::PrimaryService if roles => {
            services::routed(owner, spec, owner.name.primary_service(), route)
        }
        Object::ReplicasService | Object::PrimaryService => return None,
        Object::ClientService => services::routed(owner, spec, owner.name.client_service(), route),
        Object::StatefulSet => stateful_set::stateful_set(owner, spec),
        Object::DisruptionBudget => {
            disruption::budget(owner, spec, &defaults::disruption_budget(spec)?)
        }
    };
    Some(metadata::with_applied_hash(rendered))
}

/// Name of an object, also of one that the spec does not ask for. For [`Object::Credentials`] that of the Secret that
/// the pods mount.
pub fn name_of(object: Object, owner: &Owner<'_>, spec: &ValkeyClusterSpec) -> String {
    let name = owner.name;
    match object {
        Object::Credentials => name.acl_secret(),
        Object::Config => name.config_revision(&config_digest(spec)),
        Object::HeadlessService => name.headless_service(),
        Object::ReplicasService => name.replicas_service(),
        Object::ClientService => name.client_service(),
        Object::PrimaryService => name.primary_service(),
        Object::StatefulSet => name.stateful_set(),
        Object::DisruptionBudget => name.disruption_budget(),
    }
}
