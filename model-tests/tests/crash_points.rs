//! The operator ends before and after each effect of each operation, and once more after its restart.

use std::time::Instant;

use wellcake_core::step;
use wellcake_model_tests::crashes::all::all;
use wellcake_model_tests::crashes::operations::OPERATIONS;
use wellcake_model_tests::mutants;

#[test]
fn every_operation_reaches_its_goal_wherever_the_operator_ends_once_or_twice() {
    let begun = Instant::now();
    let tried = all(step, true, 2, |_, _| {});
    for own in &tried {
        println!(
            "{}: {} crash points, {} pairs, {} violations",
            own.name,
            own.points,
            own.pairs,
            own.broken.len()
        );
    }
    let points: u64 = tried.iter().map(|own| own.points).sum();
    let pairs: u64 = tried.iter().map(|own| own.pairs).sum();
    println!(
        "{} operations, {points} crash points, {pairs} pairs of them; {:.1?}",
        OPERATIONS.len(),
        begun.elapsed()
    );
    for own in &tried {
        if let Some(first) = own.broken.first() {
            panic!(
                "{} breaks in {} runs; the first: {:?}, {:?}, {}\n{}",
                own.name,
                own.broken.len(),
                first.place,
                first.points,
                first.violation,
                first.story
            );
        }
        assert!(
            own.points > 0 && own.pairs > 0,
            "{} has no effects",
            own.name
        );
    }
}

/// Decisions that are wrong on purpose and break something in an operation, some of them only where the operator ends.
const CANARIES: [&str; 4] = [
    "the_primary_before_is_forgotten",
    "nobody_steps_down",
    "pods_are_replaced_all_at_once",
    "guards_forget_the_epoch",
];

#[test]
fn wrong_decisions_break_an_operation() {
    for name in CANARIES {
        let mutant = mutants::find(name);
        let mutant = mutant.expect("it is among the mutants");
        let tried = all(mutant.brain, false, 2, |_, _| {});
        let broken = tried.iter().flat_map(|own| &own.broken);
        let (ended, led): (Vec<_>, Vec<_>) = broken.partition(|it| !it.points.is_empty());
        println!(
            "{name}: {} runs with an end of the operator break something, {} without",
            ended.len(),
            led.len()
        );
        assert!(!ended.is_empty() || !led.is_empty(), "{name} survives");
    }
}
