//! What is built once and kept in the user's cache.

pub mod go;
pub mod images;
pub mod llvm;
pub mod oci;
pub mod operator;
pub mod rootfs;
pub mod store;
pub mod wheel;
