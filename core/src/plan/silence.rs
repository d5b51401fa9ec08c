//! A primary whose pod exists and that does not answer: a lost node, a black hole, a process that is stopped or waits for its
//! disk. Its end cannot be proven, and it may go on to acknowledge writes where nobody sees it. It is succeeded on evidence:
//!
//! * this operator asks it in vain, and got no word of any kind; an error reply is a word. It did so for all of
//!   [`limits::SILENCE`], or the servers beside the primary have been without it for as long: the marker of the outage may be of an
//!   earlier one, whose end nobody saw;
//! * every server that may have a link to it is seen, and tells that it has none, and one that it has lost it. A server that
//!   is not seen may be on the primary's side;
//! * profile Durable: the primary was seen to take writes only while a replica acknowledges, and none has for so long that it
//!   takes none by now.
//!
//! The other servers are detached from it before anybody is promoted, so that no acknowledgement opens it again.

use wellcake_crds::v1beta1::Profile;

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{
    Container, Fresh, Kept, Known, Link, Observation, Ordinal, PodFacts, PodUid, Port, Record,
    Role, Served, ServerFacts, SpecFacts, Tick, Upstream,
};
use crate::limits;
use crate::reasons::Reason;

use super::death::tells_of_an_end;
use super::election::{self, Verdict};
use super::replication::{any_copy, is_pointed_at, lead, obey, others};

/// Why a primary that is silent is succeeded.
const WHY: Reason = Reason::SilentPrimarySucceeded;

/// What the evidence says.
enum Finding {
    /// Nobody but the primary itself can take it for one.
    Alone,
    /// More of it comes by itself.
    Wait,
    /// It stands against a promotion.
    Refuse(Reason, Ordinal),
}

/// Decides on a primary that has been silent for [`limits::SILENCE`] although its pod exists.
pub fn plan(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    primary: &Served,
    now: Tick,
    decision: &mut Decision,
) {
    // What the replicas tell changes with time alone.
    decision.wake_at(now.after(limits::RECHECK));
    match finding(spec, seen, primary, now) {
        Finding::Alone if any_copy(seen, primary.pod, now) => {
            succeed(spec, seen, record, primary, now, decision);
        }
        Finding::Alone => decision.refuse(Reason::SilentPrimary, Some(primary.pod)),
        Finding::Wait => decision.wait(Reason::PrimarySilent, Some(primary.pod)),
        Finding::Refuse(reason, pod) => decision.refuse(reason, Some(pod)),
    }
}

fn succeed(
    spec: &SpecFacts,
    seen: &Observation,
    record: &Record,
    primary: &Served,
    now: Tick,
    decision: &mut Decision,
) {
    let winner = match election::next(spec, seen, record, WHY, None, now) {
        Verdict::Leads(pod, WHY) => pod,
        Verdict::Leads(..) => return decision.refuse(Reason::SilentPrimary, Some(primary.pod)),
        other => return obey(other, seen, now, decision),
    };
    if spec.profile == Profile::Durable && !holds_all_that_was_seen(seen, primary, winner, now) {
        decision.refuse(Reason::SilentPrimaryIsAhead, Some(primary.pod));
        return;
    }
    let silent = Some((primary.pod, primary.pod_uid));
    let mut promotion = Decision::default();
    lead(winner, WHY, None, seen, now, &mut promotion);
    for effect in &mut promotion.effects {
        effect.guard.silent = silent;
        effect.guard.foremost = true;
        if let Verb::RecordPrimary { record, .. } = &mut effect.verb {
            // It may be alive: until the promotion was seen, it counts while it is a primary, and while it may be.
            record.planned = record.served.is_some();
        }
    }
    // One that was seen a moment ago may hold more: it is asked again first.
    let record_first = promotion.effects.first();
    if record_first.is_none_or(|effect| effect.guard.check(seen, now).is_err()) {
        decision.wait(Reason::PrimarySilent, Some(primary.pod));
        return;
    }
    detach(seen, record, (primary.pod, winner), now, decision);
    decision.effects.extend(promotion.effects);
    for effect in &mut decision.effects {
        if matches!(effect.verb, Verb::Detach { .. }) {
            effect.guard.silent = silent;
        }
    }
}

