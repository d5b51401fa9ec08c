//! Recorded passes, decided again.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wellcake_model_tests::actions::summary;
use wellcake_model_tests::recorded::{Trace, read};

use super::{FOUND, GOOD, replay_run};

#[derive(clap::Args)]
pub struct Options {
    /// Traces of operators, or runs that `shrink --out` wrote.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Prints one JSON object for each trace.
    #[arg(long)]
    json: bool,
}

/// Reads a trace.
pub fn open(path: &Path) -> Result<Trace> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(BufReader::new(file)).with_context(|| path.display().to_string())
}

pub fn run(options: &Options) -> Result<u8> {
    let mut found = GOOD;
    for path in &options.files {
        if let Some(code) = replay_run::replay(path, options.json)? {
            found = found.max(code);
            continue;
        }
        let begun = Instant::now();
        let trace = open(path)?;
        if replay(path, &trace, options.json, begun)? > 0 {
            found = FOUND;
        }
    }
    Ok(found)
}

fn replay(path: &Path, trace: &Trace, json: bool, begun: Instant) -> Result<usize> {
    let others: Vec<_> = trace
        .moments
        .iter()
        .filter_map(|moment| Some((moment, moment.decided_otherwise()?)))
        .collect();
    let took = begun.elapsed();
    let span = match (trace.moments.first(), trace.moments.last()) {
        (Some(first), Some(last)) => Duration::from_millis(last.now.since(first.now).0),
        _ => Duration::ZERO,
    };
    if json {
        let lines: Vec<usize> = others.iter().map(|(moment, _)| moment.line).collect();
        let told = serde_json::json!({
            "file": path,
            "passes": trace.moments.len(),
            "cut": trace.cut,
            "decided_otherwise": lines,
            "trace_seconds": span.as_secs_f64(),
            "seconds": took.as_secs_f64(),
        });
        println!("{}", serde_json::to_string_pretty(&told)?);
        return Ok(others.len());
    }
    println!(
        "{}: {} passes over {span:.0?}, decided again in {took:.1?}; {} are decided otherwise now",
        path.display(),
        trace.moments.len(),
        others.len()
    );
    if trace.cut {
        println!("the last line was cut off and is left out");
    }
    for (moment, again) in &others {
        println!("line {} at {}", moment.line, moment.time);
        println!("  then: {}", summary(&moment.decision));
        println!("  now:  {}", summary(again));
    }
    Ok(others.len())
}
