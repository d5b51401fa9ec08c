//! Traces in words and as pages: nothing is left out, nothing of a trace becomes a part of the page, and the facts are the ones that
//! decided.

use std::path::Path;

use serde_json::json;
use wellcake_core::facts::Ordinal;
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::explain::page::page;
use wellcake_model_tests::explain::text::text;
use wellcake_model_tests::explain::view::{Gather, Pass, Story, is_news};
use wellcake_model_tests::explain::why::{Given, chosen, rejected};
use wellcake_model_tests::museum::read;
use wellcake_model_tests::random::settle;
use wellcake_model_tests::recorded::write::Recording;
use wellcake_model_tests::recorded::{Moment, Moments};
use wellcake_model_tests::world::{Disk, World};

/// The traces of all pieces of the museum.
fn museum() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    let pieces = read(&folder).unwrap_or_else(|why| panic!("{why}"));
    let mut all = Vec::new();
    for piece in pieces {
        let (lines, outcome) = piece.traces(step);
        assert!(outcome.is_ok(), "{}: {outcome:?}", piece.name);
        let traces = lines.into_iter().filter(|lines| lines.passes > 0);
        all.extend(traces.map(|lines| (piece.name.clone(), lines.text)));
    }
    all
}

fn moments(trace: &str) -> Vec<Moment> {
    let moments = Moments::new(trace.as_bytes());
    moments.map(|moment| moment.expect("readable")).collect()
}

fn story(trace: &str, chosen: Option<usize>, most: usize) -> Story {
    let mut gather = Gather::new(chosen, most);
    for moment in moments(trace) {
        if !gather.take(moment) {
            break;
        }
    }
    gather.end(false)
}

#[test]
fn every_pass_of_every_incident_is_on_its_page_and_its_time_line() {
    for (name, trace) in museum() {
        let page = page(&story(&trace, None, 10_000));
        let news = moments(&trace).into_iter().filter(is_news);
        for moment in news {
            let line = moment.line;
            let own = format!("<details class=\"pass\" id=\"line-{line}\">");
            assert_eq!(page.matches(&own).count(), 1, "{name}: line {line}");
            let link = format!("<th scope=\"col\"><a href=\"#line-{line}\">");
            assert_eq!(page.matches(&link).count(), 1, "{name}: line {line}");
        }
        for pod in 0..moments(&trace)[0].seen.pods.len() {
            assert!(
                page.contains(&format!("<th scope=\"row\">pod {pod}</th>")),
                "{name}"
            );
        }
    }
}

#[test]
fn a_page_is_the_same_each_time_and_loads_nothing() {
    let (_, trace) = museum().swap_remove(0);
    let one = page(&story(&trace, None, 400));
    assert_eq!(one, page(&story(&trace, None, 400)));
    for place in ["src=", "url(", "@import", "http:", "https:"] {
        assert!(!one.contains(place), "{place}");
    }
    let links = one
        .match_indices("href=\"")
        .map(|(at, _)| &one[at + 6..at + 7]);
    let links: Vec<&str> = links.collect();
    assert!(links.len() > 10 && links.iter().all(|first| *first == "#"));
}

/// A trace in which every text that may hold anything holds markup.
fn hostile() -> String {
    let (_, trace) = museum().swap_remove(0);
    let markup = "</title></script><script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;";
    let mut lines = Vec::new();
    for line in trace.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["name"] = json!(markup);
        line["time"] = json!(markup);
        if line["kind"] == "event" {
            line["happened"] = json!(markup);
        }
        if let Some(outcomes) = line["outcomes"].as_array_mut() {
            for outcome in outcomes {
                outcome["outcome"] = json!("failed");
                outcome["why"] = json!(markup);
            }
        }
        lines.push(line.to_string());
    }
    lines.join("\n") + "\n"
}

#[test]
fn nothing_of_a_trace_becomes_a_part_of_the_page() {
    let page = page(&story(&hostile(), None, 400));
    assert!(!page.contains("<img") && !page.contains("alert('x')"));
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("</script>").count(), 1);
    let escaped = "&lt;/title&gt;&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)";
    assert!(page.matches(escaped).count() > 10);
    assert!(page.contains("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;"));
}

#[test]
fn a_line_can_be_chosen_and_the_passes_around_it_are_shown() {
    let (_, trace) = museum().swap_remove(0);
    let all: Vec<usize> = story(&trace, None, 10_000)
        .passes
        .iter()
        .map(|it| it.line)
        .collect();
    let middle = all[all.len() / 2];
    let story = story(&trace, Some(middle), 4);
    let lines: Vec<usize> = story.passes.iter().map(|it| it.line).collect();
    let at = all.len() / 2;
    assert_eq!(lines, all[at - 1..=at + 2]);
    let page = page(&story);
    assert!(page.contains(&format!(
        "<details class=\"pass chosen\" id=\"line-{middle}\" open=\"\">"
    )));
    assert_eq!(story.left_out, at - 1);
}

#[test]
fn of_a_long_trace_the_newest_passes_are_shown() {
    let (_, trace) = museum().swap_remove(0);
    let all = story(&trace, None, 10_000).passes.len();
    let few = story(&trace, None, 5);
    assert_eq!((few.passes.len(), few.left_out), (5, all - 5));
    assert!(page(&few).contains(&format!("{} earlier ones are left out.", all - 5)));
}

/// The pass in which pod 1 is promoted after the primary was killed, when pod 2 lacked the last write.
fn promotion() -> Moment {
    let mut world = World::new(3, Disk::None, Profile::Cache);
    settle(&mut world, step, None).expect("comes to rest");
    let mut recording = Recording::new(world, step);
    for action in [
        Action::Cut(2),
        Action::Write,
        Action::Replicate(1),
        Action::Kill(0),
        Action::Replicate(1),
        Action::Replicate(2),
        Action::Report(0),
        Action::Look(0),
        Action::Advance(50),
        Action::Look(0),
        Action::Decide(0),
    ] {
        recording.act(action).expect("no invariant breaks");
    }
    let lines = recording.end().swap_remove(0);
    moments(&lines.text).pop().expect("a pass")
}

#[test]
fn who_was_not_chosen_is_told_with_what_stood_in_the_way() {
    let moment = promotion();
    let given = Given {
        spec: moment.spec,
        seen: moment.seen.clone(),
        hints: moment.hints,
        now: moment.now,
    };
    assert_eq!(chosen(&given, &moment.decision), Some(Ordinal(1)));
    let rejected = rejected(&given, Ordinal(1));
    let two = rejected.iter().find(|it| it.pod == Ordinal(2));
    assert_eq!(two.map(|it| it.unless.clone()), Some(vec!["it holds less"]));
    let words = text(&Pass::of(&moment));
    assert!(words.contains("did: records pod 1 for epoch 2, because: The primary's process ended"));
    assert!(words.contains("    not pod 2: it holds less"), "{words}");
}

#[test]
fn the_facts_that_a_decision_rests_on_are_told() {
    let pass = Pass::of(&promotion());
    let facts = &pass.deeds[0].rests_on;
    for fact in [
        "the primary record",
        "the answer of pod 1",
        "what Kubernetes says of pod 0",
    ] {
        assert!(facts.iter().any(|it| it == fact), "{fact}: {facts:?}");
    }
    // What plays no part is not told.
    assert!(
        !facts
            .iter()
            .any(|it| it == "the copy of the record on a claim"),
        "{facts:?}"
    );
}
