//! Fewer pods than there are: the primary is one of those that stay, and so is a copy in sync, before any goes.

use crate::effects::{Decision, Guard, InSync, Verb};
use crate::facts::{Observation, Ordinal, Record, ServerFacts, SpecFacts, Tick};
use crate::reasons::Reason;

/// Whether pods are to be taken away.
pub fn is_asked(spec: &SpecFacts, seen: &Observation) -> bool {
    spec.pods > 0 && seen.objects.replicas_applied > spec.pods
}

/// Whether a pod is one of those that are to go.
pub fn goes(spec: &SpecFacts, seen: &Observation, pod: Ordinal) -> bool {
    is_asked(spec, seen) && pod.0 >= spec.pods
}

/// Takes away the pods beyond what the spec asks for, around a primary that serves. Whether that is under way.
pub fn plan(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    primary: &ServerFacts,
    now: Tick,
    decision: &mut Decision,
) -> bool {
    if !is_asked(spec, seen) {
        return false;
    }
    let is_copy = |ordinal: Ordinal| {
        ordinal != record.pod && ordinal.0 < spec.pods && seen.is_in_sync(ordinal, now)
    };
    let copy = seen.ordinals().any(|(ordinal, _)| is_copy(ordinal));
    // The primary hands over first, and what it handed over is seen through.
    let stays = record.pod.0 < spec.pods && record.served.is_none();
    // A primary that takes writes only while a replica acknowledges would take none without the last one.
    let waits = spec.needs_replica && primary.needs_replica && spec.pods < 2;
    if !stays || waits || !seen.is_in_sync(record.pod, now) || (spec.pods > 1 && !copy) {
        decision.wait(Reason::WaitingForScaleIn, None);
        return true;
    }
    let guard = Guard {
        epoch: Some(record.epoch),
        pod: Some((record.pod, record.pod_uid)),
        run: Some(primary.run),
        replica: Some(false),
        in_sync: InSync::Staying(spec.pods),
        ..Guard::NONE
    };
    decision.act(Verb::ScaleIn { to: spec.pods }, guard, Reason::ScaledIn);
    true
}
