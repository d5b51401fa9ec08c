//! Why a decision is what it is, found by asking the core again: on which facts it rests, and what would have to be otherwise for
//! another pod to be chosen. Nothing here knows a rule.

use wellcake_core::effects::{Decision, Verb};
use wellcake_core::facts::{
    Container, Fresh, Hints, Kept, Known, Link, OVERFLOW, Object, Observation, Offset, Ordinal,
    PodUid, Port, Reachability, Replid, Role, ServerFacts, SpecFacts, Tick,
};
use wellcake_core::step;

/// All that a decision is made from.
#[derive(Clone, Debug)]
pub struct Given {
    /// What is asked for.
    pub spec: SpecFacts,
    /// What is seen.
    pub seen: Observation,
    /// Hints.
    pub hints: Hints,
    /// The time.
    pub now: Tick,
}

impl Given {
    /// What the core decides on it.
    pub fn decide(&self) -> Decision {
        step(&self.spec, &self.seen, &self.hints, self.now)
    }
}

/// A fact that a decision may rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The primary record.
    Record,
    /// Its copy on a claim.
    KeptRecord,
    /// Since when the primary is down.
    DownSince,
    /// How far the last primary had come.
    PrimaryOffset,
    /// Where the Services lead.
    Routes,
    /// The state of one object.
    Object(Object),
    /// What Kubernetes says of a pod.
    Pod(Ordinal),
    /// That a pod is to go.
    Terminating(Ordinal),
    /// What a server answered.
    Server(Ordinal),
    /// That a server is behind the fence.
    Fence(Ordinal),
    /// The link of a replica.
    Link(Ordinal),
    /// How much a server holds.
    Offset(Ordinal),
    /// The history of a server.
    History(Ordinal),
    /// What the network says of an address.
    Reach(Ordinal),
    /// A server whose pod is gone.
    Former(PodUid),
    /// A wish or an order of a person.
    Order,
    /// What may be forgotten at any time.
    Hints,
}

impl Fact {
    /// All facts of a look, the general ones first.
    pub fn all(given: &Given) -> Vec<Self> {
        let mut all = vec![
            Self::Record,
            Self::KeptRecord,
            Self::DownSince,
            Self::PrimaryOffset,
            Self::Routes,
            Self::Order,
            Self::Hints,
        ];
        all.extend(Object::ALL.map(Self::Object));
        for (pod, _) in given.seen.ordinals() {
            all.extend([
                Self::Pod(pod),
                Self::Terminating(pod),
                Self::Server(pod),
                Self::Fence(pod),
                Self::Link(pod),
                Self::Offset(pod),
                Self::History(pod),
                Self::Reach(pod),
            ]);
        }
        let former = given.seen.former.iter();
        all.extend(former.map(|former| Self::Former(former.reach.pod_uid)));
        all
    }

    /// In words.
    pub fn in_words(self) -> String {
        match self {
            Self::Record => "the primary record".to_owned(),
            Self::KeptRecord => "the copy of the record on a claim".to_owned(),
            Self::DownSince => "since when the primary is down".to_owned(),
            Self::PrimaryOffset => "how far the last primary had come".to_owned(),
            Self::Routes => "where the Services lead".to_owned(),
            Self::Object(object) => format!("the state of the {object:?}"),
            Self::Pod(pod) => format!("what Kubernetes says of pod {}", pod.0),
            Self::Terminating(pod) => format!("whether pod {} is to go", pod.0),
            Self::Server(pod) => format!("the answer of pod {}", pod.0),
            Self::Fence(pod) => format!("the port of pod {}", pod.0),
            Self::Link(pod) => format!("the link of pod {}", pod.0),
            Self::Offset(pod) => format!("the offset of pod {}", pod.0),
            Self::History(pod) => format!("the history of pod {}", pod.0),
            Self::Reach(pod) => format!("the connection to pod {}", pod.0),
            Self::Former(uid) => format!("the server of the pod that is gone (uid {})", uid.0),
            Self::Order => "the order of a person".to_owned(),
            Self::Hints => "the failures before".to_owned(),
        }
    }

