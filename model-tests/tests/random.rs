//! Long runs with faults, from fixed seeds: every run is the same each time.

use std::collections::BTreeMap;

use wellcake_core::step;
use wellcake_model_tests::random::{End, run, story};

const SEEDS: u64 = 2_000;
const STEPS: u32 = 300;

#[test]
fn two_thousand_seeds_with_faults_keep_every_invariant_and_come_to_rest() {
    let (first, seeds, steps) = (
        setting("SEED", 0),
        setting("SEEDS", SEEDS),
        setting("STEPS", u64::from(STEPS)),
    );
    let steps = u32::try_from(steps).expect("few steps");
    let mut needs_person = BTreeMap::new();
    let mut broken = Vec::new();
    for seed in first..first + seeds {
        match run(seed, steps, step, None) {
            Ok(End::Settled) => {}
            Ok(End::NeedsPerson(reason)) => *needs_person.entry(reason).or_insert(0) += 1,
            Err(violation) => broken.push((seed, violation)),
        }
    }
    println!(
        "{seeds} runs of {steps} events; these end with a refusal that needs a person: {needs_person:?}"
    );
    for (seed, violation) in broken.iter().take(40) {
        println!("seed {seed}: {violation}");
    }
    if let Some((seed, _)) = broken.first() {
        panic!(
            "{} of {seeds} runs break an invariant; the first:\n{}",
            broken.len(),
            story(*seed, steps, step)
        );
    }
}

/// A number from the environment, to look at one seed or at more of them.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}
