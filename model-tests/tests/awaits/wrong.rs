//! An interpreter that is wrong on purpose, as it looks from outside: what it sends is altered on its way.

use crate::api::Request;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing.
    Nothing,
    /// It goes on before the record of a promotion is written.
    RecordUnawaited,
    /// Its writes name no version that they were decided on.
    NoVersions,
    /// A new leader leaves the connections of the one before.
    LeavesConnections,
}

impl Wrong {
    /// How long the record is written after it was told as written, in milliseconds.
    pub const fn delay(self) -> u64 {
        200
    }

    /// All that are wrong.
    pub const ALL: [Self; 3] = [
        Self::RecordUnawaited,
        Self::NoVersions,
        Self::LeavesConnections,
    ];

    /// Whether connections of an earlier leader are left.
    pub fn leaves_connections(self) -> bool {
        self == Self::LeavesConnections
    }

    /// Alters a request.
    pub fn alter(self, request: &mut Request) {
        if self == Self::NoVersions
            && let Some(metadata) = request
                .body
                .get_mut("metadata")
                .and_then(|it| it.as_object_mut())
        {
            metadata.remove("resourceVersion");
        }
    }
}
