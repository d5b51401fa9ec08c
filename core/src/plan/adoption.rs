//! A cluster that another operator of this API made is taken over, when a person says that this operator is gone.
//!
//! Nothing restarts: the StatefulSet is taken with the pod template that it has. First one Service is taken, and it is watched
//! that nobody takes it back. Then every server must be seen, one of them a primary that all others follow; it is recorded,
//! and all the rest is decided as for any other cluster. Servers of that template start with their client port open. The core
//! treats such a process as one behind the fence until it was admitted: it does not know the password with which admitted
//! replicas replicate, so that none of them copies from it, whatever it holds or lacks.

use wellcake_crds::v1beta1::Topology;

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{
    Epoch, Known, Link, Login, Object, ObjectState, Observation, Ordinal, PodFacts, PodUid, Port,
    Record, Replid, Role, Served, ServerFacts, SpecFacts, Tick, Upstream,
};
use crate::limits;
use crate::reasons::Reason;

use super::replication::by_order;

/// Whether another operator's objects are there that were not taken over, and nothing entitles to take them.
pub fn is_pending(spec: &SpecFacts, seen: &Observation, now: Tick) -> bool {
    let theirs = Object::ALL
        .iter()
        .any(|object| state(seen, *object) == Some(ObjectState::Theirs));
    theirs && !is_entitled(spec, seen, now)
}

/// Whether it is settled who leads the servers of another operator.
fn is_entitled(spec: &SpecFacts, seen: &Observation, now: Tick) -> bool {
    match spec.topology {
        Topology::Replication => seen.record.is_some(),
        _ => spec.adopt && is_quiet(seen, now) && single(seen, now).is_some(),
    }
}

/// Whether the servers are another operator's and nobody was recorded as their primary.
pub fn is_unled(seen: &Observation) -> bool {
    let theirs = seen.objects.state(Object::StatefulSet).last() == Some(&ObjectState::Theirs);
    let unfenced = |pod: &PodFacts| pod.server.last().is_some_and(|s| s.unfenced);
    theirs || seen.pods.iter().any(unfenced)
}

fn state(seen: &Observation, object: Object) -> Option<ObjectState> {
    seen.objects.state(object).value().copied()
}

/// Whether the first object that was taken stands for long enough.
fn is_quiet(seen: &Observation, now: Tick) -> bool {
    match seen.objects.state(Object::HeadlessService) {
        Known::Seen(found) => {
            found.value == ObjectState::Matches && now.since(found.at) >= limits::TAKE_OVER_QUIET
        }
        _ => false,
    }
}

/// Plans what comes before anything else of another operator's objects is taken.
pub fn objects(spec: &SpecFacts, seen: &Observation, now: Tick, decision: &mut Decision) {
    if !spec.adopt {
        decision.refuse(Reason::MadeByOtherOperator, None);
        return;
    }
    if spec.pods == 0 || spec.pods != seen.objects.replicas_applied {
        if spec.topology == Topology::Standalone {
            decision.refuse(Reason::AdoptionPodsDiffer, None);
        }
        return;
    }
    if seen.objects.state(Object::Credentials).is_absent() {
        let verb = Verb::CreateCredentials;
        decision.act(verb, Guard::NONE, Reason::CredentialsCreated);
    }
    take_first(seen, now, decision);
    if spec.topology == Topology::Standalone {
        refuse_logins(seen, decision);
    }
    if spec.topology == Topology::Standalone && single(seen, now).is_none() {
        decision.wait(Reason::WaitingForPods, Some(Ordinal(0)));
    }
}

/// The headless Service is taken first: which pods it names does not change. An operator that still runs would make it what it
/// was within one of its passes.
fn take_first(seen: &Observation, now: Tick, decision: &mut Decision) {
    let object = Object::HeadlessService;
    let found = match seen.objects.state(object) {
        Known::Seen(found) => found,
        Known::Absent => {
            decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectCreated);
            decision.wait(Reason::TakingOver, None);
            return;
        }
        Known::Maybe { .. } => return,
    };
    let until = found.at.after(limits::TAKE_OVER_QUIET);
    match found.value {
        ObjectState::Theirs => {
            decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectTakenOver);
            decision.wait(Reason::TakingOver, None);
        }
        ObjectState::TakenBack => take_again(object, found.at, now, decision),
        ObjectState::Differs => {
            decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectCorrected);
        }
        ObjectState::Matches if now < until => {
            decision.wait(Reason::TakingOver, None);
            decision.wake_at(until);
        }
        _ => {}
    }
}

/// An object that somebody made again what it was is taken again once nobody touched it for a while.
pub fn take_again(object: Object, since: Tick, now: Tick, decision: &mut Decision) {
    let until = since.after(limits::TAKE_OVER_QUIET);
    decision.refuse(Reason::AnotherOperatorActs, None);
    if now < until {
        decision.wake_at(until);
    } else {
        decision.act(Verb::Apply(object), Guard::NONE, Reason::ObjectTakenOver);
    }
}

