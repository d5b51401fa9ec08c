//! A run that breaks an invariant comes down to the few events that it takes.

use wellcake_core::step;
use wellcake_model_tests::mutants;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::random::{events, replay, run};
use wellcake_model_tests::shrink::shrink;

const STEPS: u32 = 300;

fn wrong_rule() -> Brain {
    let name = "whoever_answers_leads_instead_of_waiting";
    let mutant = mutants::find(name);
    mutant.expect("it is among the mutants").brain
}

#[test]
fn the_events_of_a_seed_replay_to_the_same_end() {
    for seed in 0..200 {
        let again = replay(seed, &events(seed, STEPS, step), step, None);
        assert_eq!(run(seed, STEPS, step, None), again, "seed {seed}");
    }
}

#[test]
fn a_wrong_rule_is_shown_by_at_most_fifteen_events_of_which_none_can_be_left_out() {
    let brain = wrong_rule();
    let mut lengths = Vec::new();
    for seed in 0..120 {
        let all = events(seed, STEPS, brain);
        let Some((few, violation)) = shrink(seed, &all, brain) else {
            continue;
        };
        for left_out in 0..few.len() {
            let mut fewer = few.clone();
            fewer.remove(left_out);
            let other = replay(seed, &fewer, brain, None).err();
            assert_ne!(
                other.map(|other| other.invariant),
                Some(violation.invariant),
                "seed {seed}: event {left_out} of {few:?} is not needed"
            );
        }
        lengths.push(few.len());
    }
    lengths.sort_unstable();
    println!("lengths of {} shrunk runs: {lengths:?}", lengths.len());
    assert!(lengths.len() >= 20, "only {} runs break", lengths.len());
    assert!(lengths[lengths.len() / 2] <= 15, "{lengths:?}");
}

#[test]
fn a_run_that_breaks_nothing_is_not_shrunk() {
    assert!(shrink(1, &events(1, STEPS, step), step).is_none());
}
