//! Every order of events in the committed scopes.

use std::path::Path;
use std::time::Instant;

use wellcake_core::step;
use wellcake_model_tests::mutants::MUTANTS;
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

#[test]
fn which_mutants() {
    for mutant in MUTANTS {
        let mut by = Vec::new();
        for (name, scope) in scopes() {
            let begun = Instant::now();
            if let Err(broken) = explore(&scope, mutant.brain, 2) {
                by.push(format!(
                    "{name} ({} events, {}, {:.1?})",
                    broken.events.len(),
                    broken.violation.invariant,
                    begun.elapsed()
                ));
            }
        }
        println!("{}: {by:?}", mutant.name);
    }
    let _ = scope("loss-2");
}
