//! Many runs from seeds, on all processors.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use wellcake_core::step;
use wellcake_model_tests::dive::{Dive, Dived};
use wellcake_model_tests::faults::api::{Answer, Class};
use wellcake_model_tests::faults::kind::{self, Tally};
use wellcake_model_tests::random::End;

use super::{FOUND, GOOD};

/// Seeds that a thread takes at a time.
const CHUNK: u64 = 16;
/// How often progress is shown.
const SHOWN: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub struct Options {
    /// The seeds, as FIRST..END without END, or how many from 0 on.
    #[arg(long, default_value = "0..10000", value_parser = seeds)]
    seeds: Range<u64>,
    #[command(flatten)]
    pub kind: Kind,
    /// Ends after so many seconds, whatever seeds are left.
    #[arg(long)]
    seconds: Option<u64>,
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

/// Events of a run of the tests.
const STEPS_OF_TESTS: u32 = 300;

/// What a seed stands for.
#[derive(clap::Args)]
pub struct Kind {
    /// Events of each run; the seed chooses 500 to 5,000 if it is not given.
    #[arg(long)]
    steps: Option<u32>,
    /// All kinds of faults of a run come at the same rate, as in the seeds of `tests/random.rs`; 300 events if `--steps` is not
    /// given.
    #[arg(long)]
    even: bool,
    /// All kinds of faults may come, and not only those that searches try, too; how often each took effect is told. 300 events if
    /// `--steps` is not given.
    #[arg(long, conflicts_with = "even")]
    all: bool,
}

impl Kind {
    pub fn dive(&self, seed: u64) -> Dive {
        if self.all {
            Dive::all(seed, self.steps.unwrap_or(STEPS_OF_TESTS))
        } else if self.even {
            Dive::even(seed, self.steps.unwrap_or(STEPS_OF_TESTS))
        } else {
            Dive::of(seed, self.steps)
        }
    }

    /// The arguments that say the same.
    fn arguments(&self) -> String {
        let mut text = String::new();
        if let Some(steps) = self.steps {
            text.push_str(&format!(" --steps {steps}"));
        }
        for (given, flag) in [(self.even, " --even"), (self.all, " --all")] {
            if given {
                text.push_str(flag);
            }
        }
        text
    }
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|why| format!("`{text}` is no seed: {why}; write FIRST..END, such as 0..1000"))
    };
    let range = match text.split_once("..") {
        Some((first, end)) => number(first)?..number(end)?,
        None => 0..number(text)?,
    };
    if range.is_empty() {
        return Err(format!(
            "{text} names no seed: the end must be above the first"
        ));
    }
    Ok(range)
}

/// What became of the runs.
#[derive(Default, Serialize)]
struct Sum {
    first: u64,
    seeds: u64,
    events: u64,
    settled: u64,
    needs_person: BTreeMap<String, u64>,
    broken: BTreeMap<u64, String>,
    /// Of all end states together, whatever the order in which they were reached.
    digest: String,
    #[serde(skip)]
    digests: u128,
    seconds: f64,
    seeds_per_hour: f64,
    /// How long all worlds lived.
    simulated_seconds: f64,
    /// How often each kind of fault took effect, where all of them may.
    faults: Tally,
}

impl Sum {
    fn add(&mut self, seed: u64, dived: Dived) {
        self.seeds += 1;
        self.events += dived.events;
        self.faults.add(&dived.faults);
        self.simulated_seconds += dived.millis as f64 / 1000.0;
        // Two seeds that change their end states for each other's are noticed.
        let own = dived.digest.wrapping_mul(u128::from(seed) * 2 + 1);
        self.digests = self.digests.wrapping_add(own);
        match dived.end {
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
        first: options.seeds.start,
        ..Sum::default()
    });
    let (next, over) = (AtomicU64::new(options.seeds.start), AtomicBool::new(false));
    let threads = super::threads(options.threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| work(options, &next, &over, &sum)))
            .collect();
        while !workers.iter().all(|it| it.is_finished()) {
            std::thread::sleep(SHOWN.min(Duration::from_millis(1) + begun.elapsed() / 8));
            let limit = options.seconds.map(Duration::from_secs);
            if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                over.store(true, Ordering::Relaxed);
            }
            show(options, next.load(Ordering::Relaxed));
        }
    });
    if is_shown(options) {
        eprintln!();
    }
    let mut sum = sum
        .into_inner()
        .ok()
        .context("a thread ended before its time")?;
    sum.seconds = begun.elapsed().as_secs_f64();
    sum.seeds_per_hour = sum.seeds as f64 / sum.seconds * 3600.0;
    sum.digest = format!("{:032x}", sum.digests);
    print(options, &sum)?;
    Ok(if sum.broken.is_empty() { GOOD } else { FOUND })
}

/// Takes pieces of the seeds in their order and runs each piece to its end, so that no seed is left out between others.
fn work(options: &Options, next: &AtomicU64, over: &AtomicBool, sum: &Mutex<Sum>) {
    while !over.load(Ordering::Relaxed) {
        let from = next.fetch_add(CHUNK, Ordering::Relaxed);
        let until = from.saturating_add(CHUNK).min(options.seeds.end);
        for seed in from..until {
            let dived = options.kind.dive(seed).to_the_end(step);
            if dived.end.is_err() && !options.keep_going {
                over.store(true, Ordering::Relaxed);
            }
            if let Ok(mut sum) = sum.lock() {
                sum.add(seed, dived);
            }
        }
        if until >= options.seeds.end {
            return;
        }
    }
}

fn is_shown(options: &Options) -> bool {
    std::io::stderr().is_terminal() && !options.json
}

/// Shows on a terminal how far it is.
fn show(options: &Options, next: u64) {
    if !is_shown(options) {
        return;
    }
    let all = options.seeds.end - options.seeds.start;
    let done = next.min(options.seeds.end) - options.seeds.start;
    let share = done as f64 / all as f64 * 100.0;
    eprint!("\r{done} of {all} seeds ({share:.0} %)");
    let _ = std::io::stderr().flush();
}

fn print(options: &Options, sum: &Sum) -> Result<()> {
    if options.json {
        println!("{}", serde_json::to_string_pretty(sum)?);
        return Ok(());
    }
    println!(
        "seeds {}..{}: {} runs with {} events in {:.1} s ({:.0} runs an hour, {:.0} times as fast as time): {} came to rest, {} break an invariant; end states {}",
        sum.first,
        sum.first + sum.seeds,
        sum.seeds,
        sum.events,
        sum.seconds,
        sum.seeds_per_hour,
        sum.simulated_seconds / sum.seconds,
        sum.settled,
        sum.broken.len(),
        sum.digest,
    );
    if options.kind.all {
        print_faults(&sum.faults);
    }
    for (reason, count) in &sum.needs_person {
        println!("{count} ended with {reason}, which needs a person");
    }
    for (seed, violation) in &sum.broken {
        println!("seed {seed}: {violation}");
    }
    if let Some(seed) = sum.broken.keys().next() {
        println!(
            "to see how little it takes: valkey-model shrink {seed}{}",
            options.kind.arguments()
        );
    }
    Ok(())
}

/// How often each kind took effect, two in a line.
fn print_faults(tally: &Tally) {
    let kinds = kind::Kind::ALL;
    let fired = kinds.iter().filter(|kind| tally.of(**kind) > 0).count();
    println!("{fired} of {} kinds of faults took effect:", kinds.len());
    for pair in kinds.chunks(2) {
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
