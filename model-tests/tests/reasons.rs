//! L9: every reason is given in some run of the model.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use wellcake_core::effects::Decision;
use wellcake_core::facts::{Hints, Observation, SpecFacts, Tick};
use wellcake_core::reasons::Reason;
use wellcake_core::step;
use wellcake_model_tests::crashes::all::all;
use wellcake_model_tests::dive::Dive;
use wellcake_model_tests::museum::read;
use wellcake_model_tests::random::{run, run_made_elsewhere};

/// Runs of each kind. More find no other reason.
const SEEDS: u64 = 6_000;
const STEPS: u32 = 300;

/// Reasons that no run of the model gives, each with what gives it instead.
const ELSEWHERE: [(Reason, &str); 1] = [(
    Reason::NoCompleteCopy,
    "an election is among copies, and the one whose history counts always has a place in it: the reason is what is left for a \
     case that cannot be",
)];

/// How often each reason was given, in the order of [`Reason::ALL`].
static GIVEN: [AtomicU64; 128] = [const { AtomicU64::new(0) }; 128];

/// The real decision, whose reasons are counted.
fn counted(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let decision = step(spec, seen, hints, now);
    let notes = decision.waits.iter().chain(&decision.refusals);
    let told = notes.map(|note| note.reason);
    for reason in told.chain(decision.effects.iter().map(|effect| effect.reason)) {
        GIVEN[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
    decision
}

#[test]
fn every_reason_is_given_in_some_run() {
    for seed in 0..SEEDS {
        // Whether an invariant breaks is judged by other tests.
        let _ = run(seed, STEPS, counted, None);
        let _ = Dive::all(seed, STEPS).run(counted, None);
        let _ = run_made_elsewhere(seed, STEPS, counted, None);
    }
    let _ = all(counted, false, 2, |_, _| {});
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    for piece in read(&folder).unwrap_or_else(|why| panic!("{why}")) {
        let _ = piece.replay(counted, |_, _| {});
    }
    let given = |reason: Reason| GIVEN[reason as usize].load(Ordering::Relaxed);
    let mut never = Vec::new();
    for reason in Reason::ALL {
        println!("{:<28} {}", reason.as_str(), given(*reason));
        let listed = ELSEWHERE.iter().any(|(other, _)| other == reason);
        if given(*reason) == 0 && !listed {
            never.push(reason.as_str());
        }
        let why = ELSEWHERE.iter().find(|(other, _)| other == reason);
        assert!(why.is_none_or(|(_, why)| !why.is_empty()), "{reason:?}");
        assert!(
            !(listed && given(*reason) > 0),
            "{} is given after all: take it from the list",
            reason.as_str()
        );
    }
    assert!(never.is_empty(), "no run gives {never:?}");
}
