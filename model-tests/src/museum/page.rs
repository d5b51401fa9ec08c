//! The page of a piece: what happened to people, and what this operator does when it meets the same.

use std::cell::RefCell;
use std::collections::BTreeSet;

use wellcake_core::effects::{Decision, Effect, Note, Verb};
use wellcake_core::facts::{Hints, Observation, SpecFacts, Tick};
use wellcake_core::reasons::{Nature, Reason};
use wellcake_core::step;

use super::Piece;
use crate::actions::Action;
use crate::explain::words;
use crate::invariants::Violation;
use crate::random::End;
use crate::world::Disk;

thread_local! {
    /// What the operator decided since it was taken last. A decision under test is a plain function, so that it cannot carry
    /// a list of its own.
    static DECIDED: RefCell<Vec<(Tick, Decision)>> = const { RefCell::new(Vec::new()) };
}

fn noted(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let decision = step(spec, seen, hints, now);
    DECIDED.with_borrow_mut(|decided| decided.push((now, decision.clone())));
    decision
}

/// The page in Markdown.
pub fn page(piece: &Piece) -> Result<String, Violation> {
    let head = &piece.head;
    let mut rows = Vec::new();
    let mut begun = None;
    let mut clock = Tick(0);
    let mut before = Vec::new();
    let mut events = 0;
    DECIDED.take();
    let end = piece.replay(noted, |world, event| {
        let decided = DECIDED.take();
        let Some(begin) = begun else {
            // How a cluster comes to life is no part of the story.
            begun = Some(world.now);
            clock = world.now;
            return;
        };
        let seconds = |at: Tick| format!("{:.1} s", at.since(begin).0 as f64 / 1000.0);
        events += usize::from(event.is_some());
        let healed = "Every fault that can end does so, and everybody goes on.";
        let told = event.map_or_else(|| Some(healed.to_owned()), in_words);
        if let Some(told) = told {
            rows.push(format!("| {} | {told} | |", seconds(clock)));
        }
        clock = world.now;
        for (at, decision) in decided {
            let lines = decision_in_words(&decision);
            if lines != before && !lines.is_empty() {
                let cell = lines.join("<br>");
                rows.push(format!("| {} | | {cell} |", seconds(at)));
            }
            before = lines;
        }
    })?;
    let end = match end {
        End::Settled => "The cluster is Ready and nothing is done any more.".to_owned(),
        End::NeedsPerson(reason) => format!(
            "The operator refuses to go on without a person (`{}`). {}",
            reason.as_str(),
            words(reason.doc())
        ),
    };
    Ok(format!(
        "{MADE}\n# {}\n\nReports: {}.\n\n{}\n\n## Here\n\n{}\n\n{}. From the moment at which it is at rest:\n\n\
         | after | what happens | what the operator decides |\n|---|---|---|\n{}\n\n{end}\n\n## The rule\n\n\
         {} A decision that does otherwise on purpose, `{}`, breaks the rule \"{}\" with the same events. Both are replayed by \
         `cargo test -p wellcake-model-tests --test museum` from \
         [`{}.jsonl`](../../model-tests/museum/{}.jsonl) ({events} events).\n",
        head.title,
        head.from.join(", "),
        head.happened,
        head.here,
        cluster(piece),
        rows.join("\n"),
        if head.serves {
            "Writes are acknowledged after the last event, before any fault ends."
        } else {
            "No rule breaks on the way."
        },
        head.wrong,
        head.breaks,
        piece.name,
        piece.name
    ))
}

const MADE: &str = "<!-- Made from model-tests/museum by `cargo xtask gen`. -->";

/// The list of all pages.
pub fn index(pieces: &[Piece]) -> String {
    let rows: Vec<String> = pieces
        .iter()
        .map(|piece| {
            let head = &piece.head;
            let (title, name) = (&head.title, &piece.name);
            let from = head.from.join(", ");
            format!("| [{title}]({name}.md) | {from} | {} |", head.breaks)
        })
        .collect();
    format!(
        "{MADE}\n# Incidents\n\nFailures of other operators that people reported, in a simulated world around this operator's \
         decisions: what happened, what this operator does when it meets the same, and the rule that a decision with the same \
         fault breaks. The ids are those of [field reports](../field-reports.md) (B) and [defects](../peer-defects.md) (D).\n\n\
         | incident | reports | rule |\n|---|---|---|\n{}\n",
        rows.join("\n")
    )
}

fn cluster(piece: &Piece) -> String {
    let head = &piece.head;
    let kept = match head.disk {
        Disk::None => "nothing persisted",
        Disk::Rdb => "snapshots on volumes",
        Disk::Aof => "append-only files on volumes",
    };
    let pods = match head.pods.get() {
        1 => "One pod".to_owned(),
        more => format!("{more} pods, pod 0 leads"),
    };
    format!("{pods}, profile {:?}, {kept}", head.profile)
}

