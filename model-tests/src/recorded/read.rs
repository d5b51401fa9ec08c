//! Reads traces, with no more of them in memory than one pass and the line after it.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use serde::Deserialize;
use thiserror::Error;
use wellcake_core::effects::Decision;
use wellcake_core::facts::{Hints, Observation, SpecFacts, Tick};
use wellcake_core::limits;

use super::{Moment, Outcome, SCHEMA};

/// Longest line that is read, in bytes: a pass over 100 pods has about 60 KiB.
const LONGEST: u64 = 4 * 1024 * 1024;
/// Most outcomes of one pass: a decision over 100 pods has a few hundred effects.
const OUTCOMES: usize = 10_000;
/// Most events before one pass.
const EVENTS: usize = 10_000;

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
    /// A line lacks what its kind has.
    #[error("line {line} is no line of a trace: its kind is `{kind}`, and it has no `{field}`")]
    Field {
        /// Number of the line.
        line: usize,
        /// Its kind.
        kind: &'static str,
        /// What is missing.
        field: &'static str,
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
    /// More pods than a cluster has.
    #[error(
        "line {line} has {pods} pods, and a ValkeyCluster has {} at most; this trace is damaged",
        limits::MAX_PODS
    )]
    Pods {
        /// Number of the line.
        line: usize,
        /// Pods.
        pods: usize,
    },
    /// More of something for one pass than there can be.
    #[error("line {line}: more than {most} {what} belong to one pass; this trace is damaged")]
    TooMany {
        /// Number of the line.
        line: usize,
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
}

/// Every field of every kind of line: one look at the text is enough for all of them.
#[derive(Deserialize)]
struct Line {
    schema: u64,
    kind: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    names: Option<Names>,
    spec: Option<SpecFacts>,
    seen: Option<Observation>,
    hints: Option<Hints>,
    now: Option<Tick>,
    decision: Option<Decision>,
    outcomes: Option<Vec<Outcome>>,
    happened: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    schema: u64,
}

#[derive(Deserialize, Default)]
struct Names {
    numbers: BTreeMap<String, u16>,
}

impl Names {
    /// Whether one process may have written both: it never gives a name another number.
    fn continues(&self, before: &Self) -> bool {
        let mut all = before.numbers.iter();
        all.all(|(name, number)| self.numbers.get(name) == Some(number))
    }
}

/// The moments of a trace, in order. It ends with the first line that cannot be read; a last line that was cut off, as a crash
/// leaves it, ends it without an error.
pub struct Moments<R> {
    from: R,
    line: usize,
    text: Vec<u8>,
    names: Names,
    process: u32,
    happened: Vec<String>,
    pending: Option<Moment>,
    cut: bool,
    over: bool,
}

impl<R: BufRead> Moments<R> {
    /// At the beginning.
    pub fn new(from: R) -> Self {
        Self {
            from,
            line: 0,
            text: Vec::new(),
            names: Names::default(),
            process: 0,
            happened: Vec::new(),
            pending: None,
            cut: false,
            over: false,
        }
    }

    /// Whether the last line was cut off and left out, as far as was read.
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Lines that were read.
    pub const fn lines(&self) -> usize {
        self.line
    }

    /// Reads lines until a moment is complete; `None` at the end.
    fn advance(&mut self) -> Result<Option<Moment>, TraceError> {
        while self.read_line()? {
            let line = self.line;
            let whole = self.text.ends_with(b"\n");
            let parsed = match self.parse() {
                Err(TraceError::Line { .. }) if !whole => {
                    self.cut = true;
                    break;
                }
                parsed => parsed?,
            };
            if let Some(complete) = self.accept(line, parsed)? {
                return Ok(Some(complete));
            }
        }
        self.over = true;
        Ok(self.pending.take())
    }

