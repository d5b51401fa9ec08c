//! Wrong decisions, and by what each is found out.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use wellcake_model_tests::mutants::kill::{Tried, kill};
use wellcake_model_tests::mutants::{Mutant, all};

use super::{FOUND, GOOD};

#[derive(clap::Args)]
pub struct Options {
    /// Tries this one only.
    #[arg(long)]
    name: Option<String>,
    /// Threads of a search; as many as there are processors if it is not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<u8> {
    let begun = Instant::now();
    let threads = super::threads(options.threads);
    let chosen: Vec<&Mutant> = all()
        .filter(|mutant| {
            options
                .name
                .as_deref()
                .is_none_or(|name| name == mutant.name)
        })
        .collect();
    if let (true, Some(name)) = (chosen.is_empty(), &options.name) {
        bail!(
            "there is no wrong decision {name}: `valkey-model mutants` lists all of them with their names"
        );
    }
    let mut tried = Vec::new();
    for mutant in chosen {
        let outcome = kill(mutant, threads);
        if !options.json {
            println!("{outcome}");
        }
        tried.push(outcome);
    }
    let killed = tried.iter().filter(|it| it.is_killed()).count();
    let mut times: Vec<Duration> = tried.iter().map(|it| it.took).collect();
    times.sort_unstable();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    if options.json {
        let told = json!({
            "mutants": tried.iter().map(as_json).collect::<Vec<_>>(),
            "count": tried.len(),
            "killed": killed,
            "median_seconds": median.as_secs_f64(),
            "max_seconds": most.as_secs_f64(),
            "seconds": begun.elapsed().as_secs_f64(),
        });
        println!("{}", serde_json::to_string_pretty(&told)?);
    } else {
        println!(
            "{killed} of {} are found out: half of them within {:.3} s, each within {:.1} s; {:.1} s in all",
            tried.len(),
            median.as_secs_f64(),
            most.as_secs_f64(),
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(if killed == tried.len() { GOOD } else { FOUND })
}

fn as_json(tried: &Tried) -> Value {
    json!({
        "name": tried.name,
        "rule": tried.rule,
        "by": tried.by,
        "runs": tried.runs,
        "seconds": tried.took.as_secs_f64(),
        "killed": tried.is_killed(),
        "invariant": tried.found.as_ref().map(|it| it.invariant),
        "seen": tried.found.as_ref().map(|it| &it.seen),
        "right_decision_breaks": tried.control.as_ref().map(ToString::to_string),
    })
}
