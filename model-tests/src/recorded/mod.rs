//! Traces of operators (`docs/reference/trace.md`), decided again by the present core.
//!
//! * [`read`](mod@read): reads them, moment by moment;
//! * [`write`](mod@write): writes what the operators of a simulated world see and do in the same form;
//! * [`hour`]: a trace of an hour in which something goes wrong every minute.

pub mod hour;
pub mod read;
pub mod write;

use serde::{Deserialize, Serialize};
use wellcake_core::effects::{Decision, Effect};
use wellcake_core::facts::{Hints, Observation, SpecFacts, Tick};
use wellcake_core::step;

pub use read::{Moments, TraceError};

/// Version of the schema that is read.
pub const SCHEMA: u64 = 4;

/// One look of an operator, what it decided on it, and how that ended.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Number of its line in the trace, from 1.
    pub line: usize,
    /// Wall clock, RFC 3339.
    pub time: String,
    /// The ValkeyCluster, as `namespace/name`.
    pub cluster: String,
    /// Which of the operator processes that wrote the trace, from 0: numbers of uids and of servers mean something within one.
    pub process: u32,
    /// What happened to the world before, in words; only traces of simulated worlds tell.
    pub happened: Vec<String>,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The effect.
    pub effect: Effect,
    /// What became of it.
    pub outcome: Ending,
    /// Why, unless it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// What became of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was done.
    Done,
    /// Its guard did not hold any more.
    Refused,
    /// It was not done.
    Failed,
    /// It may have happened.
    TimedOut,
}

impl Ending {
    /// In words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
        }
    }

    /// Whether it may have happened.
    pub const fn may_have_happened(self) -> bool {
        matches!(self, Self::Done | Self::TimedOut)
    }
}

impl Moment {
    /// What the present core decides on the same facts, if that is something else than what was decided.
    pub fn decided_otherwise(&self) -> Option<Decision> {
        let again = step(&self.spec, &self.seen, &self.hints, self.now);
        (again != self.decision).then_some(again)
    }
}
