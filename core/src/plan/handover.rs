//! Planned handover: a primary that is alive gives the lead to a replica, and no acknowledged write is lost.
//!
//! Order: the new record, the primary's writes paused, the replica has all of it, the primary steps down, the replica is
//! promoted if it holds all that the one before does. The pause makes that likely; the comparison after the end of the last
//! write makes it certain. A primary that steps down follows nobody at first: it may hold more after all, and would lose it.
//! Whatever is cut off in between leaves one writer or none, never two; what was recorded and not done is tried again or
//! given up.

use crate::effects::{Decision, Guard, Order, Verb};
use crate::facts::{
    Container, Hints, Known, Link, Observation, Ordinal, PodUid, Port, Record, Role, Served,
    ServerFacts, SpecFacts, Target, Tick, Upstream,
};
use crate::limits;
use crate::reasons::Reason;

use super::death::{PrimaryState, is_closed, primary_state};
use super::election::Verdict;
use super::replication::others;
use super::{rollout, scale};

/// The primary that counts and its state: the recorded one, or one that was to hand over to it and was not seen to.
pub fn leadership(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    now: Tick,
) -> (Served, PrimaryState) {
    use PrimaryState::{NotPromoted, Promoted, Serving, Silent};
    let own = record.own();
    let state = primary_state(spec, seen, &own, now);
    let Some(before) = record.hands_over() else {
        return (own, state);
    };
    if matches!(state, Serving | Promoted) {
        return (own, state);
    }
    // The recorded one was promoted only after the one before had become a replica. So that one counts while it is a
    // primary, and while it may be. Clients are led to the recorded one only once its history is recorded: where its pod is
    // gone and nothing was heard of it for long, nothing is lost without it.
    let former = primary_state(spec, seen, &before, now);
    let long = seen
        .primary_down_since
        .is_some_and(|since| now.since(since) >= limits::GONE_SILENCE);
    let over = |gone: bool| gone && (long || is_closed(seen, &own));
    match (state, former) {
        (_, Serving | Promoted) => (before, former),
        (Silent { gone, .. }, _) if !over(gone) => (own, state),
        (Silent { .. }, _) | (_, Silent { .. }) => (before, former),
        (NotPromoted, _) => (before, former),
        (_, NotPromoted) => (own, state),
        _ if ended_at(state) >= ended_at(former) => (own, state),
        _ => (before, former),
    }
}

const fn ended_at(state: PrimaryState) -> Option<Tick> {
    match state {
        PrimaryState::Restarted { since, .. } => Some(since),
        PrimaryState::Ended { since, .. } => since,
        _ => None,
    }
}

/// Whether the pod of a primary is about to go, or its object is gone while its server lives on.
fn is_leaving(seen: &Observation, primary: &Served) -> bool {
    let terminating = seen
        .pod(primary.pod)
        .and_then(|pod| pod.object.value())
        .is_some_and(|object| object.uid == primary.pod_uid && object.terminating);
    terminating || seen.is_gone(primary.pod, primary.pod_uid)
}

/// Begins a handover if one is due and a replica is fit. Whether it does.
pub fn plan(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    record: &Record,
    now: Tick,
    decision: &mut Decision,
) -> bool {
    let primary = &record.own();
    let leaving = is_leaving(seen, primary);
    let order = spec
        .failover
        .filter(|target| !is_refused(*target, spec, record, primary, decision));
    let Some(reason) = cause(spec, seen, record, order, now) else {
        return false;
    };
    let Some(server) = seen.server_of(primary.pod, primary.pod_uid, now, limits::DESTRUCTIVE_AGE)
    else {
        return false;
    };
    // The handover before is seen through first, and what is handed over is recorded.
    if record.replid != Some(server.replid) || record.served.is_some() {
        return false;
    }
    // A second one that takes writes is demoted first: nobody is promoted beside it.
    if others(seen, primary.pod, now).any(|(_, _, other)| other.serves_writes()) {
        return false;
    }
    // Each attempt costs a pause of writes.
    let again = hints
        .handover_failed_at
        .map(|failed| failed.after(limits::HANDOVER_AGAIN));
    if let Some(again) = again.filter(|again| now < *again) {
        decision.wait(Reason::WaitingToHandOver, None);
        decision.wake_at(again);
        return false;
    }
    let asked = match order {
        Some(Target::Pod(pod)) if !leaving => Some(pod),
        _ => None,
    };
    let Some(copy) = fittest(spec, seen, (primary, server), asked, now) else {
        decision.wait(Reason::WaitingForTarget, asked);
        return false;
    };
    let serves = order.map(|_| Order::Failover);
    begin(
        seen,
        record,
        (primary, server),
        copy,
        serves,
        reason,
        decision,
    );
    true
}

/// Why the primary shall hand over, if it shall.
fn cause(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    order: Option<Target>,
    now: Tick,
) -> Option<Reason> {
    if order.is_some() {
        Some(Reason::HandoverOrdered)
    } else if is_leaving(seen, &record.own()) {
        Some(Reason::PrimaryLeaves)
    } else if scale::goes(spec, seen, record.pod) {
        Some(Reason::PrimaryIsScaledIn)
    } else {
        let rolls = rollout::is_due_to_hand_over(seen, record, now);
        rolls.then_some(Reason::PrimaryIsReplaced)
    }
}