    /// The same look without this fact; `None` where it was not there.
    pub fn forgotten(self, given: &Given) -> Option<Given> {
        let mut other = given.clone();
        let (now, seen) = (given.now, &mut other.seen);
        match self {
            Self::Record => seen.record = None,
            Self::KeptRecord => seen.kept_record = None,
            Self::DownSince => seen.primary_down_since = None,
            Self::PrimaryOffset => seen.primary_offset = None,
            Self::Routes => {
                seen.objects.client_route = None;
                seen.objects.primary_route = None;
            }
            Self::Order => {
                other.spec.promote = None;
                other.spec.failover = None;
            }
            Self::Hints => other.hints = Hints::default(),
            Self::Object(object) => seen.objects.set(object, Known::unknown(now)),
            Self::Former(uid) => seen.former.retain(|former| former.reach.pod_uid != uid),
            Self::Pod(pod)
            | Self::Terminating(pod)
            | Self::Server(pod)
            | Self::Fence(pod)
            | Self::Link(pod)
            | Self::Offset(pod)
            | Self::History(pod)
            | Self::Reach(pod) => self.forget_of_pod(seen, pod, now)?,
        }
        let same = other.seen == given.seen && other.spec == given.spec;
        (!same || other.hints != given.hints).then_some(other)
    }

    fn forget_of_pod(self, seen: &mut Observation, pod: Ordinal, now: Tick) -> Option<()> {
        let facts = seen.pods.get_mut(pod.index())?;
        match self {
            Self::Pod(_) => facts.object = Known::unknown(now),
            Self::Terminating(_) => match &mut facts.object {
                Known::Seen(object) => object.value.terminating = false,
                _ => return None,
            },
            Self::Server(_) => facts.server = Known::unknown(now),
            Self::Reach(_) => facts.reach = None,
            _ => {
                let Known::Seen(answer) = &mut facts.server else {
                    return None;
                };
                self.forget_of_server(&mut answer.value)?;
            }
        }
        Some(())
    }

    fn forget_of_server(self, server: &mut ServerFacts) -> Option<()> {
        match self {
            Self::Fence(_) => server.port = Port::Client,
            Self::Offset(_) => server.offset = Offset(0),
            Self::History(_) => {
                server.replid = Replid(OVERFLOW);
                server.replid2 = None;
            }
            _ => match &mut server.role {
                Role::Replica { link, .. } => *link = Link::Never,
                Role::Primary => return None,
            },
        }
        Some(())
    }
}

/// The facts without any one of which `holds` is not true any more of what is decided.
pub fn rests_on(given: &Given, holds: impl Fn(&Decision) -> bool) -> Vec<Fact> {
    let counts = |fact: &Fact| {
        let other = fact.forgotten(given);
        other.is_some_and(|other| !holds(&other.decide()))
    };
    Fact::all(given).into_iter().filter(counts).collect()
}

/// The facts without any one of which the decision would be `wanted`: they alone make the difference.
pub fn make_the_difference(given: &Given, wanted: &Decision) -> Vec<Fact> {
    let counts = |fact: &Fact| {
        let other = fact.forgotten(given);
        other.is_some_and(|other| other.decide() == *wanted)
    };
    Fact::all(given).into_iter().filter(counts).collect()
}

/// Another pod that could have been chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The pod.
    pub pod: Ordinal,
    /// What would have to be otherwise for it to be chosen, in words; empty where nothing of its own would do.
    pub unless: Vec<&'static str>,
}

/// Takes a shortcoming away from what was given of a pod.
type Mend = fn(&mut Given, Ordinal);

/// What may be wrong with a pod that was not chosen.
const SHORTCOMINGS: [(&str, Mend); 9] = [
    ("it did not answer", answers),
    ("its answer is old", is_fresh),
    ("it holds less", holds_most),
    ("its history is another one", shares_history),
    ("it has no complete copy", is_in_sync),
    ("it is still loading", is_loaded),
    ("it is to go", stays),
    ("its container does not run", runs),
    ("pods with lower numbers come first", comes_first),
];

/// The pods that a decision could have chosen instead of `chosen`, and why it did not.
pub fn rejected(given: &Given, chosen: Ordinal) -> Vec<Rejected> {
    let pods = given.seen.ordinals().map(|(pod, _)| pod);
    let others = pods.filter(|pod| *pod != chosen && is_there(given, *pod));
    others
        .map(|pod| Rejected {
            pod,
            unless: shortcomings(given, pod),
        })
        .collect()
}

