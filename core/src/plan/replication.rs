//! What follows from who leads: promotion, ports, replicas, routes, labels.

use crate::effects::{Decision, Guard, Held, Order, Route, Verb};
use crate::facts::{
    Epoch, Hints, Object, Observation, Ordinal, PodUid, Port, Record, Role, Served, ServerFacts,
    SpecFacts, Tick, Upstream,
};
use crate::limits;
use crate::reasons::Reason;

use super::attach::{attach_replicas, demote_others, open_when_synced};
use super::death::{PrimaryState, awaits_witnesses, closed_since, is_closed};
use super::election::{self, Fault, Verdict};
use super::{adoption, by_hand, handover, hibernation, labels, rollout, scale, self_stop, silence};

/// Plans roles and routes of a primary with replicas.
pub fn plan(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    decision: &mut Decision,
) {
    let Some(record) = seen.record else {
        let any = seen.pods.iter().any(|pod| pod.object.value().is_some());
        if adoption::is_unled(seen) {
            adoption::lead(spec, seen, now, decision);
        } else if any && !by_order(spec, seen, now, decision) {
            obey(election::first(spec, seen, now), seen, now, decision);
        } else if !any && seen.objects.state(Object::StatefulSet).value().is_some() {
            // Quotas and admission may keep pods from being made at all. What else is missing is the concern of provisioning.
            decision.wait(Reason::WaitingForPods, None);
        }
        return;
    };
    let (primary, state) = handover::leadership(spec, seen, &record, now);
    if !matches!(state, PrimaryState::Serving | PrimaryState::Promoted) {
        let ended = matches!(
            state,
            PrimaryState::Restarted { .. }
                | PrimaryState::Ended { .. }
                | PrimaryState::Silent { gone: true, .. }
        );
        adoption::fence(seen, &record, ended, now, decision);
        if !decision.effects.is_empty() {
            // What they hold counts once they stand still.
            mark_outage(state, seen, &record, decision);
            return;
        }
    }
    match state {
        PrimaryState::Serving | PrimaryState::Promoted if primary.pod_uid != record.pod_uid => {
            refuse_order(spec, &record, decision);
            handover::abandon(seen, &record, &primary, now, decision);
        }
        PrimaryState::Serving => {
            refuse_order(spec, &record, decision);
            if !handover::plan(spec, seen, hints, &record, now, decision) {
                keep(spec, seen, &record, now, decision);
                if !rollout::pauses(hints, now, decision) {
                    change(spec, seen, &record, now, decision);
                }
            }
        }
        PrimaryState::Promoted => finish(seen, &record, now, decision),
        _ if by_order(spec, seen, now, decision) => {}
        PrimaryState::Restarted { loading: true, .. } if !any_copy(seen, primary.pod, now) => {
            decision.wait(Reason::WaitingForLoad, Some(primary.pod));
        }
        PrimaryState::NotPromoted if by_hand::plan(seen, &record, now, decision) => {}
        PrimaryState::NotPromoted => {
            let verdict = election::next(spec, seen, &record, Reason::PromotionResumed, None, now);
            obey(handover::resumed(&record, verdict), seen, now, decision);
        }
        PrimaryState::Restarted { since, .. } => {
            let fault = Some(fault_of(&primary, since));
            let verdict = election::next(spec, seen, &record, Reason::PrimaryDied, fault, now);
            obey(verdict, seen, now, decision);
        }
        PrimaryState::Ended { reason, since } => {
            let fault = since.map(|since| fault_of(&primary, since));
            let verdict = election::next(spec, seen, &record, reason, fault, now);
            obey(verdict, seen, now, decision);
        }
        PrimaryState::Silent { since, gone } => {
            let silence = Silence {
                primary,
                since,
                gone,
            };
            silent(spec, seen, &record, silence, now, decision);
        }
    }
    mark_outage(state, seen, &record, decision);
}

/// The claim of the recorded pod has a copy of the record. Nothing is decided by it: it comes after the promotion, so that one
/// more may have followed. It names a pod to the person who must decide after the ValkeyCluster was deleted.
fn keep_record(seen: &Observation, record: &Record, decision: &mut Decision) {
    let claim = seen.pod(record.pod).and_then(|pod| pod.claim.value());
    let own = record.claim_uid.is_some() && claim.map(|claim| claim.uid) == record.claim_uid;
    // One of a later epoch is not of this ValkeyCluster's life, and none of its business.
    let stale = seen
        .kept_record
        .is_none_or(|kept| kept.epoch <= record.epoch && kept != *record);
    if own && stale {
        let guard = Guard {
            epoch: Some(record.epoch),
            ..Guard::NONE
        };
        let verb = Verb::KeepRecord { record: *record };
        decision.act(verb, guard, Reason::RecordKept);
    }
}

