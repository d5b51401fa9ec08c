//! Traces of operators: read, decided again, and named where they are damaged.

use serde_json::{Value, json};
use wellcake_core::facts::Hints;
use wellcake_core::step;
use wellcake_model_tests::random::{events, settle};
use wellcake_model_tests::recorded::{SCHEMA, Trace, TraceError, read};
use wellcake_model_tests::world::World;

/// Lines as an operator writes them, from what the operator of a simulated world sees.
fn lines(seed: u64) -> Vec<Value> {
    let mut world: World = wellcake_model_tests::random::world(seed);
    settle(&mut world, step, None).expect("comes to rest");
    let mut lines = Vec::new();
    for event in events(seed, 100, step) {
        world.apply(event, step).expect("no invariant breaks");
        let Some(seen) = world.observe(0) else {
            continue;
        };
        let hints = Hints::default();
        lines.push(json!({
            "schema": SCHEMA,
            "kind": "pass",
            "time": "2026-01-01T00:00:00Z",
            "namespace": "shop",
            "name": "web",
            "spec": world.spec,
            "seen": seen,
            "hints": hints,
            "now": world.now,
            "decision": step(&world.spec, &seen, &hints, world.now),
        }));
    }
    lines
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn told(trace: Result<Trace, TraceError>) -> String {
    trace.map(|_| ()).expect_err("a damaged trace").to_string()
}

#[test]
fn what_was_recorded_is_decided_the_same_again() {
    for seed in 0..20 {
        let lines = lines(seed);
        let trace = read(text(&lines).as_bytes()).expect("readable");
        assert_eq!(trace.moments.len(), lines.len());
        assert!(!trace.cut);
        for moment in &trace.moments {
            assert_eq!(moment.decided_otherwise(), None, "line {}", moment.line);
        }
    }
}

#[test]
fn another_decision_than_the_recorded_one_is_noticed() {
    let mut lines = lines(1);
    lines[7]["decision"]["wake"] = json!(1);
    let trace = read(text(&lines).as_bytes()).expect("readable");
    let others: Vec<usize> = trace
        .moments
        .iter()
        .filter(|moment| moment.decided_otherwise().is_some())
        .map(|moment| moment.line)
        .collect();
    assert_eq!(others, [8]);
}

#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let lines = lines(1);
    let whole = text(&lines);
    let trace = read(&whole.as_bytes()[..whole.len() - 40]).expect("readable");
    assert!(trace.cut);
    assert_eq!(trace.moments.len(), lines.len() - 1);
}

#[test]
fn damage_is_told_with_the_line() {
    let good = text(&lines(1)[..3]);
    let cases = [
        (
            format!("{good}{{\"schema\":\n{good}"),
            "line 4 is no line of a trace",
        ),
        (format!("{good}\u{0}\n"), "line 4 is no line of a trace"),
        (
            format!(
                "{good}{}\n",
                json!({"schema": SCHEMA + 1, "kind": "pass", "time": ""})
            ),
            "line 4 is of schema",
        ),
        (
            format!(
                "{good}{}\n",
                json!({"schema": SCHEMA, "kind": "pass", "time": ""})
            ),
            "line 4 is no line of a trace",
        ),
        ("x".repeat(5 * 1024 * 1024), "line 1 is longer than 4 MiB"),
    ];
    for (trace, expected) in cases {
        let why = told(read(trace.as_bytes()));
        assert!(why.starts_with(expected), "{why}");
    }
}
