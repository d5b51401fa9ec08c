//! Many runs from seeds, on all processors.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use wellcake_core::step;
use wellcake_model_tests::faults::api::{Answer, Class};
use wellcake_model_tests::faults::kind::{Kind, Tally};
use wellcake_model_tests::faults::runs::{self, Mix};
use wellcake_model_tests::invariants::Violation;
use wellcake_model_tests::random::{End, lived};

use super::{FOUND, GOOD};

/// Seeds that a thread takes at a time.
const CHUNK: u64 = 64;
/// How often progress is shown.
const SHOWN: Duration = Duration::from_millis(500);

/// Which faults a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Faults {
    /// Those that searches try, too. Not counted.
    Few,
    /// All, each run some of them.
    All,
}

impl Faults {
    /// As the runs have it.
    pub const fn mix(self) -> Mix {
        match self {
            Self::Few => Mix::Few,
            Self::All => Mix::All,
        }
    }
}

#[derive(clap::Args)]
pub struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// Events of each run.
    #[arg(long, default_value_t = 300)]
    steps: u32,
    /// Faults of the runs.
    #[arg(long, value_enum, default_value_t = Faults::All)]
    faults: Faults,
    /// Threads; as many as there are processors if it is not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Goes on after a broken invariant.
    #[arg(long)]
    keep_going: bool,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// What became of the runs.
#[derive(Default, Serialize)]
struct Sum {
    seeds: u64,
    steps: u32,
    settled: u64,
    needs_person: BTreeMap<String, u64>,
    broken: BTreeMap<u64, String>,
    seconds: f64,
    seeds_per_hour: f64,
    /// How long all worlds lived.
    simulated_seconds: f64,
    /// How often each kind of fault took effect.
    faults: Tally,
}

impl Sum {
    fn add(&mut self, seed: u64, (outcome, millis): (Result<End, Violation>, u64)) {
        self.seeds += 1;
        self.simulated_seconds += millis as f64 / 1000.0;
        match outcome {
            Ok(End::Settled) => self.settled += 1,
            Ok(End::NeedsPerson(reason)) => {
                *self
                    .needs_person
                    .entry(reason.as_str().to_owned())
                    .or_default() += 1;
            }
            Err(violation) => {
                self.broken.insert(seed, violation.to_string());
            }
        }
    }
}

pub fn run(options: &Options) -> Result<u8> {
    let begun = Instant::now();
    let sum = Mutex::new(Sum {
        steps: options.steps,
        ..Sum::default()
    });
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let threads = super::threads(options.threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| work(options, &next, &over, &sum)))
            .collect();
        show(options, &next, || workers.iter().all(|it| it.is_finished()));
    });
    let mut sum = sum
        .into_inner()
        .ok()
        .context("a thread ended before its time")?;
    sum.seconds = begun.elapsed().as_secs_f64();
    sum.seeds_per_hour = sum.seeds as f64 / sum.seconds * 3600.0;
    print(options, &sum)?;
    Ok(if sum.broken.is_empty() { GOOD } else { FOUND })
}

fn work(options: &Options, next: &AtomicU64, over: &AtomicBool, sum: &Mutex<Sum>) {
    while !over.load(Ordering::Relaxed) {
        let from = next.fetch_add(CHUNK, Ordering::Relaxed);
        let until = from.saturating_add(CHUNK).min(options.seeds);
        if from >= until {
            return;
        }
        for seed in from..until {
            let seed = options.first.wrapping_add(seed);
            let mut tally = Tally::default();
            let outcome = match options.faults {
                Faults::Few => lived(seed, options.steps, step),
                Faults::All => runs::run(seed, options.steps, step, &mut tally, None),
            };
            if outcome.0.is_err() && !options.keep_going {
                over.store(true, Ordering::Relaxed);
            }
            if let Ok(mut sum) = sum.lock() {
                sum.add(seed, outcome);
                sum.faults.add(&tally);
            }
        }
    }
}

/// Shows on a terminal how far it is.
fn show(options: &Options, next: &AtomicU64, is_done: impl Fn() -> bool) {
    let terminal = std::io::stderr().is_terminal() && !options.json;
    while !is_done() {
        std::thread::sleep(SHOWN);
        if terminal {
            let done = next.load(Ordering::Relaxed).min(options.seeds);
            let share = done as f64 / options.seeds.max(1) as f64 * 100.0;
            eprint!("\r{done} of {} seeds ({share:.0} %)", options.seeds);
            let _ = std::io::stderr().flush();
        }
    }
    if terminal {
        eprintln!();
    }
}

fn print(options: &Options, sum: &Sum) -> Result<()> {
    if options.json {
        println!("{}", serde_json::to_string_pretty(sum)?);
        return Ok(());
    }
    println!(
        "{} runs of {} events in {:.1} s ({:.0} an hour, {:.0} times as fast as time): {} came to rest, {} break an invariant",
        sum.seeds,
        sum.steps,
        sum.seconds,
        sum.seeds_per_hour,
        sum.simulated_seconds / sum.seconds,
        sum.settled,
        sum.broken.len()
    );
    if options.faults == Faults::All {
        print_faults(&sum.faults);
    }
    for (reason, count) in &sum.needs_person {
        println!("{count} ended with {reason}, which needs a person");
    }
    for (seed, violation) in &sum.broken {
        println!("seed {seed}: {violation}");
    }
    if let Some(seed) = sum.broken.keys().next() {
        let faults = match options.faults {
            Faults::Few => " --faults few",
            Faults::All => "",
        };
        println!("to see how little it takes: valkey-model shrink {seed}{faults}");
    }
    Ok(())
}

/// How often each kind took effect, two in a line.
fn print_faults(tally: &Tally) {
    let fired = Kind::ALL.iter().filter(|kind| tally.of(**kind) > 0).count();
    println!(
        "{fired} of {} kinds of faults took effect:",
        Kind::ALL.len()
    );
    for pair in Kind::ALL.chunks(2) {
        let cells: Vec<String> = pair
            .iter()
            .map(|kind| format!("{:<28} {:>10}", kind.as_str(), tally.of(*kind)))
            .collect();
        println!("  {}", cells.join("    "));
    }
    println!("answers of the API server to writes:");
    for class in Class::ALL {
        let cells: Vec<String> = Answer::ALL
            .iter()
            .map(|answer| format!("{answer:?} {}", tally.of_answer(class, *answer)))
            .collect();
        println!("  {:<9} {}", format!("{class:?}"), cells.join(", "));
    }
}
