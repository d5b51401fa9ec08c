//! Every order of events in a scope.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use wellcake_core::step;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::search::scope::{Scope, committed};
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
    /// Prints one JSON object for each scope.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<u8> {
    let mut found = GOOD;
    for (name, path) in chosen(options.scope.as_deref())? {
        let scope = Scope::read(&path)?;
        let way = Way {
            threads: super::threads(options.threads),
            rest: !options.no_rest,
            most: options.most,
        };
        let progress = Progress::default();
        let outcome = std::thread::scope(|threads| {
            let search = threads.spawn(|| search(&scope, step, way, &progress));
            show(options, &name, &progress, || search.is_finished());
            search
                .join()
                .ok()
                .context("the search ended before its time")
        })?;
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
            println!("{name}: {}\nafter these events:", broken.violation);
            print!("{}", in_words(scope, &broken.events)?);
            return Ok(FOUND);
        }
    };
    let per = |bytes: usize| bytes as f64 / seen.states as f64;
    println!(
        "{name}: {} worlds, {} events, depth {}{}; {:.1} s, {:.0} worlds a second; {:.1} bytes a world seen, {:.1} for the way, {:.1} for rest; {} turns; peak {:.1} bytes a world",
        seen.states,
        seen.events,
        seen.depth,
        if seen.complete { ", complete" } else { "" },
        seen.took.as_secs_f64(),
        seen.states as f64 / seen.took.as_secs_f64(),
        per(seen.visited_bytes),
        per(seen.tree_bytes),
        per(seen.rest_bytes),
        seen.turns,
        per(peak().unwrap_or(0)),
    );
    if options.farthest {
        print!("{}", in_words(scope, &seen.farthest)?);
    }
    let _ = (options, scope);
    Ok(GOOD)
}

fn in_words(scope: &Scope, events: &[Action]) -> Result<String> {
    story(scope, events, step).map_err(|violation| anyhow!("the start breaks {violation}"))
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
