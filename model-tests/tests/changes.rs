//! Events around changed and fewer pods that once broke an invariant, shrunk, each in the world of its seed.

use wellcake_model_tests::actions::Action::{self, *};
use wellcake_model_tests::random::replay;

fn comes_to_rest(seed: u64, events: &[Action]) {
    let end = replay(seed, events, wellcake_core::step, None);
    assert!(end.is_ok(), "{end:?}");
}

#[test]
fn a_target_that_a_smaller_spec_takes_away_is_refused() {
    comes_to_rest(12, &[Resize(2), Ask(Some(2))]);
}

#[test]
fn a_primary_that_was_promoted_while_it_was_taken_away_is_given_up() {
    let events = [
        Resize(1),
        Decide(0),
        Execute(0),
        Delete(2),
        Delete(0),
        Replicate(1),
        Look(0),
        Advance(50),
        Look(0),
        Decide(0),
        Execute(0),
    ];
    comes_to_rest(522, &events);
}

#[test]
fn pods_that_the_stateful_set_still_asks_for_may_hold_data() {
    let events = [
        Write,
        Replicate(3),
        Kill(0),
        Renew,
        Recreate(0),
        Resize(1),
        Look(0),
        Decide(0),
        Execute(0),
        Execute(0),
    ];
    comes_to_rest(2844, &events);
}

#[test]
fn two_operators_and_a_primary_that_dies_while_pods_are_taken_away() {
    let events = [
        Resize(1),
        Decide(0),
        Execute(0),
        Advance(21000),
        Kill(0),
        Replicate(1),
        Elect(1),
        Look(1),
        Advance(50),
        Poll {
            operator: 1,
            pod: 1,
            lost: false,
        },
        Decide(1),
        Execute(1),
    ];
    comes_to_rest(82, &events);
}