/// The fewest shortcomings without which a pod is chosen: one, else two of them.
fn shortcomings(given: &Given, pod: Ordinal) -> Vec<&'static str> {
    let is_chosen = |given: &Given| chosen(given, &given.decide()) == Some(pod);
    for (words, mend) in SHORTCOMINGS {
        let mut other = given.clone();
        mend(&mut other, pod);
        if is_chosen(&other) {
            return vec![words];
        }
    }
    for (at, (first, mend_first)) in SHORTCOMINGS.into_iter().enumerate() {
        for (second, mend_second) in SHORTCOMINGS.into_iter().skip(at + 1) {
            let mut other = given.clone();
            mend_first(&mut other, pod);
            mend_second(&mut other, pod);
            if is_chosen(&other) {
                return vec![first, second];
            }
        }
    }
    Vec::new()
}

/// The pod that a decision makes the primary, if it does.
pub fn chosen(given: &Given, decision: &Decision) -> Option<Ordinal> {
    let recorded = given.seen.record.map(|record| record.epoch);
    decision
        .effects
        .iter()
        .find_map(|effect| match effect.verb {
            Verb::Promote { pod } => Some(pod),
            Verb::RecordPrimary { record, .. } if Some(record.epoch) != recorded => {
                Some(record.pod)
            }
            _ => None,
        })
}

fn is_there(given: &Given, pod: Ordinal) -> bool {
    given
        .seen
        .pod(pod)
        .is_some_and(|facts| !facts.object.is_absent())
}

fn change_server(given: &mut Given, pod: Ordinal, change: impl Fn(&mut ServerFacts)) {
    let facts = given.seen.pods.get_mut(pod.index());
    if let Some(Known::Seen(answer)) = facts.map(|facts| &mut facts.server) {
        change(&mut answer.value);
    }
}

fn answers(given: &mut Given, pod: Ordinal) {
    let now = given.now;
    if let Some(facts) = given.seen.pods.get_mut(pod.index())
        && let Some(server) = facts.server.last().copied()
    {
        facts.server = Known::seen(now, server);
        facts.reach = facts.reach.map(|reach| Reachability {
            kept: Kept::Up,
            fresh: Fresh::NotTried,
            ..reach
        });
    }
}

fn is_fresh(given: &mut Given, pod: Ordinal) {
    let now = given.now;
    let facts = given.seen.pods.get_mut(pod.index());
    if let Some(Known::Seen(answer)) = facts.map(|facts| &mut facts.server) {
        answer.at = now;
    }
}

/// Servers of which the furthest is looked for.
fn servers(given: &Given) -> impl Iterator<Item = &ServerFacts> {
    let pods = given.seen.pods.iter();
    pods.filter_map(|pod| pod.server.last())
}

fn holds_most(given: &mut Given, pod: Ordinal) {
    let most = servers(given).map(|server| server.offset.0).max();
    let more = most.unwrap_or(0).saturating_add(1);
    change_server(given, pod, |server| {
        server.offset = Offset(more);
        server.keys = server.keys.max(1);
    });
}

fn shares_history(given: &mut Given, pod: Ordinal) {
    let replid = given.seen.record.and_then(|record| record.truth().replid);
    change_server(given, pod, |server| {
        server.replid = replid.unwrap_or(server.replid);
    });
}

fn is_in_sync(given: &mut Given, pod: Ordinal) {
    change_server(given, pod, |server| {
        if let Role::Replica { link, syncing, .. } = &mut server.role {
            *syncing = false;
            if *link == Link::Never {
                *link = Link::Down { seconds: 30 };
            }
        }
    });
}

fn is_loaded(given: &mut Given, pod: Ordinal) {
    change_server(given, pod, |server| server.loading = false);
}

fn stays(given: &mut Given, pod: Ordinal) {
    let facts = given.seen.pods.get_mut(pod.index());
    if let Some(Known::Seen(object)) = facts.map(|facts| &mut facts.object) {
        object.value.terminating = false;
    }
}

fn runs(given: &mut Given, pod: Ordinal) {
    let facts = given.seen.pods.get_mut(pod.index());
    if let Some(Known::Seen(object)) = facts.map(|facts| &mut facts.object) {
        object.value.container = match object.value.container {
            Container::Terminated { restarts } => Container::Running { restarts },
            other => other,
        };
    }
}

/// Pods with lower numbers do not stand beside it: their answers are as if they had not come.
fn comes_first(given: &mut Given, pod: Ordinal) {
    let now = given.now;
    let equal = given.seen.pod(pod).and_then(|facts| facts.server.last());
    let equal = equal.map(|server| (server.replid, server.offset));
    for facts in given.seen.pods.iter_mut().take(pod.index()) {
        let same = facts.server.last().map(|it| (it.replid, it.offset)) == equal;
        if same {
            facts.server = facts.server.failed(now);
        }
    }
}
