//! Whether this process may act.

use tokio::time::Instant;
use wellcake_core::exec::Authority;

use crate::clock::Clock;

/// Leadership, as the process that takes part in the election publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another process leads, or none.
    Follower,
    /// This process leads.
    Leader {
        /// `spec.leaseTransitions` of the Lease.
        epoch: u64,
        /// When it must stop acting unless the Lease was renewed.
        valid_until: Instant,
    },
}

impl Leadership {
    /// Whether it holds now.
    pub fn holds(self) -> bool {
        matches!(self, Self::Leader { valid_until, .. } if Instant::now() < valid_until)
    }

    /// The epoch of a leader.
    pub const fn epoch(self) -> Option<u64> {
        match self {
            Self::Follower => None,
            Self::Leader { epoch, .. } => Some(epoch),
        }
    }

    /// In the core's words.
    pub fn authority(self, clock: &Clock) -> Authority {
        match self {
            Self::Follower => Authority::Follower,
            Self::Leader { epoch, valid_until } => Authority::Leader {
                epoch,
                valid_until: clock.tick(valid_until),
            },
        }
    }
}
