//! Whose data, and which history, counts.

use crate::facts::{Observation, Offset, PodUid, Record, Replid, Served, SpecFacts};

use super::Voter;

/// Whether what a pod loaded is what `truth` had written: the same pod, or its claim.
pub fn is_data_of(truth: &Served, spec: &SpecFacts, seen: &Observation, pod: PodUid) -> bool {
    if pod == truth.pod_uid {
        return true;
    }
    let claim = seen
        .pod(truth.pod)
        .and_then(|pod| pod.claim.value())
        .map(|claim| claim.uid);
    spec.persistence.claims && claim.is_some() && claim == truth.claim_uid
}

/// How far into the record a server's history reaches: 3, what the last primary that took writes wrote; 2, what continues the
/// data with which the recorded pod was chosen; 1, that data; 0, no part of it.
pub fn rank(record: &Record, voter: &Voter) -> u8 {
    match (record.replid, record.served) {
        (Some(history), _) => 3 * u8::from(voter.is_of(history)),
        (None, Some(served)) if served.replid.is_some_and(|h| voter.is_of(h)) => 3,
        (None, _) if voter.continues(record.continues) => 2,
        (None, _) => u8::from(record.continues.is_some_and(|h| voter.is_of(h))),
    }
}

/// How far a server's data reaches into a history, if it is a part of it or known to continue it. A promotion that was not
/// seen through added nothing that anybody was led to: what continues the history of the primary before is compared by how
/// much of that it holds.
pub fn reach(record: &Record, history: Replid, voter: &Voter) -> Option<Offset> {
    if voter.is_of(history) {
        return Some(voter.server.offset);
    }
    let before = record.served.and_then(|served| served.replid);
    let untouched = record.replid.is_none() && before == Some(history);
    (untouched && voter.continues(before)).then_some(voter.server.replid2_until)
}

/// Whether a server holds nothing of what the last primary that took writes wrote.
pub fn lacks_all(record: &Record, voter: &Voter) -> bool {
    let known = record.replid.or(record.continues).is_some();
    let served = record.replid.is_none() && record.served.is_some();
    known && rank(record, voter) < if served { 2 } else { 1 }
}
