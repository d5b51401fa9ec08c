//! Where traces come from: a file of an operator, or a piece of the museum, which is replayed for what its operators write.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wellcake_core::step;
use wellcake_model_tests::museum::Piece;
use wellcake_model_tests::museum::faults::FAULTS;
use wellcake_model_tests::mutants::MUTANTS;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::recorded::Moments;

/// Bytes that are read at once.
const BUFFER: usize = 256 * 1024;
/// Bytes at the beginning that tell what kind of file it is.
const BEGINNING: usize = 64;

/// A file, and a line of it if one was named: `FILE` or `FILE@LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl Place {
    /// A file whose own name ends like a line is meant itself.
    pub fn of(text: &str) -> Self {
        let whole = Self {
            path: PathBuf::from(text),
            line: None,
        };
        if whole.path.exists() {
            return whole;
        }
        let named = text.rsplit_once('@');
        match named.and_then(|(path, line)| Some((path, line.parse().ok()?))) {
            Some((path, line)) => Self {
                path: PathBuf::from(path),
                line: Some(line),
            },
            None => whole,
        }
    }
}

/// A trace.
pub struct Source {
    /// Its name for people.
    pub name: String,
    /// Its moments.
    pub moments: Moments<Box<dyn BufRead>>,
}

/// Opens the traces of a file: one of an operator's file, one of each operator of a piece of the museum. There `brain` decides.
pub fn open(path: &Path, brain: Brain) -> Result<Vec<Source>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let beginning = reader
        .fill_buf()
        .with_context(|| format!("cannot read {}", path.display()))?;
    let beginning = beginning.get(..BEGINNING).unwrap_or(beginning);
    if !beginning.starts_with(b"{\"museum\"") {
        let moments = Moments::new(Box::new(reader) as Box<dyn BufRead>);
        let name = path.display().to_string();
        return Ok(vec![Source { name, moments }]);
    }
    let mut sources = Vec::new();
    for (o, lines) in of_piece(path, brain)?.into_iter().enumerate() {
        if lines.is_empty() {
            continue;
        }
        let text: Box<dyn BufRead> = Box::new(Cursor::new(lines.into_bytes()));
        sources.push(Source {
            name: format!("{} (operator {o})", path.display()),
            moments: Moments::new(text),
        });
    }
    Ok(sources)
}

/// What the operators of a piece write; nothing for one that decides nothing.
fn of_piece(path: &Path, brain: Brain) -> Result<Vec<String>> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let piece = Piece::parse(&name, &text).with_context(|| path.display().to_string())?;
    let (lines, outcome) = piece.traces(brain);
    if let Err(violation) = outcome {
        eprintln!(
            "{}: its trace ends where a rule breaks: {violation}",
            path.display()
        );
    }
    Ok(lines
        .into_iter()
        .map(|lines| match lines.passes {
            0 => String::new(),
            _ => lines.text,
        })
        .collect())
}

/// The decision of this name that is wrong on purpose; the real one without a name.
pub fn brain(mutant: Option<&str>) -> Result<Brain> {
    let Some(name) = mutant else {
        return Ok(step);
    };
    let mut all = MUTANTS.iter().chain(FAULTS);
    match all.find(|mutant| mutant.name == name) {
        Some(mutant) => Ok(mutant.brain),
        None => bail!(
            "there is no wrong decision {name} in model-tests/src/mutants.rs or museum/faults.rs"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, line: Option<usize>) -> Place {
        let path = PathBuf::from(path);
        Place { path, line }
    }

    #[test]
    fn a_line_is_named_after_the_file() {
        assert_eq!(Place::of("web.jsonl"), place("web.jsonl", None));
        assert_eq!(Place::of("web.jsonl@120"), place("web.jsonl", Some(120)));
        assert_eq!(Place::of("a@b/web.jsonl"), place("a@b/web.jsonl", None));
        assert_eq!(Place::of("a@b@7"), place("a@b", Some(7)));
    }

    #[test]
    fn a_file_whose_name_ends_like_a_line_is_meant_itself() {
        let folder = std::env::temp_dir().join(format!("place-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("web@3");
        std::fs::write(&path, "").expect("a file");
        let text = path.to_string_lossy();
        assert_eq!(Place::of(&text), place(&text, None));
        assert_eq!(Place::of(&format!("{text}@4")), place(&text, Some(4)));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
