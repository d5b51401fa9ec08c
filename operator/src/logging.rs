//! Log lines on standard error: JSON for machines, text for people.

use std::io;

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Shape of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// One line of text.
    Text,
}

/// Starts logging for the whole process. `level` lets through what it names; see [`parse_level`].
///
/// # Errors
/// When something else already logs.
pub fn start(format: Format, level: Targets) -> Result<(), tracing_subscriber::util::TryInitError> {
    let registry = tracing_subscriber::registry();
    match format {
        Format::Json => {
            let lines = fmt::layer()
                .json()
                .flatten_event(true)
                .with_current_span(false);
            registry
                .with(lines.with_writer(io::stderr).with_filter(level))
                .try_init()
        }
        Format::Text => {
            let lines = fmt::layer().with_ansi(false);
            registry
                .with(lines.with_writer(io::stderr).with_filter(level))
                .try_init()
        }
    }
}

/// Sources that are heard only when they are named.
const QUIET: [&str; 3] = ["kube_client", "kube_runtime", "tower"];

/// Reads `LEVEL` or `LEVEL,SOURCE=LEVEL,...`; a level is error, warn, info, debug, trace or off.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_level(text: &str) -> Result<Targets, String> {
    // What a library notices on the way to an error is said once, by whoever gets the error.
    let mut targets = QUIET.into_iter().fold(Targets::new(), |targets, source| {
        targets.with_target(source, LevelFilter::ERROR)
    });
    for part in text.split(',') {
        let (source, level) = match part.split_once('=') {
            Some((source, level)) => (Some(source), level),
            None => (None, part),
        };
        // `parse` alone would take a misspelt level for a source that is to be traced.
        let level: LevelFilter = level.trim().parse().map_err(|_| {
            format!(
                "`{level}` is no level; give error, warn, info, debug, trace or off, or a list such as info,kube_client=debug"
            )
        })?;
        targets = match source {
            Some(source) => targets.with_target(source.trim(), level),
            None => targets.with_default(level),
        };
    }
    Ok(targets)
}
