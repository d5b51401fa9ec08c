//! A run that breaks an invariant comes down to the few events that it takes.

use std::process::Command;

use wellcake_core::step;
use wellcake_model_tests::dive::{Dive, Start};
use wellcake_model_tests::mutants;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::random::{events, replay, run};
use wellcake_model_tests::shrink::saved::{Head, SCHEMA, Saved};
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
        let Some((few, violation)) = shrink(Start::of(seed), &all, brain) else {
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
    assert!(shrink(Start::of(1), &events(1, STEPS, step), step).is_none());
}

/// One of so many wrong decisions is tried.
const EVERY: usize = 2;
/// Seeds of deep runs that each of them gets.
const DIVES: u64 = 12;

#[test]
fn deep_runs_of_wrong_decisions_come_down_to_at_most_fifteen_events_in_the_median() {
    let mut lengths = Vec::new();
    for mutant in mutants::all().step_by(EVERY) {
        for seed in 0..DIVES {
            let dive = Dive::of(seed, None);
            let all = dive.events(mutant.brain);
            let Some((few, violation)) = shrink(dive.start, &all, mutant.brain) else {
                continue;
            };
            // What breaks before anything happens tells nothing of shrinking.
            if few.is_empty() {
                continue;
            }
            println!(
                "{}, seed {seed}: {} of {} events, {}",
                mutant.name,
                few.len(),
                all.len(),
                violation.invariant
            );
            lengths.push(few.len());
            break;
        }
    }
    lengths.sort_unstable();
    println!("lengths of {} shrunk runs: {lengths:?}", lengths.len());
    assert!(lengths.len() >= 5, "only {} runs break", lengths.len());
    assert!(lengths[lengths.len() / 2] <= 15, "{lengths:?}");
}

/// The program shrinks a run to files, of which the first replays to the same violation.
#[test]
fn what_is_saved_replays_to_the_same_violation() {
    let folder = std::env::temp_dir().join(format!("wellcake-shrink-{}", std::process::id()));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_valkey-model"));
        let output = command.args(arguments).output().expect("the program runs");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), told)
    };
    let out = folder.to_str().expect("a path in UTF-8");
    let name = "whoever_answers_leads_instead_of_waiting";
    let seed = (0..100)
        .find(|seed| Dive::of(*seed, None).run(wrong_rule(), None).is_err())
        .expect("a seed breaks something")
        .to_string();
    let (code, told) = run(&["shrink", &seed, "--mutant", name, "--out", out]);
    assert_eq!(code, Some(1), "{told}");
    let file = |end: &str| folder.join(format!("seed_{seed}.{end}"));
    for end in ["jsonl", "rs", "mmd"] {
        assert!(file(end).exists(), "{told}");
    }
    let text = std::fs::read_to_string(file("jsonl")).expect("it is there");
    let saved = Saved::parse(&text).expect("it is whole");
    assert!(told.starts_with(&saved.head.breaks), "{told}");
    let path = file("jsonl");
    let path = path.to_str().expect("a path in UTF-8");
    let (code, told) = run(&["replay", path, "--json"]);
    assert_eq!(code, Some(1), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!(told["breaks"], saved.head.breaks.as_str(), "{told}");
    // The real decisions do not break it.
    std::fs::write(path, text.replace(&format!(",\"wrong\":\"{name}\""), "")).expect("written");
    let (code, told) = run(&["replay", path]);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = run(&["shrink", "--from", path]);
    assert_eq!(code, Some(0), "{told}");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

fn saved() -> Saved {
    Saved {
        head: Head {
            run: SCHEMA,
            seed: 5,
            start: Dive::of(5, None).start,
            breaks: "L1 comes to rest".to_owned(),
            wrong: None,
        },
        events: Dive::of(5, Some(200)).events(step),
    }
}

#[test]
fn a_saved_run_is_read_as_it_was_written() {
    let saved = saved();
    let text = saved.text().expect("it is written");
    assert_eq!(Saved::parse(&text).expect("it is whole"), saved);
    assert!(Saved::begins(text.lines().next().expect("there is a line")));
}

#[test]
fn damage_of_a_saved_run_is_told_with_the_line() {
    let text = saved().text().expect("it is written");
    let refusal = |text: &str| Saved::parse(text).expect_err("it is damaged").to_string();
    let cut = text.trim_end();
    let cut = &cut[..cut.len() - 1];
    assert!(
        refusal(cut).starts_with("line 201 is no event"),
        "{}",
        refusal(cut)
    );
    let newer = text.replace("\"run\":1", "\"run\":2,\"more\":[]");
    assert!(
        refusal(&newer).starts_with("line 1 is of schema 2"),
        "{}",
        refusal(&newer)
    );
    let empty = text.replace("\"pods\":", "\"pods\":0,\"was\":");
    assert!(
        refusal(&empty).starts_with("line 1 is no head of a run"),
        "{}",
        refusal(&empty)
    );
    assert_eq!(refusal(""), "line 1 is missing: the file is empty");
}
