//! What breaks if one thing goes otherwise in a pass?

use std::time::Instant;

use anyhow::Result;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::replay::perturb::{Broken, Perturb, story};

use super::{Source, cut, say, some_passes};

/// Whether something does.
pub fn run(source: &mut Source, brain: Brain, json: bool) -> Result<bool> {
    let begun = Instant::now();
    let (mut perturb, mut passes, mut broken) = (Perturb::default(), 0, Vec::new());
    for moment in &mut source.moments {
        let moment = moment?;
        passes += 1;
        for one in perturb.see(&moment, brain) {
            let told = in_words(&one);
            if !json {
                say(&format!("{told}\n"))?;
                // One story is enough to begin with.
                if broken.is_empty()
                    && let Ok(story) = story(&moment, one.otherwise, brain)
                {
                    say(&story)?;
                }
            }
            broken.push(told);
        }
    }
    some_passes(passes)?;
    let seconds = begun.elapsed().as_secs_f64();
    let (left_out, why) = perturb.left_out;
    if json {
        let told = serde_json::json!({
            "file": source.name,
            "mode": "perturb",
            "passes": passes,
            "cut": source.moments.is_cut(),
            "lifted": perturb.lifted,
            "repeated": perturb.repeated,
            "left_out": left_out,
            "runs": perturb.runs,
            "violations": broken,
            "seconds": seconds,
        });
        say(&format!("{told:#}\n"))?;
        return Ok(!broken.is_empty());
    }
    say(&format!(
        "{}: {passes} passes, {} different worlds, {} runs in {seconds:.1} s; {} violations\n{}",
        source.name,
        perturb.lifted,
        perturb.runs,
        broken.len(),
        cut(source)
    ))?;
    if let Some(why) = why {
        say(&format!(
            "{left_out} passes are left out; of the last one: {why}\n"
        ))?;
    }
    Ok(!broken.is_empty())
}

fn in_words(broken: &Broken) -> String {
    format!(
        "line {}, {}: {}",
        broken.line,
        broken.otherwise.in_words(),
        broken.violation
    )
}
