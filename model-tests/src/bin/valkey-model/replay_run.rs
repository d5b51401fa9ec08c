//! A run that `shrink` saved, once more.

use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result};
use wellcake_model_tests::random::End;
use wellcake_model_tests::shrink::saved::Saved;

use super::{FOUND, GOOD};

/// Longest first line that is looked at, in bytes: that of a run is much shorter.
const LONGEST: u64 = 4096;

/// Lets the run in a file happen again and tells how it ends. `None` when the file does not begin as a run does.
pub fn replay(path: &Path, json: bool) -> Result<Option<u8>> {
    if path.is_dir() {
        return Ok(None);
    }
    let file =
        std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut first = Vec::new();
    std::io::BufReader::new(std::io::Read::take(file, LONGEST))
        .read_until(b'\n', &mut first)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if !std::str::from_utf8(&first).is_ok_and(Saved::begins) {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let run = Saved::parse(&text).with_context(|| path.display().to_string())?;
    let brain = super::brain(run.head.wrong.as_deref())?;
    let mut story = String::new();
    let end = run.replay(brain, Some(&mut story));
    if json {
        let told = serde_json::json!({
            "file": path,
            "events": run.events.len(),
            "broke": run.head.breaks,
            "breaks": end.as_ref().err().map(|violation| violation.invariant),
            "seen": end.as_ref().err().map(|violation| violation.seen.as_str()),
        });
        println!("{}", serde_json::to_string_pretty(&told)?);
    } else {
        print!("{story}");
        let told = match &end {
            Ok(End::Settled) => "the cluster comes to rest".to_owned(),
            Ok(End::NeedsPerson(reason)) => {
                format!(
                    "the operator refuses with {}, which needs a person",
                    reason.as_str()
                )
            }
            Err(violation) => violation.to_string(),
        };
        println!(
            "{}: {} events, which broke \"{}\": {told}",
            path.display(),
            run.events.len(),
            run.head.breaks
        );
    }
    Ok(Some(if end.is_ok() { GOOD } else { FOUND }))
}
