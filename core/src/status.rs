//! What the user is told: phase, counts and conditions, each true at the moment it is written.
//!
//! [`facts`] is small and compares cheaply; only when it changed is a status rendered with [`render`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{Phase, Topology, ValkeyClusterStatus};

use crate::effects::{Decision, Note};
use crate::facts::{
    Known, Object, ObjectState, Observation, Ordinal, Port, Role, SpecFacts, Tick, Unserved,
};
use crate::limits;
use crate::plan::hibernation;
use crate::reasons::Reason;

/// Condition of clusters whose pods an operator of another version would make otherwise.
const UP_TO_DATE: &str = "UpToDate";
/// What people must know of such a cluster.
const TEMPLATE_WAITS: &str = "This version of the operator makes pods otherwise than the one that made these. Nothing is replaced \
    because of that: the pods get the newer template with the next change of the spec that pods are made from, or with a new value of the \
    annotation valkey.wellcake.io/restart.";
/// Condition of clusters that were taken over from another operator.
const FENCED: &str = "Fenced";

/// What people must know of a cluster whose pods start without the boot fence.
const TEMPLATE_KEPT: &str = "Pods have the template of the operator before. One that restarts takes clients at once: what they \
    write to it, until it is made a replica, is lost. Replicas copy nothing from it before it was verified. If all pods restart \
    together, that template decides who leads, whatever the others hold. Changes of the spec that pods are made from wait. Roll the \
    pods with a new value of the annotation valkey.wellcake.io/restart.";

/// Why a condition has its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// Everything that the spec asks for is there.
    AllInSync,
    /// A primary takes writes and clients are led to it.
    PrimaryServes,
    /// No primary takes writes.
    NoPrimary,
    /// A primary takes writes and some replica is missing or not in sync.
    ReplicasMissing,
    /// Nothing is under way.
    Settled,
    /// The pods have the template of another version.
    TemplateWaits,
    /// The pods have the template of this version.
    TemplateIsNewest,
    /// Some data pod has, or would get, the template of another operator.
    TemplateKept,
    /// Every data pod starts behind the boot fence.
    AllFenced,
    /// The cluster sleeps.
    Hibernated,
    /// A reason of the decision, with the pod that it speaks of.
    Decided(Note),
}

/// Everything that a status says, without strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StatusFacts {
    /// `metadata.generation` that this speaks of.
    pub generation: i64,
    /// Topology.
    pub topology: Topology,
    /// Phase.
    pub phase: Phase,
    /// Pods that the spec asks for.
    pub replicas: u8,
    /// Verified servers whose client port is open.
    pub ready: u8,
    /// The primary that takes writes.
    pub primary: Option<Ordinal>,
    /// A field that is not served.
    pub unserved: Option<Unserved>,
    /// Condition Available.
    pub available: (bool, Cause),
    /// Condition Ready.
    pub ready_condition: (bool, Cause),
    /// Condition Progressing.
    pub progressing: (bool, Cause),
    /// Condition Degraded.
    pub degraded: (bool, Cause),
    /// Whether pods keep the template of an operator of another version.
    pub template_waits: bool,
    /// Whether some pod runs the template of another operator, or would get it, and so starts without the boot fence.
    pub unfenced: bool,
}

/// What facts cannot carry, since they are free of text.
pub struct Words<'a> {
    /// Digest of the configuration that is asked for.
    pub config: &'a str,
    /// What a server said that a note speaks of.
    pub said: &'a dyn Fn(Note) -> Option<String>,
}

impl Words<'_> {
    /// None.
    pub const NONE: Words<'static> = Words {
        config: "",
        said: &|_| None,
    };
}

/// Facts of the status that follows from a decision.
pub fn facts(spec: &SpecFacts, seen: &Observation, decision: &Decision, now: Tick) -> StatusFacts {
    let primary = serving_primary(spec, seen, now);
    let ready = ready_servers(spec, seen, primary, now);
    let routed = spec.topology != Topology::Replication
        || (seen.objects.client_route == primary && primary.is_some());
    let available = primary.is_some() && routed;
    let refusal = decision.refusals.first().copied();
    let wait = decision.waits.first().copied();
    let in_sync = available && ready >= spec.pods;
    let settled = Object::ALL
        .iter()
        .all(|object| is_settled(seen.objects.state(*object)));
    let all = in_sync && settled && refusal.is_none() && wait.is_none();
    let busy = wait.or(decision.effects.first().map(|e| Note {
        reason: e.reason,
        pod: None,
    }));
    let asleep = hibernation::is_asleep(spec, seen);
    let missing = |awake| if asleep { Cause::Hibernated } else { awake };
    let shortfall = refusal
        .or(wait)
        .map_or(missing(Cause::ReplicasMissing), Cause::Decided);
    let progressing = match busy {
        Some(note) if !all => (true, Cause::Decided(note)),
        _ => (false, refusal.map_or(Cause::Settled, Cause::Decided)),
    };
    StatusFacts {
        generation: spec.generation,
        topology: spec.topology,
        phase: if asleep && refusal.is_none() {
            Phase::Hibernated
        } else {
            phase(spec, seen, available, all, refusal)
        },
        replicas: spec.pods,
        ready,
        primary,
        unserved: spec.unserved,
        available: if available {
            (true, Cause::PrimaryServes)
        } else {
            (
                false,
                refusal
                    .or(wait)
                    .map_or(missing(Cause::NoPrimary), Cause::Decided),
            )
        },
        ready_condition: if all {
            (true, Cause::AllInSync)
        } else {
            (false, shortfall)
        },
        progressing,
        degraded: match refusal {
            None if asleep => (false, Cause::Hibernated),
            _ => degraded(available, in_sync, refusal, shortfall, seen),
        },
        template_waits: seen.objects.template_waits,
        unfenced: is_unfenced(seen),
    }
}

