//! Types of the API group `cache.wellcake.io`.

pub mod v1beta1;
