//! Deep runs: everything about one follows from its seed, and none breaks an invariant.

use std::collections::BTreeSet;
use std::process::Command;

use wellcake_core::step;
use wellcake_model_tests::dive::Dive;

/// Seeds that are run to their end.
const SEEDS: u64 = 200;

#[test]
fn deep_runs_keep_every_invariant_come_to_rest_and_end_alike_when_they_are_run_again() {
    let (mut events, mut digests) = (0, BTreeSet::new());
    for seed in 0..SEEDS {
        let dive = Dive::of(seed, None);
        assert!(
            (500..=5_000).contains(&dive.steps),
            "seed {seed}: {}",
            dive.steps
        );
        let dived = dive.to_the_end(step);
        if let Err(violation) = &dived.end {
            panic!("{violation}\n{}", dive.story(step));
        }
        if seed % 10 == 0 {
            assert_eq!(Dive::of(seed, None).to_the_end(step), dived, "seed {seed}");
        }
        events += dived.events;
        digests.insert(dived.digest);
    }
    println!("{SEEDS} runs with {events} events");
    assert_eq!(digests.len() as u64, SEEDS, "other seeds end otherwise");
}

fn digest(threads: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_valkey-model"))
        .args([
            "dive",
            "--seeds",
            "100..150",
            "--json",
            "--threads",
            threads,
        ])
        .output()
        .expect("the program runs");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(told["seeds"], 50, "{told}");
    told["digest"]
        .as_str()
        .expect("there is a digest")
        .to_owned()
}

#[test]
fn another_process_with_more_threads_comes_to_the_same_end_states() {
    assert_eq!(digest("1"), digest("2"));
}

#[test]
fn seeds_that_cannot_be_read_are_told() {
    for (seeds, why) in [
        ("7..7", "names no seed"),
        ("9..3", "names no seed"),
        ("0..many", "`many` is no seed"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_valkey-model"))
            .args(["dive", "--seeds", seeds])
            .output()
            .expect("the program runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(why), "{seeds}: {told}");
    }
}