/// An order that can never be carried out is refused and remembered as served, lest it fire at some later time.
fn is_refused(
    target: Target,
    spec: &SpecFacts,
    record: &Record,
    primary: &Served,
    decision: &mut Decision,
) -> bool {
    let (reason, pod) = match target {
        _ if spec.pods < 2 => (Reason::HandoverNeedsReplica, None),
        Target::Unknown => (Reason::TargetUnknown, None),
        Target::Pod(pod) if pod.0 >= spec.pods => (Reason::TargetUnknown, Some(pod)),
        Target::Pod(pod) if pod == primary.pod => (Reason::TargetLeads, Some(pod)),
        Target::Pod(_) | Target::Any => return false,
    };
    decision.refuse(reason, pod);
    let guard = Guard {
        epoch: Some(record.epoch),
        ..Guard::NONE
    };
    let verb = Verb::RecordPrimary {
        record: *record,
        serves: Some(Order::Failover),
    };
    decision.act(verb, guard, reason);
    true
}

/// A replica that may take over.
#[derive(Clone, Copy)]
struct Copy<'a> {
    pod: Ordinal,
    uid: PodUid,
    server: &'a ServerFacts,
}

/// The replica with the most data of those that follow the primary, serve clients, stay, and are near enough; of equals the
/// one of the lowest ordinal. One that a smaller `spec.replicas` takes away is only for a primary whose pod leaves.
fn fittest<'a>(
    spec: &SpecFacts,
    seen: &'a Observation,
    (primary, server): (&Served, &ServerFacts),
    asked: Option<Ordinal>,
    now: Tick,
) -> Option<Copy<'a>> {
    let gone = seen.is_gone(primary.pod, primary.pod_uid);
    let goes = |pod| scale::goes(spec, seen, pod);
    let leaving = is_leaving(seen, primary);
    seen.ordinals()
        .filter(|(ordinal, _)| leaving || !goes(*ordinal))
        .filter(|(ordinal, _)| asked.is_none_or(|asked| asked == *ordinal))
        .filter_map(|(ordinal, pod)| {
            let object = pod.object.value().filter(|object| !object.terminating)?;
            let copy = seen.server_of(ordinal, object.uid, now, limits::DESTRUCTIVE_AGE)?;
            let follows = match copy.role {
                Role::Replica {
                    upstream: Upstream::Pod(of),
                    link: Link::Up,
                    ..
                } => of == primary.pod && !gone,
                // The address of a pod that is gone is nobody's.
                Role::Replica {
                    upstream: Upstream::Other,
                    link: Link::Up,
                    ..
                } => gone,
                _ => false,
            };
            let near = server.offset.0.saturating_sub(copy.offset.0) <= limits::HANDOVER_LAG;
            let fit = follows
                && near
                && copy.port == Port::Client
                && !copy.rewriting
                && copy.is_synced_replica()
                && copy.replid == server.replid;
            fit.then_some(Copy {
                pod: ordinal,
                uid: object.uid,
                server: copy,
            })
        })
        .max_by_key(|copy| {
            let lowest = core::cmp::Reverse(copy.pod);
            (!goes(copy.pod), copy.server.offset, lowest)
        })
}

fn begin(
    seen: &Observation,
    record: &Record,
    (primary, server): (&Served, &ServerFacts),
    copy: Copy,
    serves: Option<Order>,
    reason: Reason,
    decision: &mut Decision,
) {
    let claim = seen.pod(copy.pod).and_then(|pod| pod.claim.value());
    let new = Record {
        epoch: record.epoch.next(),
        pod: copy.pod,
        pod_uid: copy.uid,
        claim_uid: claim.map(|claim| claim.uid),
        replid: None,
        continues: Some(copy.server.replid),
        served: Some(record.truth()),
        planned: true,
    };
    let before = Guard {
        epoch: Some(record.epoch),
        pod: Some((copy.pod, copy.uid)),
        run: Some(copy.server.run),
        replica: Some(true),
        offset_floor: Some(copy.server.offset),
        ..Guard::NONE
    };
    let of_copy = Guard {
        epoch: Some(new.epoch),
        ..before
    };
    let of_primary = Guard {
        epoch: Some(new.epoch),
        pod: Some((primary.pod, primary.pod_uid)),
        run: Some(server.run),
        replica: Some(false),
        ..Guard::NONE
    };
    let demoted = Guard {
        primary: Some((copy.pod, copy.uid)),
        copied: true,
        ..of_primary
    };
    let promoted = Guard {
        before: Some((primary.pod, primary.pod_uid)),
        ..of_copy
    };
    let (from, to) = (primary.pod, copy.pod);
    let record_new = Verb::RecordPrimary {
        record: new,
        serves,
    };
    let await_copy = Verb::AwaitCopy {
        pod: to,
        primary: from,
    };
    decision.act(record_new, before, reason);
    decision.act(Verb::PauseWrites { pod: from }, of_primary, reason);
    decision.act(await_copy, of_copy, reason);
    decision.act(Verb::StepDown { pod: from }, demoted, reason);
    decision.act(Verb::Promote { pod: to }, promoted, reason);
}