const fn fault_of(primary: &Served, at: Tick) -> Fault {
    Fault {
        pod: primary.pod,
        at,
    }
}

/// Carries out a person's order if it counts. One that does not count is refused and stops nothing.
pub fn by_order(spec: &SpecFacts, seen: &Observation, now: Tick, decision: &mut Decision) -> bool {
    let Some(order) = spec.promote else {
        return false;
    };
    match election::ordered(spec, seen, now) {
        Some(pod) => {
            let serves = Some(Order::Promote);
            lead(pod, Reason::PromotedByOrder, serves, seen, now, decision);
        }
        None => decision.refuse(Reason::OrderNotValid, Some(order.pod)),
    }
    decision
        .effects
        .iter()
        .any(|effect| effect.reason == Reason::PromotedByOrder)
}

/// An order while the primary serves is refused and remembered as served, lest it fire at some later outage.
fn refuse_order(spec: &SpecFacts, record: &Record, decision: &mut Decision) {
    let Some(order) = spec.promote else { return };
    decision.refuse(Reason::OrderNotValid, Some(order.pod));
    let guard = Guard {
        epoch: Some(record.epoch),
        ..Guard::NONE
    };
    let verb = Verb::RecordPrimary {
        record: *record,
        serves: Some(Order::Promote),
    };
    decision.act(verb, guard, Reason::OrderNotValid);
}

/// The marker `primaryDownSince` is written with the first look that finds the primary not serving, unless the same
/// decision ends the outage: a new record makes the old one's marker void.
fn mark_outage(state: PrimaryState, seen: &Observation, record: &Record, decision: &mut Decision) {
    let ends = decision.effects.iter().any(|effect| match effect.verb {
        Verb::RecordPrimary { record: new, .. } => new.epoch != record.epoch,
        _ => false,
    });
    let down = !matches!(state, PrimaryState::Serving | PrimaryState::Promoted);
    if !ends && down != seen.primary_down_since.is_some() {
        let guard = Guard {
            epoch: Some(record.epoch),
            ..Guard::NONE
        };
        decision.act(Verb::MarkPrimaryDown { down }, guard, Reason::OutageMarked);
    }
}

pub fn any_copy(seen: &Observation, beside: Ordinal, now: Tick) -> bool {
    seen.ordinals().any(|(ordinal, _)| {
        ordinal != beside
            && seen
                .server(ordinal, now, limits::DESTRUCTIVE_AGE)
                .is_some_and(ServerFacts::is_synced_replica)
    })
}

/// A primary of which neither life nor end is proven.
struct Silence {
    primary: Served,
    since: Option<Tick>,
    gone: bool,
}

/// Silence is no proof. A primary whose pod is gone ends after 20 seconds of it; of a running one the evidence is weighed.
fn silent(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    silence: Silence,
    now: Tick,
    decision: &mut Decision,
) {
    let Silence {
        primary,
        since,
        gone,
    } = silence;
    let running_copy = any_copy(seen, primary.pod, now);
    let long = seen
        .primary_down_since
        .is_some_and(|since| now.since(since) >= limits::GONE_SILENCE);
    if gone && !running_copy && (long || is_closed(seen, &primary)) {
        // Nobody kept a copy in memory: what the pods load from their volumes decides, as after a full restart.
        let fault = closed_since(seen, &primary).map(|since| fault_of(&primary, since));
        let verdict = election::next(spec, seen, record, Reason::PrimaryGone, fault, now);
        obey(verdict, seen, now, decision);
        return;
    }
    if !gone && long {
        silence::plan(spec, seen, record, &primary, now, decision);
        return;
    }
    let bound = if gone {
        limits::GONE_SILENCE
    } else {
        limits::SILENCE
    };
    if awaits_witnesses(spec, seen, &primary, now) {
        decision.wake_at(now.after(limits::ANSWERS));
    }
    match since {
        Some(since) if now.since(since) >= bound => {
            decision.refuse(Reason::SilentPrimary, Some(primary.pod));
        }
        Some(since) => {
            decision.wait(Reason::PrimarySilent, Some(primary.pod));
            decision.wake_at(since.after(bound));
        }
        None => decision.wait(Reason::WaitingForPrimaryPod, Some(primary.pod)),
    }
}

/// Turns a verdict into effects or a note.
pub fn obey(verdict: Verdict, seen: &Observation, now: Tick, decision: &mut Decision) {
    match verdict {
        Verdict::Leads(pod, reason) => lead(pod, reason, None, seen, now, decision),
        Verdict::Wait(reason, pod, wake) => {
            decision.wait(reason, pod);
            if let Some(at) = wake {
                decision.wake_at(at);
            }
        }
        Verdict::Refuse(reason, pod) => decision.refuse(reason, pod),
    }
}

