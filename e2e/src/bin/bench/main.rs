//! Measures what the operator does on the local Kubernetes, prints the figures beside what must be reached and writes
//! them to `target/bench/NAME.json`; `--report` makes `docs/benchmarks.md` of those files.

mod failover;
mod figures;
mod fleet;
mod model;
mod report;
mod sequences;
mod startup;
mod step;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use wellcake_e2e::cluster;

use figures::Figure;

/// What to measure and how often.
#[derive(Parser)]
pub struct Options {
    /// The measures to take; all when there is none.
    names: Vec<Name>,
    /// Runs of each measure that is taken in runs.
    #[arg(long, env = "BENCH_RUNS", default_value_t = 30)]
    runs: usize,
    /// The first of the seeds of random sequences; there are as many as runs.
    #[arg(long, env = "BENCH_FIRST_SEED", default_value_t = 100)]
    first_seed: u64,
    /// Play the first of these seeds again and again instead.
    #[arg(long)]
    same_seed: bool,
    /// ValkeyClusters of the fleet, with three pods each.
    #[arg(long, env = "BENCH_CLUSTERS", default_value_t = 50)]
    clusters: usize,
    /// Minutes in which a fleet without any change is watched.
    #[arg(long, env = "BENCH_MINUTES", default_value_t = 10)]
    minutes: u64,
    /// Only write docs/benchmarks.md from the files that are there.
    #[arg(long)]
    report: bool,
}

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// From the start of the last container to a cluster that is ready.
    Startup,
    /// The server of the primary is killed.
    Kill,
    /// The same while a replica is frozen.
    KillBesideFrozen,
    /// The same while an Apply hangs.
    KillWhileApplyHangs,
    /// The pod of the primary is force-deleted.
    ForceDelete,
    /// The leading operator and the server of the primary are killed at once.
    LeaderAndPrimary,
    /// The primary hands over since that is asked for.
    Handover,
    /// The pod of the primary is deleted in order.
    Delete,
    /// A configuration is rolled over all pods.
    Roll,
    /// The node of the primary is drained.
    Drain,
    /// The pod of the primary is cut off.
    BlackHole,
    /// Random sequences of changes and faults.
    Sequences,
    /// Many clusters: memory, requests of a steady state, restarts of the operator.
    Fleet,
    /// One decision of the core.
    Step,
    /// The model tester.
    Model,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.report {
        return report::write();
    }
    let all = options.names.is_empty();
    let names = if all {
        Name::value_variants()
    } else {
        &options.names
    };
    let mut failed = Vec::new();
    for name in names {
        let label = name
            .to_possible_value()
            .map(|it| it.get_name().to_owned())
            .unwrap_or_default();
        println!("\n== {label}");
        let mut taken = Vec::new();
        let outcome = measure(*name, &options, &mut taken).await;
        figures::write(&label, &taken)?;
        print!("{}", figures::table(&taken));
        if let Err(why) = outcome {
            println!("{label} broke off: {why:#}");
            failed.push(label);
        } else if !taken.iter().all(Figure::holds) {
            failed.push(label);
        }
    }
    report::write()?;
    if failed.is_empty() {
        return Ok(());
    }
    bail!("these do not reach what they must: {}", failed.join(", "))
}

async fn measure(name: Name, options: &Options, taken: &mut Vec<Figure>) -> Result<()> {
    match name {
        Name::Step => return step::run(taken),
        Name::Model => return model::run(taken),
        _ => {}
    }
    let client = cluster::connect().await?;
    match name {
        Name::Startup => startup::run(client, options, taken).await,
        Name::Kill => failover::run(client, failover::Fault::Kill, options, taken).await,
        Name::KillBesideFrozen => {
            failover::run(client, failover::Fault::KillBesideFrozen, options, taken).await
        }
        Name::KillWhileApplyHangs => {
            failover::run(client, failover::Fault::KillWhileApplyHangs, options, taken).await
        }
        Name::ForceDelete => {
            failover::run(client, failover::Fault::ForceDelete, options, taken).await
        }
        Name::LeaderAndPrimary => {
            failover::run(client, failover::Fault::LeaderAndPrimary, options, taken).await
        }
        Name::Handover => failover::run(client, failover::Fault::Handover, options, taken).await,
        Name::Delete => failover::run(client, failover::Fault::Delete, options, taken).await,
        Name::Roll => failover::run(client, failover::Fault::Roll, options, taken).await,
        Name::Drain => failover::run(client, failover::Fault::Drain, options, taken).await,
        Name::BlackHole => failover::run(client, failover::Fault::BlackHole, options, taken).await,
        Name::Sequences => sequences::run(client, options, taken).await,
        Name::Fleet => fleet::run(client, options, taken).await,
        Name::Step | Name::Model => Ok(()),
    }
}
