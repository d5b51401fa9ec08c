//! Directives: running servers are set by command, one after the other, the file follows, and a file that no server starts with is
//! taken back.

use wellcake_crds::v1beta1::Topology;

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{
    Directives, Epoch, Hints, Object, ObjectState, Observation, Ordinal, Revision, ServerFacts,
    SpecFacts, Tick, Trouble,
};
use crate::limits;
use crate::reasons::Reason;
use crate::status;

/// Sets the directives of the next server, if a primary serves and nothing else is to be done. Replicas come first, the primary last. All or none of
/// the directives take effect, so that one refusal leaves every server with the last ones that all accepted.
pub fn plan(spec: &SpecFacts, seen: &Observation, now: Tick, decision: &mut Decision) {
    if spec.unserved.is_some() || spec.hibernate || !is_applied(seen) {
        return;
    }
    if let Some((pod, _)) = current(seen, now).find(|(_, it)| it.directives == Directives::Refused)
    {
        decision.refuse(Reason::DirectivesRefused, Some(pod));
        return;
    }
    let due = current(seen, now).any(|(_, it)| it.directives == Directives::Due);
    if due {
        decision.wait(Reason::WaitingForDirectives, None);
    }
    let primary = status::serving_primary(spec, seen, now);
    let leads = primary.is_some() || spec.topology == Topology::Standalone;
    if !decision.effects.is_empty() || !leads {
        return;
    }
    let unset = current(seen, now)
        .filter(|(_, it)| matches!(it.directives, Directives::Unset | Directives::Due))
        .max_by_key(|(pod, _)| (Some(*pod) != primary, *pod));
    let Some((pod, server)) = unset else { return };
    let guard = Guard {
        epoch: Some(seen.record.map_or(Epoch(0), |record| record.epoch)),
        pod: Some((pod, server.pod_uid)),
        run: Some(server.run),
        ..Guard::NONE
    };
    decision.act(Verb::Configure { pod }, guard, Reason::DirectivesSet);
}

/// Whether the file may get what differs from it, all of which a server takes while it runs: every server that was made for the
/// file has taken it, or none runs at all.
pub fn is_file_due(seen: &Observation, now: Tick) -> bool {
    // No pod has it while the template of the operator before is kept, and no server there is set.
    let template = seen.objects.state(Object::StatefulSet);
    if matches!(
        template.value(),
        Some(ObjectState::Kept | ObjectState::RollAsked)
    ) {
        return true;
    }
    let answers = seen.ordinals().any(|(pod, _)| seen.answers(pod));
    let mut servers = current(seen, now).map(|(_, it)| it.directives == Directives::Set);
    match servers.next() {
        Some(first) => first && servers.all(|set| set),
        None => !answers,
    }
}

/// Takes back the file of the newest template when a server does not start with it, once for each; tells of one that was.
pub fn go_back(seen: &Observation, decision: &mut Decision) {
    if seen.objects.config_refused {
        decision.refuse(Reason::ConfigRefused, None);
        return;
    }
    let refused = seen.ordinals().any(|(_, pod)| {
        pod.object.value().is_some_and(|object| {
            object.trouble == Some(Trouble::Config) && object.revision == Revision::Current
        })
    });
    if refused && seen.objects.config_before && is_applied(seen) {
        let guard = Guard {
            epoch: Some(seen.record.map_or(Epoch(0), |record| record.epoch)),
            ..Guard::NONE
        };
        decision.act(Verb::GoBackToConfig, guard, Reason::ConfigTakenBack);
    }
}

/// Deletes a file that nobody needs, when all is quiet.
pub fn tidy(seen: &Observation, hints: &Hints, now: Tick, decision: &mut Decision) {
    let quiet =
        decision.effects.is_empty() && decision.waits.is_empty() && decision.refusals.is_empty();
    if quiet && seen.objects.old_configs > 0 && hints.objects.pause(now).is_none() {
        decision.act(Verb::DeleteOldConfig, Guard::NONE, Reason::OldConfigRemoved);
    }
}

/// Whether the StatefulSet and the file are as the spec asks for, but for directives that running servers take.
fn is_applied(seen: &Observation) -> bool {
    let state = |object| seen.objects.state(object).value().copied();
    state(Object::StatefulSet) == Some(ObjectState::Matches)
        && matches!(
            state(Object::Config),
            Some(ObjectState::Matches | ObjectState::Differs)
        )
}

/// Servers that answer, of pods that are to stay as they are. Others are about to be replaced: a limit that they have may not be
/// the one that the directives were made for.
fn current(seen: &Observation, now: Tick) -> impl Iterator<Item = (Ordinal, &ServerFacts)> {
    seen.ordinals().filter_map(move |(ordinal, pod)| {
        let object = pod.object.value()?;
        let stays = object.revision == Revision::Current && !object.terminating;
        let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE)?;
        (stays && !server.loading).then_some((ordinal, server))
    })
}