/// What is decided, but for small steps.
pub(crate) fn decision_in_words(decision: &Decision) -> Vec<String> {
    let deeds = decision.effects.iter().filter_map(deed);
    let waits = decision.waits.iter().map(|note| told("waits", *note));
    let refusals = decision.refusals.iter().map(|note| told("refuses", *note));
    let mut lines: Vec<String> = deeds.chain(waits).chain(refusals).collect();
    // Both Services move in one decision, and two rules may wait for one pod.
    let mut told = BTreeSet::new();
    lines.retain(|line| told.insert(line.clone()));
    lines
}

fn told(what: &str, note: Note) -> String {
    let pod = note.pod.map(|pod| format!(", pod {}", pod.0));
    format!(
        "{what}: `{}`{}",
        note.reason.as_str(),
        pod.unwrap_or_default()
    )
}

/// `None` for small steps.
fn deed(effect: &Effect) -> Option<String> {
    let upkeep = effect.reason.nature() == Nature::Upkeep;
    let told = match effect.verb {
        Verb::RecordPrimary { .. } => !upkeep || effect.reason == Reason::HistoryRecorded,
        Verb::Configure { .. }
        | Verb::GoBackToConfig
        | Verb::DeleteOldConfig
        | Verb::ReleaseFinalizer
        | Verb::CreateCredentials
        | Verb::Apply(_)
        | Verb::Delete(_)
        | Verb::KeepRecord { .. }
        | Verb::MarkPrimaryDown { .. }
        | Verb::SetLabel { .. } => false,
        _ => !upkeep,
    };
    let what = match effect.verb {
        // Both Services move together.
        Verb::SetRoute { pod, .. } => format!("moves traffic to pod {}", pod.0),
        _ => words::deed(effect),
    };
    told.then(|| format!("{what} (`{}`)", effect.reason.as_str()))
}

/// `None` for what goes on without faults and orders.
pub(crate) fn in_words(event: Action) -> Option<String> {
    Some(match event {
        Action::Watch(_)
        | Action::Poll { lost: false, .. }
        | Action::Look(_)
        | Action::Decide(_)
        | Action::Execute(_)
        | Action::Replicate(_)
        | Action::Advance(..5_000)
        | Action::Report(_) => return None,
        Action::Poll { pod, .. } => format!("An answer of pod {pod} is lost."),
        Action::Write => "A client writes.".to_owned(),
        Action::Advance(ms) => format!("{} seconds pass in which no operator acts.", ms / 1_000),
        Action::Stretch(1) => "A second passes.".to_owned(),
        Action::Stretch(seconds) => format!("{seconds} seconds pass."),
        Action::Start(n) => format!("The container of pod {n} starts again."),
        Action::Recreate(n) => format!("Pod {n} is made anew."),
        Action::Snapshot(n) => format!("Pod {n} saves a snapshot."),
        Action::Kill(n) => format!("The server of pod {n} is killed."),
        Action::Terminate(n) => format!("Pod {n} gets a deletion timestamp."),
        Action::Ask(None) => "A person asks for another primary.".to_owned(),
        Action::Ask(Some(n)) => format!("A person asks for pod {n} as primary."),
        Action::Change => "A person changes the image.".to_owned(),
        Action::Resize(1) => "A person asks for one pod.".to_owned(),
        Action::Resize(pods) => format!("A person asks for {pods} pods."),
        Action::Hibernate(true) => "A person sends the cluster to sleep.".to_owned(),
        Action::Hibernate(false) => "A person wakes the cluster.".to_owned(),
        Action::Hand { pod, of: None } => format!("A person has pod {pod} lead."),
        Action::Hand { pod, of: Some(of) } => format!("A person has pod {pod} follow pod {of}."),
        Action::Renew => "The ValkeyCluster is deleted and made anew; volumes stay.".to_owned(),
        Action::Delete(n) => format!("Pod {n} is gone; its server ended in order."),
        Action::DeleteByForce(n) => format!("Pod {n} is deleted by force; its server lives on."),
        Action::Reap => "Servers whose pods are gone end.".to_owned(),
        Action::Freeze(n) => format!("The server of pod {n} stops doing anything."),
        Action::Thaw(n) => format!("The server of pod {n} goes on."),
        Action::Hide(n) => format!("Operators do not reach pod {n} any more."),
        Action::Show(n) => format!("Operators reach pod {n} again."),
        Action::Isolate(n) => format!("Pod {n} is cut off from operators and other pods."),
        Action::Cut(n) => format!("Pod {n} does not reach its primary any more."),
        Action::Join(n) => format!("Pod {n} reaches other pods again."),
        Action::Crash(o) => format!("Operator {o} is killed and starts again."),
        Action::Elect(o) => format!("Operator {o} takes the lease if it is free."),
        Action::Mishap(mishap) => format!("Something else goes wrong: {mishap:?}."),
    })
}

/// Words of a doc comment, on one line.
fn words(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
