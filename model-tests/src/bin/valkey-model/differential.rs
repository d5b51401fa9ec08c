//! Scripts on real servers, beside the model.

use std::path::PathBuf;

use anyhow::Result;
use wellcake_model_tests::differential::many::{Sum, run_all};
use wellcake_model_tests::differential::process::Program;
use wellcake_model_tests::differential::script::Script;

use super::{FAILED, FOUND, GOOD};

#[derive(clap::Args)]
pub struct Options {
    /// The seed of the first script.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many scripts.
    #[arg(long, default_value_t = 1_000)]
    scripts: u64,
    /// Scripts at a time; each has three servers, which mostly wait.
    #[arg(long, default_value_t = 8)]
    at_a_time: usize,
    /// The program of the servers.
    #[arg(long, env = "VALKEY_SERVER", default_value = "valkey-server")]
    server: PathBuf,
    /// A folder for what the servers log.
    #[arg(long)]
    logs: Option<PathBuf>,
    /// Prints the scripts only.
    #[arg(long)]
    print: bool,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<u8> {
    let seeds = options.first..options.first.saturating_add(options.scripts);
    if options.print {
        for seed in seeds {
            println!("{}", serde_json::to_string(&Script::from_seed(seed))?);
        }
        return Ok(GOOD);
    }
    let program = Program {
        path: options.server.clone(),
        logs: options.logs.clone(),
    };
    let sum = run_all(&program, seeds, options.at_a_time);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&as_json(&sum))?);
    } else {
        print!("{sum}");
    }
    Ok(
        match (sum.differences.is_empty(), sum.failures.is_empty()) {
            (false, _) => FOUND,
            (true, false) => FAILED,
            (true, true) => GOOD,
        },
    )
}

fn as_json(sum: &Sum) -> serde_json::Value {
    let differences: Vec<String> = sum.differences.iter().map(ToString::to_string).collect();
    let not_run: Vec<String> = sum
        .failures
        .iter()
        .map(|(seed, why)| format!("seed {seed}: {why}"))
        .collect();
    serde_json::json!({
        "scripts": sum.scripts,
        "steps": sum.steps,
        "pairs": sum.covered.len(),
        "differences": differences,
        "not_run": not_run,
        "seconds": sum.took.as_secs_f64(),
    })
}