/// Whether a pod starts, or would start, with its client port open.
fn is_unfenced(seen: &Observation) -> bool {
    let template = seen.objects.state(Object::StatefulSet);
    let kept = matches!(
        template.last(),
        Some(ObjectState::Kept | ObjectState::RollAsked)
    );
    kept || seen
        .pods
        .iter()
        .any(|pod| pod.server.last().is_some_and(|server| server.unfenced))
}

fn is_settled(state: Known<ObjectState>) -> bool {
    matches!(
        state.value(),
        Some(ObjectState::Matches | ObjectState::Kept | ObjectState::NotWanted)
    )
}

/// Degraded is about what was there and is not, or what a person must mend; a cluster that is still being made is only
/// in progress.
fn degraded(
    available: bool,
    in_sync: bool,
    refusal: Option<Note>,
    shortfall: Cause,
    seen: &Observation,
) -> (bool, Cause) {
    let had_primary = seen.record.is_some();
    if let Some(note) = refusal {
        return (true, Cause::Decided(note));
    }
    if had_primary && !available {
        return (true, Cause::NoPrimary);
    }
    if had_primary && !in_sync {
        return (true, shortfall);
    }
    (false, Cause::Settled)
}

fn phase(
    spec: &SpecFacts,
    seen: &Observation,
    available: bool,
    all: bool,
    refusal: Option<Note>,
) -> Phase {
    let made = seen.objects.state(Object::StatefulSet).value().is_some();
    let started = seen.record.is_some() || (spec.topology == Topology::Standalone && available);
    if all {
        Phase::Ready
    } else if refusal.is_some() && !available {
        Phase::Failed
    } else if !made {
        Phase::Pending
    } else if started {
        Phase::Updating
    } else {
        Phase::Creating
    }
}

/// The primary, if it was seen to take writes.
pub fn serving_primary(spec: &SpecFacts, seen: &Observation, now: Tick) -> Option<Ordinal> {
    let pod = match spec.topology {
        Topology::Standalone => Ordinal(0),
        _ => seen.primary(now)?.pod,
    };
    seen.server(pod, now, limits::FACT_AGE)
        .filter(|server| server.serves_writes())
        .map(|_| pod)
}

