//! The definitions against a real API server: what it accepts, refuses (with which sentence), fills in, keeps and
//! explains.
//!
//! The server is the one of `KUBECONFIG`, else of `.local/kubeconfig` in the work tree. Most objects are only offered
//! (`dryRun=All`). Those that must be stored are deleted at once and held by a finalizer, and ask for a node that does not
//! exist, so that an operator in the same Kubernetes leaves them alone; each test has a namespace of its own.

mod bounds;
mod cases;
mod changes;
mod defaults;
mod definitions;
mod objects;
mod round_trip;
mod rules;
mod server;
mod status;
mod strict;
