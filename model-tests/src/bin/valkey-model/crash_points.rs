//! Operations in which the operator ends at every effect in turn.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::Result;
use wellcake_core::step;
use wellcake_model_tests::crashes::all::{Tried, all};

use super::{FOUND, GOOD};

#[derive(clap::Args)]
pub struct Options {
    /// Leaves out a second end after the first.
    #[arg(long)]
    once: bool,
    /// Threads; as many as there are processors if it is not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<u8> {
    let begun = Instant::now();
    let terminal = std::io::stderr().is_terminal() && !options.json;
    let threads = super::threads(options.threads);
    let tried = all(step, !options.once, threads, |done, parts| {
        if terminal {
            eprint!("\r{done} of {parts} parts");
            let _ = std::io::stderr().flush();
        }
    });
    if terminal {
        eprintln!();
    }
    let broken: usize = tried.iter().map(|own| own.broken.len()).sum();
    if options.json {
        print_json(&tried, begun)?;
    } else {
        print_words(&tried, begun);
    }
    Ok(if broken == 0 { GOOD } else { FOUND })
}

fn print_json(tried: &[Tried], begun: Instant) -> Result<()> {
    let operations: Vec<_> = tried
        .iter()
        .map(|own| {
            let violations: Vec<String> = own
                .broken
                .iter()
                .map(|broken| {
                    format!(
                        "{:?} {:?}: {}",
                        broken.place, broken.points, broken.violation
                    )
                })
                .collect();
            serde_json::json!({
                "operation": own.name,
                "crash_points": own.points,
                "pairs": own.pairs,
                "violations": violations,
            })
        })
        .collect();
    let told = serde_json::json!({
        "operations": operations,
        "seconds": begun.elapsed().as_secs_f64(),
    });
    println!("{}", serde_json::to_string_pretty(&told)?);
    Ok(())
}

fn print_words(tried: &[Tried], begun: Instant) {
    println!(
        "{:<46}{:>13}{:>9}{:>12}",
        "operation", "crash points", "pairs", "violations"
    );
    for own in tried {
        println!(
            "{:<46}{:>13}{:>9}{:>12}",
            own.name,
            own.points,
            own.pairs,
            own.broken.len()
        );
    }
    let sum = |of: fn(&Tried) -> u64| tried.iter().map(of).sum::<u64>();
    println!(
        "{:<46}{:>13}{:>9}{:>12}   in {:.1} s",
        format!("{} operations", tried.len()),
        sum(|own| own.points),
        sum(|own| own.pairs),
        sum(|own| own.broken.len() as u64),
        begun.elapsed().as_secs_f64()
    );
    if let Some((own, first)) = tried
        .iter()
        .find_map(|own| Some((own, own.broken.first()?)))
    {
        println!(
            "\n{} in {:?}, ends at {:?}{}: {}\n{}",
            own.name,
            first.place,
            first.points,
            if first.other {
                ", another operator takes over"
            } else {
                ""
            },
            first.violation,
            first.story
        );
    }
}
