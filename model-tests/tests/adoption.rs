//! Long runs with faults in worlds that another operator made: its servers start open, and are taken over and rolled.

use std::collections::BTreeMap;

use wellcake_core::step;
use wellcake_model_tests::random::{End, run_made_elsewhere};

const SEEDS: u64 = 20_000;
const STEPS: u32 = 300;

fn story(seed: u64) -> String {
    let mut text = String::new();
    let _ = run_made_elsewhere(seed, STEPS, step, Some(&mut text));
    text
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

#[test]
fn worlds_that_another_operator_made_keep_every_invariant_and_come_to_rest() {
    let (first, seeds) = (setting("SEED", 0), setting("SEEDS", SEEDS));
    let mut needs_person = BTreeMap::new();
    let mut broken = Vec::new();
    for seed in first..first + seeds {
        match run_made_elsewhere(seed, STEPS, step, None) {
            Ok(End::Settled) => {}
            Ok(End::NeedsPerson(reason)) => *needs_person.entry(reason).or_insert(0) += 1,
            Err(violation) => broken.push((seed, violation)),
        }
    }
    println!("{seeds} runs; these end with a refusal that needs a person: {needs_person:?}");
    for (seed, violation) in broken.iter().take(40) {
        println!("seed {seed}: {violation}");
    }
    if let Some((seed, _)) = broken.first() {
        panic!(
            "{} of {seeds} runs break an invariant; the first:\n{}",
            broken.len(),
            story(*seed)
        );
    }
}
