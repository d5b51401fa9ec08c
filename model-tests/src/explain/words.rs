//! Facts and effects in words.

use wellcake_core::effects::{Effect, Note, Route, Verb};
use wellcake_core::facts::{
    Backoff, ClaimFacts, Container, Directives, Fresh, Hints, Kept, Known, Link, Millis,
    Observation, Ordinal, PodFacts, PodObject, Port, Reachability, Record, Revision, Role,
    RoleLabel, ServerFacts, Tick, Upstream, Volume,
};
use wellcake_core::reasons::Reason;

/// What an effect does.
pub fn deed(effect: &Effect) -> String {
    match effect.verb {
        Verb::RecordPrimary { record, .. } if effect.reason == Reason::HistoryRecorded => {
            format!("records the history that pod {} begins", record.pod.0)
        }
        verb => act(verb),
    }
}

fn act(verb: Verb) -> String {
    match verb {
        Verb::RecordPrimary { record, .. } => {
            format!("records pod {} for epoch {}", record.pod.0, record.epoch.0)
        }
        Verb::Promote { pod } => format!("promotes pod {}", pod.0),
        Verb::Follow { pod, primary } => format!("has pod {} follow pod {}", pod.0, primary.0),
        Verb::StepDown { pod } => format!("has pod {} step down", pod.0),
        Verb::Open { pod } => format!("opens pod {}", pod.0),
        Verb::PauseWrites { pod } => format!("pauses writes on pod {}", pod.0),
        Verb::ResumeWrites { pod } => format!("lets writes go on on pod {}", pod.0),
        Verb::AwaitCopy { pod, .. } => format!("waits for the rest on pod {}", pod.0),
        Verb::CloseClients { pod } => format!("disconnects clients of pod {}", pod.0),
        Verb::Evict { pod } => format!("evicts pod {}", pod.0),
        Verb::ScaleIn { to } => format!("asks for {to} pods"),
        Verb::Detach { pod } => format!("detaches pod {}", pod.0),
        Verb::Fence { pod } => format!("has pod {} take no writes and copy from nobody", pod.0),
        Verb::NeedReplica { pod, needed: true } => {
            format!("has pod {} need a replica for writes", pod.0)
        }
        Verb::NeedReplica { pod, .. } => format!("lets pod {} take writes alone", pod.0),
        Verb::SetRoute { route, pod } => {
            let service = match route {
                Route::Client => "client",
                Route::Primary => "primary",
            };
            format!("leads the {service} Service to pod {}", pod.0)
        }
        Verb::GrowVolume { pod, .. } => format!("grows the volume of pod {}", pod.0),
        Verb::Configure { pod } => format!("sets the directives of pod {}", pod.0),
        Verb::GoBackToConfig => "goes back to the configuration before".to_owned(),
        Verb::DeleteOldConfig => "deletes an earlier configuration".to_owned(),
        Verb::ReleaseFinalizer => "takes away the finalizer of the operator before".to_owned(),
        Verb::CreateCredentials => "makes the Secrets with the passwords".to_owned(),
        Verb::Apply(object) => format!("applies the {object:?}"),
        Verb::Delete(object) => format!("deletes the {object:?}"),
        Verb::KeepRecord { record } => {
            format!("copies the record to the claim of pod {}", record.pod.0)
        }
        Verb::MarkPrimaryDown { down: true } => "notes that the primary is down".to_owned(),
        Verb::MarkPrimaryDown { .. } => "notes that the primary serves again".to_owned(),
        Verb::SetLabel { pod, label } => {
            let label = match label {
                RoleLabel::None => "no role",
                RoleLabel::Primary => "primary",
                RoleLabel::Replica => "replica",
            };
            format!("labels pod {}: {label}", pod.0)
        }
    }
}

