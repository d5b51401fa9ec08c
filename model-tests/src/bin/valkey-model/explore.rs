//! Every order of events in a scope.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use wellcake_core::step;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::mutants;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::search::scope::{Found, Scope, committed};
use wellcake_model_tests::search::{Broken, Progress, Seen, Way, search, story};

use super::{FOUND, GOOD};

/// How often progress is shown.
const SHOWN: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub struct Options {
    /// Name of a scope in `model-tests/scopes` or its folder `large`, or a path to a scope file. All of `model-tests/scopes`, but
    /// for the large ones, if it is not given.
    #[arg(long)]
    scope: Option<String>,
    /// Threads; as many as there are processors if it is not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Leaves out whether every world comes to rest without faults.
    #[arg(long)]
    no_rest: bool,
    /// Gives up after about so many worlds.
    #[arg(long)]
    most: Option<u64>,
    /// Prints the events on the way to one of the farthest worlds.
    #[arg(long)]
    farthest: bool,
    /// Lets a decision decide that is wrong on purpose (`model-tests/src/mutants.rs`): the search should find out.
    #[arg(long)]
    mutant: Option<String>,
    /// Writes the counts that were found into the scope files.
    #[arg(long)]
    update: bool,
    /// Prints one JSON object for each scope.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<u8> {
    let mut found = GOOD;
    let brain = brain(options)?;
    for (name, path) in chosen(options.scope.as_deref())? {
        let scope = Scope::read(&path)?;
        let way = Way {
            threads: super::threads(options.threads),
            rest: !options.no_rest,
            most: options.most,
        };
        let progress = Progress::default();
        let outcome = std::thread::scope(|threads| {
            let search = threads.spawn(|| search(&scope, brain, way, &progress));
            show(options, &name, &progress, || search.is_finished());
            search
                .join()
                .ok()
                .context("the search ended before its time")
        })?;
        let counts = options.update && options.mutant.is_none();
        if let (true, Ok(seen)) = (counts, &outcome)
            && seen.complete
        {
            update(&path, &scope, seen)?;
        }
        found = found.max(tell(options, &name, &scope, outcome)?);
    }
    Ok(found)
}

/// Scope files by name.
fn chosen(name: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
    let folder = Path::new("model-tests/scopes");
    if let Some(name) = name {
        let places = [folder.to_path_buf(), folder.join("large")];
        let named = places
            .iter()
            .map(|place| place.join(format!("{name}.json")))
            .find(|path| path.is_file());
        let path = named.unwrap_or_else(|| PathBuf::from(name));
        return Ok(vec![(name.to_owned(), path)]);
    }
    committed(folder)
}

/// Shows on a terminal how far it is.
fn show(options: &Options, name: &str, progress: &Progress, is_done: impl Fn() -> bool) {
    let terminal = std::io::stderr().is_terminal() && !options.json;
    let begun = Instant::now();
    let mut shown = Instant::now();
    while !is_done() {
        std::thread::sleep(Duration::from_millis(5));
        if terminal && shown.elapsed() >= SHOWN {
            shown = Instant::now();
            let states = progress.states.load(Ordering::Relaxed);
            eprint!(
                "\r{name}: depth {}, {states} worlds, {:.0} a second, {} to leave in this layer   ",
                progress.depth.load(Ordering::Relaxed),
                states as f64 / begun.elapsed().as_secs_f64(),
                progress.frontier.load(Ordering::Relaxed),
            );
            let _ = std::io::stderr().flush();
        }
    }
    if terminal {
        eprintln!();
    }
}

fn tell(options: &Options, name: &str, scope: &Scope, outcome: Result<Seen, Broken>) -> Result<u8> {
    let seen = match outcome {
        Ok(seen) => seen,
        Err(broken) => {
            if options.json {
                let told = serde_json::json!({
                    "scope": name,
                    "violation": broken.violation.to_string(),
                    "events": broken.events,
                });
                println!("{}", serde_json::to_string_pretty(&told)?);
            } else {
                println!("{name}: {}\nafter these events:", broken.violation);
                print!("{}", in_words(options, scope, &broken.events, true)?);
            }
            return Ok(FOUND);
        }
    };
    if options.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&as_json(options, name, &seen))?
        );
        return Ok(GOOD);
    }
    let seconds = seen.took.as_secs_f64();
    println!(
        "{name}: {} worlds{}, depth {}, {} events, {} decisions, {} turns to see them rest; {seconds:.1} s, {:.0} worlds a second, {:.1} bytes for each that was seen",
        seen.states,
        if seen.complete {
            ", and there are no others"
        } else {
            "; given up"
        },
        seen.depth,
        seen.events,
        seen.decisions,
        seen.turns,
        seen.states as f64 / seconds,
        seen.visited_bytes as f64 / seen.states as f64,
    );
    if options.farthest {
        print!("{}", in_words(options, scope, &seen.farthest, false)?);
    }
    Ok(GOOD)
}

fn as_json(options: &Options, name: &str, seen: &Seen) -> serde_json::Value {
    let (seconds, states) = (seen.took.as_secs_f64(), seen.states as f64);
    let per = |bytes: usize| bytes as f64 / states;
    serde_json::json!({
        "scope": name,
        "states": seen.states,
        "complete": seen.complete,
        "depth": seen.depth,
        "events": seen.events,
        "step_calls": seen.decisions,
        "memo_hits": 0,
        "rest_checked": !options.no_rest,
        "rest_turns": seen.turns,
        "seconds": seconds,
        "states_per_second": states / seconds,
        "visited_bytes_per_state": per(seen.visited_bytes),
        "way_bytes_per_state": per(seen.tree_bytes),
        "rest_bytes_per_state": per(seen.rest_bytes),
        "peak_bytes_per_state": peak().map(per),
    })
}

/// Writes into the scope file what a complete search found.
fn update(path: &Path, scope: &Scope, seen: &Seen) -> Result<()> {
    let found = format!(
        "{{ \"states\": {}, \"depth\": {} }}",
        seen.states, seen.depth
    );
    let text = std::fs::read_to_string(path)?;
    let (head, _) = text
        .rsplit_once("\"found\":")
        .with_context(|| format!("{} has no field \"found\"", path.display()))?;
    let same = scope.found
        == Some(Found {
            states: seen.states,
            depth: seen.depth,
        });
    if !same {
        std::fs::write(path, format!("{head}\"found\": {found}\n}}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn brain(options: &Options) -> Result<Brain> {
    let Some(name) = &options.mutant else {
        return Ok(step);
    };
    let mutant = mutants::find(name);
    mutant
        .map(|mutant| mutant.brain)
        .with_context(|| format!("there is no mutant {name} in model-tests/src/mutants.rs"))
}

fn in_words(options: &Options, scope: &Scope, events: &[Action], rest: bool) -> Result<String> {
    story(scope, events, brain(options)?, rest)
        .map_err(|violation| anyhow!("the start breaks {violation}"))
}

/// Most memory that this process has had, in bytes.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
