//! Version `v1alpha1`: served, not stored, with the identical schema.
//!
//! Spec and status are the very types of [`crate::v1beta1`]; only the version in `apiVersion` differs, so conversion
//! (strategy None: the API server relabels) loses nothing.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::v1beta1;

/// Name of this version.
pub const VERSION: &str = "v1alpha1";

/// `apiVersion` of objects of this version.
pub const API_VERSION: &str = "cache.wellcake.io/v1alpha1";

macro_rules! kind {
    ($kind:ident, $plural:literal, $spec:ty, $status:ty) => {
        #[doc = concat!("The kind ", stringify!($kind), " as version v1alpha1 writes it.")]
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        pub struct $kind {
            /// Name, namespace, labels and what Kubernetes keeps beside them.
            pub metadata: ObjectMeta,
            /// What the user asks for.
            pub spec: $spec,
            /// What the operator says.
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_struct(stringify!($kind), 5)?;
                object.serialize_field("apiVersion", API_VERSION)?;
                object.serialize_field("kind", stringify!($kind))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                match &self.status {
                    Some(status) => object.serialize_field("status", status)?,
                    None => object.skip_field("status")?,
                }
                object.end()
            }
        }

        impl Resource for $kind {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                v1beta1::GROUP.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                VERSION.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }

        impl From<$kind> for v1beta1::$kind {
            fn from(old: $kind) -> Self {
                Self {
                    metadata: old.metadata,
                    spec: old.spec,
                    status: old.status,
                }
            }
        }

        impl From<v1beta1::$kind> for $kind {
            fn from(hub: v1beta1::$kind) -> Self {
                Self {
                    metadata: hub.metadata,
                    spec: hub.spec,
                    status: hub.status,
                }
            }
        }
    };
}

kind!(
    ValkeyCluster,
    "valkeyclusters",
    v1beta1::ValkeyClusterSpec,
    v1beta1::ValkeyClusterStatus
);
kind!(
    ValkeyACL,
    "valkeyacls",
    v1beta1::ValkeyACLSpec,
    v1beta1::ValkeyACLStatus
);
