//! A pass for a terminal.

use super::view::{Ended, Pass, Told};

/// A pass, one fact a line.
pub fn text(pass: &Pass) -> String {
    let mut lines = vec![format!("line {} at {}", pass.line, pass.time)];
    lines.extend(pass.happened.iter().map(|it| format!("  happened: {it}")));
    lines.push(format!("  record: {}", pass.record));
    lines.push(format!("  clients are led to: {}", pass.clients.words));
    for (ordinal, pod) in pass.pods.iter().enumerate() {
        lines.push(format!("  pod {ordinal}: {}", pod.words));
    }
    lines.extend(pass.hints.iter().map(|hint| format!("  hint: {hint}")));
    for deed in &pass.deeds {
        let (what, reason, rule) = (&deed.what, deed.reason, &deed.rule);
        lines.push(format!("  did: {what}, because: {rule} ({reason})"));
        lines.extend(rests_on(&deed.rests_on));
        lines.extend(deed.rejected.iter().map(|it| format!("    not {it}")));
    }
    for (word, all) in [("waited", &pass.waits), ("refused", &pass.refusals)] {
        for told in all {
            lines.extend(note(word, told));
        }
    }
    if let Some(now) = &pass.otherwise {
        lines.push(format!("  this program decides otherwise: {now}"));
    }
    lines.extend(pass.outcomes.iter().map(ended));
    lines.join("\n") + "\n"
}

fn note(word: &str, told: &Told) -> Vec<String> {
    let mut lines = vec![format!("  {word}: {}", told.words)];
    lines.extend(rests_on(&told.rests_on));
    lines
}

fn rests_on(facts: &[String]) -> Option<String> {
    (!facts.is_empty()).then(|| format!("    rests on: {}", facts.join("; ")))
}

fn ended(ended: &Ended) -> String {
    let why = ended.why.as_deref().map(|why| format!(": {why}"));
    format!(
        "  {}: {} after {} ms{}",
        ended.what,
        ended.ending.in_words(),
        ended.millis,
        why.unwrap_or_default()
    )
}
