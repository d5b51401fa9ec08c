//! Whether the recorded primary serves. Its end is believed only by proof: a deletion timestamp, a readiness that is
//! gone or a time-out prove nothing, since a server in any of these states may still acknowledge writes.

use crate::facts::{
    Container, Fresh, Kept, Known, Link, Observation, Ordinal, PodFacts, Port, Reachability, Role,
    Served, ServerFacts, SpecFacts, Tick, Upstream,
};
use crate::limits;
use crate::reasons::Reason;

use super::adoption;

/// State of a primary: the recorded one, or one that is to hand over to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimaryState {
    /// It takes writes of clients.
    Serving,
    /// It was promoted and waits behind the fence.
    Promoted,
    /// It lives on with its client port open, and is a replica: its promotion was not done, or somebody demoted it.
    NotPromoted,
    /// Its process is another one than the promoted, in the same pod, behind the fence.
    Restarted {
        /// Whether it still loads its data.
        loading: bool,
        /// When the new process answered first.
        since: Tick,
    },
    /// Its process has ended for good or has not come back yet.
    Ended {
        /// What proves it.
        reason: Reason,
        /// When its connection closed, if that was seen.
        since: Option<Tick>,
    },
    /// Neither its life nor its end is proven.
    Silent {
        /// Since when.
        since: Option<Tick>,
        /// Its pod exists no more, so that no Service leads to it, but its process might live.
        gone: bool,
    },
}

/// State of a primary.
pub fn primary_state(
    spec: &SpecFacts,
    seen: &Observation,
    primary: &Served,
    now: Tick,
) -> PrimaryState {
    let Some(pod) = seen.pod(primary.pod) else {
        return PrimaryState::Silent {
            since: seen.primary_down_since,
            gone: false,
        };
    };
    if let Some(server) = seen.server_of(primary.pod, primary.pod_uid, now, limits::DESTRUCTIVE_AGE)
    {
        if adoption::began_by_itself(primary, server) {
            return PrimaryState::Restarted {
                loading: server.loading,
                since: server.run_since,
            };
        }
        return state_of_server(server);
    }
    if let Some(reason) = proof_of_end(spec, seen, primary, pod, now) {
        let since = reach_of(seen, primary, pod).and_then(closed_at);
        return PrimaryState::Ended { reason, since };
    }
    PrimaryState::Silent {
        since: silent_since(seen, pod),
        gone: seen.is_gone(primary.pod, primary.pod_uid),
    }
}

fn state_of_server(server: &ServerFacts) -> PrimaryState {
    match (server.port, server.role) {
        (Port::Client, Role::Primary) => PrimaryState::Serving,
        (Port::Client, Role::Replica { .. }) => PrimaryState::NotPromoted,
        (Port::Fence, Role::Primary) => PrimaryState::Promoted,
        (Port::Fence, Role::Replica { .. }) => PrimaryState::Restarted {
            loading: server.loading,
            since: server.run_since,
        },
    }
}

/// The reason that proves the end, if there is one.
fn proof_of_end(
    spec: &SpecFacts,
    seen: &Observation,
    primary: &Served,
    pod: &PodFacts,
    now: Tick,
) -> Option<Reason> {
    let reach = reach_of(seen, primary, pod);
    let closed = reach.and_then(closed_at);
    let witnesses = Witnesses::count(spec, seen, primary.pod, closed, now);
    let object = pod.object.value().filter(|o| o.uid == primary.pod_uid);
    if object.is_some_and(|object| object.node_out_of_service) && witnesses.linked == 0 {
        return Some(Reason::PrimaryDied);
    }
    // The report may be of an earlier process of the container. Of the one that was promoted the network knows: its
    // connections were closed, or nobody listens at its address any more. A replica with its link up knows better.
    let reported =
        object.is_some_and(|object| matches!(object.container, Container::Terminated { .. }));
    if reported && reach.is_some_and(tells_of_an_end) && witnesses.linked == 0 {
        return Some(Reason::PrimaryDied);
    }
    if reach.is_some_and(is_closed_and_refused) && witnesses.all_lost_it() {
        return Some(Reason::PrimaryDied);
    }
    let gone = seen.is_gone(primary.pod, primary.pod_uid);
    let long = seen
        .primary_down_since
        .is_some_and(|since| now.since(since) >= limits::GONE_SILENCE);
    (gone && long && witnesses.all_lost_it_long_ago()).then_some(Reason::PrimaryGone)
}

