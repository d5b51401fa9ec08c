//! How much of the core the simulation alone reaches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::build::llvm;
use crate::command::{output, shown_to_user};
use crate::paths::{Layout, write};
use crate::progress::Progress;

/// What the simulated world runs: random runs of both kinds, every order of events of the scopes, and ends at every effect.
const RUNS: [&[&str]; 4] = [
    &["dive", "--keep-going", "--seeds"],
    &["dive", "--keep-going", "--even", "--seeds"],
    &["explore"],
    &["crash-points", "--once"],
];
/// Per cent of the regions that must be reached, of what the world can reach.
const LEAST: f64 = 95.0;
/// What has no counterpart in the simulated world, beneath `core/src`: it has objects of Kubernetes and replies of servers as
/// facts, neither as YAML nor as text.
const BEYOND: [&str; 2] = ["render/", "parse/"];

/// Where the lines and columns of a region begin and end.
type Span = [u64; 4];
/// Regions of each file and how often each was reached.
type Regions = BTreeMap<String, BTreeMap<Span, u64>>;

/// Builds the model tester with counters, runs the simulation and prints what it reached of `core/src`, with `unreached` each
/// region that it did not.
///
/// # Errors
///
/// What cannot be built or read, and less than the bound.
pub fn run(layout: &Layout, progress: &Progress, seeds: u64, unreached: bool) -> Result<()> {
    let tools = llvm::tools(layout, progress)?;
    let target = layout.repo.join("target/coverage");
    let program = build(layout, &target)?;
    let counts = target.join("counts");
    if counts.exists() {
        std::fs::remove_dir_all(&counts)
            .with_context(|| format!("cannot remove {}", counts.display()))?;
    }
    for run in RUNS {
        let mut command = Command::new(&program);
        command
            .args(run)
            .env("LLVM_PROFILE_FILE", counts.join("%p.profraw"));
        if run.contains(&"--seeds") {
            command.arg(format!("0..{seeds}"));
        }
        shown_to_user(command.current_dir(&layout.repo))?;
    }
    let merged = target.join("counts.profdata");
    shown_to_user(
        Command::new(tools.join("llvm-profdata"))
            .args(["merge", "--sparse"])
            .arg(&counts)
            .arg("--output")
            .arg(&merged),
    )?;
    let exported = output(
        Command::new(tools.join("llvm-cov"))
            .arg("export")
            .arg(&program)
            .arg("--instr-profile")
            .arg(&merged)
            .arg(layout.repo.join("core/src")),
    )?;
    let regions = regions(
        &serde_json::from_str(&exported)?,
        &layout.repo.join("core/src"),
    );
    judge(&regions, unreached)
}

/// A compiler that puts counters into the core only, so that the rest stays as fast as it is. In one piece, since the linker leaves
/// out pieces of which nothing is called, and what is never called must be counted as not reached.
const COMPILER: &str = r#"#!/bin/sh
case " $* " in
*" --crate-name wellcake_core "*) exec "$@" -C instrument-coverage -C codegen-units=1 ;;
*) exec "$@" ;;
esac
"#;

/// The model tester with counters, in a target folder of its own.
fn build(layout: &Layout, target: &Path) -> Result<PathBuf> {
    let compiler = target.join("rustc.sh");
    write(&compiler, COMPILER)?;
    output(Command::new("chmod").arg("0755").arg(&compiler))?;
    shown_to_user(
        Command::new("cargo")
            .args(["build", "--locked"])
            .args(["--package", "wellcake-model-tests", "--bin", "valkey-model"])
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_INCREMENTAL", "0")
            .env("RUSTC_WORKSPACE_WRAPPER", &compiler)
            .current_dir(&layout.repo),
    )?;
    Ok(target.join("debug/valkey-model"))
}

