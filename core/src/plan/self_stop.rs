//! A Durable primary stops by itself: it takes writes only while a replica acknowledges (`min-replicas-to-write 1`), so that one
//! that is cut off takes none any more when another is promoted.
//!
//! It is asked for once a replica is in sync with the primary that serves, and given up once every other server is proven to
//! hold no link. A replica that is only silent keeps it: writes wait for it.

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{
    Observation, PodFacts, Port, Reachability, Record, Role, ServerFacts, SpecFacts, Tick,
};
use crate::limits;
use crate::reasons::Reason;

use super::death::is_closed_and_refused;
use super::replication::others;
use super::silence::has_ended;

/// Has a primary stop that can lose its replicas. A replica does not keep it: it may be promoted, and then has none at first.
pub fn arm(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    primary: &ServerFacts,
    guard: Guard,
    now: Tick,
    decision: &mut Decision,
) {
    if !spec.needs_replica {
        return;
    }
    // With one pod asked for there is nobody to wait for.
    let is_followed = spec.pods > 1
        && others(seen, record.pod, now)
            .any(|(_, _, server)| server.follows(record.pod) && server.replid == primary.replid);
    // Until the first acknowledgement of a replica that just came in sync, the primary would refuse every write (measured).
    if is_followed && primary.has_replica && !primary.needs_replica {
        let verb = Verb::NeedReplica {
            pod: record.pod,
            needed: true,
        };
        decision.act(verb, of_role(guard, false), Reason::WritesNeedReplica);
    }
    for (pod, uid, server) in others(seen, record.pod, now) {
        if server.needs_replica && server.role != Role::Primary && !server.loading {
            let guard = Guard {
                epoch: Some(record.epoch),
                pod: Some((pod, uid)),
                run: Some(server.run),
                ..Guard::NONE
            };
            let verb = Verb::NeedReplica { pod, needed: false };
            decision.act(verb, of_role(guard, true), Reason::WritesNeedReplica);
        }
    }
}

/// Lets a primary take writes alone once no other server can have a link to it.
pub fn disarm(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    primary: &ServerFacts,
    guard: Guard,
    now: Tick,
    decision: &mut Decision,
) {
    if !spec.needs_replica || !primary.needs_replica {
        return;
    }
    let alone = seen
        .members(spec)
        .filter(|(ordinal, _)| *ordinal != record.pod)
        .all(
            |(ordinal, pod)| match seen.server(ordinal, now, limits::DESTRUCTIVE_AGE) {
                Some(server) => server.port == Port::Fence && !server.is_fed(),
                None => has_ended(pod) || is_over(pod),
            },
        );
    if alone || spec.pods < 2 {
        let verb = Verb::NeedReplica {
            pod: record.pod,
            needed: false,
        };
        decision.act(verb, of_role(guard, false), Reason::WritesNeedNoReplica);
    }
}

const fn of_role(guard: Guard, replica: bool) -> Guard {
    Guard {
        replica: Some(replica),
        ..guard
    }
}

/// Whether a server closed its connection and refuses another one.
fn is_over(pod: &PodFacts) -> bool {
    let own = |reach: &Reachability| pod.object.value().is_some_and(|o| o.uid == reach.pod_uid);
    let reach = pod.reach.filter(own);
    reach.as_ref().is_some_and(is_closed_and_refused)
}
