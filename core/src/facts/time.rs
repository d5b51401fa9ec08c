//! Time as the core sees it: milliseconds on a monotonic clock whose origin means nothing.

use serde::{Deserialize, Serialize};

/// A moment in milliseconds since an arbitrary origin; only differences have a meaning.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tick(pub u64);

/// A span in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Millis(pub u64);

impl Tick {
    /// Time since `earlier`; zero when `earlier` lies in the future, as it may when two clocks disagree.
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` later.
    pub const fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Millis {
    /// A span of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }
}
