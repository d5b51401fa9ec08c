//! A trace as what is shown of it: everything in words, and what a time line draws as values.

use std::collections::VecDeque;

use wellcake_core::effects::{Decision, Effect, Note, Verb};
use wellcake_core::facts::{Container, Known, Ordinal, PodFacts, Port, Role, ServerFacts, Tick};

use super::why::{self, Fact, Given, Rejected};
use super::words;
use crate::actions::summary;
use crate::recorded::{Ending, Moment};

/// Passes of a trace with what is left out.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The ValkeyCluster, as `namespace/name`.
    pub cluster: String,
    /// Passes, in order.
    pub passes: Vec<Pass>,
    /// Earlier passes that are not shown.
    pub left_out: usize,
    /// Whether the last line of the trace was cut off.
    pub cut: bool,
    /// Line of the pass that was asked for.
    pub chosen: Option<usize>,
}

/// One pass.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Number of its line, from 1.
    pub line: usize,
    /// Wall clock.
    pub time: String,
    /// The operator's clock.
    pub now: Tick,
    /// Which operator process it is of, from 0.
    pub process: u32,
    /// What happened to the world before; only traces of simulated worlds tell.
    pub happened: Vec<String>,
    /// The primary record.
    pub record: String,
    /// Where clients are led.
    pub clients: Clients,
    /// Pods by ordinal.
    pub pods: Vec<Pod>,
    /// What may be forgotten at any time.
    pub hints: Vec<String>,
    /// What was done.
    pub deeds: Vec<Deed>,
    /// What was waited for.
    pub waits: Vec<Told>,
    /// What was refused.
    pub refusals: Vec<Told>,
    /// How effects ended.
    pub outcomes: Vec<Ended>,
    /// What the present core decides, where that is something else.
    pub otherwise: Option<String>,
}

/// Where clients are led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The pod of the client Service.
    pub pod: Option<Ordinal>,
    /// In words.
    pub words: String,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// What a time line draws.
    pub state: State,
    /// All that is known of it.
    pub words: String,
}

/// What a pod is, as far as the operator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// There is none.
    Absent,
    /// Its server does not answer.
    Silent,
    /// Its process has ended.
    Ended,
    /// Behind the fence.
    Fenced,
    /// A primary that clients reach.
    Primary,
    /// A replica whose link is up.
    Replica,
    /// A replica that has no link, or copies.
    Behind,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Primary,
        Self::Replica,
        Self::Behind,
        Self::Fenced,
        Self::Silent,
        Self::Ended,
        Self::Absent,
    ];

    /// In a word or two.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Absent => "not there",
            Self::Silent => "no answer",
            Self::Ended => "ended",
            Self::Fenced => "fenced",
            Self::Primary => "primary",
            Self::Replica => "replica",
            Self::Behind => "replica without link, or copying",
        }
    }
}

/// An effect that was decided.
#[derive(Clone, Debug)]
pub struct Deed {
    /// What it does.
    pub what: String,
    /// Name of its reason.
    pub reason: &'static str,
    /// What the reason means.
    pub rule: String,
    /// Facts without which it would not have been decided.
    pub rests_on: Vec<String>,
    /// Pods that could have been chosen instead, where it chooses one.
    pub rejected: Vec<String>,
}

/// A wait or a refusal.
#[derive(Clone, Debug)]
pub struct Told {
    /// Reason and pod.
    pub short: String,
    /// Reason, pod and meaning.
    pub words: String,
    /// Facts without which it would not have been told.
    pub rests_on: Vec<String>,
}

/// How an effect ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What it does.
    pub what: String,
    /// How it ended.
    pub ending: Ending,
    /// Why, unless it is done.
    pub why: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

impl Pass {
    /// Of a moment of a trace.
    pub fn of(moment: &Moment) -> Self {
        let given = Given {
            spec: moment.spec,
            seen: moment.seen.clone(),
            hints: moment.hints,
            now: moment.now,
        };
        let again = given.decide();
        // The present core can tell only why it decides what it decides.
        let knows = again == moment.decision;
        let told = |note: &Note| Told {
            short: words::short(*note),
            words: words::note(*note),
            rests_on: facts(knows, &given, |decision| is_told(decision, note)),
        };
        let pods = moment.seen.ordinals();
        Self {
            line: moment.line,
            time: moment.time.clone(),
            now: moment.now,
            process: moment.process,
            happened: moment.happened.clone(),
            record: words::record(moment.seen.record),
            clients: Clients {
                pod: moment.seen.objects.client_route,
                words: words::routes(&moment.seen),
            },
            pods: pods.map(|(_, pod)| Pod::of(pod, moment.now)).collect(),
            hints: words::hints(&moment.hints, moment.now),
            deeds: deeds(&given, &moment.decision, knows),
            waits: moment.decision.waits.iter().map(told).collect(),
            refusals: moment.decision.refusals.iter().map(told).collect(),
            outcomes: moment.outcomes.iter().map(Ended::of).collect(),
            otherwise: (!knows).then(|| summary(&again)),
        }
    }
}

