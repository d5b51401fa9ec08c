//! Servers beside a primary: they are pointed at it, those that act as primary are demoted, and each is opened when its copy is
//! complete.

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{Epoch, Observation, Ordinal, PodUid, Port, Record, Role, ServerFacts, Tick};
use crate::reasons::Reason;

use super::replication::{is_pointed_at, others};

/// Points replicas at the primary that are not. A pointer may cost a replica its copy (a full resync empties it first), so
/// of the replicas that hold one, only one at a time is re-pointed.
pub fn attach_replicas(
    seen: &Observation,
    primary: (Ordinal, PodUid),
    epoch: Epoch,
    now: Tick,
    decision: &mut Decision,
) {
    let mut away = others(seen, primary.0, now).any(|(_, _, server)| {
        server.is_reached_by_clients()
            && is_pointed_at(server, primary.0)
            && !server.follows(primary.0)
    });
    for (ordinal, uid, server) in others(seen, primary.0, now) {
        if is_pointed_at(server, primary.0) || server.role == Role::Primary {
            continue;
        }
        if server.is_reached_by_clients() || server.is_synced_replica() {
            if away {
                decision.wait(Reason::WaitingForSync, Some(ordinal));
                continue;
            }
            away = true;
        }
        attach(ordinal, uid, server, primary, epoch, decision);
    }
}

/// Servers that act as primary beside the recorded one are made its replicas at once.
pub fn demote_others(
    seen: &Observation,
    primary: (Ordinal, PodUid),
    epoch: Epoch,
    now: Tick,
    decision: &mut Decision,
) {
    for (ordinal, uid, server) in others(seen, primary.0, now) {
        if server.role == Role::Primary {
            attach(ordinal, uid, server, primary, epoch, decision);
        }
    }
}

fn attach(
    ordinal: Ordinal,
    uid: PodUid,
    server: &ServerFacts,
    primary: (Ordinal, PodUid),
    epoch: Epoch,
    decision: &mut Decision,
) {
    let is_primary = matches!(server.role, Role::Primary);
    if server.loading {
        // A loading server refuses REPLICAOF with -LOADING (measured).
        decision.wait(Reason::WaitingForLoad, Some(ordinal));
        return;
    }
    let guard = Guard {
        epoch: Some(epoch),
        pod: Some((ordinal, uid)),
        run: Some(server.run),
        replica: Some(!is_primary),
        primary: Some(primary),
        ..Guard::NONE
    };
    let reason = if is_primary {
        Reason::SecondPrimaryDemoted
    } else {
        Reason::ReplicaAttached
    };
    decision.act(
        Verb::Follow {
            pod: ordinal,
            primary: primary.0,
        },
        guard,
        reason,
    );
    if is_primary && server.is_reached_by_clients() {
        // Established connections survive any change of endpoints.
        let demoted = Guard {
            replica: None,
            ..guard
        };
        decision.act(Verb::CloseClients { pod: ordinal }, demoted, reason);
    }
}

/// Lets clients in when the copy is complete and of the primary's own history.
pub fn open_when_synced(
    ordinal: Ordinal,
    uid: PodUid,
    server: &ServerFacts,
    record: &Record,
    primary: &ServerFacts,
    decision: &mut Decision,
) {
    if !server.follows(record.pod) || server.replid != primary.replid {
        decision.wait(Reason::WaitingForSync, Some(ordinal));
        return;
    }
    if server.port == Port::Client {
        return;
    }
    // Whoever is open may be handed over to, and must find what it holds after a restart.
    if server.rewriting {
        decision.wait(Reason::WaitingForFile, Some(ordinal));
        return;
    }
    let guard = Guard {
        epoch: Some(record.epoch),
        pod: Some((ordinal, uid)),
        run: Some(server.run),
        replica: Some(true),
        ..Guard::NONE
    };
    let reason = if server.unfenced {
        Reason::ServerAdmitted
    } else {
        Reason::ReplicaOpened
    };
    decision.act(Verb::Open { pod: ordinal }, guard, reason);
}
