//! Traces of operators: read, decided again, and named where they are damaged.

use std::io::{BufReader, Read};

use serde_json::{Value, json};
use wellcake_core::facts::Hints;
use wellcake_core::step;
use wellcake_model_tests::explain::page::page;
use wellcake_model_tests::explain::view::Gather;
use wellcake_model_tests::random::{Numbers, events, settle};
use wellcake_model_tests::recorded::read::{Trace, TraceError, read};
use wellcake_model_tests::recorded::{Moments, SCHEMA};
use wellcake_model_tests::replay::exact::Difference;
use wellcake_model_tests::replay::judge::Judge;
use wellcake_model_tests::replay::lift::lift;
use wellcake_model_tests::replay::perturb::Perturb;
use wellcake_model_tests::world::World;

/// Damaged traces that are tried.
const DAMAGED: usize = 400;

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

/// A pass over more pods than a cluster has.
fn many_pods() -> Value {
    let mut line = lines(1).swap_remove(0);
    let pod = line["seen"]["pods"][0].clone();
    line["seen"]["pods"] = Value::Array(vec![pod; 101]);
    line
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
            "line 4 is no line of a trace: its kind is `pass`, and it has no `seen`",
        ),
        (
            // A newer schema may name its kinds otherwise, or have none.
            format!("{good}{}\n", json!({"schema": SCHEMA + 1, "what": "pass"})),
            "line 4 is of schema",
        ),
        (format!("{good}{}\n", many_pods()), "line 4 has 101 pods"),
        ("x".repeat(5 * 1024 * 1024), "line 1 is longer than 4 MiB"),
    ];
    for (trace, expected) in cases {
        let why = told(read(trace.as_bytes()));
        assert!(why.starts_with(expected), "{why}");
    }
}

/// Damages a trace: cuts it, flips a bit, drops or doubles a piece, or replaces a value.
fn damaged(whole: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let place = |numbers: &mut Numbers| {
        let at = numbers.below(whole.len() as u64);
        usize::try_from(at).expect("it is within the text")
    };
    let mut text = whole.to_vec();
    let at = place(numbers);
    match numbers.below(6) {
        0 => text.truncate(at),
        1 => text[at] ^= 1 << numbers.below(8),
        2 => {
            text.remove(at);
        }
        3 => {
            let other = place(numbers);
            let (from, to) = (at.min(other), at.max(other));
            text.drain(from..to);
        }
        4 => {
            let piece = text[at..whole.len().min(at + 200)].to_vec();
            text.splice(at..at, piece);
        }
        _ => {
            // A number that is larger than any that there is.
            let digits = text[at..].iter().position(u8::is_ascii_digit);
            if let Some(from) = digits.map(|from| at + from) {
                text.splice(from..=from, b"18446744073709551615".iter().copied());
            }
        }
    }
    text
}

/// Everything that is done with a trace.
fn use_all(text: &[u8]) -> Result<usize, String> {
    let (mut judge, mut perturb) = (Judge::default(), Perturb::default());
    let mut gather = Gather::new(None, 5);
    let mut moments = Moments::new(text);
    let mut passes = 0;
    for moment in &mut moments {
        let moment = moment.map_err(|why| why.to_string())?;
        passes += 1;
        let _ = Difference::of(&moment);
        let _ = judge.see(&moment);
        let _ = lift(&moment);
        if passes % 16 == 0 {
            let _ = perturb.see(&moment, step);
        }
        gather.take(moment);
    }
    let page = page(&gather.end(moments.is_cut()));
    assert!(page.ends_with("</html>\n"));
    Ok(passes)
}

#[test]
fn any_damage_ends_in_a_sentence_with_the_line_and_never_in_a_panic() {
    let whole = text(&lines(3));
    let lines = whole.lines().count();
    let mut numbers = Numbers::new(7);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..DAMAGED {
        let text = damaged(whole.as_bytes(), &mut numbers);
        match use_all(&text) {
            Ok(passes) => {
                read += 1;
                assert!(passes <= lines + 1, "{passes} of {lines}");
            }
            Err(why) => {
                refused += 1;
                let number = why.strip_prefix("line ").and_then(|rest| {
                    let digits = rest.split(|it: char| !it.is_ascii_digit()).next();
                    digits?.parse::<usize>().ok()
                });
                assert!(number.is_some_and(|line| line <= lines + 1), "{why}");
            }
        }
    }
    // Both kinds of ends are met.
    assert!(
        refused > DAMAGED / 4 && read > DAMAGED / 20,
        "{refused} {read}"
    );
}

/// A trace of so many lines that is made while it is read.
struct Endless {
    line: Vec<u8>,
    at: usize,
    left: usize,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.line.len() && self.left > 0 {
            self.at = 0;
            self.left -= 1;
        }
        let rest = &self.line[self.at..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Peak of the memory of this process, in KiB (`VmHWM`).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let digits = line.and_then(|line| line.split_whitespace().nth(1));
    digits.and_then(|it| it.parse().ok()).expect("a number")
}

/// Reads a trace of so many MiB; answers by how many MiB the process grew beyond what a tenth of it needs.
fn growth(mebibytes: usize) -> u64 {
    let line = text(&lines(1)[..1]).into_bytes();
    let count = |mebibytes: usize| mebibytes * 1024 * 1024 / line.len();
    let read_all = |lines: usize| {
        let from = Endless {
            at: line.len(),
            left: lines,
            line: line.clone(),
        };
        let mut gather = Gather::new(None, 100);
        let mut judge = Judge::default();
        let mut passes = 0;
        for moment in Moments::new(BufReader::new(from)) {
            let moment = moment.expect("whole");
            judge.see(&moment);
            gather.take(moment);
            passes += 1;
        }
        assert_eq!(passes, lines);
    };
    read_all(count(mebibytes / 10));
    let before = peak();
    read_all(count(mebibytes));
    (peak() - before) / 1024
}

#[test]
fn a_long_trace_takes_no_more_memory_than_a_short_one() {
    assert!(growth(20) < 8);
}

/// A gigabyte: `cargo test --release -p wellcake-model-tests --test recorded -- --ignored`.
#[test]
#[ignore = "reads a gigabyte in ten seconds or more; the same with 20 MiB always runs"]
fn a_trace_of_a_gigabyte_takes_no_more_memory_than_a_short_one() {
    assert!(growth(1024) < 8);
}

#[test]
fn numbers_of_another_process_are_told_apart() {
    let names = |numbers: Value| {
        json!({"schema": SCHEMA, "kind": "names", "time": "", "namespace": "shop", "name": "web",
               "names": {"numbers": numbers}})
    };
    let pass = lines(1).swap_remove(0);
    let all = [
        names(json!({"a": 0})),
        pass.clone(),
        names(json!({"a": 0, "b": 1})),
        pass.clone(),
        names(json!({"b": 0})),
        pass,
    ];
    let trace = read(text(&all).as_bytes()).expect("readable");
    let processes: Vec<u32> = trace.moments.iter().map(|it| it.process).collect();
    assert_eq!(processes, [0, 0, 1]);
    assert_eq!(trace.moments[0].cluster, "shop/web");
}