/// What the network says of the primary's address.
fn reach_of<'a>(
    seen: &'a Observation,
    primary: &Served,
    pod: &'a PodFacts,
) -> Option<&'a Reachability> {
    let same_pod = pod.object.value().is_some_and(|o| o.uid == primary.pod_uid);
    let reach = if same_pod {
        pod.reach.as_ref()
    } else {
        seen.former_of(primary.pod_uid).map(|former| &former.reach)
    };
    reach.filter(|reach| reach.pod_uid == primary.pod_uid)
}

const fn closed_at(reach: &Reachability) -> Option<Tick> {
    match reach.kept {
        Kept::Closed { at } => Some(at),
        Kept::Never | Kept::Up | Kept::TimedOut { .. } => None,
    }
}

/// Whether the network agrees with a report that a process ended: nobody listens, or the connection was closed and nothing
/// was silent since. A silence after that may be of a later process.
pub const fn tells_of_an_end(reach: &Reachability) -> bool {
    match (reach.kept, reach.fresh) {
        (_, Fresh::Refused { .. }) => true,
        (Kept::Closed { at: closed }, Fresh::TimedOut { at: silent }) => silent.0 < closed.0,
        (Kept::Closed { .. }, Fresh::NotTried) => true,
        _ => false,
    }
}

/// Whether the primary closed its connection and then refused another one.
pub fn is_closed(seen: &Observation, primary: &Served) -> bool {
    seen.pod(primary.pod)
        .and_then(|pod| reach_of(seen, primary, pod))
        .is_some_and(is_closed_and_refused)
}

/// Whether the primary's connection was closed and some server has not answered since then: its word is still to come.
pub fn awaits_witnesses(spec: &SpecFacts, seen: &Observation, primary: &Served, now: Tick) -> bool {
    closed_since(seen, primary)
        .is_some_and(|closed| unanswered(spec, seen, primary.pod, closed, now).is_some())
}

/// When the primary closed its connection.
pub fn closed_since(seen: &Observation, primary: &Served) -> Option<Tick> {
    seen.pod(primary.pod)
        .and_then(|pod| reach_of(seen, primary, pod))
        .and_then(closed_at)
}

/// A server beside the recorded primary whose newest answer is of a time before `fault`.
pub fn unanswered(
    spec: &SpecFacts,
    seen: &Observation,
    primary: Ordinal,
    fault: Tick,
    now: Tick,
) -> Option<Ordinal> {
    seen.members(spec)
        .filter(|(ordinal, _)| *ordinal != primary)
        .find(|(ordinal, pod)| {
            seen.server(*ordinal, now, limits::DESTRUCTIVE_AGE)
                .is_some()
                && !answered_since(pod, Some(fault))
        })
        .map(|(ordinal, _)| ordinal)
}

fn answered_since(pod: &PodFacts, fault: Option<Tick>) -> bool {
    match pod.server {
        Known::Seen(answer) => fault.is_none_or(|fault| answer.at > fault),
        _ => false,
    }
}

/// The kept connection was ended by the other side and a fresh one was refused afterwards.
pub const fn is_closed_and_refused(reach: &Reachability) -> bool {
    match (reach.kept, reach.fresh) {
        (Kept::Closed { at: closed }, Fresh::Refused { at: refused }) => refused.0 >= closed.0,
        _ => false,
    }
}

fn silent_since(seen: &Observation, pod: &PodFacts) -> Option<Tick> {
    seen.primary_down_since.or(match pod.server {
        Known::Maybe { since, .. } => Some(since),
        Known::Seen(stamped) => Some(stamped.at),
        Known::Absent => None,
    })
}

