//! Who may talk to the servers: authentication and TLS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::enabled;

/// Password of the default user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AuthSpec {
    /// Whether clients must give a password. Default: `true`, also when the whole auth block is absent. Only an
    /// explicit `false` opens the servers to everyone who can reach them; replicas authenticate in any case.
    #[serde(default = "enabled")]
    pub enabled: bool,

    /// Name of a Secret in the same namespace whose key `password` holds the password. Default, also when empty: the
    /// operator creates the Secret `<name>-auth` with a random password of 32 characters and never overwrites it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    )]
    pub existing_secret: Option<String>,
}

impl Default for AuthSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            existing_secret: None,
        }
    }
}

/// Encryption of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct TlsSpec {
    /// Whether the servers speak TLS, and only TLS, on port 6380. Default: `false`. A cluster with `true` never gets a
    /// plaintext server: until a certificate is there, no pod is created and a condition says what is missing.
    #[serde(default)]
    pub enabled: bool,

    /// The cert-manager issuer that signs the certificate in the Secret `<name>-tls`. Default: none. Ignored when
    /// `existingSecret` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_ref: Option<CertIssuerRef>,

    /// Name of a Secret in the same namespace with `tls.crt`, `tls.key` and `ca.crt`. Default, also when empty: the
    /// Secret `<name>-tls`, which `issuerRef` fills or which you create yourself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    )]
    pub existing_secret: Option<String>,

    /// Whether clients must present a certificate of the same CA (`tls-auth-clients yes`). Default: `false`, which asks
    /// for one but does not insist. Pods always present one to each other.
    #[serde(default, rename = "mutualTLS")]
    pub mutual_tls: bool,
}

/// Kind of a cert-manager issuer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum IssuerKind {
    /// Issuer of the cluster's namespace.
    #[default]
    Issuer,
    /// Issuer for all namespaces.
    ClusterIssuer,
}

/// Reference to a cert-manager issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CertIssuerRef {
    /// Name of the issuer. Required.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// `Issuer` (same namespace) or `ClusterIssuer`. Default: `Issuer`.
    #[serde(default)]
    pub kind: IssuerKind,

    /// API group of the issuer, for issuers that are not cert-manager's own. Default, also when empty:
    /// `cert-manager.io`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    )]
    pub group: Option<String>,
}
