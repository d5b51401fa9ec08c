//! The operator ends before and after each effect of each operation, and once more after its restart.

use std::time::Instant;

use wellcake_core::step;
use wellcake_model_tests::crashes::all::all;
use wellcake_model_tests::crashes::operations::OPERATIONS;
use wellcake_model_tests::mutants::MUTANTS;

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

#[test]
fn which_mutants() {
    for mutant in MUTANTS {
        let tried = all(mutant.brain, false, 2, |_, _| {});
        let clean = all(mutant.brain, false, 2, |_, _| {});
        let by: usize = tried
            .iter()
            .flat_map(|t| &t.broken)
            .filter(|b| !b.points.is_empty())
            .count();
        let zero: usize = clean
            .iter()
            .flat_map(|t| &t.broken)
            .filter(|b| b.points.is_empty())
            .count();
        println!("{}: {zero} without a crash, {by} with", mutant.name);
    }
}
