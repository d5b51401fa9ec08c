//! One page for a browser: a time line with a lane for everybody, and every pass in words. It loads nothing, and everything on it
//! can be read without its script, which only adds keys.

use wellcake_core::facts::{Millis, Ordinal};

use super::html::{Element, Node, element};
use super::view::{Deed, Ended, Pass, State, Story, Told};
use super::words::span;

/// Nothing may be loaded, whatever a trace says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page.
pub fn page(story: &Story) -> String {
    let title = format!("What the operator of {} did", story.cluster);
    let head = element("head")
        .and(element("meta").with("charset", "utf-8"))
        .and(
            element("meta")
                .with("http-equiv", "Content-Security-Policy")
                .with("content", POLICY),
        )
        .and(
            element("meta")
                .with("name", "viewport")
                .with("content", "width=device-width, initial-scale=1"),
        )
        .and(element("title").text(title.clone()))
        .and(element("style").and(Node::Own(include_str!("page.css"))));
    let body = element("body")
        .and(
            element("main")
                .and(element("h1").text(title))
                .all(about(story))
                .and(element("h2").text("Time line"))
                .and(lanes(story))
                .and(key())
                .and(element("h2").text("Passes"))
                .all(passes(story)),
        )
        .and(element("script").and(Node::Own(include_str!("page.js"))));
    let html = element("html").with("lang", "en").and(head).and(body);
    format!("<!doctype html>\n{html}\n")
}

fn about(story: &Story) -> Vec<Element> {
    let ends = story.passes.first().zip(story.passes.last());
    let when = ends.map_or_else(
        || "No pass did, waited for or refused anything.".to_owned(),
        |(first, last)| {
            format!(
                "{} passes in which something was done, waited for or refused, from {} to {}.",
                story.passes.len(),
                first.time,
                last.time
            )
        },
    );
    let mut lines = vec![element("p").text(when)];
    if story.left_out > 0 {
        let left_out = format!("{} earlier ones are left out.", story.left_out);
        lines.push(element("p").text(left_out));
    }
    if story.cut {
        let cut = "The last line of the trace was cut off and is left out.";
        lines.push(element("p").text(cut));
    }
    let keys = "Each column of the time line leads to its pass. Keys: j next pass, k the one before, Enter opens and closes.";
    lines.push(element("p").text(keys));
    lines
}

/// How long after the first pass shown one is, by the clock of its operator process.
fn after(story: &Story, pass: &Pass) -> String {
    let first = story.passes.iter().find(|it| it.process == pass.process);
    let since = first.map_or(Millis(0), |first| pass.now.since(first.now));
    format!("+{}", span(since))
}

fn lanes(story: &Story) -> Element {
    let pods = story.passes.iter().map(|pass| pass.pods.len()).max();
    let hints = story.passes.iter().any(|pass| !pass.hints.is_empty());
    let happened = story.passes.iter().any(|pass| !pass.happened.is_empty());
    let head = lane(story, "after", |pass| {
        let link = element("a")
            .with("href", anchor(pass))
            .text(after(story, pass));
        element("th").with("scope", "col").and(link)
    });
    let mut rows = Vec::new();
    if happened {
        rows.push(lane(story, "world", |pass| {
            let count = pass.happened.len();
            cell(pass, "", mark(count, "•"), &pass.happened.join(" "))
        }));
    }
    rows.push(lane(story, "operator", operator));
    rows.push(lane(story, "clients", |pass| {
        let to = pass.clients.pod.map(|Ordinal(pod)| format!("→ {pod}"));
        let title = format!("clients are led to {}", pass.clients.words);
        cell(pass, "", to.unwrap_or_else(|| "–".to_owned()), &title)
    }));
    for ordinal in 0..pods.unwrap_or(0) {
        rows.push(lane(story, &format!("pod {ordinal}"), |pass| {
            pod(pass, ordinal)
        }));
    }
    if hints {
        rows.push(lane(story, "hints", |pass| {
            let count = pass.hints.len();
            cell(pass, "", mark(count, "!"), &pass.hints.join("; "))
        }));
    }
    let table = element("table")
        .and(element("thead").and(head))
        .and(element("tbody").all(rows));
    element("div")
        .with("class", "lanes")
        .with("tabindex", "0")
        .with("role", "region")
        .with("aria-label", "Time line")
        .and(table)
}

fn lane(story: &Story, name: &str, of: impl Fn(&Pass) -> Element) -> Element {
    element("tr")
        .and(element("th").with("scope", "row").text(name))
        .all(story.passes.iter().map(of))
}

fn mark(count: usize, sign: &str) -> String {
    if count > 0 {
        sign.to_owned()
    } else {
        String::new()
    }
}

/// What the operator did in a pass, in signs, with the words for who points at them.
fn operator(pass: &Pass) -> Element {
    let deeds = pass.deeds.iter().map(|deed| deed.what.as_str());
    let notes = pass.waits.iter().chain(&pass.refusals);
    let words: Vec<&str> = deeds.chain(notes.map(|it| it.short.as_str())).collect();
    let counts = [
        (pass.deeds.len(), "did"),
        (pass.waits.len(), "waited"),
        (pass.refusals.len(), "refused"),
    ];
    let told: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what} {count}"))
        .collect();
    cell(pass, "", told.join(", "), &words.join("; "))
}

fn pod(pass: &Pass, ordinal: usize) -> Element {
    match pass.pods.get(ordinal) {
        Some(pod) => cell(
            pass,
            class(pod.state),
            short(pod.state).to_owned(),
            &pod.words,
        ),
        None => element("td"),
    }
}

