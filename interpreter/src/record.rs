//! The trace: what each pass saw, decided and did. The schema is described in `docs/reference/trace.md`.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use wellcake_core::effects::{Decision, Effect};
use wellcake_core::facts::{Hints, Interner, Observation, SpecFacts, Tick};

use crate::watch::Key;

/// Version of the schema.
const SCHEMA: u8 = 4;
/// How much of each cluster's trace is kept in memory, in bytes.
const RING: usize = 256 * 1024;

/// How one effect ended.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The effect.
    pub effect: Effect,
    /// `done`, `refused`, `failed` or `timed_out`.
    pub outcome: &'static str,
    /// Why, unless it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// A line of a pass.
#[derive(Serialize)]
pub struct Pass<'a> {
    /// What the spec asks for.
    pub spec: &'a SpecFacts,
    /// What was seen.
    pub seen: &'a Observation,
    /// Hints.
    pub hints: &'a Hints,
    /// The moment of the decision.
    pub now: Tick,
    /// What was decided.
    pub decision: &'a Decision,
}

#[derive(Serialize)]
struct Line<'a, T> {
    schema: u8,
    kind: &'static str,
    time: String,
    namespace: &'a str,
    name: &'a str,
    #[serde(flatten)]
    body: T,
}

/// The newest lines of every cluster, kept in memory.
#[derive(Debug, Default)]
pub struct Traces {
    rings: Mutex<BTreeMap<Key, Ring>>,
}

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<Box<str>>,
    bytes: usize,
}

impl Traces {
    /// The newest lines of a cluster, oldest first, each ended by a line break; `None` for a cluster that is not known.
    pub fn of(&self, namespace: &str, name: &str) -> Option<String> {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = rings.get(&Key::new(namespace, name))?;
        Some(
            ring.lines
                .iter()
                .flat_map(|line| [line.as_ref(), "\n"])
                .collect(),
        )
    }

    fn push(&self, key: &Key, line: &str) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = rings.entry(key.clone()).or_default();
        ring.bytes += line.len();
        ring.lines.push_back(line.into());
        while ring.bytes > RING {
            let Some(oldest) = ring.lines.pop_front() else {
                break;
            };
            ring.bytes -= oldest.len();
        }
    }

    fn forget(&self, key: &Key) {
        self.rings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }
}

/// Writes the trace of one cluster.
pub struct Recorder {
    key: Key,
    traces: Arc<Traces>,
    file: Option<File>,
    last: Option<(SpecFacts, Observation, Decision)>,
    names: Interner,
}

impl Recorder {
    /// A recorder; a file that cannot be opened is logged and left out.
    pub fn new(key: &Key, traces: Arc<Traces>, dir: Option<&PathBuf>) -> Self {
        let file = dir.and_then(|dir| {
            let path = dir.join(format!("{}_{}.jsonl", key.namespace, key.name));
            let opened = std::fs::create_dir_all(dir)
                .and_then(|()| OpenOptions::new().create(true).append(true).open(&path));
            opened
                .inspect_err(|why| tracing::error!(path = %path.display(), error = %why, "cannot write the trace"))
                .ok()
        });
        Self {
            key: key.clone(),
            traces,
            file,
            last: None,
            names: Interner::default(),
        }
    }

    /// Writes a pass, if anything but time stamps and numbers that always move differs from the last one.
    pub fn pass(&mut self, pass: &Pass<'_>, names: &Interner) {
        let like = (*pass.spec, pass.seen.settled(), pass.decision.clone());
        if pass.decision.effects.is_empty() && self.last.as_ref() == Some(&like) {
            return;
        }
        self.last = Some(like);
        if self.names != *names {
            self.names = names.clone();
            #[derive(Serialize)]
            struct Names<'a> {
                names: &'a Interner,
            }
            self.write("names", Names { names });
        }
        self.write("pass", pass);
    }

    /// Writes how effects ended.
    pub fn outcomes(&mut self, outcomes: &[Outcome]) {
        #[derive(Serialize)]
        struct Outcomes<'a> {
            outcomes: &'a [Outcome],
        }
        if !outcomes.is_empty() {
            self.write("outcomes", Outcomes { outcomes });
        }
    }

    fn write(&mut self, kind: &'static str, body: impl Serialize) {
        let line = Line {
            schema: SCHEMA,
            kind,
            time: jiff::Timestamp::now().to_string(),
            namespace: &self.key.namespace,
            name: &self.key.name,
            body,
        };
        let Ok(text) = serde_json::to_string(&line) else {
            return;
        };
        self.traces.push(&self.key, &text);
        if let Some(file) = &mut self.file
            && let Err(why) = writeln!(file, "{text}")
        {
            tracing::error!(error = %why, "cannot write the trace; it ends here");
            self.file = None;
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.traces.forget(&self.key);
    }
}
