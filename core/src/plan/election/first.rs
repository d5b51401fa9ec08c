//! The first primary.

use crate::facts::{Container, Known, Observation, Ordinal, PodFacts, SpecFacts, Tick};
use crate::limits;
use crate::reasons::Reason;

use super::{Verdict, voters};

/// The first primary of a cluster that never had one: every pod must be proven to hold nothing.
pub fn first(spec: &SpecFacts, seen: &Observation, now: Tick) -> Verdict {
    let voters = voters(spec, seen, now);
    if let Some(full) = voters.iter().find(|voter| voter.server.keys > 0) {
        let named = last_recorded(seen).unwrap_or(full.ordinal);
        return Verdict::Refuse(Reason::DataWithoutRecord, Some(named));
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

/// The pod that the newest record on a claim names, if it still has that claim.
fn last_recorded(seen: &Observation) -> Option<Ordinal> {
    let kept = seen.kept_record?;
    let claim = seen.pod(kept.pod)?.claim.value()?;
    (Some(claim.uid) == kept.claim_uid).then_some(kept.pod)
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
