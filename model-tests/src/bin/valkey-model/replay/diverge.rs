//! What can happen from one pass on?

use anyhow::{Context, Result, anyhow, bail};
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::recorded::Moment;
use wellcake_model_tests::replay::diverge::{Bound, Branch};
use wellcake_model_tests::search::{Progress, Way};

use super::{Options, Source, say};

/// How much time passes at once, in milliseconds.
const SPAN: u64 = 31_000;

/// Whether something breaks.
pub fn run(source: &mut Source, line: usize, brain: Brain, options: &Options) -> Result<bool> {
    let moment = find(source, line)?;
    let bound = Bound {
        faults: options.faults,
        writes: options.writes,
        spans: (options.spans, SPAN),
        depth: options.depth,
    };
    let branch = Branch::of(&moment, bound)
        .map_err(|why| anyhow!(why))
        .with_context(|| format!("line {line} cannot be lifted into a world"))?;
    let way = Way {
        threads: super::super::threads(options.threads),
        rest: true,
        most: Some(options.most),
    };
    let outcome = branch.search(brain, way, &Progress::default());
    let (states, depth, complete, broken) = match &outcome {
        Ok(seen) => (seen.states, seen.depth, seen.complete, None),
        Err(broken) => (0, 0, false, Some(broken)),
    };
    if options.json {
        let told = serde_json::json!({
            "file": source.name,
            "mode": "diverge",
            "line": line,
            "states": states,
            "depth": depth,
            "complete": complete,
            "violation": broken.map(|broken| broken.violation.to_string()),
            "events": broken.map(|broken| &broken.events),
        });
        say(&format!("{told:#}\n"))?;
        return Ok(broken.is_some());
    }
    let Some(broken) = broken else {
        let end = if complete {
            "nothing new can happen within the bound"
        } else {
            "given up there"
        };
        let name = &source.name;
        say(&format!(
            "{name}: from line {line} on {states} worlds, up to {depth} events; {end}; no violation\n"
        ))?;
        return Ok(false);
    };
    say(&format!(
        "{}: from line {line} on, after {} events: {}\n{}",
        source.name,
        broken.events.len(),
        broken.violation,
        branch.story(&broken.events, brain, true)
    ))?;
    Ok(true)
}

/// The pass of a line.
fn find(source: &mut Source, line: usize) -> Result<Moment> {
    let mut before = None;
    for moment in &mut source.moments {
        let moment = moment?;
        if moment.line == line {
            return Ok(moment);
        }
        if moment.line > line {
            break;
        }
        before = Some(moment.line);
    }
    match before {
        Some(before) => bail!("line {line} is no pass; the one before it is in line {before}"),
        None => bail!("line {line} is no pass, and there is none before it"),
    }
}
