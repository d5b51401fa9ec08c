//! Long runs of the model tester, of which one line each stays in a ledger.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::build::images;
use crate::command::{append, output, shown_to_user};
use crate::paths::Layout;
use crate::progress::Progress;

/// The ledger, beneath the repository.
const LEDGER: &str = "model-tests/SOAK.jsonl";
/// Most seconds of random runs between two batches of scripts.
const DIVE: u64 = 300;
/// Scripts of a batch.
const SCRIPTS: u64 = 60;

/// What a soak did and found.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Line {
    /// Commit of the work tree, with a `+` if files differ from it.
    commit: String,
    /// Wall time.
    seconds: u64,
    /// Scopes that were searched to their end.
    scopes: u64,
    /// Different worlds in them.
    states: u64,
    /// Ends of the operator at effects.
    crash_points: u64,
    /// Pairs of these.
    pairs: u64,
    /// First seed of the random runs.
    first_seed: u64,
    /// Random runs.
    seeds: u64,
    /// Events in them.
    events: u64,
    /// How long their worlds lived.
    simulated_hours: u64,
    /// First script on real servers.
    first_script: u64,
    /// Scripts.
    scripts: u64,
    /// Steps of these.
    script_steps: u64,
    /// What broke, with the seed or scope.
    violations: Vec<String>,
}

impl Line {
    /// An empty one that goes on where the last one ended.
    fn after(ledger: &str) -> Result<Self> {
        let Some(last) = ledger.lines().last() else {
            return Ok(Self::default());
        };
        let last: Self = serde_json::from_str(last)
            .with_context(|| format!("the last line of {LEDGER} is no line of the ledger"))?;
        Ok(Self {
            first_seed: last.first_seed + last.seeds,
            first_script: last.first_script + last.scripts,
            ..Self::default()
        })
    }
}

struct Soak {
    program: PathBuf,
    repo: PathBuf,
    server: PathBuf,
    until: Instant,
    line: Line,
}

/// Searches all scopes, ends the operator everywhere, and then takes random runs and scripts on real servers in turn until the
/// time is over; appends what that was to the ledger.
///
/// # Errors
///
/// What cannot be run, and whatever broke, after the line is written.
pub fn run(layout: &Layout, progress: &Progress, hours: f64) -> Result<()> {
    let begun = Instant::now();
    let path = layout.repo.join(LEDGER);
    let ledger = std::fs::read_to_string(&path).unwrap_or_default();
    let line = Line::after(&ledger)?;
    let time = Duration::try_from_secs_f64(hours * 3600.0)
        .with_context(|| format!("{hours} is no number of hours"))?;
    let mut soak = Soak {
        program: build(layout)?,
        repo: layout.repo.clone(),
        server: images::valkey_programs(layout, progress)?.join("valkey-server"),
        until: begun + time,
        line,
    };
    progress.step("soak", "Searching every order of events", |_| soak.scopes())?;
    progress.step(
        "soak-crash-points",
        "Ending the operator at every effect",
        |_| soak.crash_points(),
    )?;
    progress.step(
        "soak-runs",
        "Random runs, and scripts on real servers",
        |note| {
            while Instant::now() < soak.until {
                soak.dive()?;
                soak.scripts()?;
                let line = &soak.line;
                note.set(format!(
                    "{} seeds, {} scripts, {} violations",
                    line.seeds,
                    line.scripts,
                    line.violations.len()
                ));
            }
            Ok(())
        },
    )?;
    let mut line = soak.line;
    line.commit = commit(&layout.repo)?;
    line.seconds = begun.elapsed().as_secs();
    let text = serde_json::to_string(&line)?;
    std::io::Write::write_all(&mut append(&path)?, format!("{text}\n").as_bytes())?;
    progress.say(&text);
    if !line.violations.is_empty() {
        bail!(
            "{} violations; `valkey-model shrink SEED` shows how little a seed takes",
            line.violations.len()
        );
    }
    Ok(())
}

impl Soak {
    /// What the model tester prints as JSON, whatever it finds.
    fn ask(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--json")
            .current_dir(&self.repo)
            .env("VALKEY_SERVER", &self.server);
        let done = command
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        // 1 says that something was found.
        if !matches!(done.status.code(), Some(0 | 1)) {
            bail!(
                "valkey-model {} failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&done.stderr)
            );
        }
        serde_json::Deserializer::from_slice(&done.stdout)
            .into_iter()
            .collect::<Result<_, _>>()
            .with_context(|| {
                format!(
                    "what valkey-model {} prints is no JSON",
                    arguments.join(" ")
                )
            })
    }