impl Ended {
    fn of(outcome: &crate::recorded::Outcome) -> Self {
        Self {
            what: words::deed(&outcome.effect),
            ending: outcome.outcome,
            why: outcome.why.clone(),
            millis: outcome.millis,
        }
    }
}

impl Pod {
    fn of(pod: &PodFacts, now: Tick) -> Self {
        Self {
            state: state(pod),
            words: words::pod(pod, now),
        }
    }
}

fn state(pod: &PodFacts) -> State {
    if pod.object.is_absent() {
        return State::Absent;
    }
    let ended = pod
        .object
        .value()
        .is_some_and(|object| matches!(object.container, Container::Terminated { .. }));
    match pod.server {
        Known::Seen(answer) => state_of(&answer.value),
        _ if ended => State::Ended,
        _ => State::Silent,
    }
}

const fn state_of(server: &ServerFacts) -> State {
    match (server.port, server.role) {
        (Port::Fence, _) => State::Fenced,
        (Port::Client, Role::Primary) => State::Primary,
        (Port::Client, Role::Replica { syncing: false, .. }) if server.is_fed() => State::Replica,
        (Port::Client, Role::Replica { .. }) => State::Behind,
    }
}

fn deeds(given: &Given, decision: &Decision, knows: bool) -> Vec<Deed> {
    let chosen = why::chosen(given, decision).filter(|_| knows);
    let mut rejected = chosen.map(|pod| why::rejected(given, pod));
    let deed = |effect: &Effect| {
        let told = match effect.verb {
            Verb::RecordPrimary { .. } | Verb::Promote { .. } => {
                rejected.take().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        Deed {
            what: words::deed(effect),
            reason: effect.reason.as_str(),
            rule: words::doc(effect.reason),
            rests_on: facts(knows, given, |decision| does(decision, effect)),
            rejected: told.iter().map(in_words).collect(),
        }
    };
    decision.effects.iter().map(deed).collect()
}

fn facts(knows: bool, given: &Given, holds: impl Fn(&Decision) -> bool) -> Vec<String> {
    if !knows {
        return Vec::new();
    }
    let facts = why::rests_on(given, holds);
    facts.into_iter().map(Fact::in_words).collect()
}

fn does(decision: &Decision, effect: &Effect) -> bool {
    let mut effects = decision.effects.iter();
    effects.any(|other| other.verb == effect.verb && other.reason == effect.reason)
}

fn is_told(decision: &Decision, note: &Note) -> bool {
    decision.waits.contains(note) || decision.refusals.contains(note)
}

fn in_words(rejected: &Rejected) -> String {
    let why = match rejected.unless.as_slice() {
        [] => "nothing of its own would have it chosen".to_owned(),
        unless => unless.join(", and "),
    };
    format!("pod {}: {why}", rejected.pod.0)
}

/// Gathers moments, of which at most so many are kept: those around the chosen line, else the newest.
pub struct Gather {
    moments: VecDeque<Moment>,
    chosen: Option<usize>,
    most: usize,
    left_out: usize,
}

impl Gather {
    /// Nothing yet; `most` moments are kept.
    pub const fn new(chosen: Option<usize>, most: usize) -> Self {
        Self {
            moments: VecDeque::new(),
            chosen,
            most,
            left_out: 0,
        }
    }

    /// Takes a moment; answers whether later ones matter, too.
    pub fn take(&mut self, moment: Moment) -> bool {
        let line = self.chosen.unwrap_or(usize::MAX);
        if is_news(&moment) || moment.line == line {
            self.moments.push_back(moment);
        }
        // Half of them are from before the chosen one.
        let after = self.moments.iter().filter(|it| it.line > line).count();
        let most = if self.chosen.is_some() {
            self.most / 2 + after
        } else {
            self.most
        };
        if self.moments.len() > most.max(1) {
            self.moments.pop_front();
            self.left_out += 1;
        }
        after < self.most.div_ceil(2)
    }

    /// What is shown. `cut` says whether the last line of the trace was cut off.
    pub fn end(self, cut: bool) -> Story {
        let last = self.moments.back();
        Story {
            cluster: last
                .map(|moment| moment.cluster.clone())
                .unwrap_or_default(),
            left_out: self.left_out,
            cut,
            chosen: self.chosen,
            passes: self.moments.iter().map(Pass::of).collect(),
        }
    }
}

/// Whether something was done, waited for, refused, or happened.
pub fn is_news(moment: &Moment) -> bool {
    let decision = &moment.decision;
    let told = !decision.waits.is_empty() || !decision.refusals.is_empty();
    let done = !decision.effects.is_empty() || !moment.outcomes.is_empty();
    told || done || !moment.happened.is_empty()
}
