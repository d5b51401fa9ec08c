//! Long runs with faults, from fixed seeds: every run is the same each time.

use std::collections::BTreeMap;

use wellcake_core::step;
use wellcake_model_tests::random::{End, run, story};

const SEEDS: u64 = 50_000;
const STEPS: u32 = 300;

#[test]
fn fifty_thousand_seeds_with_faults_keep_every_invariant_and_come_to_rest() {
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

/// Seeds that broke an invariant with a rule that was wrong.
const BROKE_ONCE: [u64; 70] = [
    15, 159, 175, 211, 272, 322, 420, 425, 5_163, 5_312, 5_443, 5_678, 9_557, 12_491, 17_468,
    21_184, 60_941, 67_667, 72_292, 76_532, 114_769, 141_277, 143_775, 145_749, 154_661, 172_239,
    187_531, 187_711, 188_951, 195_400, 217_683, 325_222, 334_007, 365_465, 394_894, 1_149_493,
    1_356_666, 1_365_884, 1_799_908, 1_967_428, 2_315_675, 2_855_806, 2_917_756, 2_971_025,
    3_257_339, 11_732_005, 84_411, 92_156, 162_574, 199_268, 428_892, 2_302_799, 2_335_371,
    2_627_792, 2_901_811, 12_405_780, 176_491, 2_051, 7_523, 9_989, 432, 8_892, 11_779, 134_009,
    247_740, 572_490, 1_444_767, 647_937, 985_901, 1_367_265,
];

#[test]
fn seeds_that_broke_an_invariant_once_do_so_no_more() {
    for seed in BROKE_ONCE {
        if let Err(violation) = run(seed, STEPS, step, None) {
            panic!("{violation}\n{}", story(seed, STEPS, step));
        }
    }
}

/// A number from the environment, to look at one seed or at more of them.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}
