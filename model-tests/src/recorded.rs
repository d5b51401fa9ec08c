//! Traces of operators (`docs/reference/trace.md`), decided again by the present core.

use std::io::BufRead;

use serde::Deserialize;
use thiserror::Error;
use wellcake_core::effects::{Decision, Effect};
use wellcake_core::facts::{Hints, Observation, SpecFacts, Tick};
use wellcake_core::step;

/// Version of the schema that is read.
pub const SCHEMA: u64 = 4;
/// Longest line that is read, in bytes: a pass over 100 pods has about 60 KiB.
const LONGEST: u64 = 4 * 1024 * 1024;

/// Why a trace cannot be read any further.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("line {line}: the file cannot be read: {why}")]
    File {
        /// Number of the line, from 1.
        line: usize,
        /// What the system says.
        why: std::io::Error,
    },
    /// A line is too long.
    #[error("line {line} is longer than 4 MiB; this is no trace, or a damaged one")]
    TooLong {
        /// Number of the line.
        line: usize,
    },
    /// A line is no line of a trace.
    #[error("line {line} is no line of a trace: {why}")]
    Line {
        /// Number of the line.
        line: usize,
        /// What the parser says.
        why: serde_json::Error,
    },
    /// Another schema.
    #[error(
        "line {line} is of schema {schema}, and this program reads schema {SCHEMA}: use the program of the release that wrote it"
    )]
    Schema {
        /// Number of the line.
        line: usize,
        /// The schema.
        schema: u64,
    },
}

/// One look of an operator, what it decided on it, and how that ended.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Number of its line in the trace.
    pub line: usize,
    /// Wall clock.
    pub time: String,
    /// What was asked for.
    pub spec: SpecFacts,
    /// What was seen.
    pub seen: Observation,
    /// Hints.
    pub hints: Hints,
    /// The moment of the decision.
    pub now: Tick,
    /// What was decided.
    pub decision: Decision,
    /// How effects ended, of this pass or of the batch of an earlier one.
    pub outcomes: Vec<Outcome>,
}

/// How an effect ended.
#[derive(Clone, Debug, Deserialize)]
pub struct Outcome {
    /// The effect.
    pub effect: Effect,
    /// `done`, `refused`, `failed` or `timed_out`.
    pub outcome: String,
    /// Why, unless it is done.
    pub why: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

impl Moment {
    /// What the present core decides on the same facts, if that is something else than what was decided.
    pub fn decided_otherwise(&self) -> Option<Decision> {
        let again = step(&self.spec, &self.seen, &self.hints, self.now);
        (again != self.decision).then_some(again)
    }
}

#[derive(Deserialize)]
struct Head {
    schema: u64,
    kind: String,
    time: String,
}

#[derive(Deserialize)]
struct Pass {
    spec: SpecFacts,
    seen: Observation,
    hints: Hints,
    now: Tick,
    decision: Decision,
}

#[derive(Deserialize)]
struct Outcomes {
    outcomes: Vec<Outcome>,
}

/// Reads a trace, moment by moment. A last line that was cut off, as a crash leaves it, ends the trace; `cut` says so.
pub fn read(mut from: impl BufRead) -> Result<Trace, TraceError> {
    let mut trace = Trace::default();
    for line in 1.. {
        let mut text = Vec::new();
        let mut limited = std::io::Read::take(&mut from, LONGEST);
        limited
            .read_until(b'\n', &mut text)
            .map_err(|why| TraceError::File { line, why })?;
        let whole = text.ends_with(b"\n");
        if text.is_empty() {
            break;
        }
        if !whole && text.len() as u64 == LONGEST {
            return Err(TraceError::TooLong { line });
        }
        match trace.take(line, &text) {
            Err(TraceError::Line { .. }) if !whole => {
                trace.cut = true;
                break;
            }
            outcome => outcome?,
        }
    }
    Ok(trace)
}

/// A trace that was read.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its moments, in order.
    pub moments: Vec<Moment>,
    /// Whether its last line was cut off.
    pub cut: bool,
}

impl Trace {
    fn take(&mut self, line: usize, text: &[u8]) -> Result<(), TraceError> {
        let wrong = |why| TraceError::Line { line, why };
        let head: Head = serde_json::from_slice(text).map_err(wrong)?;
        if head.schema != SCHEMA {
            let schema = head.schema;
            return Err(TraceError::Schema { line, schema });
        }
        match head.kind.as_str() {
            "pass" => {
                let pass: Pass = serde_json::from_slice(text).map_err(wrong)?;
                self.moments.push(Moment {
                    line,
                    time: head.time,
                    spec: pass.spec,
                    seen: pass.seen,
                    hints: pass.hints,
                    now: pass.now,
                    decision: pass.decision,
                    outcomes: Vec::new(),
                });
            }
            "outcomes" => {
                let body: Outcomes = serde_json::from_slice(text).map_err(wrong)?;
                if let Some(moment) = self.moments.last_mut() {
                    moment.outcomes.extend(body.outcomes);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
