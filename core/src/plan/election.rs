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

/// Outcome of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This pod leads.
    Leads(Ordinal, Reason),
    /// This pod leads because a person ordered it.
    LeadsByOrder(Ordinal),
    /// Nobody yet; it will come by itself, at the latest at the given time.
    Wait(Reason, Option<Ordinal>, Option<Tick>),
    /// Nobody, until a person says who.
    Refuse(Reason, Option<Ordinal>),
}

/// A server that answered lately, with its pod.
#[derive(Clone, Copy)]
struct Voter {
    ordinal: Ordinal,
    uid: PodUid,
    server: ServerFacts,
}

impl Voter {
    /// In memory since it was in sync: it was verified before its client port was opened, and has run ever since.
    const fn holds_copy(&self) -> bool {
        matches!(self.server.port, Port::Client) && self.server.is_synced_replica()
    }

    /// Restarted, and through with loading.
    const fn is_loaded(&self) -> bool {
        matches!(self.server.port, Port::Fence)
            && !self.server.loading
            && matches!(self.server.role, Role::Replica { syncing: false, .. })
    }

    fn is_of(&self, history: Replid) -> bool {
        self.server.replid == history && history.0 != OVERFLOW
    }
}

type Voters = SmallVec<[Voter; 8]>;

fn voters(seen: &Observation, now: Tick) -> Voters {
    seen.ordinals()
        .filter_map(|(ordinal, pod)| {
            let uid = pod.object.value()?.uid;
            let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE)?;
            (server.pod_uid == uid).then_some(Voter {
                ordinal,
                uid,
                server: *server,
            })
        })
        .collect()
}

