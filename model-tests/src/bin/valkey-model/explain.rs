//! A recorded pass in words.

use std::path::PathBuf;

use anyhow::{Result, bail};
use wellcake_core::effects::{Decision, Note};
use wellcake_core::facts::{
    Container, Fresh, Kept, Known, Link, Ordinal, PodFacts, Port, Role, ServerFacts, Tick, Upstream,
};
use wellcake_model_tests::recorded::Moment;

use super::GOOD;
use super::replay::open;

#[derive(clap::Args)]
pub struct Options {
    /// The trace.
    file: PathBuf,
    /// Only the pass of this line; all that did, waited for or refused something if it is not given.
    #[arg(long)]
    line: Option<usize>,
}

pub fn run(options: &Options) -> Result<u8> {
    let trace = open(&options.file)?;
    let wanted: Vec<&Moment> = trace
        .moments
        .iter()
        .filter(|moment| match options.line {
            Some(line) => moment.line == line,
            None => moment.decision != Decision::default(),
        })
        .collect();
    if let (Some(line), true) = (options.line, wanted.is_empty()) {
        bail!(
            "line {line} of {} is no pass; the passes are in the lines {}",
            options.file.display(),
            trace
                .moments
                .iter()
                .map(|moment| moment.line.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    for moment in wanted {
        print!("{}", tell(moment));
    }
    Ok(GOOD)
}

fn tell(moment: &Moment) -> String {
    let mut text = vec![format!("line {} at {}", moment.line, moment.time)];
    text.push(match moment.seen.record {
        Some(record) => format!("  record: epoch {}, pod {}", record.epoch.0, record.pod.0),
        None => "  record: none".to_owned(),
    });
    for (ordinal, pod) in moment.seen.ordinals() {
        text.push(format!(
            "  pod {}: {}",
            ordinal.0,
            pod_in_words(pod, moment.now)
        ));
    }
    for effect in &moment.decision.effects {
        text.push(format!(
            "  did: {:?}, because: {}",
            effect.verb,
            effect.reason.doc().trim()
        ));
    }
    for (word, notes) in [
        ("waited", &moment.decision.waits),
        ("refused", &moment.decision.refusals),
    ] {
        text.extend(
            notes
                .iter()
                .map(|note| format!("  {word}: {}", note_in_words(*note))),
        );
    }
    for outcome in &moment.outcomes {
        let why = outcome.why.as_deref().map(|why| format!(": {why}"));
        text.push(format!(
            "  {:?} {} after {} ms{}",
            outcome.effect.verb.kind(),
            outcome.outcome,
            outcome.millis,
            why.unwrap_or_default()
        ));
    }
    text.join("\n") + "\n"
}

fn note_in_words(note: Note) -> String {
    let pod = note.pod.map(|Ordinal(pod)| format!("pod {pod}: "));
    format!(
        "{}{} ({})",
        pod.unwrap_or_default(),
        note.reason.doc().trim(),
        note.reason.as_str()
    )
}

fn pod_in_words(pod: &PodFacts, now: Tick) -> String {
    let object = match pod.object {
        Known::Absent => return "is not there".to_owned(),
        Known::Maybe { .. } => "cannot be looked at".to_owned(),
        Known::Seen(object) => {
            let container = match object.value.container {
                Container::Waiting => "has not started".to_owned(),
                Container::Running { restarts } => format!("runs ({restarts} restarts)"),
                Container::Terminated { restarts } => format!("ended ({restarts} restarts)"),
            };
            let going = if object.value.terminating {
                ", is to go"
            } else {
                ""
            };
            format!("uid {}, {container}{going}", object.value.uid.0)
        }
    };
    let server = match pod.server {
        Known::Absent => "no server".to_owned(),
        Known::Maybe { since, .. } => {
            format!("has not answered for {} ms", now.since(since).0)
        }
        Known::Seen(answer) => format!(
            "answered {} ms ago: {}",
            now.since(answer.at).0,
            server_in_words(&answer.value)
        ),
    };
    let reach = pod.reach.map(|reach| {
        let kept = match reach.kept {
            Kept::Never => "never connected",
            Kept::Up => "connected",
            Kept::Closed { .. } => "connection closed by the server",
            Kept::TimedOut { .. } => "connection timed out",
        };
        let fresh = match reach.fresh {
            Fresh::NotTried => "",
            Fresh::Refused { .. } => ", then refused",
            Fresh::TimedOut { .. } => ", then no answer",
        };
        format!("; {kept}{fresh}")
    });
    format!("{object}; {server}{}", reach.unwrap_or_default())
}

fn server_in_words(server: &ServerFacts) -> String {
    let port = match server.port {
        Port::Fence => "fenced",
        Port::Client => "open",
    };
    let role = match server.role {
        Role::Primary => "primary".to_owned(),
        Role::Replica {
            upstream,
            link,
            syncing,
        } => {
            let of = match upstream {
                Upstream::Nobody => "nobody".to_owned(),
                Upstream::Pod(Ordinal(pod)) => format!("pod {pod}"),
                Upstream::Other => "an unknown address".to_owned(),
            };
            let link = match link {
                Link::Up => "link up".to_owned(),
                Link::Down { seconds } => format!("link down for {seconds} s"),
                Link::Never => "link never up".to_owned(),
            };
            let syncing = if syncing { ", copying" } else { "" };
            format!("replica of {of}, {link}{syncing}")
        }
    };
    let loading = if server.loading { ", loading" } else { "" };
    format!(
        "{port} {role}{loading}, history {} at {}, {} keys",
        server.replid.0, server.offset.0, server.keys
    )
}
