//! Who leads when the recorded primary does not serve.
//!
//! Data decides, and data is compared only within one history (equal replication ids). What cannot be compared is not
//! guessed: the decision refuses and names the way out.

use smallvec::SmallVec;
use wellcake_crds::v1beta1::Profile;

use crate::facts::{
    Container, Epoch, Known, OVERFLOW, Observation, Ordinal, PodFacts, PodUid, Port, Record,
    Replid, Role, ServerFacts, SpecFacts, Tick,
};
use crate::limits;
use crate::reasons::Reason;

use super::death::unanswered;

/// Outcome of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This pod leads.
    Leads(Ordinal, Reason),
    /// Nobody yet; it will come by itself, at the latest at the given time.
    Wait(Reason, Option<Ordinal>, Option<Tick>),
    /// Nobody, until a person says who.
    Refuse(Reason, Option<Ordinal>),
}

/// A server that answered lately, with its pod.
#[derive(Clone, Copy)]
struct Voter {
    ordinal: Ordinal,
    terminating: bool,
    server: ServerFacts,
}

impl Voter {
    /// In memory since it was in sync, whether its client port was opened already or not.
    const fn holds_copy(&self) -> bool {
        self.server.is_synced_replica()
    }

    /// Restarted, and through with loading.
    const fn is_loaded(&self) -> bool {
        matches!(self.server.port, Port::Fence)
            && !self.server.loading
            && matches!(self.server.role, Role::Replica { syncing: false, .. })
    }

    /// Has something that it could lead with.
    const fn holds_data(&self) -> bool {
        self.holds_copy() || (self.is_loaded() && self.server.keys > 0)
    }

    /// Whether its history continues another one.
    fn continues(&self, history: Option<Replid>) -> bool {
        history.is_some_and(|h| h.0 != OVERFLOW && self.server.replid2 == Some(h))
    }

    fn is_of(&self, history: Replid) -> bool {
        self.server.replid == history && history.0 != OVERFLOW
    }
}

type Voters = SmallVec<[Voter; 8]>;

fn voters(seen: &Observation, now: Tick) -> Voters {
    seen.ordinals()
        .filter_map(|(ordinal, pod)| {
            let object = pod.object.value()?;
            let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE)?;
            (server.pod_uid == object.uid).then_some(Voter {
                ordinal,
                terminating: object.terminating,
                server: *server,
            })
        })
        .collect()
}

/// The first primary of a cluster that never had one: every pod must be proven to hold nothing.
pub fn first(spec: &SpecFacts, seen: &Observation, now: Tick) -> Verdict {
    let voters = voters(seen, now);
    if let Some(full) = voters.iter().find(|voter| voter.server.keys > 0) {
        return Verdict::Refuse(Reason::DataWithoutRecord, Some(full.ordinal));
    }
    for (ordinal, pod) in seen.members(spec) {
        let voter = voters.iter().find(|voter| voter.ordinal == ordinal);
        match voter {
            Some(voter) if voter.server.loading => {
                return Verdict::Wait(Reason::WaitingForLoad, Some(ordinal), None);
            }
            Some(_) => {}
            None if never_held_data(spec, pod) => {}
            None => return Verdict::Wait(Reason::WaitingForPods, Some(ordinal), None),
        }
    }
    // The lowest ordinal leads where people expect it; when it does not come, the first that waited long enough does.
    let leader = voters.iter().find(|voter| {
        voter.ordinal == Ordinal(0) || voter.server.uptime >= limits::FIRST_PRIMARY_PATIENCE_SECONDS
    });
    match leader {
        Some(voter) => Verdict::Leads(voter.ordinal, Reason::FirstPrimary),
        None => Verdict::Wait(
            Reason::WaitingForPods,
            None,
            (!voters.is_empty()).then(|| now.after(limits::RECHECK)),
        ),
    }
}

/// Never started, on a volume that is new.
fn never_held_data(spec: &SpecFacts, pod: &PodFacts) -> bool {
    let started = match pod.object {
        Known::Absent => false,
        Known::Seen(object) => !matches!(object.value.container, Container::Waiting),
        Known::Maybe { .. } => true,
    };
    let fresh_volume = match pod.claim {
        Known::Absent => true,
        Known::Seen(claim) => claim.value.younger_than_cluster,
        Known::Maybe { .. } => false,
    };
    !started && (fresh_volume || !spec.persistence.claims)
}

/// The next primary after the recorded one ended or restarted, which was at `fault` at the latest, if that is known. `why`
/// is the reason of a promotion of a replica.
pub fn next(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    why: Reason,
    fault: Option<Tick>,
    now: Tick,
) -> Verdict {
    let late = fault.and_then(|fault| unanswered(spec, seen, record.pod, fault, now));
    if late.is_some() {
        let wake = now.after(limits::ANSWERS);
        return Verdict::Wait(Reason::WaitingForAnswers, late, Some(wake));
    }
    let voters = voters(seen, now);
    if voters.iter().any(Voter::holds_copy) {
        return among_copies(spec, seen, record, &voters, why, now);
    }
    after_full_restart(spec, seen, record, &voters, now)
}

