//! The decision. One file per concern:
//!
//! * [`provision`]: objects of Kubernetes;
//! * [`configuration`]: directives of servers;
//! * [`adoption`]: objects and servers of another operator are taken over;
//! * [`attach`]: servers beside a primary follow it, and are opened when in sync;
//! * [`death`]: whether the recorded primary serves, has ended, or is silent;
//! * [`by_hand`]: somebody made another server the primary by hand;
//! * [`hibernation`]: no pods at all;
//! * [`silence`]: whether one that is silent although its pod exists is succeeded;
//! * [`self_stop`]: a Durable primary that is cut off stops by itself;
//! * [`election`]: who leads when it does not serve;
//! * [`handover`]: a primary that is alive gives the lead to a replica;
//! * [`replication`]: what follows from who leads: roles, ports, routes, labels;
//! * [`labels`]: role labels;
//! * [`rollout`]: pods of an older template are replaced, one at a time;
//! * [`scale`]: fewer pods than there are.

mod adoption;
mod attach;
mod by_hand;
mod configuration;
mod death;
mod election;
mod handover;
pub mod hibernation;
mod labels;
mod provision;
mod replication;
mod rollout;
mod scale;
mod self_stop;
mod silence;

use wellcake_crds::v1beta1::Topology;

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{Hints, Object, Observation, Ordinal, SpecFacts, Tick};
use crate::limits;
use crate::reasons::Reason;

/// Decides what to do next from what is asked for, what is seen and the time. Pure: the same arguments give the same
/// answer, and times matter only by their differences.
pub fn step(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let mut decision = Decision::default();
    if spec.deleting {
        adoption::release(spec, seen, &mut decision);
        return decision;
    }
    if hibernation::is_under_way(spec, seen) {
        hibernation::await_end(spec, seen, &mut decision);
    } else if spec.topology == Topology::Replication {
        replication::plan(spec, seen, hints, now, &mut decision);
    } else if spec.topology == Topology::Standalone {
        standalone(spec, seen, hints, now, &mut decision);
        if spec.failover.is_some() {
            decision.refuse(Reason::HandoverNeedsReplica, None);
        }
    }
    if !hibernation::is_under_way(spec, seen) {
        rollout::replace_broken(spec, seen, hints, now, &mut decision);
    }
    provision::plan(spec, seen, hints, now, &mut decision);
    configuration::go_back(seen, &mut decision);
    settle(hints, now, &mut decision);
    configuration::plan(spec, seen, now, &mut decision);
    rollout::tell_trouble(seen, &mut decision);
    requests(spec, &mut decision);
    if seen.rival {
        decision.refuse(Reason::AnotherOperatorActs, None);
    }
    configuration::tidy(seen, hints, now, &mut decision);
    decision
}

/// What would undo another effect of the same decision, or has just failed, is left out.
fn settle(hints: &Hints, now: Tick, decision: &mut Decision) {
    let scales = decision
        .effects
        .iter()
        .any(|effect| matches!(effect.verb, Verb::ScaleIn { .. }));
    let paused = hints.objects.pause(now);
    let before = decision.effects.len();
    decision.effects.retain(|effect| match effect.verb {
        // Fewer pods are applied with all the rest.
        Verb::Apply(Object::StatefulSet) => !scales,
        Verb::SetLabel { .. } | Verb::KeepRecord { .. } | Verb::GoBackToConfig => paused.is_none(),
        _ => true,
    });
    if let Some(until) = paused.filter(|_| decision.effects.len() < before) {
        decision.wake_at(until);
    }
}

/// A single server opens by itself; there is nobody to hand over to and nothing to route.
fn standalone(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    decision: &mut Decision,
) {
    let pod = Ordinal(0);
    match seen.server(pod, now, limits::FACT_AGE) {
        Some(server) if server.loading => decision.wait(Reason::WaitingForLoad, Some(pod)),
        Some(_) => {}
        None => decision.wait(Reason::WaitingForPods, Some(pod)),
    }
    if rollout::pauses(hints, now, decision) || adoption::is_pending(spec, seen, now) {
        return;
    }
    if spec.hibernate && spec.unserved.is_none() {
        hibernate_alone(seen, pod, now, decision);
    } else {
        rollout::alone(spec, seen, pod, now, decision);
    }
}

/// The only pod goes, whatever its server does: what it holds goes to its volume, if it has one.
fn hibernate_alone(seen: &Observation, pod: Ordinal, now: Tick, decision: &mut Decision) {
    let object = seen.pod(pod).and_then(|found| found.object.value());
    let Some(object) = object.filter(|_| seen.objects.replicas_applied > 0) else {
        return;
    };
    let server = seen.server(pod, now, limits::DESTRUCTIVE_AGE);
    let guard = Guard {
        pod: Some((pod, object.uid)),
        run: server.map(|server| server.run),
        ..Guard::NONE
    };
    hibernation::begin(guard, decision);
}

/// What is asked for and not served is refused by name.
fn requests(spec: &SpecFacts, decision: &mut Decision) {
    if spec.rotation_asked {
        decision.refuse(Reason::RotationNotServed, None);
    }
}