/// Whether an object was taken back a moment ago, so that to take it again would be a quarrel.
pub fn is_disputed(seen: &Observation, object: Object, now: Tick) -> bool {
    match seen.objects.state(object) {
        Known::Seen(found) => {
            let recent = now.since(found.at) < limits::TAKE_OVER_QUIET;
            found.value == ObjectState::TakenBack && recent
        }
        _ => false,
    }
}

fn refuse_logins(seen: &Observation, decision: &mut Decision) {
    for (ordinal, pod) in seen.ordinals() {
        match pod.login {
            Login::Fine => {}
            Login::Denied => decision.refuse(Reason::AdoptionPasswordUnknown, Some(ordinal)),
            Login::Open => decision.refuse(Reason::AdoptionPasswordMissing, Some(ordinal)),
        }
    }
}

/// The only server, if it takes writes.
fn single(seen: &Observation, now: Tick) -> Option<&ServerFacts> {
    let login = seen.pods.first().map(|pod| pod.login);
    seen.server(Ordinal(0), now, limits::DESTRUCTIVE_AGE)
        .filter(|server| login == Some(Login::Fine) && server.serves_writes())
}

/// A server of another operator with its pod.
struct Found<'a> {
    ordinal: Ordinal,
    uid: PodUid,
    server: &'a ServerFacts,
}

/// Gives the servers of another operator their primary if a person said that this operator is gone, and nobody acts as it.
pub fn lead(spec: &SpecFacts, seen: &Observation, now: Tick, decision: &mut Decision) {
    if !spec.adopt || spec.unserved.is_some() {
        if !is_pending(spec, seen, now) {
            decision.refuse(Reason::MadeByOtherOperator, None);
        }
    } else if spec.pods == 0 || spec.pods != seen.objects.replicas_applied {
        decision.refuse(Reason::AdoptionPodsDiffer, None);
    } else if !is_quiet(seen, now) {
        decision.wait(Reason::TakingOver, None);
    } else if seen.pods.iter().any(|pod| pod.login != Login::Fine) {
        refuse_logins(seen, decision);
    } else if seen.pods.is_empty() {
        decision.wait(Reason::WaitingForPods, None);
    } else if !by_order(spec, seen, now, decision) {
        first_primary(seen, now, decision);
    }
}

/// Records who leads the servers of another operator, once that can be told: all of them are seen, one is a primary, and the
/// others have a link and its history. A history belongs to one process: whoever has its link up and that history follows the
/// primary, by whatever name it was told.
fn first_primary(seen: &Observation, now: Tick, decision: &mut Decision) {
    let Some(servers) = all_servers(seen, now, decision) else {
        return;
    };
    let mut primaries = servers.iter().filter(|it| it.server.role == Role::Primary);
    let (Some(primary), None) = (primaries.next(), primaries.next()) else {
        decision.refuse(Reason::AdoptionPrimaryUnclear, None);
        return;
    };
    let others = servers.iter().filter(|it| it.ordinal != primary.ordinal);
    let astray = others
        .into_iter()
        .find(|it| !has_copy(it.server, primary.server));
    if let Some(astray) = astray {
        decision.wait(Reason::WaitingForSync, Some(astray.ordinal));
        return;
    }
    record(seen, primary, decision);
}

/// All servers, if every pod is there to stay and its server was just seen; else says what is missing.
fn all_servers<'a>(
    seen: &'a Observation,
    now: Tick,
    decision: &mut Decision,
) -> Option<Vec<Found<'a>>> {
    let mut servers = Vec::new();
    for (ordinal, pod) in seen.ordinals() {
        let object = pod.object.value().filter(|object| !object.terminating);
        let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE);
        let (Some(object), Some(server)) = (object, server) else {
            decision.wait(Reason::WaitingForPods, Some(ordinal));
            return None;
        };
        if server.loading {
            decision.wait(Reason::WaitingForLoad, Some(ordinal));
            return None;
        }
        servers.push(Found {
            ordinal,
            uid: object.uid,
            server,
        });
    }
    Some(servers)
}

fn has_copy(server: &ServerFacts, primary: &ServerFacts) -> bool {
    let linked = matches!(server.role, Role::Replica { link: Link::Up, .. });
    linked && server.is_synced_replica() && server.replid == primary.replid
}

fn record(seen: &Observation, primary: &Found<'_>, decision: &mut Decision) {
    let kept = seen.kept_record.map_or(Epoch(0), |kept| kept.epoch);
    let claim = seen.pod(primary.ordinal).and_then(|pod| pod.claim.value());
    let record = Record {
        epoch: kept.next(),
        pod: primary.ordinal,
        pod_uid: primary.uid,
        claim_uid: claim.map(|claim| claim.uid),
        replid: Some(primary.server.replid),
        continues: None,
        served: None,
        planned: false,
    };
    let guard = Guard {
        epoch: Some(Epoch(0)),
        pod: Some((primary.ordinal, primary.uid)),
        run: Some(primary.server.run),
        replica: Some(false),
        ..Guard::NONE
    };
    let verb = Verb::RecordPrimary {
        record,
        serves: None,
    };
    decision.act(verb, guard, Reason::PrimaryTakenOver);
}

