//! Whatever is wrong with a decision, or with how it is carried out, the tester finds out.

use std::time::{Duration, Instant};

use wellcake_model_tests::mutants::kill::kill;
use wellcake_model_tests::mutants::{all, means};

/// What no run of its plan finds out yet: the orders of events that it takes are too rare.
const NOT_FOUND: [&str; 2] = [
    "answers_from_before_the_fault_count",
    "guards_forget_what_others_hold",
];

#[test]
fn every_wrong_decision_but_the_listed_ones_is_found_out() {
    let begun = Instant::now();
    let mut times: Vec<Duration> = Vec::new();
    let mut alive = Vec::new();
    for mutant in all().filter(|it| !NOT_FOUND.contains(&it.name)) {
        let tried = kill(mutant, 2);
        println!("{tried}");
        if !tried.is_killed() {
            alive.push(mutant.name);
        }
        times.push(tried.took);
    }
    times.sort_unstable();
    println!(
        "{} of {} are found out, half of them within {:.3?}, each within {:.1?}; {:.1?} in all",
        times.len() - alive.len(),
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1],
        begun.elapsed()
    );
    assert!(alive.is_empty(), "{alive:?} are not found out");
    assert!(times[times.len() / 2] < Duration::from_secs(2));
    assert!(times[times.len() - 1] < Duration::from_secs(60));
}

#[test]
fn every_wrong_decision_has_one_plan() {
    let mut planned: Vec<_> = means::PLANS.iter().map(|plan| plan.name).collect();
    let mut names: Vec<_> = all().map(|mutant| mutant.name).collect();
    planned.sort_unstable();
    names.sort_unstable();
    assert_eq!(planned, names);
}
