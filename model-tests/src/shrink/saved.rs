//! A run in a file of JSON lines: a [`Head`], then one [`Action`] a line.

use serde::{Deserialize, Serialize};

use crate::actions::Action;
use crate::dive::Start;
use crate::invariants::Violation;
use crate::museum::{PieceError, events_of};
use crate::operator::Brain;
use crate::random::End;

/// Version of the schema that is written and read.
pub const SCHEMA: u64 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Version of the schema.
    pub run: u64,
    /// The seed of the run that this was a part of.
    pub seed: u64,
    /// The world in which it begins.
    pub start: Start,
    /// The invariant that it broke.
    pub breaks: String,
    /// The name of the decision that decided, when that was one that is wrong on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Its first line.
    pub head: Head,
    /// Its events.
    pub events: Vec<Action>,
}

#[derive(Deserialize)]
struct Version {
    run: u64,
}

impl Saved {
    /// Whether a text begins as a run does, of whatever version.
    pub fn begins(first_line: &str) -> bool {
        serde_json::from_str::<Version>(first_line).is_ok()
    }

    /// Reads a run from its text.
    ///
    /// # Errors
    ///
    /// The first line that is damaged, of another schema, or names what cannot happen.
    pub fn parse(text: &str) -> Result<Self, PieceError> {
        let first = text.lines().next().ok_or(PieceError::Empty)?;
        let no_head = |why| PieceError::Line {
            line: 1,
            not: "no head of a run",
            why,
        };
        let version: Version = serde_json::from_str(first).map_err(no_head)?;
        if version.run != SCHEMA {
            let schema = version.run;
            return Err(PieceError::Schema { schema });
        }
        let head: Head = serde_json::from_str(first).map_err(no_head)?;
        let events = events_of(text, head.start.pods)?;
        Ok(Self { head, events })
    }

    /// The text, with an end of line after each line.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string(&self.head)?;
        text.push('\n');
        for event in &self.events {
            text.push_str(&serde_json::to_string(event)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Lets it happen again. `trace` gets a line for each event when it is given.
    ///
    /// # Errors
    ///
    /// The invariant that breaks.
    pub fn replay(&self, brain: Brain, trace: Option<&mut String>) -> Result<End, Violation> {
        self.head.start.replay(&self.events, brain, trace)
    }
}