/// Records the new primary and promotes it. What follows (the history that it begins, its port, traffic, the other copies)
/// is decided on what is seen after that.
pub fn lead(
    ordinal: Ordinal,
    reason: Reason,
    serves: Option<Order>,
    seen: &Observation,
    now: Tick,
    decision: &mut Decision,
) {
    let Some(pod) = seen.pod(ordinal) else { return };
    let (Some(server), Some(object)) = (
        seen.server(ordinal, now, limits::DESTRUCTIVE_AGE),
        pod.object.value(),
    ) else {
        return;
    };
    let epoch = seen.record.map_or(Epoch(0), |record| record.epoch);
    let is_primary = server.role == Role::Primary;
    let stepped_down = handover::stepped_down(seen, object.uid, now);
    if stepped_down.is_some_and(|(_, before)| handover::is_ahead(before, server)) {
        decision.wait(Reason::WaitingForTarget, Some(ordinal));
        decision.wake_at(now.after(limits::ANSWERS));
        return;
    }
    // One that stepped down and leads again: its clients are still there and write to it at once.
    let is_led_to = server.port == Port::Client && seen.objects.client_route == Some(ordinal);
    // Each promotion has an epoch of its own, also one of the same pod: the write of the record is what two operators
    // cannot both win.
    // Epochs go on where those of an earlier ValkeyCluster with the same claims ended.
    let kept = seen.kept_record.map_or(Epoch(0), |kept| kept.epoch);
    let last = if seen.record.is_some() { epoch } else { kept };
    let record = Record {
        epoch: last.next(),
        pod: ordinal,
        pod_uid: object.uid,
        claim_uid: pod.claim.value().map(|claim| claim.uid),
        // A promotion starts a history of its own, which is recorded once it is seen: the one before must not decide.
        replid: is_primary.then_some(server.replid),
        continues: Some(server.replid),
        served: seen
            .record
            .map(|before| before.truth())
            .filter(|_| !is_primary && !is_led_to),
        // Clients of the one that stepped down are still to be let go.
        planned: stepped_down.is_some() && !is_primary && !is_led_to,
    };
    let ours = Guard {
        epoch: Some(epoch),
        pod: Some((ordinal, object.uid)),
        run: Some(server.run),
        replica: Some(!is_primary),
        unfed: !server.is_fed() && serves.is_none(),
        offset_floor: Some(server.offset),
        absent: if serves.is_some() {
            Held::Nothing
        } else {
            absent(ordinal, server, seen, now)
        },
        ..Guard::NONE
    };
    // The one that is gone may be heard of again, or feed another one, until the end.
    let of_its_end = matches!(reason, Reason::PrimaryGone | Reason::PrimaryReturned);
    let gone = |of: &Served| of_its_end && seen.is_gone(of.pod, of.pod_uid);
    let before = seen.record.map(|before| [before.own(), before.truth()]);
    let gone = before.into_iter().flatten().find(gone);
    let ours = Guard {
        gone: gone.map(|of| (of.pod, of.pod_uid)),
        ..ours
    };
    decision.act(Verb::RecordPrimary { record, serves }, ours, reason);
    if !is_primary {
        let guard = Guard {
            epoch: Some(record.epoch),
            ..ours
        };
        decision.act(Verb::Promote { pod: ordinal }, guard, reason);
        if server.unfenced && server.port == Port::Fence {
            // At once, so that it is told from a process that begins as a primary by itself.
            let promoted = Guard {
                replica: Some(false),
                ..guard
            };
            let verb = Verb::Open { pod: ordinal };
            decision.act(verb, promoted, Reason::ServerAdmitted);
        }
    }
}

/// What was not seen beside a server that is to lead, and must not be seen when it is promoted either.
fn absent(pod: Ordinal, server: &ServerFacts, seen: &Observation, now: Tick) -> Held {
    let copy_beside = others(seen, pod, now).any(|(_, _, other)| other.is_synced_replica());
    if server.port == Port::Client || server.is_synced_replica() || copy_beside {
        Held::Nothing
    } else if server.keys > 0 {
        Held::Copy
    } else {
        Held::Data
    }
}

/// Opens a primary whose promotion was recorded and done.
fn finish(seen: &Observation, record: &Record, now: Tick, decision: &mut Decision) {
    let Some(server) = seen.server(record.pod, now, limits::DESTRUCTIVE_AGE) else {
        return;
    };
    let guard = Guard {
        epoch: Some(record.epoch),
        pod: Some((record.pod, record.pod_uid)),
        run: Some(server.run),
        replica: Some(false),
        ..Guard::NONE
    };
    record_history(record, server, guard, decision);
    let reason = if server.unfenced {
        Reason::ServerAdmitted
    } else {
        Reason::PrimaryOpened
    };
    decision.act(Verb::Open { pod: record.pod }, guard, reason);
    route(seen, record.pod, guard, now, decision);
}