    /// Reads the next line; `false` at the end.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.text.clear();
        let line = self.line + 1;
        let mut limited = Read::take(&mut self.from, LONGEST);
        limited
            .read_until(b'\n', &mut self.text)
            .map_err(|why| TraceError::File { line, why })?;
        if self.text.is_empty() {
            return Ok(false);
        }
        self.line = line;
        if !self.text.ends_with(b"\n") && self.text.len() as u64 == LONGEST {
            return Err(TraceError::TooLong { line });
        }
        Ok(true)
    }

    fn parse(&self) -> Result<Line, TraceError> {
        let line = self.line;
        let parsed: Result<Line, _> = serde_json::from_slice(&self.text);
        // A line of another schema may look otherwise: its version tells more than what is missing.
        let schema = match &parsed {
            Ok(parsed) => Some(parsed.schema),
            Err(_) => serde_json::from_slice::<Version>(&self.text)
                .ok()
                .map(|version| version.schema),
        };
        match schema {
            Some(schema) if schema != SCHEMA => Err(TraceError::Schema { line, schema }),
            _ => parsed.map_err(|why| TraceError::Line { line, why }),
        }
    }

    /// Takes a line; answers the moment before it once nothing more can belong to that.
    fn accept(&mut self, line: usize, parsed: Line) -> Result<Option<Moment>, TraceError> {
        match parsed.kind.as_str() {
            "names" => {
                let names = required(parsed.names, line, "names", "names")?;
                self.process += u32::from(!names.continues(&self.names));
                self.names = names;
            }
            "pass" => {
                let moment = self.pass(line, parsed)?;
                return Ok(self.pending.replace(moment));
            }
            "outcomes" => {
                let outcomes = required(parsed.outcomes, line, "outcomes", "outcomes")?;
                if let Some(moment) = &mut self.pending {
                    moment.outcomes.extend(outcomes);
                    few(moment.outcomes.len(), OUTCOMES, "outcomes", line)?;
                }
            }
            "event" => {
                self.happened
                    .push(required(parsed.happened, line, "event", "happened")?);
                few(self.happened.len(), EVENTS, "events", line)?;
            }
            _ => {}
        }
        Ok(None)
    }

    fn pass(&mut self, line: usize, parsed: Line) -> Result<Moment, TraceError> {
        let seen = required(parsed.seen, line, "pass", "seen")?;
        let pods = seen.pods.len();
        if pods > usize::from(limits::MAX_PODS) {
            return Err(TraceError::Pods { line, pods });
        }
        Ok(Moment {
            line,
            time: parsed.time,
            cluster: format!("{}/{}", parsed.namespace, parsed.name),
            process: self.process,
            happened: std::mem::take(&mut self.happened),
            spec: required(parsed.spec, line, "pass", "spec")?,
            seen,
            hints: required(parsed.hints, line, "pass", "hints")?,
            now: required(parsed.now, line, "pass", "now")?,
            decision: required(parsed.decision, line, "pass", "decision")?,
            outcomes: Vec::new(),
        })
    }
}

impl<R: BufRead> Iterator for Moments<R> {
    type Item = Result<Moment, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.advance().transpose();
        self.over |= matches!(next, Some(Err(_)));
        next
    }
}

fn required<T>(
    field: Option<T>,
    line: usize,
    kind: &'static str,
    name: &'static str,
) -> Result<T, TraceError> {
    field.ok_or(TraceError::Field {
        line,
        kind,
        field: name,
    })
}

fn few(count: usize, most: usize, what: &'static str, line: usize) -> Result<(), TraceError> {
    if count > most {
        return Err(TraceError::TooMany { line, what, most });
    }
    Ok(())
}

/// A trace that was read as a whole.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its moments, in order.
    pub moments: Vec<Moment>,
    /// Whether its last line was cut off.
    pub cut: bool,
}

/// Reads a whole trace.
pub fn read(from: impl BufRead) -> Result<Trace, TraceError> {
    let mut moments = Moments::new(from);
    let mut trace = Trace::default();
    for moment in &mut moments {
        trace.moments.push(moment?);
    }
    trace.cut = moments.is_cut();
    Ok(trace)
}
