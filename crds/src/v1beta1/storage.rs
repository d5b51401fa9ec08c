//! Where the data lives and how it is persisted.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which persistence files the server writes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StorageMode {
    /// Snapshots only.
    #[default]
    Rdb,
    /// Append-only file only.
    Aof,
    /// Snapshots and append-only file.
    Both,
    /// Nothing is written.
    None,
}

impl StorageMode {
    /// True if the server keeps an append-only file.
    pub const fn has_aof(self) -> bool {
        matches!(self, Self::Aof | Self::Both)
    }

    /// True if the server takes snapshots by itself.
    pub const fn has_rdb(self) -> bool {
        matches!(self, Self::Rdb | Self::Both)
    }
}

/// What the data directory is made of.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[schemars(inline)]
pub enum StorageMedium {
    /// One PersistentVolumeClaim per pod.
    #[default]
    Disk,
    /// An emptyDir in memory, lost with the pod.
    Memory,
}

/// Storage of one data pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct StorageSpec {
    /// Size of the volume of each data pod. Default: `1Gi` for profile Cache, `10Gi` for profile Durable; the schema
    /// sets none, so a storage block without size gets the profile's value. It can only grow: the claims are expanded
    /// in place if the storage class allows that. For medium Memory it limits the tmpfs, within the pod's memory limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,

    /// StorageClass of the volumes. Default: the class that Kubernetes marks as default; an empty string asks for
    /// volumes that were created by hand. Cannot be changed, added or removed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    )]
    pub storage_class_name: Option<String>,

    /// Persistence: `rdb` (snapshots), `aof` (append-only file), `both` or `none`. Default when the storage block is
    /// present: `rdb`, for both profiles, so a Durable cluster with a storage block should say `mode: both`. Default
    /// when the whole block is absent: `none` for profile Cache, `both` for profile Durable. Medium Memory always
    /// means none. Cannot be changed later, also not by adding or removing the block.
    #[serde(default)]
    pub mode: StorageMode,

    /// `Disk` (one PersistentVolumeClaim per pod) or `Memory` (an emptyDir in memory: no claim, counts against the
    /// pod's memory limit, lost with the pod). Default: `Disk`. Memory is refused for profile Durable. Cannot be
    /// changed later, also not by adding or removing the block.
    #[serde(default)]
    pub medium: StorageMedium,
}
