//! Who leads when the recorded primary does not serve. One file per question:
//!
//! * [`first`]: there never was a primary;
//! * [`copies`]: some server was in sync since it started;
//! * [`restart`]: every server restarted;
//! * [`truth`]: whose data, and which history, counts.
//!
//! Data decides, and data is compared only within one history (equal replication ids). What cannot be compared is not
//! guessed: the decision refuses and names the way out.

mod copies;
mod first;
mod restart;
mod truth;

use smallvec::SmallVec;
use wellcake_crds::v1beta1::Profile;

use crate::facts::{
    Epoch, OVERFLOW, Observation, Ordinal, Port, Record, Replid, Role, ServerFacts, SpecFacts, Tick,
};
use crate::limits;
use crate::reasons::Reason;

use super::adoption;
use super::death::unanswered;

pub use first::first;

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
    /// Whether nobody can tell that any of its data is recorded data.
    unvouched: bool,
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

fn voters(spec: &SpecFacts, seen: &Observation, now: Tick) -> Voters {
    seen.ordinals()
        .filter_map(|(ordinal, pod)| {
            let object = pod.object.value()?;
            let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE)?;
            let loaded = adoption::as_loaded(*server, seen.record.as_ref());
            (server.pod_uid == object.uid).then_some(Voter {
                ordinal,
                terminating: object.terminating,
                server: loaded,
                unvouched: adoption::is_unvouched(&loaded, spec, seen.record.as_ref()),
            })
        })
        .collect()
}

/// When a pod's server ended at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The pod.
    pub pod: Ordinal,
    /// When.
    pub at: Tick,
}

/// The next primary after the recorded one ended or restarted, by the fault `fault`, if its time is known. `why` is the
/// reason of a promotion of a replica.
pub fn next(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    why: Reason,
    fault: Option<Fault>,
    now: Tick,
) -> Verdict {
    let late = fault.and_then(|fault| unanswered(spec, seen, fault.pod, fault.at, now));
    if late.is_some() {
        let wake = now.after(limits::ANSWERS);
        return Verdict::Wait(Reason::WaitingForAnswers, late, Some(wake));
    }
    let voters = voters(spec, seen, now);
    let verdict = if voters.iter().any(Voter::holds_copy) {
        copies::best(spec, seen, record, &voters, why, now)
    } else {
        restart::holder(spec, seen, record, &voters, now)
    };
    missing_in_file(spec, seen, &voters, verdict, now).unwrap_or(verdict)
}

/// Whether a Durable cluster is to be led by a server whose append-only file is that of before it was copied. Killed as a primary
/// it would come back, and lead, with the older data: it waits until its file is written, within the time that the primary
/// before has to come back.
fn missing_in_file(
    spec: &SpecFacts,
    seen: &Observation,
    voters: &Voters,
    verdict: Verdict,
    now: Tick,
) -> Option<Verdict> {
    let Verdict::Leads(pod, _) = verdict else {
        return None;
    };
    let bound = return_bound(seen, now);
    let matters = spec.profile == Profile::Durable && spec.persistence.aof;
    let lacks = |voter: &Voter| voter.ordinal == pod && voter.server.rewriting;
    let waits = matters && now < bound && voters.iter().any(lacks);
    waits.then_some(Verdict::Wait(
        Reason::WaitingForFile,
        Some(pod),
        Some(bound),
    ))
}

/// Until when a primary that is down may come back before somebody else leads.
fn return_bound(seen: &Observation, now: Tick) -> Tick {
    let since = seen.primary_down_since.unwrap_or(now);
    since.after(limits::RETURN_OF_DURABLE)
}

/// The pod of an order that counts: given for the epoch that is recorded, and for a pod that can lead.
pub fn ordered(spec: &SpecFacts, seen: &Observation, now: Tick) -> Option<Ordinal> {
    let order = spec.promote?;
    let epoch = seen.record.map_or(Epoch(0), |record| record.epoch);
    let fit = voters(spec, seen, now).iter().any(|voter| {
        let syncing = matches!(voter.server.role, Role::Replica { syncing: true, .. });
        voter.ordinal == order.pod && !voter.server.loading && !syncing
    });
    (order.epoch == epoch && fit).then_some(order.pod)
}
