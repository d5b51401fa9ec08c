//! The decision. One file per concern:
//!
//! * [`provision`]: objects of Kubernetes;
//! * [`death`]: whether the recorded primary serves, has ended, or is silent;
//! * [`silence`]: whether one that is silent although its pod exists is succeeded;
//! * [`self_stop`]: a Durable primary that is cut off stops by itself;
//! * [`election`]: who leads when it does not serve;
//! * [`handover`]: a primary that is alive gives the lead to a replica;
//! * [`replication`]: what follows from who leads: roles, ports, routes, labels.

mod death;
mod election;
mod handover;
mod provision;
mod replication;
mod self_stop;
mod silence;

use wellcake_crds::v1beta1::Topology;

use crate::effects::Decision;
use crate::facts::{Hints, Observation, SpecFacts, Tick};
use crate::reasons::Reason;

/// Decides what to do next from what is asked for, what is seen and the time. Pure: the same arguments give the same
/// answer, and times matter only by their differences.
pub fn step(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let mut decision = Decision::default();
    if spec.deleting {
        return decision;
    }
    if spec.topology == Topology::Replication {
        replication::plan(spec, seen, hints, now, &mut decision);
    } else if spec.topology == Topology::Standalone {
        standalone(seen, now, &mut decision);
        if spec.failover.is_some() {
            decision.refuse(Reason::HandoverNeedsReplica, None);
        }
    }
    provision::plan(spec, seen, hints, now, &mut decision);
    requests(spec, &mut decision);
    if seen.rival {
        decision.refuse(Reason::AnotherOperatorActs, None);
    }
    decision
}

/// A single server opens by itself; there is nobody to hand over to and nothing to route.
fn standalone(seen: &Observation, now: Tick, decision: &mut Decision) {
    use crate::facts::Ordinal;
    let pod = Ordinal(0);
    match seen.server(pod, now, crate::limits::FACT_AGE) {
        Some(server) if server.loading => decision.wait(Reason::WaitingForLoad, Some(pod)),
        Some(_) => {}
        None => decision.wait(Reason::WaitingForPods, Some(pod)),
    }
}

/// Requests by annotation that are not served are refused by name.
fn requests(spec: &SpecFacts, decision: &mut Decision) {
    let table = [
        (spec.restart_asked, Reason::RestartNotServed),
        (spec.rotation_asked, Reason::RotationNotServed),
    ];
    for (asked, reason) in table {
        if asked {
            decision.refuse(reason, None);
        }
    }
}
