//! Does this program decide the same?

use std::time::{Duration, Instant};

use anyhow::Result;
use wellcake_core::facts::Tick;
use wellcake_model_tests::actions::summary;
use wellcake_model_tests::replay::exact::{Difference, causes};

use super::{Source, cut, say, some_passes};

/// Whether something is decided otherwise.
pub fn run(source: &mut Source, json: bool) -> Result<bool> {
    let begun = Instant::now();
    let (mut passes, mut others) = (0, Vec::new());
    let mut ends: Option<(Tick, Tick)> = None;
    for moment in &mut source.moments {
        let moment = moment?;
        passes += 1;
        ends = Some((ends.map_or(moment.now, |(first, _)| first), moment.now));
        let Some(difference) = Difference::of(&moment) else {
            continue;
        };
        if !json {
            let facts = others.is_empty().then(|| causes(&moment));
            say(&told(&difference, facts.as_deref()))?;
        }
        others.push(difference.line);
    }
    some_passes(passes)?;
    let took = begun.elapsed();
    let span = ends.map_or(0, |(first, last)| last.since(first).0);
    let span = Duration::from_millis(span);
    if json {
        let told = serde_json::json!({
            "file": source.name,
            "mode": "exact",
            "passes": passes,
            "cut": source.moments.is_cut(),
            "decided_otherwise": others,
            "trace_seconds": span.as_secs_f64(),
            "seconds": took.as_secs_f64(),
        });
        say(&format!("{told:#}\n"))?;
    } else {
        say(&format!(
            "{}: {passes} passes over {span:.0?}, decided again in {took:.1?}; {} are decided otherwise now\n{}",
            source.name,
            others.len(),
            cut(source)
        ))?;
    }
    Ok(!others.is_empty())
}

/// A difference; the facts that cause it are told of the first.
fn told(
    difference: &Difference,
    causes: Option<&[wellcake_model_tests::explain::why::Fact]>,
) -> String {
    let mut text = format!(
        "line {} at {}\n  then: {}\n  now:  {}\n",
        difference.line,
        difference.time,
        summary(&difference.then),
        summary(&difference.now)
    );
    if let Some(causes) = causes {
        let facts: Vec<String> = causes.iter().map(|fact| fact.in_words()).collect();
        let facts = if facts.is_empty() {
            "no single fact makes the difference".to_owned()
        } else {
            format!("the difference rests on: {}", facts.join("; "))
        };
        text.push_str(&format!("  {facts}\n"));
    }
    text
}
