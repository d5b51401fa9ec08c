//! What the demotion of a second primary throws away.
//!
//! A primary that was succeeded while it was silent goes on to take writes where clients reach it. When it is back it is made
//! a replica at once, and what it holds beyond the history that it shares with the present primary is gone with that.
//!
//! Counted are bytes of the replication stream, as the second primary told its offset last: what arrives between that answer
//! and its demotion is not in them. Not all of them need be writes of clients. A primary that has replicas, all of them
//! together, is 14 bytes further every 10 s (`PING`, `repl-ping-replica-period`), also while they are frozen, until `repl-timeout`
//! has passed (15 s in our pods); without one it sends none (measured, 8.0: six in 60 s with a `repl-timeout` of 60, none in the
//! 50 s after that). What it deletes by itself, since it expired or to free memory, is in the stream, too.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use smallvec::SmallVec;
use wellcake_crds::v1beta1::{LastDiscarded, ValkeyClusterStatus};

use crate::effects::{Decision, Verb};
use crate::facts::{
    Epoch, OVERFLOW, Observation, Offset, Ordinal, Replid, Role, ServerFacts, Tick,
};
use crate::limits;
use crate::reasons::Reason;

/// What is thrown away with one history of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The pod of the second primary.
    pub pod: Ordinal,
    /// The history that it writes.
    pub replid: Replid,
    /// Epoch of the record under which it is demoted.
    pub epoch: Epoch,
    /// Bytes of the replication stream that the primary does not hold; `None` if the two are not known to share a history.
    pub bytes: Option<u64>,
}

/// At most one for each pod.
pub type AllDiscarded = SmallVec<[Discarded; 2]>;

/// What the demotions of a decision throw away.
pub fn by(decision: &Decision, seen: &Observation, now: Tick) -> AllDiscarded {
    let Some(record) = seen.record else {
        return AllDiscarded::new();
    };
    let server = |pod| seen.server(pod, now, limits::DESTRUCTIVE_AGE);
    let demoted = decision
        .effects
        .iter()
        .filter_map(|effect| match effect.verb {
            Verb::Follow { pod, primary } if effect.reason == Reason::SecondPrimaryDemoted => {
                Some((pod, server(pod)?, server(primary)))
            }
            _ => None,
        });
    demoted
        .map(|(pod, second, primary)| Discarded {
            pod,
            replid: second.replid,
            epoch: record.epoch,
            bytes: primary.and_then(|primary| bytes(second, primary)),
        })
        .collect()
}

/// Bytes of the stream of `second` that `primary` does not hold, both being primaries.
///
/// A promotion keeps the history before it as `master_replid2` up to the offset of the promotion, and offsets go on, so that
/// those of both count from the point where they parted. `None` if neither continues the other and both do not continue the same:
/// after two promotions, after a restart without the history before, or once a primary was alone for `repl-backlog-ttl`, which
/// begins a history of its own (`replication.c: replicationCron`).
pub fn bytes(second: &ServerFacts, primary: &ServerFacts) -> Option<u64> {
    if second.role != Role::Primary || primary.role != Role::Primary {
        return None;
    }
    let until = shared_until(second, primary)?;
    Some(second.offset.0.saturating_sub(until.0))
}

/// Up to where the two hold the same.
fn shared_until(one: &ServerFacts, other: &ServerFacts) -> Option<Offset> {
    let continues = |of: &ServerFacts, replid: Replid| {
        let same = of.replid2 == Some(replid) && replid.0 != OVERFLOW;
        same.then_some(of.replid2_until)
    };
    let siblings = || {
        let both = one.replid2.and_then(|replid| continues(other, replid))?;
        Some(both.min(one.replid2_until))
    };
    continues(other, one.replid)
        .or_else(|| continues(one, other.replid))
        .or_else(siblings)
}

/// A sentence for the event that tells the demotion.
pub fn sentence(of: Discarded) -> String {
    match of.bytes {
        Some(0) => "It held nothing that the primary does not hold.".to_owned(),
        Some(bytes) => format!(
            "It held {bytes} bytes of the replication stream that the primary does not hold: they are lost."
        ),
        None => {
            "The two share no history that is known: how much it held that the primary does not hold is not known."
                .to_owned()
        }
    }
}

/// What was found since this process began to lead, and how much of it a status tells.
///
/// A history counts as what most of it was seen to be, however often its demotion is tried. It is noted before the demotion and
/// written beside it, since the demotion waits for nothing. An operator that ends in between leaves a server that is a primary
/// still, and its successor finds in the status what was counted; or one that was demoted, of which the status tells nothing.
#[derive(Clone, Debug, Default)]
pub struct Ledger(SmallVec<[Entry; 2]>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    found: Discarded,
    told: u64,
}

impl Entry {
    fn bytes(&self) -> u64 {
        self.found.bytes.unwrap_or(0)
    }
}

impl Ledger {
    /// Notes what a decision throws away. Gives the bytes that were not known before.
    pub fn note(&mut self, found: &[Discarded]) -> u64 {
        let mut more = 0u64;
        for found in found {
            let bytes = found.bytes.unwrap_or(0);
            if bytes == 0 {
                continue;
            }
            let known = self.0.iter().position(|entry| is_same(&entry.found, found));
            let known = known.and_then(|at| self.0.get_mut(at));
            let Some(entry) = known else {
                // What is told of the same pod's earlier histories is of no use any more.
                self.0
                    .retain(|entry| entry.found.pod != found.pod || entry.told < entry.bytes());
                self.0.push(Entry {
                    found: *found,
                    told: 0,
                });
                more = more.saturating_add(bytes);
                continue;
            };
            more = more.saturating_add(bytes.saturating_sub(entry.bytes()));
            if bytes > entry.bytes() {
                entry.found = *found;
            }
        }
        more
    }

    /// One that no status tells in full, and how many bytes of it are told.
    pub fn untold(&self) -> Option<(Discarded, u64)> {
        let entry = self.0.iter().find(|entry| entry.told < entry.bytes())?;
        Some((entry.found, entry.told))
    }

    /// A status tells it.
    pub fn told(&mut self, of: &Discarded) {
        let entry = self.0.iter_mut().find(|entry| is_same(&entry.found, of));
        if let Some(entry) = entry {
            entry.told = entry.told.max(of.bytes.unwrap_or(0));
        }
    }
}

fn is_same(one: &Discarded, other: &Discarded) -> bool {
    (one.pod, one.replid) == (other.pod, other.replid)
}

/// Adds to a status what it does not tell yet of one history, of which `told` bytes are in its sum.
pub fn add(
    status: &mut ValkeyClusterStatus,
    (of, told): (Discarded, u64),
    pod: &str,
    replid: &str,
    now: Time,
) {
    let last = status.last_discarded.as_ref();
    let last = last.filter(|last| last.pod == pod && last.replid == replid);
    let told = last.map_or(told, |last| {
        u64::try_from(last.bytes).unwrap_or(0).max(told)
    });
    let bytes = of.bytes.unwrap_or(0);
    let more = bytes.saturating_sub(told);
    if more == 0 {
        return;
    }
    let signed = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    let sum = status.discarded_bytes.unwrap_or(0);
    status.discarded_bytes = Some(sum.saturating_add(signed(more)));
    status.last_discarded = Some(LastDiscarded {
        pod: pod.to_owned(),
        epoch: i64::from(of.epoch.0),
        replid: replid.to_owned(),
        bytes: signed(bytes),
        at: now,
    });
}
