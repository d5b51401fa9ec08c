//! Progress lines: what is being done, for how long, and how long it took last time.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Shows steps and remembers in the cache how long each one took.
pub struct Progress {
    file: PathBuf,
    terminal: bool,
    width: usize,
}

/// What a running step says about itself, for example "2 of 3 pods ready".
#[derive(Default)]
pub struct Note(Mutex<String>);

impl Note {
    /// Replaces the remark.
    pub fn set(&self, text: impl Into<String>) {
        if let Ok(mut note) = self.0.lock() {
            *note = text.into();
        }
    }

    fn get(&self) -> String {
        self.0.lock().map(|note| note.clone()).unwrap_or_default()
    }
}

impl Progress {
    /// Durations are kept in `took.json` below the cache folder.
    pub fn new(cache: &Path) -> Self {
        let width = std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok());
        Self {
            file: cache.join("took.json"),
            terminal: std::io::stdout().is_terminal(),
            width: width.unwrap_or(100),
        }
    }

    /// Does one step. `key` names its duration; `what` is shown.
    pub fn step<T>(
        &self,
        key: &str,
        what: &str,
        work: impl FnOnce(&Note) -> Result<T>,
    ) -> Result<T> {
        let last = self.durations().get(key).copied();
        let start = Instant::now();
        let note = Note::default();
        let (done, waiting) = channel::<()>();
        let outcome = std::thread::scope(|scope| {
            let note = &note;
            scope.spawn(move || {
                let every = Duration::from_millis(if self.terminal { 200 } else { 1000 });
                let mut ticks = 0_u32;
                while waiting.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    self.tick(what, start.elapsed(), last, &note.get(), ticks);
                    ticks += 1;
                }
            });
            let outcome = work(note);
            drop(done);
            outcome
        });
        let took = start.elapsed();
        let mark = if outcome.is_ok() { "done" } else { "FAILED" };
        self.end(&format!("{what}: {mark} in {}", seconds(took)));
        if outcome.is_ok() {
            self.remember(key, took);
        }
        outcome
    }

    /// One line outside any step.
    pub fn say(&self, text: &str) {
        println!("{text}");
    }

    fn tick(&self, what: &str, took: Duration, last: Option<f64>, note: &str, ticks: u32) {
        let line = running(what, took, last, note);
        if self.terminal {
            let bar = last
                .map(|last| bar(took.as_secs_f64(), last, 20))
                .unwrap_or_default();
            let line: String = format!("{bar}{line}").chars().take(self.width).collect();
            print!("\r\x1b[2K{line}");
            let _ = std::io::stdout().flush();
        } else if ticks.is_multiple_of(30) {
            println!("{line}");
        }
    }

    fn end(&self, line: &str) {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        println!("{clear}{line}");
    }

    fn durations(&self) -> BTreeMap<String, f64> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn remember(&self, key: &str, took: Duration) {
        let mut durations = self.durations();
        durations.insert(key.to_owned(), took.as_secs_f64());
        if let Ok(text) = serde_json::to_string_pretty(&durations) {
            let _ = std::fs::write(&self.file, text);
        }
    }
}

/// The line of a step that is under way.
fn running(what: &str, took: Duration, last: Option<f64>, note: &str) -> String {
    let before = match last {
        Some(last) => format!(", {} last time", seconds(Duration::from_secs_f64(last))),
        None => String::new(),
    };
    let note = if note.is_empty() {
        String::new()
    } else {
        format!(": {note}")
    };
    format!("{what} ({}{before}){note}", seconds(took))
}

/// A bar that fills in the time of the last run and waits just before its end.
fn bar(took: f64, last: f64, width: usize) -> String {
    let part = (took / last.max(0.1)).clamp(0.0, 0.95);
    let full = (part * width as f64) as usize;
    format!("[{}{}] ", "#".repeat(full), ".".repeat(width - full))
}

/// `0.4 s`, `12 s`, `3 min 05 s`.
pub fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{whole} s"),
        _ => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(seconds(Duration::from_millis(440)), "0.4 s");
        assert_eq!(seconds(Duration::from_secs(77)), "77 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 05 s");
    }

    #[test]
    fn the_bar_never_claims_the_end() {
        assert_eq!(bar(5.0, 10.0, 4), "[##..] ");
        assert_eq!(bar(99.0, 10.0, 4), "[###.] ");
    }

    #[test]
    fn a_running_step_tells_the_last_time() {
        assert_eq!(
            running("Building", Duration::from_secs(12), Some(60.0), "half"),
            "Building (12 s, 60 s last time): half"
        );
    }
}
