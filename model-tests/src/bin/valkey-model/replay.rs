//! Recorded passes, judged again.

mod diverge;
mod exact;
mod invariants;
mod perturb;

use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::source::{Place, Source, brain, open};
use super::{FOUND, GOOD, replay_run};

#[derive(clap::Args)]
pub struct Options {
    /// Traces, pieces of the museum, or runs that `shrink --out` wrote. `FILE@LINE` begins at this line with `--mode diverge`.
    #[arg(required = true)]
    files: Vec<String>,
    /// What is judged.
    #[arg(long, value_enum, default_value_t = Mode::Exact)]
    mode: Mode,
    /// The line of the pass at which `diverge` begins.
    #[arg(long)]
    at: Option<usize>,
    /// Faults that may happen in `diverge`.
    #[arg(long, default_value_t = 1)]
    faults: u8,
    /// Writes of clients that may happen in `diverge`.
    #[arg(long, default_value_t = 1)]
    writes: u8,
    /// Times that half a minute may pass in `diverge`.
    #[arg(long, default_value_t = 0)]
    spans: u8,
    /// Longest order of events of `diverge`; 0 stands for any.
    #[arg(long, default_value_t = 0)]
    depth: u32,
    /// Worlds after which `diverge` is given up.
    #[arg(long, default_value_t = 300_000)]
    most: u64,
    /// Threads of `diverge`; as many as there are processors if it is not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Lets a decision decide that is wrong on purpose, in a piece of the museum and in worlds (`model-tests/src/mutants.rs`): it
    /// should be found out.
    #[arg(long)]
    mutant: Option<String>,
    /// Prints one JSON object for each trace.
    #[arg(long)]
    json: bool,
}

/// What is judged of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Whether this program decides the same on the same facts.
    Exact,
    /// The invariants that speak of what was seen and of what was done.
    Invariants,
    /// From the world of each pass: the operator ends after each effect, each change is unseen, each answer is lost.
    Perturb,
    /// From the world of one pass: every order of events within a bound.
    Diverge,
}

pub fn run(options: &Options) -> Result<u8> {
    let brain = brain(options.mutant.as_deref())?;
    let mut found = GOOD;
    for file in &options.files {
        let place = Place::of(file);
        if let Some(code) = replay_run::replay(&place.path, options.json)? {
            found = found.max(code);
            continue;
        }
        for mut source in open(&place.path, brain)? {
            let name = source.name.clone();
            let outcome = match options.mode {
                Mode::Exact => exact::run(&mut source, options.json),
                Mode::Invariants => invariants::run(&mut source, options.json),
                Mode::Perturb => perturb::run(&mut source, brain, options.json),
                Mode::Diverge => {
                    let Some(line) = options.at.or(place.line) else {
                        bail!("diverge begins at one pass: name its line with `--at LINE`");
                    };
                    diverge::run(&mut source, line, brain, options)
                }
            };
            if outcome.with_context(|| name)? {
                found = FOUND;
            }
        }
    }
    Ok(found)
}

/// Writes to the terminal; who reads the first lines only has done nothing wrong.
fn say(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// A trace without a pass tells nothing, which is not the same as nothing to tell.
fn some_passes(passes: usize) -> Result<()> {
    if passes == 0 {
        bail!("there is no pass in it: nothing was recorded");
    }
    Ok(())
}

/// What is said of a cut trace.
fn cut(source: &Source) -> &'static str {
    if source.moments.is_cut() {
        "the last line was cut off and is left out\n"
    } else {
        ""
    }
}
