//! A trace in words, or as a page.

use std::cmp::Ordering;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wellcake_core::step;
use wellcake_model_tests::explain::page::page;
use wellcake_model_tests::explain::text::text;
use wellcake_model_tests::explain::view::{Gather, Pass, is_news};

use super::GOOD;
use super::source::{Place, Source, open};

/// Passes on a page.
const MOST: usize = 400;

#[derive(clap::Args)]
pub struct Options {
    /// The trace, or a piece of the museum. `FILE@LINE` tells only the pass of this line; without a line all are told that did,
    /// waited for or refused something.
    file: String,
    /// The same as `FILE@LINE`.
    #[arg(long)]
    line: Option<usize>,
    /// Writes one page for a browser to this file, with a time line: of the newest passes, or of those around the line.
    #[arg(long)]
    html: Option<PathBuf>,
    /// Passes on the page.
    #[arg(long, default_value_t = MOST)]
    most: usize,
}

pub fn run(options: &Options) -> Result<u8> {
    let place = Place::of(&options.file);
    let line = options.line.or(place.line);
    let sources = open(&place.path, step)?;
    let several = sources.len() > 1;
    for (at, source) in sources.into_iter().enumerate() {
        let name = source.name.clone();
        match &options.html {
            Some(path) => {
                let path = numbered(path, at);
                write_page(source, line, options.most, &path).with_context(|| name.clone())?;
                println!("{name}: {}", path.display());
            }
            None => {
                if several {
                    println!("{name}:");
                }
                print_text(source, line).with_context(|| name.clone())?;
            }
        }
    }
    Ok(GOOD)
}

/// The file itself for the first trace, `NAME-1.html` and so on for others.
fn numbered(path: &Path, at: usize) -> PathBuf {
    if at == 0 {
        return path.to_path_buf();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{at}.html"))
}

fn print_text(mut source: Source, line: Option<usize>) -> Result<()> {
    let mut around = Around::default();
    for moment in &mut source.moments {
        let moment = moment?;
        around.see(moment.line, line);
        let wanted = line.map_or_else(|| is_news(&moment), |line| line == moment.line);
        if wanted && !say(&text(&Pass::of(&moment)))? {
            return Ok(());
        }
        if line.is_some_and(|line| moment.line >= line) {
            break;
        }
    }
    around.check(line)
}

fn write_page(mut source: Source, line: Option<usize>, most: usize, path: &Path) -> Result<()> {
    let mut gather = Gather::new(line, most);
    let mut around = Around::default();
    for moment in &mut source.moments {
        let moment = moment?;
        around.see(moment.line, line);
        if !gather.take(moment) {
            break;
        }
    }
    around.check(line)?;
    let story = gather.end(source.moments.is_cut());
    std::fs::write(path, page(&story)).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes to the terminal. Whether anybody reads on: who looks at the first lines only has done nothing wrong.
fn say(text: &str) -> Result<bool> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(false),
        outcome => Ok(outcome.map(|()| true)?),
    }
}

/// The passes next to a line that is none.
#[derive(Default)]
struct Around {
    before: Option<usize>,
    found: bool,
    after: Option<usize>,
}

impl Around {
    fn see(&mut self, at: usize, wanted: Option<usize>) {
        let Some(wanted) = wanted else {
            self.found = true;
            return;
        };
        match at.cmp(&wanted) {
            Ordering::Less => self.before = Some(at),
            Ordering::Equal => self.found = true,
            Ordering::Greater => self.after = self.after.or(Some(at)),
        }
    }

    fn check(&self, wanted: Option<usize>) -> Result<()> {
        match (wanted, self.before, self.after) {
            _ if self.found => Ok(()),
            (None, ..) => bail!("there is no pass in it: nothing was recorded"),
            (Some(line), Some(before), Some(after)) => {
                bail!(
                    "line {line} is no pass; the passes next to it are in the lines {before} and {after}"
                )
            }
            (Some(line), Some(at), None) | (Some(line), None, Some(at)) => {
                bail!("line {line} is no pass; the pass next to it is in line {at}")
            }
            (Some(line), None, None) => {
                bail!("line {line} is no pass, and there is none in it: nothing was recorded")
            }
        }
    }
}