/// What the other pods say of their link to the primary.
struct Witnesses {
    asked: u8,
    dead: u8,
    lost: u8,
    never: u8,
    lost_long: u8,
    linked: u8,
}

/// What one pod says.
enum Word {
    /// Nothing that counts.
    None,
    /// Nothing, and it should.
    Missing,
    /// Its server has ended or just began.
    Dead,
    /// It stepped down and has had no link since.
    NeverLinked,
    /// It lost its link this many seconds ago.
    Lost(u32),
    /// It has its link.
    Linked,
}

impl Witnesses {
    /// Counts what was said since `fault`.
    fn count(
        spec: &SpecFacts,
        seen: &Observation,
        primary: Ordinal,
        fault: Option<Tick>,
        now: Tick,
    ) -> Self {
        let mut count = Self {
            asked: 0,
            dead: 0,
            lost: 0,
            never: 0,
            lost_long: 0,
            linked: 0,
        };
        for (ordinal, pod) in seen
            .members(spec)
            .filter(|(ordinal, _)| *ordinal != primary)
        {
            let server = seen
                .server(ordinal, now, limits::DESTRUCTIVE_AGE)
                .filter(|_| answered_since(pod, fault));
            count.add(&word(pod, server, primary));
        }
        count
    }

    fn add(&mut self, word: &Word) {
        if matches!(word, Word::None) {
            return;
        }
        self.asked = self.asked.saturating_add(1);
        match word {
            Word::Dead => self.dead = self.dead.saturating_add(1),
            Word::Linked => self.linked = self.linked.saturating_add(1),
            Word::NeverLinked => {
                self.lost = self.lost.saturating_add(1);
                self.never = self.never.saturating_add(1);
            }
            Word::Lost(seconds) => {
                self.lost = self.lost.saturating_add(1);
                if *seconds >= limits::GONE_SILENCE_SECONDS {
                    self.lost_long = self.lost_long.saturating_add(1);
                }
            }
            Word::None | Word::Missing => {}
        }
    }

    /// Every replica that is not itself dead, and at least one, lost its link.
    const fn all_lost_it(&self) -> bool {
        self.lost > 0 && self.lost.saturating_add(self.dead) >= self.asked
    }

    /// All that may have a link have been without for as long as is asked: one that is not seen may be on the primary's side.
    /// Whoever ended, just began or stepped down has none; if that is everybody, nobody can tell.
    const fn all_lost_it_long_ago(&self) -> bool {
        let without = self.dead.saturating_add(self.never);
        let may_have = self.asked.saturating_sub(without);
        let told = self.lost_long > 0 || (may_have == 0 && self.never > 0);
        self.linked == 0 && told && self.lost_long >= may_have
    }
}

fn word(pod: &PodFacts, server: Option<&ServerFacts>, primary: Ordinal) -> Word {
    match server {
        // It has not been fed since it started: it is no witness.
        Some(ServerFacts {
            port: Port::Fence,
            role: Role::Replica {
                link: Link::Never, ..
            },
            ..
        }) => Word::Dead,
        Some(ServerFacts {
            role: Role::Primary,
            ..
        }) => Word::None,
        Some(ServerFacts {
            role: Role::Replica { upstream, link, .. },
            ..
        }) => match (upstream, link) {
            // It follows another replica and knows nothing of the primary.
            (Upstream::Pod(other), Link::Up) if *other != primary => Word::None,
            (_, Link::Up) => Word::Linked,
            (_, Link::Down { seconds }) => Word::Lost(*seconds),
            (_, Link::Never) => Word::NeverLinked,
        },
        None if is_not_running(pod) => Word::Dead,
        None => Word::Missing,
    }
}

fn is_not_running(pod: &PodFacts) -> bool {
    pod.object.is_absent()
        || pod
            .object
            .value()
            .is_some_and(|object| !matches!(object.container, Container::Running { .. }))
}
