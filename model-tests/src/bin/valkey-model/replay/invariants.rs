//! Do the invariants hold that speak of what was seen and done?

use std::time::Instant;

use anyhow::Result;
use wellcake_model_tests::replay::judge::Judge;

use super::{Source, cut, say, some_passes};

/// Whether one of them does not.
pub fn run(source: &mut Source, json: bool) -> Result<bool> {
    let begun = Instant::now();
    let (mut judge, mut passes, mut broken) = (Judge::default(), 0, Vec::new());
    for moment in &mut source.moments {
        let moment = moment?;
        passes += 1;
        for one in judge.see(&moment) {
            let told = format!("line {} at {}: {}", one.line, moment.time, one.violation);
            if !json {
                say(&format!("{told}\n"))?;
            }
            broken.push(told);
        }
    }
    some_passes(passes)?;
    let seconds = begun.elapsed().as_secs_f64();
    if json {
        let told = serde_json::json!({
            "file": source.name,
            "mode": "invariants",
            "passes": passes,
            "cut": source.moments.is_cut(),
            "violations": broken,
            "seconds": seconds,
        });
        say(&format!("{told:#}\n"))?;
    } else {
        say(&format!(
            "{}: {passes} passes judged in {seconds:.1} s; {} violations\n{}",
            source.name,
            broken.len(),
            cut(source)
        ))?;
    }
    Ok(!broken.is_empty())
}
