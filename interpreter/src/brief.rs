//! Errors of the Kubernetes client in one sentence.

use std::fmt;

/// Shows an error as the API server's own message, without the whole status object that the client would print.
pub struct Brief<'a>(pub &'a kube::Error);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            kube::Error::Api(status) => {
                write!(f, "{} ({} {})", status.message, status.code, status.reason)
            }
            other => other.fmt(f),
        }
    }
}