/// A doc comment on one line.
pub fn doc(reason: Reason) -> String {
    reason
        .doc()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The name of the reason of a wait or a refusal, and the pod.
pub fn short(note: Note) -> String {
    let pod = note.pod.map(|Ordinal(pod)| format!(", pod {pod}"));
    format!("{}{}", note.reason.as_str(), pod.unwrap_or_default())
}

/// A wait or a refusal.
pub fn note(note: Note) -> String {
    let pod = note.pod.map(|Ordinal(pod)| format!("pod {pod}: "));
    format!(
        "{}{} ({})",
        pod.unwrap_or_default(),
        doc(note.reason),
        note.reason.as_str()
    )
}

/// The primary record.
pub fn record(record: Option<Record>) -> String {
    let Some(record) = record else {
        return "none".to_owned();
    };
    let history = record.replid.map_or_else(
        || "its history is not known yet".to_owned(),
        |replid| format!("history {}", replid.0),
    );
    let before = record.served.map(|served| {
        let how = if record.planned {
            "hands over"
        } else {
            "ended"
        };
        format!(", pod {} before it {how}", served.pod.0)
    });
    format!(
        "epoch {}, pod {} (uid {}), {history}{}",
        record.epoch.0,
        record.pod.0,
        record.pod_uid.0,
        before.unwrap_or_default()
    )
}

/// Where the two Services lead.
pub fn routes(seen: &Observation) -> String {
    let to = |route: Option<Ordinal>| {
        route.map_or_else(|| "nobody".to_owned(), |pod| format!("pod {}", pod.0))
    };
    let (clients, primary) = (seen.objects.client_route, seen.objects.primary_route);
    if clients == primary {
        to(clients)
    } else {
        format!(
            "{} through the client Service, {} through the primary Service",
            to(clients),
            to(primary)
        )
    }
}

/// Everything that is known of a pod.
pub fn pod(pod: &PodFacts, now: Tick) -> String {
    let object = match pod.object {
        Known::Absent => return "is not there".to_owned(),
        Known::Maybe { .. } => "cannot be looked at".to_owned(),
        Known::Seen(seen) => object(&seen.value),
    };
    let server = match pod.server {
        Known::Absent => "no server".to_owned(),
        Known::Maybe { since, .. } => {
            format!("has not answered for {}", span(now.since(since)))
        }
        Known::Seen(answer) => format!(
            "answered {} ago: {}",
            span(now.since(answer.at)),
            server(&answer.value)
        ),
    };
    let reach = pod.reach.map(reach).unwrap_or_default();
    let claim = pod.claim.value().map_or("", claim);
    format!("{object}; {server}{reach}{claim}")
}

fn object(object: &PodObject) -> String {
    let container = match object.container {
        Container::Waiting => "has not started".to_owned(),
        Container::Running { restarts } => format!("runs ({restarts} restarts)"),
        Container::Terminated { restarts } => format!("ended ({restarts} restarts)"),
    };
    let going = if object.terminating { ", is to go" } else { "" };
    let template = match object.revision {
        Revision::Outdated => ", of an older template",
        Revision::RestartAsked => ", its restart was asked for",
        Revision::Unknown | Revision::Current => "",
    };
    let trouble = object
        .trouble
        .map(|trouble| format!(", in trouble: {trouble:?}"))
        .unwrap_or_default();
    format!(
        "uid {}, {container}{going}{template}{trouble}",
        object.uid.0
    )
}

const fn claim(claim: &ClaimFacts) -> &'static str {
    match (claim.volume, claim.younger_than_cluster) {
        (Volume::Smaller, _) => "; its volume is to grow",
        (Volume::Growing, _) => "; its volume grows",
        (Volume::Enough, false) => "; its claim is older than the ValkeyCluster",
        (Volume::Enough, true) => "",
    }
}

fn reach(reach: Reachability) -> String {
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
}

/// What a server says of itself.
pub fn server(server: &ServerFacts) -> String {
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
        } => replica(upstream, link, syncing),
    };
    let loading = if server.loading { ", loading" } else { "" };
    let rewriting = if server.rewriting {
        ", writes its append-only file anew"
    } else {
        ""
    };
    let directives = match server.directives {
        Directives::Refused => ", refused its directives",
        Directives::Due => ", has old directives",
        Directives::Unset | Directives::Set => "",
    };
    format!(
        "{port} {role}{loading}{rewriting}{directives}, history {} at {}, {} keys",
        server.replid.0, server.offset.0, server.keys
    )
}

fn replica(upstream: Upstream, link: Link, syncing: bool) -> String {
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

/// What may be forgotten at any time, if there is any of it.
pub fn hints(hints: &Hints, now: Tick) -> Vec<String> {
    let kinds = [
        ("making objects", hints.objects),
        ("taking pods away", hints.pods),
        ("growing volumes", hints.volumes),
    ];
    let failures = kinds.into_iter().filter_map(|(what, backoff)| {
        let Backoff { at, failures } = backoff;
        let at = at?;
        let ago = span(now.since(at));
        Some(format!("{what} failed {failures} times, last {ago} ago"))
    });
    let handover = hints
        .handover_failed_at
        .map(|at| format!("a handover came to nothing {} ago", span(now.since(at))));
    failures.chain(handover).collect()
}

/// A span of time.
pub fn span(millis: Millis) -> String {
    match millis.0 {
        ms @ ..10_000 => format!("{ms} ms"),
        ms => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}
