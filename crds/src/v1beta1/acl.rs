//! The kind ValkeyACL: users of a cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PasswordSecret;

/// The users that a cluster should have.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cache.wellcake.io",
    version = "v1beta1",
    kind = "ValkeyACL",
    plural = "valkeyacls",
    shortname = "vkacl",
    namespaced,
    status = "ValkeyACLStatus",
    derive = "PartialEq",
    doc = "Users of a ValkeyCluster and what each may do.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterRef.name",
        description = "The cluster"
    ),
    printcolumn(
        name = "Users",
        type_ = "integer",
        json_path = ".status.appliedUserCount",
        description = "Users that the servers have"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyACLSpec {
    /// The cluster that gets the users. Required.
    pub cluster_ref: ClusterRef,

    /// The users, at most 128, each name once. Default: none. A user that is taken out is deleted on the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub users: Vec<ValkeyACLUser>,
}

/// Reference to a ValkeyCluster in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClusterRef {
    /// Name of the ValkeyCluster, in the same namespace. Required.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
}

/// One user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ValkeyACLUser {
    /// Name of the user. Required; no blanks, quotes or backslashes. The names `default`, `replicator`, `sentinel-user` and `valkey-operator`
    /// are the operator's.
    #[schemars(
        length(min = 1, max = 128),
        regex(pattern = r#"^[^\s"'\\\x00-\x1f\x7f]+$"#)
    )]
    pub name: String,

    /// What the user may do, in Valkey's ACL words, for example `on ~app:* +@read`. Default: `off`. Each time the user is
    /// set anew from these rules alone. Passwords do not belong here, use `passwordSecret`.
    #[serde(default = "default_rules")]
    #[schemars(length(max = 4096), regex(pattern = r"^[^\x00-\x1f\x7f]*$"))]
    pub rules: String,

    /// Secret with the user's password. Default: none, the user logs in without a password (`nopass`); give it few
    /// rights then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<PasswordSecret>,
}

/// What the operator says about the users of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyACLStatus {
    /// Names of the users that the servers have, `default` not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "set"))]
    pub applied_users: Vec<String>,

    /// Number of users that the servers have, `default` not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_user_count: Option<i32>,

    /// The `metadata.generation` that this status speaks of; -1 until the operator has looked at the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Available, with reason Applied, ClusterNotReady, ClusterMissing or PrimaryUnreachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

fn default_rules() -> String {
    "off".to_owned()
}
