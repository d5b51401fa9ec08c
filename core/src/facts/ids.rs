//! Small stand-ins for the long identities of the outside world.
//!
//! Uids, run ids and replication ids are strings of 36 to 40 characters. The edge interns them, so that the core copies
//! and compares two bytes. A table is never shortened: the same string keeps its number for the life of the process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u16);
    };
}

identity!(
    /// Uid of a pod object.
    PodUid
);
identity!(
    /// Uid of a PersistentVolumeClaim.
    ClaimUid
);
identity!(
    /// `run_id` of a server process: a new one with each start (`server.c: getRandomHexChars(server.runid)`).
    RunId
);
identity!(
    /// Replication id (`master_replid`): names one history of writes.
    Replid
);

/// Number of a pod in its StatefulSet.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ordinal(pub u8);

impl Ordinal {
    /// Place in a list of pods by ordinal.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Position in a replication stream in bytes (`master_repl_offset`, `slave_repl_offset`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Offset(pub u64);

/// Number of a promotion; the first primary has 1, 0 means that there was none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch of the next promotion.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Table of strings and their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interner {
    numbers: BTreeMap<String, u16>,
}

/// Number that all strings share once a table is full; equality of two of them proves nothing, so nothing may be
/// decided from it.
pub const OVERFLOW: u16 = u16::MAX;

impl Interner {
    /// The number of a string, a new one if it was never seen.
    pub fn number(&mut self, text: &str) -> u16 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u16::try_from(self.numbers.len()).unwrap_or(OVERFLOW);
        if number < OVERFLOW {
            self.numbers.insert(text.to_owned(), number);
        }
        number
    }

    /// The string of a number.
    pub fn text(&self, number: u16) -> Option<&str> {
        self.numbers
            .iter()
            .find_map(|(text, n)| (*n == number).then_some(text.as_str()))
    }

    /// Whether most numbers are used up and the owner should start anew with an empty table.
    pub fn is_crowded(&self) -> bool {
        self.numbers.len() > usize::from(OVERFLOW / 2)
    }
}
