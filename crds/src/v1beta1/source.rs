//! Following a primary that another operator or nobody manages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PasswordSecret;

/// An external primary that the cluster follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ReplicateFromSpec {
    /// Name or IP address of the source primary. Required.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[A-Za-z0-9:]([A-Za-z0-9.:_-]*[A-Za-z0-9:.])?$")
    )]
    pub host: String,

    /// Port of the source primary. Default: 6379.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// Secret with the password of the source. Default: none, the source is asked without one; the password of this
    /// cluster is never offered to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<PasswordSecret>,

    /// Whether the source speaks TLS. Default: `false`. `true` needs `spec.tls.enabled`, since the pods present their own
    /// certificate.
    #[serde(default)]
    pub tls: bool,

    /// Secret with the CA of the source, trusted in addition to the CA of this cluster. Default: none. Needs
    /// `tls: true` here and `spec.tls.enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<SourceCaSecret>,
}

/// A key of a Secret that holds CA certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct SourceCaSecret {
    /// Name of the Secret, in the same namespace. Required.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Key in the Secret that holds the certificates in PEM form. Default: `ca.crt`.
    #[serde(default = "default_ca_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

fn default_port() -> i32 {
    6379
}

fn default_ca_key() -> String {
    "ca.crt".to_owned()
}