    fn scopes(&mut self) -> Result<()> {
        let mut told = self.ask(&["explore"])?;
        for file in sorted(&self.repo.join("model-tests/scopes/large"))? {
            if Instant::now() < self.until {
                told.extend(self.ask(&["explore", "--scope", &file])?);
            }
        }
        for scope in told {
            match scope["violation"].as_str() {
                Some(violation) => {
                    let name = scope["scope"].as_str().unwrap_or_default();
                    self.line
                        .violations
                        .push(format!("scope {name}: {violation}"));
                }
                None => {
                    self.line.scopes += 1;
                    self.line.states += number(&scope, "states")?;
                }
            }
        }
        Ok(())
    }

    fn crash_points(&mut self) -> Result<()> {
        for told in self.ask(&["crash-points"])? {
            for operation in told["operations"].as_array().into_iter().flatten() {
                self.line.crash_points += number(operation, "crash_points")?;
                self.line.pairs += number(operation, "pairs")?;
                let name = operation["operation"].as_str().unwrap_or_default();
                for violation in operation["violations"].as_array().into_iter().flatten() {
                    let violation = violation.as_str().unwrap_or_default();
                    self.line.violations.push(format!("{name}: {violation}"));
                }
            }
        }
        Ok(())
    }

    fn dive(&mut self) -> Result<()> {
        // The scripts need about a minute of what is left.
        let left = self
            .until
            .saturating_duration_since(Instant::now())
            .as_secs();
        let seconds = left.saturating_sub(SCRIPTS).clamp(1, DIVE).to_string();
        let first = self.line.first_seed + self.line.seeds;
        let seeds = format!("{first}..{}", u64::MAX);
        for told in self.ask(&[
            "dive",
            "--keep-going",
            "--seconds",
            &seconds,
            "--seeds",
            &seeds,
        ])? {
            self.line.seeds += number(&told, "seeds")?;
            self.line.events += number(&told, "events")?;
            self.line.simulated_hours += told["simulated_seconds"]
                .as_f64()
                .map_or(0, |seconds| (seconds / 3600.0) as u64);
            for (seed, violation) in told["broken"].as_object().into_iter().flatten() {
                self.line.violations.push(format!(
                    "seed {seed}: {}",
                    violation.as_str().unwrap_or_default()
                ));
            }
        }
        Ok(())
    }

    fn scripts(&mut self) -> Result<()> {
        let first = (self.line.first_script + self.line.scripts).to_string();
        let scripts = SCRIPTS.to_string();
        for told in self.ask(&["differential", "--first", &first, "--scripts", &scripts])? {
            self.line.scripts += SCRIPTS;
            self.line.script_steps += number(&told, "steps")?;
            for what in ["differences", "not_run"] {
                let own = told[what].as_array().into_iter().flatten();
                let words = own.filter_map(|it| Some(format!("script: {}", it.as_str()?)));
                self.line.violations.extend(words);
            }
        }
        Ok(())
    }
}

fn number(of: &Value, field: &str) -> Result<u64> {
    of[field]
        .as_u64()
        .with_context(|| format!("there is no number {field} in {of}"))
}

/// The paths of all files of a folder.
fn sorted(folder: &Path) -> Result<Vec<String>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().display().to_string()))
        .collect();
    paths.sort();
    Ok(paths)
}

fn build(layout: &Layout) -> Result<PathBuf> {
    let cargo = || {
        let mut command = Command::new("cargo");
        command.current_dir(&layout.repo);
        command
    };
    shown_to_user(cargo().args([
        "build",
        "--locked",
        "--release",
        "--package",
        "wellcake-model-tests",
    ]))?;
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo does not tell its target folder")?;
    Ok(Path::new(target).join("release/valkey-model"))
}

/// The commit of the work tree, with a `+` if files differ from it.
fn commit(repo: &Path) -> Result<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(repo));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let mark = if differs.is_empty() { "" } else { "+" };
    Ok(format!("{}{mark}", commit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_soak_goes_on_where_the_last_one_ended() {
        let line = |first_seed, seeds, first_script, scripts| Line {
            first_seed,
            seeds,
            first_script,
            scripts,
            states: 7,
            ..Line::default()
        };
        let text = |line: &Line| serde_json::to_string(line).expect("it is written");
        let ledger = format!(
            "{}\n{}\n",
            text(&line(0, 10, 0, 60)),
            text(&line(10, 5, 60, 120))
        );
        let next = Line::after(&ledger).expect("it is read");
        assert_eq!(
            next,
            Line {
                states: 0,
                ..line(15, 0, 180, 0)
            }
        );
        assert_eq!(Line::after("").expect("it is new"), Line::default());
        assert!(Line::after("| a table |\n").is_err());
    }

    #[test]
    fn the_ledger_can_be_read_to_its_end() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(LEDGER);
        let ledger = std::fs::read_to_string(path).expect("there is a ledger");
        for line in ledger.lines() {
            serde_json::from_str::<Line>(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        }
    }
}