fn cell(pass: &Pass, class: &str, text: String, title: &str) -> Element {
    let cell = element("td").with("class", class);
    if text.is_empty() {
        return cell;
    }
    cell.with("title", title).and(
        element("a")
            .with("href", anchor(pass))
            .with("tabindex", "-1")
            .text(text),
    )
}

const fn class(state: State) -> &'static str {
    match state {
        State::Absent => "absent",
        State::Silent => "silent",
        State::Ended => "ended",
        State::Fenced => "fenced",
        State::Primary => "primary",
        State::Replica => "replica",
        State::Behind => "behind",
    }
}

const fn short(state: State) -> &'static str {
    match state {
        State::Absent => "–",
        State::Silent => "?",
        State::Ended => "×",
        State::Fenced => "f",
        State::Primary => "P",
        State::Replica => "r",
        State::Behind => "r…",
    }
}

fn key() -> Element {
    element("ul")
        .with("class", "key")
        .all(State::ALL.map(|state| {
            element("li")
                .and(element("i").with("class", class(state)).text(short(state)))
                .text(format!(" {}", state.in_words()))
        }))
}

fn anchor(pass: &Pass) -> String {
    format!("#line-{}", pass.line)
}

fn passes(story: &Story) -> Vec<Element> {
    let mut before: Option<&Pass> = None;
    let mut all = Vec::new();
    for pass in &story.passes {
        all.push(told(story, pass, before));
        before = Some(pass);
    }
    all
}

fn told(story: &Story, pass: &Pass, before: Option<&Pass>) -> Element {
    let chosen = story.chosen == Some(pass.line);
    let class = if chosen { "pass chosen" } else { "pass" };
    let details = element("details")
        .with("class", class)
        .with("id", format!("line-{}", pass.line));
    let details = if chosen {
        details.with("open", "")
    } else {
        details
    };
    details
        .and(element("summary").text(format!(
            "{} · line {} at {}: {}",
            after(story, pass),
            pass.line,
            pass.time,
            headline(pass)
        )))
        .all(list("Happened before", pass.happened.iter().cloned()))
        .and(element("h3").text("Seen"))
        .and(seen(pass, before))
        .all(section("Done", pass.deeds.iter().map(deed)))
        .all(section("Waited for", pass.waits.iter().map(note)))
        .all(section("Refused", pass.refusals.iter().map(note)))
        .all(pass.otherwise.as_ref().map(|now| {
            element("p")
                .with("class", "bad")
                .text(format!("This program decides otherwise: {now}"))
        }))
        .all(section("How it ended", pass.outcomes.iter().map(ended)))
}

/// What a pass is about, in a few words.
fn headline(pass: &Pass) -> String {
    let deeds = pass.deeds.iter().map(|deed| deed.what.clone());
    let waits = pass
        .waits
        .iter()
        .map(|told| format!("waits: {}", told.short));
    let refusals = pass.refusals.iter();
    let refusals = refusals.map(|told| format!("refuses: {}", told.short));
    let all: Vec<String> = deeds.chain(waits).chain(refusals).collect();
    if all.is_empty() {
        "nothing to do".to_owned()
    } else {
        all.join("; ")
    }
}

fn seen(pass: &Pass, before: Option<&Pass>) -> Element {
    let changed = |differs: bool| if differs { "changed" } else { "" };
    let mut rows = vec![
        (
            "primary record".to_owned(),
            pass.record.clone(),
            changed(before.is_some_and(|it| it.record != pass.record)),
        ),
        (
            "clients are led to".to_owned(),
            pass.clients.words.clone(),
            changed(before.is_some_and(|it| it.clients != pass.clients)),
        ),
    ];
    for (ordinal, pod) in pass.pods.iter().enumerate() {
        let earlier = before.and_then(|it| it.pods.get(ordinal));
        rows.push((
            format!("pod {ordinal} ({})", pod.state.in_words()),
            pod.words.clone(),
            changed(earlier.is_some_and(|it| it.state != pod.state)),
        ));
    }
    let hints = pass.hints.iter();
    rows.extend(hints.map(|hint| ("hint".to_owned(), hint.clone(), "")));
    let rows = rows.into_iter().flat_map(|(name, words, class)| {
        [
            element("dt").text(name),
            element("dd").with("class", class).text(words),
        ]
    });
    element("dl").all(rows)
}

fn section(title: &'static str, items: impl Iterator<Item = Element>) -> Vec<Element> {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Vec::new();
    }
    vec![element("h3").text(title), element("ul").all(items)]
}

fn list(title: &'static str, items: impl Iterator<Item = String>) -> Vec<Element> {
    section(title, items.map(|item| element("li").text(item)))
}

fn deed(deed: &Deed) -> Element {
    element("li")
        .and(element("strong").text(deed.what.clone()))
        .text(format!(" ({}): {}", deed.reason, deed.rule))
        .all(facts(&deed.rests_on))
        .all(deed.rejected.iter().map(|it| {
            element("div")
                .with("class", "rejected")
                .text(format!("Not {it}."))
        }))
}

fn note(told: &Told) -> Element {
    element("li")
        .text(told.words.clone())
        .all(facts(&told.rests_on))
}

fn facts(facts: &[String]) -> Option<Element> {
    let words = format!("Rests on: {}.", facts.join("; "));
    (!facts.is_empty()).then(|| element("div").with("class", "facts").text(words))
}

fn ended(ended: &Ended) -> Element {
    let why = ended.why.as_deref().map(|why| format!(": {why}"));
    let words = format!(
        "{}: {} after {} ms{}",
        ended.what,
        ended.ending.in_words(),
        ended.millis,
        why.unwrap_or_default()
    );
    let class = if ended.ending == crate::recorded::Ending::Done {
        ""
    } else {
        "bad"
    };
    element("li").with("class", class).text(words)
}
