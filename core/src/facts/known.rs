//! Knowledge of three states: a failed look is neither a yes nor a no.

use serde::{Deserialize, Serialize};

use super::{Millis, Tick};

/// A value with the moment it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamped<T> {
    /// When the answer arrived.
    pub at: Tick,
    /// The answer.
    pub value: T,
}

/// What is known of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Known<T> {
    /// It was looked for where it would be, and it is not there.
    Absent,
    /// It could not be looked at: it may be anything. `last` is what was known before, if anything.
    Maybe {
        /// Since when looking has failed.
        since: Tick,
        /// What was last seen.
        last: Option<Stamped<T>>,
    },
    /// It was seen.
    Seen(Stamped<T>),
}

impl<T> Known<T> {
    /// A value seen at `at`.
    pub const fn seen(at: Tick, value: T) -> Self {
        Self::Seen(Stamped { at, value })
    }

    /// Never looked at so far.
    pub const fn unknown(since: Tick) -> Self {
        Self::Maybe { since, last: None }
    }

    /// The value, if it is seen now, however long ago it was read.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Seen(stamped) => Some(&stamped.value),
            Self::Absent | Self::Maybe { .. } => None,
        }
    }

    /// The value, if it was read at most `age` ago.
    pub fn fresh(&self, now: Tick, age: Millis) -> Option<&T> {
        match self {
            Self::Seen(stamped) if now.since(stamped.at) <= age => Some(&stamped.value),
            _ => None,
        }
    }

    /// The value, if it was read at most `age` ago, even if it cannot be seen now.
    pub fn recent(&self, now: Tick, age: Millis) -> Option<&T> {
        match self {
            Self::Seen(stamped)
            | Self::Maybe {
                last: Some(stamped),
                ..
            } if now.since(stamped.at) <= age => Some(&stamped.value),
            _ => None,
        }
    }

    /// The value that was seen last, even if it cannot be seen now.
    pub const fn last(&self) -> Option<&T> {
        match self {
            Self::Seen(stamped)
            | Self::Maybe {
                last: Some(stamped),
                ..
            } => Some(&stamped.value),
            Self::Absent | Self::Maybe { last: None, .. } => None,
        }
    }

    /// Whether it was looked for and is not there.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: Copy> Known<T> {
    /// The same thing after a look that failed at `now`.
    #[must_use]
    pub fn failed(self, now: Tick) -> Self {
        match self {
            Self::Absent => Self::unknown(now),
            Self::Maybe { .. } => self,
            Self::Seen(stamped) => Self::Maybe {
                since: now,
                last: Some(stamped),
            },
        }
    }
}
