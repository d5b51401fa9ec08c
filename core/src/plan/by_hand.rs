//! Another server leads although no promotion of it was recorded: somebody said `FAILOVER` or `REPLICAOF` to the servers, while the
//! recorded primary lives on as a replica. Who leads is seen, so that nobody is promoted beside it.

use crate::effects::Decision;
use crate::facts::{OVERFLOW, Observation, Record, ServerFacts, Tick};
use crate::limits;
use crate::reasons::Reason;

use super::replication::{lead, others};

/// Decides if another server leads, and says whether. It is recorded if it continues the recorded history and nobody is seen to hold
/// more of that; else a person decides. The recorded primary is one that served and was demoted since: an unfinished promotion is
/// another matter.
pub fn plan(seen: &Observation, record: &Record, now: Tick, decision: &mut Decision) -> bool {
    let served = record.replid.filter(|_| record.served.is_none());
    let Some(history) = served.filter(|history| history.0 != OVERFLOW) else {
        return false;
    };
    let mut leading = others(seen, record.pod, now).filter(|(.., server)| server.serves_writes());
    let Some((pod, _, server)) = leading.next() else {
        return false;
    };
    let holds_more = |other: &ServerFacts| {
        other.replid == history && (other.offset > server.replid2_until || other.loading)
    };
    let mut all = seen
        .ordinals()
        .filter_map(|(ordinal, _)| seen.server(ordinal, now, limits::DESTRUCTIVE_AGE));
    let continues = server.replid2 == Some(history);
    if continues && leading.next().is_none() && !all.any(holds_more) {
        lead(pod, Reason::LeadsByHand, None, seen, now, decision);
    } else {
        decision.refuse(Reason::HistoriesDiffer, Some(pod));
    }
    true
}