fn ready_servers(spec: &SpecFacts, seen: &Observation, primary: Option<Ordinal>, now: Tick) -> u8 {
    let count = seen
        .ordinals()
        .take(usize::from(spec.pods))
        .filter(|(_, pod)| pod.object.value().is_some_and(|object| !object.terminating))
        .filter(|(ordinal, _)| {
            seen.server(*ordinal, now, limits::FACT_AGE)
                .is_some_and(|server| match server.role {
                    Role::Primary => primary == Some(*ordinal),
                    Role::Replica { .. } => {
                        server.port == Port::Client && primary.is_some_and(|of| server.follows(of))
                    }
                })
        })
        .count();
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// A status in the words of the API. Keeps what other parts of the operator wrote (the record, markers, tokens) and moves
/// `lastTransitionTime` only when a condition's value changes.
pub fn render(
    facts: &StatusFacts,
    name: &ClusterName,
    namespace: &str,
    previous: &ValkeyClusterStatus,
    words: &Words<'_>,
    now: Time,
) -> ValkeyClusterStatus {
    let mut status = previous.clone();
    if facts.ready_condition.0 && !facts.template_waits && !words.config.is_empty() {
        status.last_good_config_digest = Some(words.config.to_owned());
    }
    status.phase = Some(facts.phase);
    status.replicas = Some(i32::from(facts.replicas));
    status.ready_replicas = Some(i32::from(facts.ready));
    status.primary = facts.primary.map(|pod| name.pod(u32::from(pod.0)));
    status.internal_endpoint = Some(format!("{}.{namespace}.svc:6379", name.client_service()));
    status.observed_generation = Some(facts.generation);
    let table = [
        ("Ready", facts.ready_condition),
        ("Available", facts.available),
        ("Progressing", facts.progressing),
        ("Degraded", facts.degraded),
    ];
    for told in table {
        set_condition(&mut status.conditions, told, facts, name, words, &now);
    }
    let waits = facts.template_waits;
    let newest = if waits {
        Cause::TemplateWaits
    } else {
        Cause::TemplateIsNewest
    };
    let fenced = if facts.unfenced {
        Cause::TemplateKept
    } else {
        Cause::AllFenced
    };
    for told in [
        (UP_TO_DATE, (!waits, newest)),
        (FENCED, (!facts.unfenced, fenced)),
    ] {
        // Of interest only where it was ever otherwise.
        let (kind, (holds, _)) = told;
        if !holds || status.conditions.iter().any(|it| it.type_ == kind) {
            set_condition(&mut status.conditions, told, facts, name, words, &now);
        }
    }
    status
}

fn set_condition(
    conditions: &mut Vec<Condition>,
    (kind, (value, cause)): (&str, (bool, Cause)),
    facts: &StatusFacts,
    name: &ClusterName,
    words: &Words<'_>,
    now: &Time,
) {
    let word = if value { "True" } else { "False" };
    let before = conditions.iter().position(|c| c.type_ == kind);
    let changed_at = before
        .and_then(|at| conditions.get(at))
        .filter(|c| c.status == word)
        .map_or_else(|| now.clone(), |c| c.last_transition_time.clone());
    let condition = Condition {
        type_: kind.to_owned(),
        status: word.to_owned(),
        reason: reason_of(cause).to_owned(),
        message: message_of(cause, facts, name, words),
        observed_generation: Some(facts.generation),
        last_transition_time: changed_at,
    };
    match before.and_then(|at| conditions.get_mut(at)) {
        Some(slot) => *slot = condition,
        None => conditions.push(condition),
    }
}

const fn reason_of(cause: Cause) -> &'static str {
    match cause {
        Cause::AllInSync => "AllInSync",
        Cause::PrimaryServes => "PrimaryServes",
        Cause::NoPrimary => "NoPrimary",
        Cause::ReplicasMissing => "ReplicasMissing",
        Cause::Settled => "Settled",
        Cause::TemplateWaits => "TemplateWaits",
        Cause::TemplateIsNewest => "TemplateIsNewest",
        Cause::TemplateKept => "TemplateKept",
        Cause::AllFenced => "AllFenced",
        Cause::Hibernated => Reason::Hibernated.as_str(),
        Cause::Decided(note) => note.reason.as_str(),
    }
}

fn message_of(cause: Cause, facts: &StatusFacts, name: &ClusterName, words: &Words<'_>) -> String {
    let counts = format!(
        "{}/{} servers are in sync and open",
        facts.ready, facts.replicas
    );
    match cause {
        Cause::AllInSync => match facts.primary {
            Some(pod) => format!("{counts}; the primary is {}.", name.pod(u32::from(pod.0))),
            None => format!("{counts}."),
        },
        Cause::PrimaryServes => match facts.primary {
            Some(pod) => format!("{} takes writes.", name.pod(u32::from(pod.0))),
            None => "A primary takes writes.".to_owned(),
        },
        Cause::NoPrimary => format!("No primary takes writes; {counts}."),
        Cause::ReplicasMissing => format!("Only {counts}."),
        Cause::Settled => "Nothing is under way.".to_owned(),
        Cause::TemplateWaits => TEMPLATE_WAITS.to_owned(),
        Cause::TemplateIsNewest => {
            "The pods are made as this version of the operator makes them.".to_owned()
        }
        Cause::TemplateKept => TEMPLATE_KEPT.to_owned(),
        Cause::AllFenced => "Every data pod starts behind the boot fence.".to_owned(),
        Cause::Hibernated => Reason::Hibernated.doc().trim().to_owned(),
        Cause::Decided(note) => sentence(note, facts.unserved, words, name),
    }
}

/// A note as a sentence for conditions and events.
pub fn sentence(
    note: Note,
    unserved: Option<Unserved>,
    words: &Words<'_>,
    name: &ClusterName,
) -> String {
    let about = match (note.pod, note.reason, unserved) {
        (Some(pod), _, _) => format!("{}: ", name.pod(u32::from(pod.0))),
        (None, Reason::FieldNotServed, Some(field)) => format!("{}: ", field.field()),
        _ => String::new(),
    };
    let said = (words.said)(note).filter(|said| !said.is_empty());
    let said = said.map(|said| format!(" The server says: {said}"));
    format!(
        "{about}{}{}",
        note.reason.doc().trim(),
        said.unwrap_or_default()
    )
}
