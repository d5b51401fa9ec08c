//! Every server restarted: the record decides, unless another one shows a longer part of the same history.

use crate::facts::{Container, Known, Observation, Ordinal, PodFacts, Record, SpecFacts, Tick};
use crate::limits;
use crate::reasons::Reason;

use super::truth::{is_data_of, rank};
use super::{Verdict, Voter, Voters};
use crate::plan::silence::has_ended;

/// The pod that leads by what it loaded.
pub fn holder(
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
    if let Some(verdict) = last_served(spec, seen, record, voters, now) {
        return verdict;
    }
    let holder = voters
        .iter()
        .find(|voter| voter.ordinal == record.pod && voter.is_loaded());
    // What began by itself, and what was copied from it, is nobody's data.
    let unvouched = holder.filter(|holder| holder.unvouched);
    let is_full = |voter: &&Voter| {
        let of_that = unvouched.is_some_and(|it| voter.server.replid == it.server.replid);
        voter.server.keys > 0 && !of_that
    };
    let fullest = voters.iter().find(is_full);
    let Some(holder) = holder else {
        let bound = bound(seen, now);
        let asked = spec.pods.max(seen.objects.replicas_applied);
        let stays_away = record.pod.0 >= asked && seen.is_gone(record.pod, record.pod_uid);
        return match fullest {
            _ if stays_away && now >= bound => {
                Verdict::Refuse(Reason::PrimaryScaledAway, Some(record.pod))
            }
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
    let own = record.own();
    let counts = holder.server.keys > 0 && !holder.unvouched;
    if counts && is_data_of(&own, spec, seen, holder.server.pod_uid) {
        return holder_or_longer(spec, record, voters, holder, unseen, now);
    }
    match (fullest, unseen) {
        (Some(other), _) => Verdict::Refuse(Reason::RecordedDataGone, Some(other.ordinal)),
        (None, Unseen::Nobody) => Verdict::Leads(record.pod, Reason::PrimaryReturned),
        (None, Unseen::Away(_)) if nothing_is_left(spec, seen, voters) => {
            Verdict::Leads(record.pod, Reason::PrimaryReturned)
        }
        (None, Unseen::Running(pod) | Unseen::Away(pod)) => {
            let bound = bound(seen, now);
            if now >= bound {
                return Verdict::Refuse(Reason::UnseenCopy, Some(pod));
            }
            Verdict::Wait(Reason::WaitingForPods, Some(pod), Some(bound))
        }
    }
}

/// Where nothing is kept, what has never started or has ended holds nothing.
fn nothing_is_left(spec: &SpecFacts, seen: &Observation, voters: &Voters) -> bool {
    let started = |pod: &PodFacts| {
        let object = pod.object.value();
        object.is_none_or(|object| !matches!(object.container, Container::Waiting))
    };
    let mut away = seen
        .members(spec)
        .filter(|(ordinal, _)| voters.iter().all(|voter| voter.ordinal != *ordinal));
    !spec.persistence.survives_restart() && away.all(|(_, pod)| !started(pod) || has_ended(pod))
}

fn bound(seen: &Observation, now: Tick) -> Tick {
    seen.primary_down_since
        .unwrap_or(now)
        .after(limits::RETURN_OF_OTHERS)
}

/// Where a promotion was not seen through and its winner restarted: what the primary before it had written counts, if it comes
/// back with that in time.
fn last_served(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    voters: &Voters,
    now: Tick,
) -> Option<Verdict> {
    let served = record.served.filter(|_| record.replid.is_none())?;
    let bound = bound(seen, now);
    let Some(holder) = voters
        .iter()
        .find(|voter| voter.ordinal == served.pod && voter.is_loaded())
    else {
        return (now < bound).then_some(Verdict::Wait(
            Reason::WaitingForPrimaryPod,
            Some(served.pod),
            Some(bound),
        ));
    };
    let nothing = holder.server.keys == 0 || holder.unvouched;
    if nothing || !is_data_of(&served, spec, seen, holder.server.pod_uid) {
        return None;
    }
    let unseen = Unseen::of(spec, seen, voters);
    Some(holder_or_longer(spec, record, voters, holder, unseen, now))
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
    // A snapshot of the data with which the recorded primary was chosen is later than one of a time before that.
    let part = |voter: &Voter| {
        let chosen = record.continues.is_some_and(|history| voter.is_of(history));
        (rank(record, voter), chosen)
    };
    let reach = |voter: &Voter| {
        let continued = voter.continues(Some(holder.server.replid));
        (part(voter), continued, voter.server.offset)
    };
    let is_later = |voter: &&Voter| {
        let same = voter.is_of(holder.server.replid);
        let beyond = part(voter) > part(holder) || voter.continues(Some(holder.server.replid));
        let further = same && voter.server.offset > holder.server.offset;
        voter.holds_data() && (further || (!same && beyond && !spec.persistence.aof))
    };
    match voters.iter().filter(is_later).max_by_key(|v| reach(v)) {
        Some(voter) => Verdict::Leads(voter.ordinal, Reason::LongerHistoryLeads),
        None => Verdict::Leads(holder.ordinal, Reason::PrimaryReturned),
    }
}
