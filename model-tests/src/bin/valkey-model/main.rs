//! `valkey-model`: lets the operator's decisions meet everything that can happen, and decides recorded incidents again.

mod bench;
mod crash_points;
mod differential;
mod dive;
mod explain;
mod explore;
mod mutants;
mod replay;
mod replay_run;
mod shrink;
mod source;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use wellcake_core::step;
use wellcake_model_tests::operator::Brain;

/// What went well.
const GOOD: u8 = 0;
/// An invariant broke, or a decision is another one now.
const FOUND: u8 = 1;
/// Something could not be read or done.
const FAILED: u8 = 2;

/// Lets the operator's decisions meet everything that can happen, and decides recorded incidents again.
///
/// Exit codes: 0 nothing found, 1 found something, 2 could not do it.
#[derive(Parser)]
#[command(name = "valkey-model", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Deep runs with random faults, each from a seed; then the faults end, and the cluster must come to rest.
    ///
    /// A run that breaks an invariant is named by its seed, which `valkey-model shrink` takes.
    ///
    /// Example: valkey-model dive --seeds 0..10000
    ///
    /// Example: valkey-model dive --seeds 1000000..2000000 --steps 500 --keep-going --json
    Dive(dive::Options),
    /// Tries every order of events in a scope, nearest first.
    ///
    /// Example: valkey-model explore --scope kill-2
    Explore(explore::Options),
    /// Ends the operator before and after each effect of each operation, and once more after its restart.
    ///
    /// Example: valkey-model crash-points
    CrashPoints(crash_points::Options),
    /// Puts wrong decisions before the tester, each of which it must find out.
    ///
    /// Example: valkey-model mutants --name guards_forget_the_role
    Mutants(mutants::Options),
    /// Measures the model tester itself, on all processors.
    ///
    /// Example: valkey-model bench --runs 10
    Bench(bench::Options),
    /// Finds the few events with which the run of a seed breaks an invariant.
    ///
    /// Takes `--steps` and `--even` as `dive` does: with others, a seed stands for another run.
    ///
    /// Example: valkey-model shrink 5443 --out shrunk
    ///
    /// Example: valkey-model shrink 3 --mutant a_time_out_is_a_death --out shrunk
    Shrink(shrink::Options),
    /// Judges again what an operator recorded: its decisions, what it saw and did, and what could have happened instead.
    ///
    /// Exit codes: 0 nothing found, 1 a decision is another one now or an invariant breaks, 2 the trace could not be read to its
    /// end; the sentence names the file and the line.
    ///
    /// Examples:
    ///   valkey-model replay traces/shop_web.jsonl
    ///   valkey-model replay traces/shop_web.jsonl --mode invariants
    ///   valkey-model replay traces/shop_web.jsonl --mode perturb
    ///   valkey-model replay traces/shop_web.jsonl@120 --mode diverge --faults 2
    ///   valkey-model replay model-tests/museum/two-operators.jsonl --mode perturb
    ///   valkey-model replay shrunk/seed_5443.jsonl
    #[command(verbatim_doc_comment)]
    Replay(replay::Options),
    /// Says what an operator saw, on which facts and by which rule it decided, what it rejected and what it did: in words, or as a page
    /// with a time line.
    ///
    /// Examples:
    ///   valkey-model explain traces/shop_web.jsonl@120
    ///   valkey-model explain traces/shop_web.jsonl --html web.html
    ///   valkey-model explain model-tests/museum/two-operators.jsonl --html two-operators.html
    #[command(verbatim_doc_comment)]
    Explain(explain::Options),
    /// Does scripts of commands and faults to real servers, and says where they do what the model does not allow.
    ///
    /// Example: valkey-model differential --scripts 1000
    Differential(differential::Options),
}

/// As many threads as were asked for, or as there are processors.
fn threads(asked: Option<usize>) -> usize {
    match asked {
        Some(threads) => threads.max(1),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The decision of this name that is wrong on purpose; the real one without a name.
fn brain(mutant: Option<&str>) -> Result<Brain> {
    let Some(name) = mutant else {
        return Ok(step);
    };
    wellcake_model_tests::mutants::find(name)
        .map(|mutant| mutant.brain)
        .with_context(|| format!("there is no mutant {name} in model-tests/src/mutants.rs"))
}

fn main() -> ExitCode {
    let outcome = match Options::parse().command {
        Command::Dive(options) => dive::run(&options),
        Command::Explore(options) => explore::run(&options),
        Command::CrashPoints(options) => crash_points::run(&options),
        Command::Mutants(options) => mutants::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Shrink(options) => shrink::run(&options),
        Command::Replay(options) => replay::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Differential(options) => differential::run(&options),
    };
    let code = outcome.unwrap_or_else(|why| {
        eprintln!("valkey-model: {why:#}");
        FAILED
    });
    ExitCode::from(code)
}
