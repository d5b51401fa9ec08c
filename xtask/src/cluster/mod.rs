//! The local Kubernetes: three nodes, a control plane and what belongs to it, all as processes of this machine.

pub mod addons;
pub mod cgroups;
pub mod control_plane;
pub mod leftovers;
pub mod mounts;
pub mod network;
pub mod nodes;
pub mod start;
