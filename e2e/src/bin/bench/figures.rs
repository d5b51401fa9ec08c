//! Figures: every raw value, and what is made of them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use wellcake_e2e::cluster::repo;

/// One measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub measure: String,
    /// Unit of the values.
    pub unit: String,
    /// All values, in the order in which they were taken.
    pub values: Vec<f64>,
    /// The middle one; of an even number the lower.
    pub median: f64,
    /// That which 95 of 100 do not exceed.
    pub p95: f64,
    /// The largest.
    pub max: f64,
    /// What the median, and for counts the largest, may not exceed.
    pub bound: Option<f64>,
    /// Whether the bound is the least that must be reached: for rates. Times, counts and bytes have one that may not be exceeded.
    pub higher_is_better: bool,
    /// The same figures of something else in the same run.
    pub peer: Option<serde_json::Value>,
    /// The commit that was measured; of the present checkout where the measure does not say it.
    #[serde(default = "commit")]
    pub commit: String,
}

impl Figure {
    /// Figures of a measure.
    pub fn new(measure: &str, unit: &str, values: &[f64], bound: Option<f64>) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted
                .get(rank.saturating_sub(1))
                .copied()
                .unwrap_or(f64::NAN)
        };
        Self {
            measure: measure.to_owned(),
            unit: unit.to_owned(),
            values: values.to_vec(),
            median: at(0.5),
            p95: at(0.95),
            max: at(1.0),
            bound,
            higher_is_better: false,
            peer: None,
            commit: commit(),
        }
    }

    /// Whether the bound is kept.
    pub fn holds(&self) -> bool {
        let value = if self.unit == "count" {
            self.max
        } else {
            self.median
        };
        self.bound.is_none_or(|bound| {
            if self.higher_is_better {
                value >= bound
            } else {
                value <= bound
            }
        })
    }
}

/// The commit of the checkout; `-dirty` with changes that are in none, the page of figures apart.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        Command::new("git")
            .args(arguments)
            .current_dir(repo())
            .output()
    };
    let head = git(&["rev-parse", "--short=10", "HEAD"])
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    let clean = git(&["diff", "--quiet", "HEAD", "--", ".", ":!docs/benchmarks.md"])
        .is_ok_and(|output| output.status.success());
    if clean { head } else { head + "-dirty" }
}

/// Folder of the files.
pub fn folder() -> PathBuf {
    repo().join("target/bench")
}

/// Writes the figures of one name, unless there are none.
pub fn write(name: &str, figures: &[Figure]) -> Result<()> {
    if figures.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(folder())?;
    let text = serde_json::to_string_pretty(figures)?;
    Ok(std::fs::write(folder().join(format!("{name}.json")), text)?)
}

/// Figures as lines of a Markdown table.
pub fn rows(figures: &[Figure]) -> String {
    let mut text = String::new();
    for it in figures {
        let bound = it.bound.map_or_else(|| "–".to_owned(), number);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            it.measure,
            it.values.len(),
            number(it.median),
            number(it.p95),
            number(it.max),
            bound,
            it.unit,
            if it.holds() { "yes" } else { "**no**" },
        );
    }
    text
}

/// Figures as a Markdown table.
pub fn table(figures: &[Figure]) -> String {
    let head = "| measure | n | median | p95 | max | bound | unit | reached |\n|---|---|---|---|---|---|---|---|\n";
    format!("{head}{}", rows(figures))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}