/// A handover that was recorded and did not happen, while the primary before still takes writes: it leads again.
pub fn abandon(
    seen: &Observation,
    record: &Record,
    primary: &Served,
    now: Tick,
    decision: &mut Decision,
) {
    let Some(server) = seen.server_of(primary.pod, primary.pod_uid, now, limits::DESTRUCTIVE_AGE)
    else {
        return;
    };
    let guard = Guard {
        epoch: Some(record.epoch),
        pod: Some((primary.pod, primary.pod_uid)),
        run: Some(server.run),
        replica: Some(false),
        ..Guard::NONE
    };
    let resumed = Guard {
        epoch: Some(record.epoch.next()),
        ..guard
    };
    let back = Record {
        epoch: record.epoch.next(),
        pod: primary.pod,
        pod_uid: primary.pod_uid,
        claim_uid: primary.claim_uid,
        replid: Some(server.replid),
        continues: Some(server.replid),
        served: None,
        planned: false,
    };
    let resume = Verb::ResumeWrites { pod: primary.pod };
    let verb = Verb::RecordPrimary {
        record: back,
        serves: None,
    };
    // The pause ends by itself, too: that it cannot be lifted must not keep the record from being right.
    decision.act(verb, guard, Reason::HandoverAbandoned);
    decision.act(resume, resumed, Reason::HandoverAbandoned);
}

/// The outcome of an election after both sides of a handover were seen as replicas: if the one that stepped down leads, the
/// handover did not happen.
pub fn resumed(record: &Record, verdict: Verdict) -> Verdict {
    match (verdict, record.hands_over()) {
        (Verdict::Leads(pod, _), Some(before)) if before.pod == pod => {
            Verdict::Leads(pod, Reason::HandoverAbandoned)
        }
        _ => verdict,
    }
}

/// The primary that stepped down for another pod than `winner`, with its uid, as long as its server is seen.
pub fn stepped_down(
    seen: &Observation,
    winner: PodUid,
    now: Tick,
) -> Option<(Served, &ServerFacts)> {
    let before = seen
        .record?
        .hands_over()
        .filter(|before| before.pod_uid != winner)?;
    let server = seen.server_of(before.pod, before.pod_uid, now, limits::DESTRUCTIVE_AGE)?;
    let open = server.port == Port::Client && server.role != Role::Primary;
    open.then_some((before, server))
}

/// Whether the one that stepped down holds more than `copy`. It goes on to feed those that follow it.
pub const fn is_ahead(before: &ServerFacts, copy: &ServerFacts) -> bool {
    before.replid.0 == copy.replid.0 && before.offset.0 > copy.offset.0
}

fn is_late(known: &Known<ServerFacts>, now: Tick) -> bool {
    // One that was a primary to the end was succeeded on its silence: whoever sees it again demotes it.
    let stepped_down = known.last().is_some_and(|last| last.role != Role::Primary);
    stepped_down && known.fresh(now, limits::DESTRUCTIVE_AGE).is_none()
}

/// Whether the server of a pod has ended, as far as the network and the kubelet tell.
fn is_over(seen: &Observation, primary: &Served) -> bool {
    let container = seen
        .pod(primary.pod)
        .and_then(|pod| pod.object.value())
        .filter(|object| object.uid == primary.pod_uid)
        .map(|object| object.container);
    let ended = !matches!(container, Some(Container::Running { .. }));
    ended || is_closed(seen, primary)
}

/// The end of a handover: clients that hold on to the primary before are let go, since established connections survive any
/// change of endpoints, and it is forgotten.
pub fn see_through(
    seen: &Observation,
    record: &Record,
    primary: &ServerFacts,
    guard: Guard,
    now: Tick,
    decision: &mut Decision,
) {
    let Some(before) = record.served.filter(|_| record.planned) else {
        return;
    };
    let known = seen.known_of(before.pod, before.pod_uid);
    // One that is only late to answer is waited for: its clients hold on to it.
    if known.is_some_and(|known| is_late(known, now)) && !is_over(seen, &before) {
        return;
    }
    let server = seen
        .server_of(before.pod, before.pod_uid, now, limits::DESTRUCTIVE_AGE)
        .filter(|server| server.role != Role::Primary && server.port == Port::Client);
    if let Some(server) = server {
        let demoted = Guard {
            epoch: Some(record.epoch),
            pod: Some((before.pod, before.pod_uid)),
            run: Some(server.run),
            replica: Some(true),
            ..Guard::NONE
        };
        let (close, resume) = (
            Verb::CloseClients { pod: before.pod },
            Verb::ResumeWrites { pod: before.pod },
        );
        decision.act(close, demoted, Reason::ClientsMoved);
        decision.act(resume, demoted, Reason::ClientsMoved);
    }
    let verb = Verb::RecordPrimary {
        record: Record {
            replid: Some(primary.replid),
            served: None,
            planned: false,
            ..*record
        },
        serves: None,
    };
    decision.act(verb, guard, Reason::ClientsMoved);
}
