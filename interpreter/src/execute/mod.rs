//! Carries effects out: one function for each, none of which decides or tries twice.

mod kubernetes;
mod merge;
mod request;
mod valkey;

use thiserror::Error;

pub use kubernetes::{Kubernetes, StatusPatch};
pub use merge::difference;
pub use request::{Request, request};

/// How an effect that was admitted failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// Its guard does not hold any more.
    #[error("{0}")]
    Guard(wellcake_core::effects::GuardFailure),
    /// No answer in time: it may have happened.
    #[error("no answer within {0} s; whether it happened is seen later")]
    TimedOut(u64),
    /// Kubernetes refused it.
    #[error("Kubernetes refused it: {}", crate::brief::Brief(.0))]
    Kubernetes(#[source] Box<kube::Error>),
    /// The server did not do it.
    #[error("{0}")]
    Valkey(#[from] crate::valkey::Failure),
    /// What it needs is not there any more.
    #[error("{0}")]
    Vanished(&'static str),
}

impl Failure {
    /// Whether the object changed meanwhile: what is known is old, and nothing is wrong.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Kubernetes(why) if matches!(&**why, kube::Error::Api(status) if status.is_conflict()))
    }

    /// Name of the outcome in metrics and traces.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Guard(_) => "refused",
            Self::TimedOut(_) | Self::Valkey(crate::valkey::Failure::TimedOut) => "timed_out",
            _ => "failed",
        }
    }
}
