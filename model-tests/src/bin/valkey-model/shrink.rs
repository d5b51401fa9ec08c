//! The few events that it takes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::shrink::rust_test::rust_test;
use wellcake_model_tests::shrink::saved::{Head, SCHEMA, Saved};
use wellcake_model_tests::shrink::sequence::sequence;
use wellcake_model_tests::shrink::shrink;

use super::dive::Kind;
use super::{FOUND, GOOD};

#[derive(clap::Args)]
pub struct Options {
    /// The seed.
    #[arg(required_unless_present = "from")]
    seed: Option<u64>,
    #[command(flatten)]
    kind: Kind,
    /// Takes the run from a file that `--out` wrote, instead of a seed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "steps", "even", "mutant"])]
    from: Option<PathBuf>,
    /// Lets a decision decide that is wrong on purpose (`model-tests/src/mutants.rs`).
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Writes the events that are left to this folder: as JSON lines that `valkey-model replay` reads, as a test in Rust and as a
    /// sequence diagram in the language of Mermaid.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<u8> {
    let (all, brain) = whole(options)?;
    let head = &all.head;
    let Some((few, violation)) = shrink(head.start, &all.events, brain) else {
        println!("seed {}: no invariant breaks", head.seed);
        return Ok(GOOD);
    };
    let left = Saved {
        head: Head {
            breaks: violation.invariant.to_owned(),
            ..head.clone()
        },
        events: few,
    };
    println!(
        "{violation}\n{} events of {}:\n",
        left.events.len(),
        all.events.len()
    );
    let mut story = String::new();
    let _ = left.replay(brain, Some(&mut story));
    println!("{story}");
    match &options.out {
        Some(folder) => write(folder, &left, brain)?,
        None => println!("{}", rust_test(&left)),
    }
    Ok(FOUND)
}

/// All events of the run, and who decides.
fn whole(options: &Options) -> Result<(Saved, Brain)> {
    if let Some(path) = &options.from {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let saved = Saved::parse(&text).with_context(|| path.display().to_string())?;
        let brain = super::brain(saved.head.wrong.as_deref())?;
        return Ok((saved, brain));
    }
    let seed = options.seed.context("there is neither a seed nor a file")?;
    let brain = super::brain(options.mutant.as_deref())?;
    let dive = options.kind.dive(seed);
    let head = Head {
        run: SCHEMA,
        seed,
        start: dive.start,
        breaks: String::new(),
        wrong: options.mutant.clone(),
    };
    let events = dive.events(brain);
    Ok((Saved { head, events }, brain))
}

fn write(folder: &Path, left: &Saved, brain: Brain) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let seed = left.head.seed;
    let files = [
        (format!("seed_{seed}.jsonl"), left.text()?),
        (format!("seed_{seed}.rs"), rust_test(left)),
        (format!("seed_{seed}.mmd"), sequence(left, brain)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}
