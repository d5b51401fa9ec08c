//! Failures that other operators were reported for, as events in the simulated world. Each breaks a rule when a decision with
//! the same fault meets it, and none when the real one does.
//!
//! A piece is a file of JSON lines: a [`Head`], then one [`Action`] a line, as `valkey-model shrink --out` writes them.

pub mod faults;
pub mod page;
pub mod trace;

use std::fs;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;

use crate::actions::Action;
use crate::invariants::{Violation, require};
use crate::mutants::{self, Mutant};
use crate::operator::Brain;
use crate::random::{End, heal, settle};
use crate::world::{Disk, World};

/// Version of the schema that is read.
pub const SCHEMA: u64 = 1;

/// L5: see [`Head::serves`].
pub const SERVES: &str = "L5 the rest goes on";

/// The first line of a piece.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Version of the schema.
    pub museum: u64,
    /// What it is, as the title of a page.
    pub title: String,
    /// Ids in `docs/field-reports.md` (B) and `docs/peer-defects.md` (D).
    pub from: Vec<String>,
    /// What happened to people, in sentences.
    pub happened: String,
    /// What is different here, in sentences.
    pub here: String,
    /// Pods of the cluster.
    pub pods: NonZeroU8,
    /// How data outlives a process.
    pub disk: Disk,
    /// Profile.
    pub profile: Profile,
    /// Whether a primary must take writes after the last event, with all faults still there.
    #[serde(default)]
    pub serves: bool,
    /// Name of the invariant that the wrong decision breaks.
    pub breaks: String,
    /// Name of the wrong decision, in [`MUTANTS`] or [`faults::FAULTS`].
    pub wrong: String,
}

/// A piece.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Name of its file, without the extension.
    pub name: String,
    /// Its first line.
    pub head: Head,
    /// Its events.
    pub events: Vec<Action>,
}

/// Why a piece cannot be read.
#[derive(Debug, Error)]
pub enum PieceError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    File(#[from] std::io::Error),
    /// There is no first line.
    #[error("line 1 is missing: the file is empty")]
    Empty,
    /// A line is no line of a piece.
    #[error("line {line} is {not}: {why}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What it is not.
        not: &'static str,
        /// What the parser says.
        why: serde_json::Error,
    },
    /// Another schema.
    #[error(
        "line 1 is of schema {schema}, and this program reads schema {SCHEMA}: use the checkout that wrote it"
    )]
    Schema {
        /// The schema.
        schema: u64,
    },
    /// An event cannot happen in this world.
    #[error(
        "line {line} cannot happen with {pods} pods, 2 operators and an hour at most at a time: {event:?}"
    )]
    Impossible {
        /// Number of the line.
        line: usize,
        /// The event.
        event: Action,
        /// Pods that there are.
        pods: u8,
    },
}

/// The events after the first line of a text, in a world of so many pods.
pub(crate) fn events_of(text: &str, pods: u8) -> Result<Vec<Action>, PieceError> {
    let read = |(at, text): (usize, &str)| {
        let line = at + 1;
        let not = "no event";
        let event: Action =
            serde_json::from_str(text).map_err(|why| PieceError::Line { line, not, why })?;
        if event.is_possible(pods) {
            Ok(event)
        } else {
            Err(PieceError::Impossible { line, event, pods })
        }
    };
    text.lines().enumerate().skip(1).map(read).collect()
}

impl Piece {
    /// Reads a piece from its text; `name` is the name of its file without the extension.
    pub fn parse(name: &str, text: &str) -> Result<Self, PieceError> {
        let first = text.lines().next().ok_or(PieceError::Empty)?;
        let no_head = |why| PieceError::Line {
            line: 1,
            not: "no head of a piece",
            why,
        };
        // A newer head may have other fields: its version is looked at first.
        let version: Version = serde_json::from_str(first).map_err(no_head)?;
        if version.museum != SCHEMA {
            let schema = version.museum;
            return Err(PieceError::Schema { schema });
        }
        let head: Head = serde_json::from_str(first).map_err(no_head)?;
        let events = events_of(text, head.pods.get())?;
        let name = name.to_owned();
        Ok(Self { name, head, events })
    }

    /// The decision that has the fault of the report.
    pub fn wrong(&self) -> Option<&'static Mutant> {
        let mut all = faults::FAULTS.iter().chain(mutants::all());
        all.find(|mutant| mutant.name == self.head.wrong)
    }

    /// Lets everything happen to a cluster that the real decisions brought to rest; faults end after the last event, and it must
    /// come to rest again. `after` gets the world before the first event, after each, and after the end.
    pub fn replay(
        &self,
        brain: Brain,
        mut after: impl FnMut(&World, Option<Action>),
    ) -> Result<End, Violation> {
        let mut world = World::new(self.head.pods.get(), self.head.disk, self.head.profile);
        settle(&mut world, step, None)?;
        after(&world, None);
        for event in &self.events {
            world.apply(*event, brain)?;
            after(&world, Some(*event));
        }
        if self.head.serves {
            somebody_serves(&mut world, brain)?;
        }
        heal(&mut world, brain, None)?;
        let end = settle(&mut world, brain, None)?;
        after(&world, None);
        Ok(end)
    }
}

/// L5: with what is broken still broken, a client gets a write acknowledged.
fn somebody_serves(world: &mut World, brain: Brain) -> Result<(), Violation> {
    let before = world.acks.len();
    world.apply(Action::Write, brain)?;
    require(world.acks.len() > before, SERVES, || {
        format!("no write is acknowledged after {} ms", world.age())
    })
}

#[derive(Deserialize)]
struct Version {
    museum: u64,
}

/// A file, or the folder, that cannot be read.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: PieceError,
}

/// Reads all pieces of a folder, by name; ends with the first that cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Piece>, Unreadable> {
    let failed = |path: &Path, why: PieceError| Unreadable {
        path: path.to_owned(),
        why,
    };
    let entries = fs::read_dir(folder).map_err(|why| failed(folder, why.into()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let read_one = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path).map_err(PieceError::from);
        text.and_then(|text| Piece::parse(&name, &text))
            .map_err(|why| failed(&path, why))
    };
    files.into_iter().map(read_one).collect()
}