/// Takes the replicas away from a silent primary, but for the one that is to lead: it leaves by its promotion.
fn detach(
    seen: &Observation,
    record: &Record,
    (primary, winner): (Ordinal, Ordinal),
    now: Tick,
    decision: &mut Decision,
) {
    for (ordinal, uid, server) in others(seen, primary, now) {
        // A loading server refuses REPLICAOF with -LOADING (measured).
        if ordinal == winner || !is_pointed_at(server, primary) || server.loading {
            continue;
        }
        let guard = Guard {
            epoch: Some(record.epoch),
            pod: Some((ordinal, uid)),
            run: Some(server.run),
            replica: Some(true),
            ..Guard::NONE
        };
        decision.act(Verb::Detach { pod: ordinal }, guard, WHY);
    }
}

/// Whether the one that is to lead holds all that the silent primary was seen to hold. Its data is there and may come back.
fn holds_all_that_was_seen(
    seen: &Observation,
    primary: &Served,
    winner: Ordinal,
    now: Tick,
) -> bool {
    let server = seen.server(winner, now, limits::DESTRUCTIVE_AGE);
    let of_its_history = server.filter(|server| primary.replid == Some(server.replid));
    of_its_history
        .zip(seen.primary_offset)
        .is_some_and(|(server, offset)| server.offset >= offset)
}

fn finding(spec: &SpecFacts, seen: &Observation, primary: &Served, now: Tick) -> Finding {
    let silent = Finding::Refuse(Reason::SilentPrimary, primary.pod);
    let Some(pod) = seen.pod(primary.pod) else {
        return silent;
    };
    let least = match asked(pod, primary.pod_uid, now) {
        Asked::InVain => limits::SILENT_LINK_SECONDS,
        Asked::InVainOfLate => limits::SILENCE_SECONDS,
        Asked::NotLongEnough => return Finding::Wait,
        Asked::Answers => return silent,
    };
    let durable = spec.profile == Profile::Durable;
    let stands = Stands::of(spec, seen, primary.pod, now);
    if let Some(linked) = stands.linked {
        return Finding::Refuse(Reason::OnlyOperatorCutOff, linked);
    }
    if stands.unseen || stands.lost.is_none() {
        return silent;
    }
    if durable && (spec.pods < 2 || !was_to_stop(seen, pod, stands.since)) {
        return Finding::Refuse(Reason::SilentPrimaryMayAcknowledge, primary.pod);
    }
    let stops = spec
        .replica_lag
        .saturating_add(limits::REPLICA_LAG_MARGIN_SECONDS);
    let bound = if durable { stops.max(least) } else { least };
    match stands.lost {
        Some(seconds) if seconds.min(stands.detached.unwrap_or(seconds)) >= bound => Finding::Alone,
        _ => Finding::Wait,
    }
}

/// What this operator itself knows of the silence.
enum Asked {
    /// It got no word at all for as long as an outage must last.
    InVain,
    /// It got no word since it began to ask, which is long enough if others tell of the time before.
    InVainOfLate,
    /// Not for long enough yet.
    NotLongEnough,
    /// The server said something, and be it that it cannot answer.
    Answers,
}

/// The marker may be of another leader, and a server that is only asked seldom may answer. The newest attempt to connect
/// decides: one that ended with an error reply is no failure to reach it.
fn asked(pod: &PodFacts, uid: PodUid, now: Tick) -> Asked {
    let Known::Maybe { since, .. } = pod.server else {
        return Asked::Answers;
    };
    let asked = now.since(since);
    if asked < limits::SILENT_ASKING {
        return Asked::NotLongEnough;
    }
    let reach = pod.reach.filter(|reach| reach.pod_uid == uid);
    match reach.map(|reach| reach.fresh) {
        Some(Fresh::Refused { at } | Fresh::TimedOut { at })
            if now.since(at) <= limits::FACT_AGE =>
        {
            if asked >= limits::SILENCE {
                Asked::InVain
            } else {
                Asked::InVainOfLate
            }
        }
        Some(Fresh::Refused { .. } | Fresh::TimedOut { .. }) => Asked::NotLongEnough,
        Some(Fresh::NotTried) | None => Asked::Answers,
    }
}

/// Whether the primary takes writes only while a replica acknowledges, by its own last word. That must be of the time right
/// before the outage, and of a time when a server that tells of the outage was running: another leader may have set it otherwise
/// since, which it does when all others have ended. `since` is when the first of those that tell was started.
fn was_to_stop(seen: &Observation, pod: &PodFacts, since: Option<Tick>) -> bool {
    let Known::Maybe {
        last: Some(last), ..
    } = pod.server
    else {
        return false;
    };
    let to_the_end = seen
        .primary_down_since
        .is_some_and(|down| last.at.after(limits::FACT_AGE) >= down);
    let had_witness = since.is_some_and(|since| since < last.at);
    last.value.needs_replica && to_the_end && had_witness
}

