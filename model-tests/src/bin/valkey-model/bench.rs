//! Figures of the model tester itself, in the form of all figures (`target/bench/model.json`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use wellcake_model_tests::recorded::hour;

use super::{FOUND, GOOD};

/// Scope of which the searches are measured: the largest that is searched to its end within seconds.
const SCOPE: &str = "loss-3";
/// Seeds of each measurement of random runs.
const SEEDS: &str = "20000";
/// Events of each of them.
const STEPS: &str = "500";

#[derive(clap::Args)]
pub struct Options {
    /// Times that each figure is taken.
    #[arg(long, default_value_t = 10)]
    runs: usize,
    /// The file.
    #[arg(long, default_value = "target/bench/model.json")]
    out: PathBuf,
}

/// A measure: field of the printed JSON, unit, bound, and whether more is better.
struct Measure {
    name: &'static str,
    unit: &'static str,
    bound: Option<f64>,
    higher_is_better: bool,
    values: Vec<f64>,
}

impl Measure {
    const fn new(
        name: &'static str,
        unit: &'static str,
        bound: Option<f64>,
        higher_is_better: bool,
    ) -> Self {
        Self {
            name,
            unit,
            bound,
            higher_is_better,
            values: Vec::new(),
        }
    }

    fn at(&self, share: f64) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }

    fn holds(&self) -> bool {
        let median = self.at(0.5);
        self.bound.is_none_or(|bound| {
            if self.higher_is_better {
                median >= bound
            } else {
                median <= bound
            }
        })
    }

    fn as_json(&self) -> Value {
        serde_json::json!({
            "measure": self.name,
            "unit": self.unit,
            "values": self.values,
            "median": self.at(0.5),
            "p95": self.at(0.95),
            "max": self.at(1.0),
            "bound": self.bound,
            "higher_is_better": self.higher_is_better,
            "peer": null,
        })
    }
}

pub fn run(options: &Options) -> Result<u8> {
    let mut measures = [
        Measure::new("explore_states", "1/s", Some(300_000.0), true),
        Measure::new("explore_states_with_rest", "1/s", None, true),
        Measure::new("explore_step_calls", "count", None, true),
        Measure::new("explore_memo_hits", "count", None, true),
        Measure::new("explore_visited", "B/state", Some(32.0), false),
        Measure::new("explore_peak", "B/state", Some(96.0), false),
        Measure::new("explore_peak_with_rest", "B/state", Some(96.0), false),
        Measure::new("dive_seeds_of_500_events", "1/h", Some(1_000_000.0), true),
        Measure::new("dive_simulated_time", "x", Some(100_000.0), true),
        Measure::new("replay_of_an_hour", "s", Some(1.0), false),
    ];
    let hour = write_hour(options)?;
    for _ in 0..options.runs {
        let bare = ask(&["explore", "--scope", SCOPE, "--json", "--no-rest"])?;
        let rest = ask(&["explore", "--scope", SCOPE, "--json"])?;
        let dive = ask(&["dive", "--seeds", SEEDS, "--steps", STEPS, "--json"])?;
        let replayed = ask(&["replay", &hour, "--json"])?;
        let passes = number(&replayed, "passes")?;
        ensure!(
            passes == hour::LOOKS as f64,
            "the trace of an hour has {passes} passes"
        );
        let (simulated, seconds) = (
            number(&dive, "simulated_seconds")?,
            number(&dive, "seconds")?,
        );
        let values = [
            number(&bare, "states_per_second")?,
            number(&rest, "states_per_second")?,
            number(&bare, "step_calls")?,
            number(&bare, "memo_hits")?,
            number(&bare, "visited_bytes_per_state")?,
            number(&bare, "peak_bytes_per_state")?,
            number(&rest, "peak_bytes_per_state")?,
            number(&dive, "seeds_per_hour")?,
            simulated / seconds,
            number(&replayed, "seconds")?,
        ];
        for (measure, value) in measures.iter_mut().zip(values) {
            measure.values.push(value);
        }
    }
    let rows: Vec<Value> = measures.iter().map(Measure::as_json).collect();
    if let Some(folder) = options.out.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&options.out, serde_json::to_string_pretty(&rows)?)
        .with_context(|| format!("cannot write {}", options.out.display()))?;
    for measure in &measures {
        println!(
            "{:<28}{:>16.1} {:<8} bound {}{}",
            measure.name,
            measure.at(0.5),
            measure.unit,
            measure
                .bound
                .map_or_else(|| "-".to_owned(), |bound| format!("{bound}")),
            if measure.holds() { "" } else { "  NOT REACHED" }
        );
    }
    let all = measures.iter().all(Measure::holds);
    Ok(if all { GOOD } else { FOUND })
}

/// Writes the trace of an hour beside the figures; answers its path.
fn write_hour(options: &Options) -> Result<String> {
    let path = options.out.with_file_name("hour.jsonl");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let text = hour::trace(true).map_err(|violation| anyhow!("{violation}"))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.display().to_string())
}

/// What this program prints as JSON, run by itself, so that its memory is its own.
fn ask(arguments: &[&str]) -> Result<Value> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .context("cannot start this program again")?;
    ensure!(
        output.status.success(),
        "valkey-model {} failed: {}{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn number(of: &Value, field: &str) -> Result<f64> {
    of.get(field)
        .and_then(Value::as_f64)
        .with_context(|| format!("there is no number {field} in {of}"))
}
