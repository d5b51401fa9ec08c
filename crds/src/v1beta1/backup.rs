//! Snapshots to S3 and back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scheduled snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct BackupSpec {
    /// Whether snapshots are taken and uploaded on schedule. Default: `false`. `true` needs `s3`.
    #[serde(default)]
    pub enabled: bool,

    /// When snapshots are taken: five cron fields or a macro such as `@daily`, in UTC. Default: `0 3 * * *`.
    #[serde(default = "default_schedule")]
    #[schemars(
        length(min = 1, max = 128),
        regex(
            pattern = r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every [0-9a-z.]+|[0-9A-Za-z*?/,#-]+( +[0-9A-Za-z*?/,#-]+){4})$"
        )
    )]
    pub schedule: String,

    /// Number of snapshots that are kept, 0 or more; 0 keeps all. Default: 7. In topology Cluster it counts for each
    /// shard.
    #[serde(default = "default_retention")]
    #[schemars(range(min = 0, max = 10000))]
    pub retention: i32,

    /// Image of the step that takes the snapshot. Default, also when empty: `spec.image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 512),
        regex(pattern = r"^([A-Za-z0-9\[][A-Za-z0-9._/:@\[\]-]*)?$")
    )]
    pub image: Option<String>,

    /// Image of the step that uploads. Default: `amazon/aws-cli:2.15.0`.
    #[serde(default = "default_aws_cli_image", rename = "awsCLIImage")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9\[][A-Za-z0-9._/:@\[\]-]*$")
    )]
    pub aws_cli_image: String,

    /// Where snapshots go. Required when `enabled` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Spec>,
}

/// Encryption of objects by the S3 service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum S3Encryption {
    /// SSE-S3, keys of the service.
    #[serde(rename = "AES256")]
    Aes256,
    /// SSE-KMS.
    #[serde(rename = "KMS")]
    Kms,
}

impl S3Encryption {
    /// The value that S3 itself knows (`x-amz-server-side-encryption`).
    pub const fn as_s3(self) -> &'static str {
        match self {
            Self::Aes256 => "AES256",
            Self::Kms => "aws:kms",
        }
    }
}

/// A place in an S3-compatible store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct S3Spec {
    /// Name of the bucket. Required. Letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = 255))]
    pub bucket: String,

    /// URL of an S3-compatible store, with `http://` or `https://`. Default, also when empty: Amazon S3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub endpoint: Option<String>,

    /// Region of the bucket. Default: `us-east-1`.
    #[serde(default = "default_region")]
    #[schemars(length(min = 1, max = 64))]
    pub region: String,

    /// Prefix of the object keys. Default: none. Letters, digits and `_ . / = + @ : , -`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub prefix: Option<String>,

    /// Name of a Secret in the same namespace with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. Required.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub credentials_secret: String,

    /// Encryption by the service: `AES256` (SSE-S3) or `KMS` (SSE-KMS). Default: none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "S3Encryption")]
    pub encryption: Option<S3Encryption>,

    /// Id, ARN or alias of the KMS key. Default: the account's own key. Only with `encryption: KMS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub kms_key_id: Option<String>,
}

/// A snapshot that the cluster starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RestoreSpec {
    /// Where the snapshot is. Required.
    pub s3: S3Spec,

    /// Exact key of the object. Required. In topology Cluster it must hold `{shard}`, which becomes the number of each
    /// shard, so that every shard loads its own snapshot.
    #[schemars(length(min = 1, max = 1024))]
    pub source_key: String,

    /// Image of the step that downloads. Default: `amazon/aws-cli:2.15.0`.
    #[serde(default = "default_aws_cli_image", rename = "awsCLIImage")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9\[][A-Za-z0-9._/:@\[\]-]*$")
    )]
    pub aws_cli_image: String,
}

impl Default for BackupSpec {
    fn default() -> Self {
        Self {
            enabled: false,
            schedule: default_schedule(),
            retention: default_retention(),
            image: None,
            aws_cli_image: default_aws_cli_image(),
            s3: None,
        }
    }
}

fn default_schedule() -> String {
    "0 3 * * *".to_owned()
}

fn default_retention() -> i32 {
    7
}

fn default_aws_cli_image() -> String {
    "amazon/aws-cli:2.15.0".to_owned()
}

fn default_region() -> String {
    "us-east-1".to_owned()
}