/// The regions of code in the files of a folder, each once: one that is in several copies of a function was reached as often as
/// all of them together.
fn regions(exported: &Value, folder: &Path) -> Regions {
    let mut regions = Regions::new();
    for function in exported["data"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(functions)
    {
        for region in list(&function["regions"]) {
            let Ok(region) = serde_json::from_value::<[u64; 8]>(region.clone()) else {
                continue;
            };
            let [from_line, from, to_line, to, count, file, _, kind] = region;
            let is_code = kind == 0;
            let file = usize::try_from(file)
                .ok()
                .and_then(|file| function["filenames"][file].as_str());
            let file = file.and_then(|file| Path::new(file).strip_prefix(folder).ok());
            if let (true, Some(file)) = (is_code, file) {
                let spans = regions.entry(file.display().to_string()).or_default();
                *spans.entry([from_line, from, to_line, to]).or_default() += count;
            }
        }
    }
    regions
}

fn functions(data: &Value) -> impl Iterator<Item = &Value> {
    list(&data["functions"])
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Regions that were reached, and all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Share {
    reached: usize,
    all: usize,
}

impl Share {
    fn of(spans: &BTreeMap<Span, u64>) -> Self {
        Self {
            reached: spans.values().filter(|count| **count > 0).count(),
            all: spans.len(),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            reached: self.reached + other.reached,
            all: self.all + other.all,
        }
    }

    fn percent(self) -> f64 {
        self.reached as f64 / self.all.max(1) as f64 * 100.0
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:>6} of {:>6} {:>6.1} %",
            self.reached,
            self.all,
            self.percent()
        )
    }
}

fn judge(regions: &Regions, unreached: bool) -> Result<()> {
    let (mut within, mut beyond) = (Share::default(), Share::default());
    for (file, spans) in regions {
        let share = Share::of(spans);
        println!("{file:<32}{share}");
        let sum = if BEYOND.iter().any(|folder| file.starts_with(folder)) {
            &mut beyond
        } else {
            &mut within
        };
        *sum = sum.and(share);
        if unreached {
            for [from_line, from, to_line, to] in spans
                .iter()
                .filter(|(_, count)| **count == 0)
                .map(|(span, _)| span)
            {
                println!("    core/src/{file}:{from_line}:{from} to {to_line}:{to}");
            }
        }
    }
    if within.all == 0 {
        bail!("no region of core/src was found in what the program counted");
    }
    println!("{:<32}{within}", format!("all but {}", BEYOND.join(", ")));
    println!("{:<32}{}", "all", within.and(beyond));
    if within.percent() < LEAST {
        bail!(
            "the simulation reaches {:.1} % of the regions of the core that it could reach, and {LEAST} % are asked for",
            within.percent()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn exported() -> Value {
        let function = |count: u64| {
            json!({
                "filenames": ["/r/core/src/plan/a.rs", "/elsewhere/b.rs"],
                "regions": [
                    [1, 1, 2, 1, count, 0, 0, 0],
                    [3, 1, 4, 1, 0, 0, 0, 0],
                    [5, 1, 6, 1, 7, 0, 0, 2],
                    [1, 1, 2, 1, 7, 1, 0, 0],
                ],
            })
        };
        json!({"data": [{"functions": [function(0), function(2)]}]})
    }

    #[test]
    fn a_region_of_several_copies_counts_once_and_only_code_of_the_folder_counts() {
        let regions = regions(&exported(), Path::new("/r/core/src"));
        let spans = BTreeMap::from([([1, 1, 2, 1], 2), ([3, 1, 4, 1], 0)]);
        assert_eq!(regions, Regions::from([("plan/a.rs".to_owned(), spans)]));
    }

    #[test]
    fn less_than_the_bound_is_an_error_and_so_is_nothing_at_all() {
        let few = regions(&exported(), Path::new("/r/core/src"));
        let told = judge(&few, true)
            .expect_err("half is not enough")
            .to_string();
        assert!(told.contains("50.0 %"), "{told}");
        assert!(judge(&Regions::new(), false).is_err());
    }

    #[test]
    fn what_the_world_has_no_counterpart_of_does_not_count_against_the_bound() {
        let spans = |count| BTreeMap::from([([1, 1, 2, 1], count)]);
        let regions = Regions::from([
            ("plan/a.rs".to_owned(), spans(1)),
            ("render/b.rs".to_owned(), spans(0)),
        ]);
        assert!(judge(&regions, false).is_ok());
    }
}
