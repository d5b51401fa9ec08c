//! `valkey-model`: lets the operator's decisions meet everything that can happen, and decides recorded incidents again.

mod bench;
mod crash_points;
mod differential;
mod explain;
mod explore;
mod fuzz;
mod mutants;
mod replay;
mod shrink;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Runs with random faults, each from a seed.
    ///
    /// Example: valkey-model fuzz --seeds 100000
    Fuzz(fuzz::Options),
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
    /// Example: valkey-model shrink 5443
    Shrink(shrink::Options),
    /// Decides again what an operator recorded with `--record`, and says where it would decide otherwise now.
    ///
    /// Example: valkey-model replay traces/shop_web.jsonl
    Replay(replay::Options),
    /// Says what an operator saw, decided and did, in words.
    ///
    /// Example: valkey-model explain traces/shop_web.jsonl --line 120
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

fn main() -> ExitCode {
    let outcome = match Options::parse().command {
        Command::Fuzz(options) => fuzz::run(&options),
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
