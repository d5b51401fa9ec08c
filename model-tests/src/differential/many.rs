//! Many scripts, several at a time.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::process::Program;
use super::run::{Covered, Difference, run};
use super::script::Script;

/// What became of the scripts.
#[derive(Debug, Default)]
pub struct Sum {
    /// Scripts that ran to their end, or to a difference.
    pub scripts: u64,
    /// Steps of these.
    pub steps: u64,
    /// How often a command met a server in a state.
    pub covered: Covered,
    /// What the model does not allow.
    pub differences: Vec<Difference>,
    /// Scripts that could not be run, with why.
    pub failures: Vec<(u64, String)>,
    /// How long all took.
    pub took: Duration,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        for (seed, why) in &self.failures {
            writeln!(f, "seed {seed} could not be run: {why}")?;
        }
        writeln!(
            f,
            "{} scripts with {} steps in {:.1} s: {} differences, {} not run, {} pairs of command and state",
            self.scripts,
            self.steps,
            self.took.as_secs_f64(),
            self.differences.len(),
            self.failures.len(),
            self.covered.len()
        )
    }
}

/// Runs the scripts of these seeds.
pub fn run_all(program: &Program, seeds: Range<u64>, at_a_time: usize) -> Sum {
    let begun = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    let script = Script::from_seed(seed);
                    let mut covered = Covered::new();
                    let outcome = run(program, &script, &mut covered);
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    for (pair, count) in covered {
                        *sum.covered.entry(pair).or_default() += count;
                    }
                    match outcome {
                        Ok(difference) => {
                            sum.scripts += 1;
                            sum.steps += script.steps.len() as u64;
                            sum.differences.extend(difference);
                        }
                        Err(why) => sum.failures.push((seed, format!("{why:#}"))),
                    }
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.differences
        .sort_by_key(|difference| difference.script.seed);
    sum.took = begun.elapsed();
    sum
}
