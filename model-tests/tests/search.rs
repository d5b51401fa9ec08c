//! Every order of events in the committed scopes.

use std::path::Path;
use std::time::Instant;

use wellcake_core::step;
use wellcake_model_tests::mutants;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::search::scope::{Found, Scope, committed};
use wellcake_model_tests::search::{Broken, Progress, Seen, Way, search};

fn scopes() -> Vec<(String, Scope)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scopes");
    let all = committed(&folder).expect("there are scopes");
    all.into_iter()
        .map(|(name, path)| (name, Scope::read(&path).expect("it is a scope")))
        .collect()
}

fn scope(name: &str) -> Scope {
    let found = scopes().into_iter().find(|(own, _)| own == name);
    found.expect("it is committed").1
}

fn explore(scope: &Scope, brain: Brain, threads: usize) -> Result<Seen, Broken> {
    let way = Way {
        threads,
        rest: true,
        most: None,
    };
    search(scope, brain, way, &Progress::default())
}

#[test]
fn every_order_of_events_in_every_committed_scope_keeps_every_invariant_and_comes_to_rest() {
    let begun = Instant::now();
    let mut worlds = 0;
    let mut differ = Vec::new();
    for (name, scope) in scopes() {
        let seen = match explore(&scope, step, 2) {
            Ok(seen) => seen,
            Err(broken) => panic!("{name}: {broken:#?}"),
        };
        assert!(seen.complete, "{name} was not searched to its end");
        worlds += seen.states;
        println!(
            "{name}: {} worlds, {} events, depth {}, {:.1?}",
            seen.states, seen.events, seen.depth, seen.took
        );
        let found = Found {
            states: seen.states,
            depth: seen.depth,
        };
        if scope.found != Some(found) {
            differ.push(format!("{name}: {:?}, and found {found:?}", scope.found));
        }
    }
    println!("{worlds} worlds in {:.1?}", begun.elapsed());
    assert!(
        differ.is_empty(),
        "the world, the core or the scopes changed; if that was meant, `valkey-model explore --update`:\n{}",
        differ.join("\n")
    );
}

/// Decisions that are wrong on purpose, and the scope in which a search finds them out.
const CANARIES: [(&str, &str); 18] = [
    ("a_time_out_is_a_death", "silence-2"),
    ("the_primary_before_is_forgotten", "handover-2"),
    ("a_new_pod_is_the_old_one", "loss-2"),
    ("the_marker_is_forgotten", "loss-2"),
    ("everybody_is_empty", "rdb-2"),
    ("nobody_steps_down", "handover-2"),
    (
        "a_copy_is_promoted_before_the_primary_steps_down",
        "handover-2",
    ),
    ("a_handover_is_a_death", "handover-2"),
    ("pods_are_replaced_all_at_once", "roll-2"),
    ("the_primary_is_replaced_without_a_handover", "roll-2"),
    ("pods_are_taken_away_whoever_leads", "scale-2"),
    ("every_promotion_has_the_epoch_before", "loss-2"),
    ("everybody_is_opened_at_once", "start-2"),
    ("whoever_answers_leads_instead_of_waiting", "loss-2"),
    ("whoever_answers_leads_after_a_refusal", "silence-2"),
    ("the_marker_alone_shows_silence", "silence-2"),
    ("a_silent_primary_is_recorded_as_dead", "silence-2"),
    ("guards_forget_silence", "silence-2"),
];

#[test]
fn wrong_decisions_are_found_out_within_their_scope() {
    let mut survivors = Vec::new();
    for (name, in_scope) in CANARIES {
        let mutant = mutants::find(name);
        let mutant = mutant.expect("it is among the mutants");
        let begun = Instant::now();
        match explore(&scope(in_scope), mutant.brain, 2) {
            Ok(_) => survivors.push(name),
            Err(broken) => println!(
                "{name}: {in_scope}, {} events, {}, {:.1?}",
                broken.events.len(),
                broken.violation.invariant,
                begun.elapsed()
            ),
        }
    }
    assert!(survivors.is_empty(), "{survivors:?} survive");
}

#[test]
fn one_thread_finds_what_two_find() {
    let scope = scope("rdb-2");
    let count = |threads| {
        let seen = explore(&scope, step, threads).expect("no invariant breaks");
        (seen.states, seen.events, seen.depth, seen.complete)
    };
    assert_eq!(count(1), count(2));
}

#[test]
fn a_search_that_is_given_up_says_so() {
    let way = Way {
        threads: 2,
        rest: false,
        most: Some(1_000),
    };
    let seen = search(&scope("loss-2"), step, way, &Progress::default());
    let seen = seen.expect("no invariant breaks");
    assert!(!seen.complete && seen.states >= 1_000, "{seen:?}");
    assert_eq!(
        seen.farthest.len(),
        usize::try_from(seen.depth).expect("small")
    );
}