/// The history of a primary is recorded before clients are led to it: what they write there is in no other.
fn record_history(record: &Record, primary: &ServerFacts, guard: Guard, decision: &mut Decision) {
    if record.replid == Some(primary.replid) {
        return;
    }
    let record = Record {
        replid: Some(primary.replid),
        // The end of a handover needs it still.
        served: record.served.filter(|_| record.planned),
        ..*record
    };
    let verb = Verb::RecordPrimary {
        record,
        serves: None,
    };
    decision.act(verb, guard, Reason::HistoryRecorded);
}

/// Upkeep around a primary that serves.
fn keep(spec: &SpecFacts, seen: &Observation, record: &Record, now: Tick, decision: &mut Decision) {
    if seen.is_gone(record.pod, record.pod_uid) {
        // No Service leads to it and no replica shall be led to it any more.
        decision.wait(Reason::WaitingForPrimaryPod, Some(record.pod));
        return;
    }
    let Some(primary) = seen.server_of(record.pod, record.pod_uid, now, limits::DESTRUCTIVE_AGE)
    else {
        return;
    };
    let guard = Guard {
        epoch: Some(record.epoch),
        pod: Some((record.pod, record.pod_uid)),
        run: Some(primary.run),
        ..Guard::NONE
    };
    let leader = (record.pod, record.pod_uid);
    demote_others(seen, leader, record.epoch, now, decision);
    record_history(record, primary, guard, decision);
    route(seen, record.pod, guard, now, decision);
    self_stop::disarm(spec, seen, record, primary, guard, now, decision);
    attach_replicas(seen, leader, record.epoch, now, decision);
    handover::see_through(seen, record, primary, guard, now, decision);
    self_stop::arm(spec, seen, record, primary, guard, now, decision);
    keep_record(seen, record, decision);
    for (ordinal, uid, server) in others(seen, record.pod, now) {
        open_when_synced(ordinal, uid, server, record, primary, decision);
    }
    for (ordinal, pod) in seen.ordinals() {
        labels::label(ordinal, pod, seen, record, now, decision);
        if ordinal != record.pod && seen.server(ordinal, now, limits::FACT_AGE).is_none() {
            decision.wait(Reason::WaitingForPods, Some(ordinal));
        }
    }
}

/// Pods are taken away or replaced around a primary that serves; never both at once.
fn change(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    now: Tick,
    decision: &mut Decision,
) {
    let primary = seen.server_of(record.pod, record.pod_uid, now, limits::DESTRUCTIVE_AGE);
    let Some(primary) = primary.filter(|_| spec.unserved.is_none()) else {
        return;
    };
    if spec.hibernate {
        // Whatever a handover left to be done is seen through first.
        if seen.objects.replicas_applied > 0 && record.served.is_none() {
            let guard = Guard {
                epoch: Some(record.epoch),
                pod: Some((record.pod, record.pod_uid)),
                run: Some(primary.run),
                replica: Some(false),
                ..Guard::NONE
            };
            hibernation::begin(guard, decision);
        }
    } else if !scale::plan(spec, seen, record, primary, now, decision) {
        rollout::plan(spec, seen, record, now, decision);
    }
}

/// Both client Services name the primary. One write moves each: kube-proxy waits a second between two syncs (measured).
fn route(seen: &Observation, primary: Ordinal, guard: Guard, now: Tick, decision: &mut Decision) {
    let table = [
        (
            Object::ClientService,
            Route::Client,
            seen.objects.client_route,
        ),
        (
            Object::PrimaryService,
            Route::Primary,
            seen.objects.primary_route,
        ),
    ];
    for (object, route, present) in table {
        let there = seen.objects.state(object).value().is_some();
        if there && present != Some(primary) && !adoption::is_disputed(seen, object, now) {
            decision.act(
                Verb::SetRoute {
                    route,
                    pod: primary,
                },
                guard,
                Reason::TrafficMoved,
            );
        }
    }
}

pub fn others(
    seen: &Observation,
    primary: Ordinal,
    now: Tick,
) -> impl Iterator<Item = (Ordinal, PodUid, &ServerFacts)> {
    seen.ordinals()
        .filter(move |(ordinal, _)| *ordinal != primary)
        .filter_map(move |(ordinal, pod)| {
            let uid = pod.object.value()?.uid;
            let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE)?;
            (server.pod_uid == uid).then_some((ordinal, uid, server))
        })
}

/// Whether a server is a replica that is told to follow a pod.
pub const fn is_pointed_at(server: &ServerFacts, primary: Ordinal) -> bool {
    matches!(server.role, Role::Replica { upstream: Upstream::Pod(of), .. } if of.0 == primary.0)
}