/// What the servers beside a silent primary tell of it.
struct Stands {
    /// One that has a link to it.
    linked: Option<Ordinal>,
    /// Whether one may have a link, and is not seen.
    unseen: bool,
    /// For how many seconds all that follow it, and one at least, have been without a link.
    lost: Option<u32>,
    /// When the first of those was started, at the latest.
    since: Option<Tick>,
    /// For how many seconds those that have none for another reason have been without, as far as it is known.
    detached: Option<u32>,
}

/// What one server tells.
enum Stand {
    /// It has a link, or is about to.
    Linked,
    /// It lost its link this many seconds ago, and would have it again if it could.
    Lost(u32),
    /// It has none for another reason since so many seconds: its last acknowledgement may be as young.
    Detached(u32),
    /// It has none, and tells nothing of the primary.
    Apart,
    /// It has ended, nobody saw when.
    Gone,
    /// It is not seen.
    Unseen,
}

impl Stands {
    fn of(spec: &SpecFacts, seen: &Observation, primary: Ordinal, now: Tick) -> Self {
        let mut all = Self {
            linked: None,
            unseen: false,
            lost: None,
            since: None,
            detached: None,
        };
        let beside = seen.members(spec).filter(|(n, _)| *n != primary);
        for (ordinal, pod) in beside {
            let server = seen.server(ordinal, now, limits::DESTRUCTIVE_AGE);
            match stand(pod, server, primary, now) {
                // When it acknowledged last, nobody knows.
                Stand::Gone if spec.profile == Profile::Durable => all.unseen = true,
                Stand::Linked => all.linked = all.linked.or(Some(ordinal)),
                Stand::Lost(seconds) => {
                    all.lost = least(all.lost, seconds);
                    // `uptime_in_seconds` is a difference of whole seconds: it may be up to one too much.
                    let up = server.map_or(0, |server| server.uptime.saturating_sub(1));
                    let start = Tick(now.0.saturating_sub(u64::from(up).saturating_mul(1000)));
                    all.since = Some(all.since.map_or(start, |first| first.min(start)));
                }
                Stand::Detached(seconds) => all.detached = least(all.detached, seconds),
                Stand::Unseen => all.unseen = true,
                Stand::Gone | Stand::Apart => {}
            }
        }
        all
    }
}

fn least(so_far: Option<u32>, seconds: u32) -> Option<u32> {
    Some(so_far.map_or(seconds, |least| least.min(seconds)))
}

fn stand(pod: &PodFacts, server: Option<&ServerFacts>, primary: Ordinal, now: Tick) -> Stand {
    let ago = |at| u32::try_from(now.since(at).0 / 1000).unwrap_or(u32::MAX);
    let Some(server) = server else {
        return match pod.reach.map(|reach| reach.kept) {
            _ if !has_ended(pod) => Stand::Unseen,
            Some(Kept::Closed { at }) => Stand::Detached(ago(at)),
            _ => Stand::Gone,
        };
    };
    match server.role {
        Role::Replica {
            upstream: Upstream::Pod(of),
            link,
            syncing,
        } if of == primary => match link {
            Link::Up => Stand::Linked,
            _ if syncing => Stand::Linked,
            Link::Down { seconds } => Stand::Lost(seconds),
            Link::Never if server.port == Port::Fence => Stand::Detached(ago(server.run_since)),
            Link::Never => Stand::Apart,
        },
        Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Down { seconds },
            ..
        } => Stand::Detached(seconds),
        // It restarted, and its process before may have acknowledged to the end.
        _ if server.port == Port::Fence => Stand::Detached(ago(server.run_since)),
        _ => Stand::Apart,
    }
}

/// Whether a server that is not seen has ended: its pod is gone, a person said so of its node, or the kubelet says so and the
/// network does not contradict. The kubelet's word alone may be of an earlier process.
pub fn has_ended(pod: &PodFacts) -> bool {
    if pod.object.is_absent() {
        return true;
    }
    let Some(object) = pod.object.value() else {
        return false;
    };
    let reach = pod.reach.filter(|reach| reach.pod_uid == object.uid);
    let ended = !matches!(object.container, Container::Running { .. });
    object.node_out_of_service || (ended && reach.as_ref().is_none_or(tells_of_an_end))
}
