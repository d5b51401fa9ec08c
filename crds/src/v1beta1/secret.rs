//! Reference to a password in a Secret.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A key of a Secret in the namespace of the object that refers to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct PasswordSecret {
    /// Name of the Secret, in the same namespace. Required.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Key in the Secret that holds the raw password. Default: `password`.
    #[serde(default = "default_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

fn default_key() -> String {
    "password".to_owned()
}