/// The pod of an order that counts: given for the epoch that is recorded, and for a pod that can lead.
pub fn ordered(spec: &SpecFacts, seen: &Observation, now: Tick) -> Option<Ordinal> {
    let order = spec.promote?;
    let epoch = seen.record.map_or(Epoch(0), |record| record.epoch);
    let fit = voters(seen, now).iter().any(|voter| {
        let syncing = matches!(voter.server.role, Role::Replica { syncing: true, .. });
        voter.ordinal == order.pod && !voter.server.loading && !syncing
    });
    (order.epoch == epoch && fit).then_some(order.pod)
}

/// Replicas that never stopped hold complete copies: the one with the most data leads.
fn among_copies(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    voters: &Voters,
    why: Reason,
    now: Tick,
) -> Verdict {
    let Some(history) = common_history(record, voters) else {
        let copy = voters.iter().find(|voter| voter.holds_copy());
        return Verdict::Refuse(Reason::HistoriesDiffer, copy.map(|c| c.ordinal));
    };
    let best = voters
        .iter()
        .filter(|voter| voter.holds_data() && voter.is_of(history))
        .max_by_key(|voter| {
            (
                voter.server.offset,
                voter.holds_copy(),
                // Of equals, one that is about to go would only have to be replaced again.
                !voter.terminating,
                core::cmp::Reverse(voter.ordinal),
            )
        });
    let Some(best) = best else {
        return Verdict::Refuse(Reason::NoCompleteCopy, None);
    };
    // A server that takes writes of this history, or of what comes after it, holds more than any copy.
    let ahead = voters.iter().find(|voter| {
        let further = voter.is_of(history) && voter.server.offset > best.server.offset;
        voter.server.serves_writes() && (further || voter.continues(Some(history)))
    });
    if let Some(ahead) = ahead {
        return Verdict::Refuse(Reason::HistoriesDiffer, Some(ahead.ordinal));
    }
    match newer_data_of_primary(spec, seen, record, best, now) {
        Some(verdict) => verdict,
        None => Verdict::Leads(best.ordinal, why),
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
    best: &Voter,
    now: Tick,
) -> Option<Verdict> {
    if spec.profile != Profile::Durable || !spec.persistence.survives_restart() {
        return None;
    }
    let lacks_all = record.history().is_some() && rank(record, best) == 0;
    // A snapshot may be hours old; what it holds of the same history is compared by offset like any copy.
    if !lacks_all && !spec.persistence.aof {
        return None;
    }
    let returned = seen
        .pod(record.pod)?
        .server
        .value()
        .filter(|s| s.port == Port::Fence && is_recorded_data(spec, seen, record, s.pod_uid));
    if let Some(server) = returned.filter(|server| !server.loading) {
        // Of the same history, so that its offset says what it holds: it stood for election like any copy.
        if best.is_of(server.replid) || server.keys == 0 {
            return None;
        }
        // A snapshot of a time before the promotion: what came after it is gone, and nothing newer is to come.
        if !spec.persistence.aof && record.replid != Some(server.replid) {
            return None;
        }
        let answers = seen.server(record.pod, now, limits::DESTRUCTIVE_AGE);
        if answers.is_some_and(|fresh| fresh.run == server.run) {
            return Some(Verdict::Leads(record.pod, Reason::PrimaryReturned));
        }
    }
    // What it acknowledged after its last answer nobody knows; an operator that never saw it alive knows nothing at all.
    let ahead = seen
        .primary_offset
        .map_or(returned.is_some(), |offset| offset > best.server.offset);
    if !ahead && !lacks_all {
        return None;
    }
    let bound = seen
        .primary_down_since
        .unwrap_or(now)
        .after(limits::RETURN_OF_DURABLE);
    if now < bound {
        let pod = Some(record.pod);
        return Some(Verdict::Wait(Reason::WaitingForNewerData, pod, Some(bound)));
    }
    lacks_all.then_some(Verdict::Refuse(Reason::OnlyOlderData, Some(best.ordinal)))
}

/// Every server restarted: the record decides, unless another one shows a longer part of the same history.
fn after_full_restart(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    voters: &Voters,
    now: Tick,
) -> Verdict {
    if let Some(loading) = voters.iter().find(|voter| voter.server.loading) {
        return Verdict::Wait(Reason::WaitingForLoad, Some(loading.ordinal), None);
    }
    if let Some(other) = voters
        .iter()
        .find(|v| v.ordinal != record.pod && v.server.serves_writes())
    {
        return Verdict::Refuse(Reason::HistoriesDiffer, Some(other.ordinal));
    }
    if voters.iter().any(|voter| voter.server.is_fed()) {
        let wake = now.after(limits::RECHECK);
        return Verdict::Wait(Reason::UnseenPrimaryLives, Some(record.pod), Some(wake));
    }
    let fullest = voters.iter().find(|voter| voter.server.keys > 0);
    let holder = voters
        .iter()
        .find(|voter| voter.ordinal == record.pod && voter.is_loaded());
    let Some(holder) = holder else {
        let bound = seen
            .primary_down_since
            .unwrap_or(now)
            .after(limits::RETURN_OF_OTHERS);
        return match fullest {
            Some(other) if now >= bound => {
                Verdict::Refuse(Reason::RecordedDataGone, Some(other.ordinal))
            }
            _ => Verdict::Wait(
                Reason::WaitingForPrimaryPod,
                Some(record.pod),
                (now < bound).then_some(bound),
            ),
        };
    };
    let unseen = Unseen::of(spec, seen, voters);
    if holder.server.keys > 0 && is_recorded_data(spec, seen, record, holder.server.pod_uid) {
        return holder_or_longer(spec, record, voters, holder, unseen, now);
    }
    match (fullest, unseen) {
        (Some(other), _) => Verdict::Refuse(Reason::RecordedDataGone, Some(other.ordinal)),
        (None, Unseen::Nobody) => Verdict::Leads(record.pod, Reason::PrimaryReturned),
        (None, Unseen::Running(pod) | Unseen::Away(pod)) => {
            Verdict::Wait(Reason::WaitingForPods, Some(pod), None)
        }
    }
}

/// A member that did not answer lately.
#[derive(Clone, Copy)]
enum Unseen {
    Nobody,
    /// It runs, or may run: it may hold everything in memory.
    Running(Ordinal),
    /// It does not run: it holds at most what its volume holds.
    Away(Ordinal),
}

impl Unseen {
    fn of(spec: &SpecFacts, seen: &Observation, voters: &Voters) -> Self {
        let mut found = Self::Nobody;
        for (ordinal, pod) in seen.members(spec) {
            if voters.iter().any(|voter| voter.ordinal == ordinal) {
                continue;
            }
            let runs = match pod.object {
                Known::Absent => false,
                Known::Seen(object) => matches!(object.value.container, Container::Running { .. }),
                Known::Maybe { .. } => true,
            };
            if runs {
                return Self::Running(ordinal);
            }
            found = Self::Away(ordinal);
        }
        found
    }
}

/// Whether what the pod loaded is what the recorded primary had written: the same pod, or its claim.
fn is_recorded_data(spec: &SpecFacts, seen: &Observation, record: &Record, pod: PodUid) -> bool {
    if pod == record.pod_uid {
        return true;
    }
    let claim = seen
        .pod(record.pod)
        .and_then(|pod| pod.claim.value())
        .map(|claim| claim.uid);
    spec.persistence.claims && claim.is_some() && claim == record.claim_uid
}

fn holder_or_longer(
    spec: &SpecFacts,
    record: &Record,
    voters: &Voters,
    holder: &Voter,
    unseen: Unseen,
    now: Tick,
) -> Verdict {
    let waited = u64::from(holder.server.uptime).saturating_mul(1000) >= limits::RETURN_OF_OTHERS.0;
    match unseen {
        Unseen::Running(pod) | Unseen::Away(pod) if !waited => {
            return Verdict::Wait(
                Reason::WaitingForOthers,
                Some(pod),
                Some(now.after(limits::RECHECK)),
            );
        }
        // The append-only file of the holder has everything; its snapshot may be older than what others keep in memory.
        Unseen::Running(pod) if !spec.persistence.aof => {
            return Verdict::Refuse(Reason::UnseenCopy, Some(pod));
        }
        _ => {}
    }
    // Snapshots are taken by each server on its own schedule: that of another one may reach further, into the history
    // that the record names, or that continued the holder's, while the holder's is still of the one before.
    let reach = |voter: &Voter| {
        let continued = voter.continues(Some(holder.server.replid));
        (rank(record, voter), continued, voter.server.offset)
    };
    let is_later = |voter: &&Voter| {
        let same = voter.is_of(holder.server.replid);
        let beyond = rank(record, voter) > rank(record, holder)
            || voter.continues(Some(holder.server.replid));
        let further = same && voter.server.offset > holder.server.offset;
        voter.holds_data() && (further || (!same && beyond && !spec.persistence.aof))
    };
    match voters.iter().filter(is_later).max_by_key(|v| reach(v)) {
        Some(voter) => Verdict::Leads(voter.ordinal, Reason::LongerHistoryLeads),
        None => Verdict::Leads(record.pod, Reason::PrimaryReturned),
    }
}

/// How far into the record a server's history reaches: 2, into what its promotion began; 1, into what that continued; 0,
/// no part of either.
fn rank(record: &Record, voter: &Voter) -> u8 {
    match record.replid {
        Some(history) if voter.is_of(history) => 2,
        Some(_) => 0,
        None if voter.continues(record.continues) => 2,
        None => u8::from(record.continues.is_some_and(|h| voter.is_of(h))),
    }
}
