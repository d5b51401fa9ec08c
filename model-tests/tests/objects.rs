//! Every state of two objects at a time: the decision keeps every rule, and each rule notices what it is there for.

use std::time::Instant;

use wellcake_core::step;
use wellcake_model_tests::mutants;
use wellcake_model_tests::objects::sweep;

#[test]
fn every_state_of_two_objects_keeps_every_rule() {
    let begun = Instant::now();
    let (cases, outcome) = sweep(step);
    println!("{cases} cases in {:.2?}", begun.elapsed());
    if let Err(violation) = outcome {
        panic!("{violation}");
    }
    assert!(cases > 100_000, "{cases}");
}

/// Wrong decisions, and the rule that each breaks.
const BREAK: [(&str, &str); 18] = [
    (
        "what_cannot_be_looked_at_is_not_there",
        "S14 nothing is made unseen",
    ),
    (
        "foreign_objects_are_ours",
        "S18 foreign objects are left alone",
    ),
    (
        "objects_of_another_operator_are_ours",
        "S18 objects of another operator are asked for",
    ),
    ("what_was_taken_back_is_taken_again", "S18 nobody quarrels"),
    (
        "older_servers_read_newer_files",
        "S3 no server gets older than its files",
    ),
    (
        "a_password_is_made_up",
        "S18 nothing is made without a password",
    ),
    ("what_drifts_is_left", "L1 what differs is set right"),
    (
        "what_is_not_wanted_is_deleted",
        "S18 only what is superfluous is deleted",
    ),
    (
        "failures_are_tried_again_at_once",
        "L6 failures are not tried again at once",
    ),
    ("all_volumes_grow", "L6 only small volumes grow"),
    (
        "the_file_is_written_at_once",
        "S12 the file follows the servers",
    ),
    (
        "a_refusal_is_not_noticed",
        "S12 refused directives go no further",
    ),
    (
        "a_file_that_nobody_starts_with_stays",
        "L6 a file that no server starts with is taken back once",
    ),
    (
        "a_file_is_taken_back_again_and_again",
        "L6 a file that no server starts with is taken back once",
    ),
    ("users_go_with_the_template", "S2 users are kept"),
    (
        "fewer_pods_are_applied_with_the_rest",
        "S12 fewer pods are a change of their own",
    ),
    (
        "a_deletion_is_not_noticed",
        "S18 what is not served is left alone",
    ),
    (
        "what_is_not_served_is_left_out",
        "S18 what is not served is left alone",
    ),
];

#[test]
fn each_rule_notices_what_it_is_there_for() {
    for (name, rule) in BREAK {
        let mutant = mutants::find(name).expect("it is among the mutants");
        let broken = sweep(mutant.brain).1.expect_err(name);
        assert_eq!(broken.invariant, rule, "{name}: {broken}");
    }
}