/// Whether the server of a primary is a process that began by itself, with its client port open and as a primary: it was not
/// admitted, as who is promoted is at once, and does not have the history that was recorded.
pub fn began_by_itself(primary: &Served, server: &ServerFacts) -> bool {
    is_unadmitted(server) && server.role == Role::Primary && primary.replid != Some(server.replid)
}

/// Servers that began by themselves as primaries take no writes, while nobody leads whom they could be made to follow. Once the
/// primary has ended or its pod is gone (`ended`), others that were not admitted copy from nobody either: by their template they copy from the
/// first pod, whatever that holds.
pub fn fence(seen: &Observation, record: &Record, ended: bool, now: Tick, decision: &mut Decision) {
    for (ordinal, pod) in seen.ordinals() {
        let object = pod.object.value();
        let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE);
        let (Some(object), Some(server)) = (object, server) else {
            continue;
        };
        let recorded = [Some(record.own()), record.hands_over()];
        let led = recorded
            .into_iter()
            .flatten()
            .find(|of| of.pod_uid == object.uid);
        let unknown = is_unadmitted(server);
        let (by_itself, is_replica) = match (server.role, led) {
            (Role::Primary, Some(led)) => (began_by_itself(&led, server), false),
            (Role::Primary, None) => (unknown, false),
            (Role::Replica { upstream, .. }, _) => {
                (unknown && ended && upstream != Upstream::Nobody, true)
            }
        };
        // A server that loads refuses, and takes no writes either.
        if !by_itself || server.loading {
            continue;
        }
        let guard = Guard {
            epoch: Some(record.epoch),
            pod: Some((ordinal, object.uid)),
            run: Some(server.run),
            replica: Some(is_replica),
            ..Guard::NONE
        };
        decision.act(Verb::Fence { pod: ordinal }, guard, Reason::UnfencedStart);
    }
}

/// A server that began as a primary of its own counts by what it had loaded: a snapshot's history, if it is a recorded one, is the
/// one before its own then. What it took by itself since is vouched for by nobody.
pub fn as_loaded(server: ServerFacts, record: Option<&Record>) -> ServerFacts {
    let Some(before) = server.replid2.filter(|_| is_unadmitted(&server)) else {
        return server;
    };
    // What was to be promoted by itself may be recorded, and still counts by the history of the truth.
    let truth = record.and_then(|record| record.truth().replid);
    let of_truth = truth == Some(before);
    let unknown = !is_recorded(server.replid, record) && is_recorded(before, record);
    if of_truth || unknown {
        ServerFacts {
            replid: before,
            offset: server.replid2_until,
            replid2: None,
            ..server
        }
    } else {
        server
    }
}

/// Whether nothing that a server holds is known to be recorded data: it began as a primary of its own, without a recorded history.
/// Without an append-only file it had loaded nothing that counts then.
pub fn is_unvouched(server: &ServerFacts, spec: &SpecFacts, record: Option<&Record>) -> bool {
    // A primary that was made a replica of nobody says that it never had a link (measured).
    let was_primary = matches!(
        server.role,
        Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            ..
        }
    );
    let unknown = is_unadmitted(server) && !is_recorded(server.replid, record);
    was_primary && unknown && !spec.persistence.aof
}

const fn is_unadmitted(server: &ServerFacts) -> bool {
    server.unfenced && matches!(server.port, Port::Fence)
}

fn is_recorded(history: Replid, record: Option<&Record>) -> bool {
    record.is_some_and(|record| {
        let served = record.served.and_then(|served| served.replid);
        [record.replid, record.continues, served].contains(&Some(history))
    })
}

/// A server whose users would be gone with the template that it runs on.
pub fn with_other_users(seen: &Observation) -> Option<Ordinal> {
    let has = |pod: &PodFacts| pod.server.last().is_some_and(|s| s.other_users);
    seen.ordinals()
        .find_map(|(ordinal, pod)| has(pod).then_some(ordinal))
}

/// The finalizer of the operator before goes once its objects were taken over: nobody else would take it away when the
/// ValkeyCluster is deleted.
pub fn release(spec: &SpecFacts, seen: &Observation, decision: &mut Decision) {
    let taken = matches!(
        state(seen, Object::StatefulSet),
        Some(ObjectState::Kept | ObjectState::RollAsked | ObjectState::Matches)
    );
    if spec.adopt && spec.foreign_finalizer && taken {
        let verb = Verb::ReleaseFinalizer;
        decision.act(verb, Guard::NONE, Reason::FinalizerReleased);
    }
}
