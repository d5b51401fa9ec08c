//! The few events that it takes.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use wellcake_core::step;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::faults::runs::{self, Mix, replay};
use wellcake_model_tests::random;
use wellcake_model_tests::shrink::shrink_of;

use super::fuzz::Faults;
use super::{FOUND, GOOD};

#[derive(clap::Args)]
pub struct Options {
    /// The seed.
    seed: u64,
    /// Events of the run.
    #[arg(long, default_value_t = 300)]
    steps: u32,
    /// Faults of the run, as for `fuzz`.
    #[arg(long, value_enum, default_value_t = Faults::All)]
    faults: Faults,
    /// Writes the events as JSON lines to this file, from which `--events` reads them.
    #[arg(long)]
    save: Option<PathBuf>,
    /// Takes the events from a file instead of the seed; the seed then only says which world it is.
    #[arg(long)]
    events: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<u8> {
    let mix = options.faults.mix();
    let all = match (&options.events, mix) {
        (Some(path), _) => read(path)?,
        (None, Mix::Few) => random::events(options.seed, options.steps, step),
        (None, Mix::All) => runs::events(options.seed, options.steps, step),
    };
    let Some((few, violation)) = shrink_of(mix, options.seed, &all, step) else {
        println!("seed {}: no invariant breaks", options.seed);
        return Ok(GOOD);
    };
    println!("{violation}\n{} events of {}:\n", few.len(), all.len());
    let mut story = String::new();
    let _ = replay(mix, options.seed, &few, step, Some(&mut story));
    print!("{story}");
    println!("\n{}", as_test(mix, options.seed, &few));
    if let Some(path) = &options.save {
        let lines: Result<Vec<String>, _> = few.iter().map(serde_json::to_string).collect();
        std::fs::write(path, lines?.join("\n") + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(FOUND)
}

fn read(path: &PathBuf) -> Result<Vec<Action>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{}: line {} is no event", path.display(), at + 1))
        })
        .collect()
}

/// A test that fails as long as these events break an invariant.
fn as_test(mix: Mix, seed: u64, events: &[Action]) -> String {
    let mut text = format!(
        "#[test]\nfn seed_{seed}() {{\n    use wellcake_model_tests::actions::Action::*;\n    use wellcake_model_tests::faults::{{Mishap::*, runs}};\n    let events = [\n"
    );
    for event in events {
        let _ = writeln!(text, "        {event:?},");
    }
    let _ = write!(
        text,
        "    ];\n    let end = runs::replay(runs::Mix::{mix:?}, {seed}, &events, wellcake_core::step, None);\n    assert!(end.is_ok(), \"{{end:?}}\");\n}}"
    );
    text
}