/// The first primary of a cluster that never had one: every pod must be proven to hold nothing.
pub fn first(spec: &SpecFacts, seen: &Observation, now: Tick) -> Verdict {
    let voters = voters(seen, now);
    if let Some(verdict) = by_order(spec, Epoch(0), &voters) {
        return verdict;
    }
    if let Some(full) = voters.iter().find(|voter| voter.server.keys > 0) {
        return Verdict::Refuse(Reason::DataWithoutRecord, Some(full.ordinal));
    }
    for (ordinal, pod) in seen.ordinals().take(usize::from(spec.pods)) {
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

/// The next primary after the recorded one ended or restarted. `why` is the reason of a promotion of a replica.
pub fn next(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    why: Reason,
    now: Tick,
) -> Verdict {
    let voters = voters(seen, now);
    if let Some(verdict) = by_order(spec, record.epoch, &voters) {
        return verdict;
    }
    if voters.iter().any(Voter::holds_copy) {
        return among_copies(spec, seen, record, &voters, why, now);
    }
    after_full_restart(spec, seen, record, &voters, now)
}

/// An order counts for the epoch that the person looked at and for a pod that can lead.
fn by_order(spec: &SpecFacts, epoch: Epoch, voters: &Voters) -> Option<Verdict> {
    let order = spec.promote?;
    let fit = voters
        .iter()
        .any(|voter| voter.ordinal == order.pod && !voter.server.loading);
    Some(if order.epoch == epoch && fit {
        Verdict::LeadsByOrder(order.pod)
    } else {
        Verdict::Refuse(Reason::OrderNotValid, Some(order.pod))
    })
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
    let copies: Voters = voters
        .iter()
        .filter(|voter| voter.holds_copy())
        .copied()
        .collect();
    let Some(history) = common_history(record, &copies) else {
        return Verdict::Refuse(Reason::HistoriesDiffer, copies.first().map(|c| c.ordinal));
    };
    let best = voters
        .iter()
        .filter(|voter| (voter.holds_copy() || voter.is_loaded()) && voter.is_of(history))
        .max_by_key(|voter| {
            (
                voter.server.offset,
                voter.holds_copy(),
                core::cmp::Reverse(voter.ordinal),
            )
        });
    let Some(best) = best else {
        return Verdict::Refuse(Reason::NoCompleteCopy, None);
    };
    match newer_data_of_primary(spec, seen, record, best, now) {
        Some(verdict) => verdict,
        None => Verdict::Leads(best.ordinal, why),
    }
}

/// The history that the copies share, or the recorded one if they differ.
fn common_history(record: &Record, copies: &Voters) -> Option<Replid> {
    let first = copies.first()?.server.replid;
    if copies.iter().all(|copy| copy.is_of(first)) {
        return Some(first);
    }
    record
        .replid
        .filter(|history| copies.iter().any(|copy| copy.is_of(*history)))
}

/// A Durable primary that was known to be ahead of every copy may come back with its data, within a bound.
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
    let pod = seen.pod(record.pod)?;
    let returned = pod
        .server
        .value()
        .filter(|s| s.pod_uid == record.pod_uid && s.port == Port::Fence);
    let ahead = seen
        .primary_offset
        .is_some_and(|offset| offset > best.server.offset);
    let bound = seen
        .primary_down_since
        .unwrap_or(now)
        .after(limits::RETURN_OF_DURABLE);
    if !ahead || now >= bound {
        return None;
    }
    match returned {
        Some(server) if !server.loading && server.keys > 0 => {
            Some(Verdict::Leads(record.pod, Reason::PrimaryReturned))
        }
        Some(server) if !server.loading => None,
        _ => Some(Verdict::Wait(
            Reason::WaitingForNewerData,
            Some(record.pod),
            Some(bound),
        )),
    }
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
    let all_seen = (0..spec.pods).all(|n| voters.iter().any(|voter| voter.ordinal == Ordinal(n)));
    let holder = voters
        .iter()
        .find(|voter| voter.ordinal == record.pod && voter.is_loaded());
    let Some(holder) = holder else {
        return Verdict::Wait(Reason::WaitingForPrimaryPod, Some(record.pod), None);
    };
    let fullest = voters.iter().find(|voter| voter.server.keys > 0);
    if holder.server.keys > 0 && is_recorded_data(spec, seen, record, holder) {
        return holder_or_longer(record, voters, holder, all_seen, now);
    }
    match fullest {
        Some(other) => Verdict::Refuse(Reason::RecordedDataGone, Some(other.ordinal)),
        None if all_seen || spec.pods == 1 => Verdict::Leads(record.pod, Reason::PrimaryReturned),
        None => Verdict::Wait(Reason::WaitingForPods, None, None),
    }
}

/// Whether what the pod loaded is what the recorded primary had written: the same pod, or its claim.
fn is_recorded_data(spec: &SpecFacts, seen: &Observation, record: &Record, holder: &Voter) -> bool {
    if holder.uid == record.pod_uid {
        return true;
    }
    let claim = seen
        .pod(record.pod)
        .and_then(|pod| pod.claim.value())
        .map(|claim| claim.uid);
    spec.persistence.claims && claim.is_some() && claim == record.claim_uid
}

fn holder_or_longer(
    record: &Record,
    voters: &Voters,
    holder: &Voter,
    all_seen: bool,
    now: Tick,
) -> Verdict {
    let longer = voters
        .iter()
        .filter(|voter| voter.is_loaded() && voter.is_of(holder.server.replid))
        .filter(|voter| voter.server.offset > holder.server.offset)
        .max_by_key(|voter| voter.server.offset);
    let waited = u64::from(holder.server.uptime).saturating_mul(1000) >= limits::RETURN_OF_OTHERS.0;
    match longer {
        _ if !all_seen && !waited => Verdict::Wait(
            Reason::WaitingForOthers,
            None,
            Some(now.after(limits::RECHECK)),
        ),
        Some(voter) => Verdict::Leads(voter.ordinal, Reason::LongerHistoryLeads),
        None => Verdict::Leads(record.pod, Reason::PrimaryReturned),
    }
}
