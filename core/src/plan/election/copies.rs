//! Servers that were in sync since they started hold complete copies.

use wellcake_crds::v1beta1::Profile;

use crate::facts::{
    Link, Observation, Offset, Port, Record, Replid, Role, SpecFacts, Tick, Upstream,
};
use crate::limits;
use crate::reasons::Reason;

use super::truth::{self, rank};
use super::{Verdict, Voter, Voters};

/// Replicas that never stopped hold complete copies: the one with the most data leads.
pub fn best(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    voters: &Voters,
    why: Reason,
    now: Tick,
) -> Verdict {
    // A promotion was recorded when the primary before had lost its replicas. If it feeds one again, it lives, whatever became
    // of the one that was to be promoted.
    let not_done = record.truth() != record.own() || why == Reason::PromotionResumed;
    let not_seen_through = not_done && record.hands_over().is_none();
    if not_seen_through && voters.iter().any(|voter| is_fed_by_unseen(voter, voters)) {
        let wake = now.after(limits::RECHECK);
        let pod = Some(record.truth().pod);
        return Verdict::Wait(Reason::UnseenPrimaryLives, pod, Some(wake));
    }
    let Some(history) = common_history(record, voters) else {
        let copy = voters.iter().find(|voter| voter.holds_copy());
        return Verdict::Refuse(Reason::HistoriesDiffer, copy.map(|c| c.ordinal));
    };
    let best = voters
        .iter()
        .filter(|voter| voter.holds_data())
        .filter_map(|voter| Some((truth::reach(record, history, voter)?, voter)))
        .max_by_key(|(reach, voter)| {
            (
                *reach,
                voter.holds_copy(),
                !voter.server.rewriting,
                // Of equals, the one that a handover was to lead to.
                voter.ordinal == record.pod && record.hands_over().is_some() && !voter.terminating,
                // And one that is about to go would only have to be replaced again.
                !voter.terminating,
                core::cmp::Reverse(voter.ordinal),
            )
        });
    let Some((reach, best)) = best else {
        return Verdict::Refuse(Reason::NoCompleteCopy, None);
    };
    // A server that takes writes of this history, or of what comes after it, holds more than any copy.
    let ahead = voters.iter().find(|voter| {
        let further = voter.is_of(history) && voter.server.offset > reach;
        voter.server.serves_writes() && (further || voter.continues(Some(history)))
    });
    if let Some(ahead) = ahead {
        return Verdict::Refuse(Reason::HistoriesDiffer, Some(ahead.ordinal));
    }
    newer_data_of_primary(spec, seen, record, (best, reach), now)
        .unwrap_or(Verdict::Leads(best.ordinal, why))
}

/// Whether a server has its link up to one that is not seen to be a replica itself.
fn is_fed_by_unseen(voter: &Voter, voters: &Voters) -> bool {
    let Role::Replica {
        upstream,
        link: Link::Up,
        ..
    } = voter.server.role
    else {
        return false;
    };
    match upstream {
        Upstream::Nobody => false,
        Upstream::Other => true,
        Upstream::Pod(of) => !voters
            .iter()
            .any(|other| other.ordinal == of && other.server.role != Role::Primary),
    }
}

/// The history that counts: the recorded one if somebody holds it. Where a promotion was not seen through: one that continues
/// what it was to continue, else that. Else one of which all copies hold a part (the same id, or the id that it continued).
/// A server behind the fence may hold the newest part: it was in sync and not opened yet, or it loaded what it had written.
fn common_history(record: &Record, voters: &Voters) -> Option<Replid> {
    let named = |voter: &&Voter| voter.is_of(voter.server.replid) && rank(record, voter) > 0;
    voters
        .iter()
        .filter(|voter| voter.holds_data())
        .filter(named)
        .max_by_key(|voter| rank(record, voter))
        .map(|voter| voter.server.replid)
        .or_else(|| shared_history(voters))
}

fn shared_history(voters: &Voters) -> Option<Replid> {
    let copies = || voters.iter().filter(|voter| voter.holds_copy());
    let holds_part_of = |copy: &Voter, newest: &Voter| {
        copy.is_of(newest.server.replid) || newest.continues(Some(copy.server.replid))
    };
    let mut newest: Option<&Voter> = None;
    for voter in voters.iter().filter(|voter| voter.holds_data()) {
        let continues = newest.is_none_or(|before| voter.continues(Some(before.server.replid)));
        let whole = voter.is_of(voter.server.replid) && copies().all(|c| holds_part_of(c, voter));
        if continues && whole {
            newest = Some(voter);
        }
    }
    newest.map(|voter| voter.server.replid)
}

/// A Durable primary that may be ahead of every copy: it leads when it has come back with its data, and is waited for, within
/// a bound, while it was known to be ahead or loads.
///
/// A server writes its append-only file before it answers clients and before it feeds replicas
/// (`server.c: beforeSleep`), so that what a killed process left on its volume is no older than any copy.
fn newer_data_of_primary(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    (best, reach): (&Voter, Offset),
    now: Tick,
) -> Option<Verdict> {
    if spec.profile != Profile::Durable || !spec.persistence.survives_restart() {
        return None;
    }
    let lacks_all = truth::lacks_all(record, best);
    // A snapshot may be hours old; what it holds of the same history is compared by offset like any copy.
    if !lacks_all && !spec.persistence.aof {
        return None;
    }
    let truth = record.truth();
    let returned = seen
        .pod(truth.pod)?
        .server
        .value()
        .filter(|s| s.port == Port::Fence && truth::is_data_of(&truth, spec, seen, s.pod_uid));
    if let Some(server) = returned.filter(|server| !server.loading) {
        // Of the same history, so that its offset says what it holds: it stood for election like any copy.
        if best.is_of(server.replid) || server.keys == 0 {
            return None;
        }
        // A snapshot of a time before the promotion: what came after it is gone, and nothing newer is to come.
        if !spec.persistence.aof && truth.replid != Some(server.replid) {
            return None;
        }
        let answers = seen.server(truth.pod, now, limits::DESTRUCTIVE_AGE);
        if answers.is_some_and(|fresh| fresh.run == server.run) {
            return Some(Verdict::Leads(truth.pod, Reason::PrimaryReturned));
        }
    }
    // What it acknowledged after its last answer nobody knows; an operator that never saw it alive knows nothing at all.
    let ahead = seen
        .primary_offset
        .map_or(returned.is_some(), |offset| offset > reach);
    if !ahead && !lacks_all {
        return None;
    }
    let bound = super::return_bound(seen, now);
    if now < bound {
        let pod = Some(truth.pod);
        return Some(Verdict::Wait(Reason::WaitingForNewerData, pod, Some(bound)));
    }
    lacks_all.then_some(Verdict::Refuse(Reason::OnlyOlderData, Some(best.ordinal)))
}
