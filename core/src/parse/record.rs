//! The primary record in the status.

use thiserror::Error;
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{PrimaryRecord, ServedPrimary};

use super::pod::ordinal;
use crate::facts::{ClaimUid, Epoch, Interner, OVERFLOW, PodUid, Record, Replid, Served};

/// Why a record cannot be read. An unreadable record is not an absent one: nothing may be promoted on it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The epoch is not a number of a promotion.
    #[error("status.primaryRecord.epoch is {0}, expected 1 to 4294967295")]
    Epoch(i64),
    /// The pod is none of the cluster's data pods.
    #[error("status.primaryRecord.pod is {0:?}, which is no data pod of this cluster")]
    Pod(String),
}

/// The record of a status as facts.
pub fn record(
    status: &PrimaryRecord,
    cluster: &ClusterName,
    interner: &mut Interner,
) -> Result<Record, RecordError> {
    let epoch = u32::try_from(status.epoch).ok().filter(|epoch| *epoch > 0);
    let pod = |name: &str| ordinal(name, cluster).ok_or_else(|| RecordError::Pod(name.to_owned()));
    let served = match &status.served {
        Some(served) => Some(Served {
            pod: pod(&served.pod)?,
            pod_uid: PodUid(interner.number(&served.pod_uid)),
            claim_uid: number(&served.claim_uid, interner).map(ClaimUid),
            replid: number(&served.replid, interner).map(Replid),
        }),
        None => None,
    };
    Ok(Record {
        epoch: Epoch(epoch.ok_or(RecordError::Epoch(status.epoch))?),
        pod: pod(&status.pod)?,
        pod_uid: PodUid(interner.number(&status.pod_uid)),
        claim_uid: number(&status.claim_uid, interner).map(ClaimUid),
        replid: number(&status.replid, interner).map(Replid),
        continues: number(&status.continues, interner).map(Replid),
        served,
        planned: status.planned.unwrap_or(false),
    })
}

fn number(text: &Option<String>, interner: &mut Interner) -> Option<u16> {
    text.as_deref().map(|text| interner.number(text))
}

/// Facts as the record of a status, without the time, which is the edge's. `None` when the table does not know one of
/// the numbers: such a record must not be written.
pub fn record_status(
    record: &Record,
    cluster: &ClusterName,
    interner: &Interner,
) -> Option<PrimaryRecord> {
    let text = |number: u16| {
        interner
            .text(number)
            .filter(|_| number != OVERFLOW)
            .map(str::to_owned)
    };
    let optional = |number: Option<u16>| match number {
        Some(number) => text(number).map(Some),
        None => Some(None),
    };
    let served = match &record.served {
        Some(served) => Some(ServedPrimary {
            pod: cluster.pod(u32::from(served.pod.0)),
            pod_uid: text(served.pod_uid.0)?,
            claim_uid: optional(served.claim_uid.map(|uid| uid.0))?,
            replid: optional(served.replid.map(|id| id.0))?,
        }),
        None => None,
    };
    Some(PrimaryRecord {
        epoch: i64::from(record.epoch.0),
        pod: cluster.pod(u32::from(record.pod.0)),
        pod_uid: text(record.pod_uid.0)?,
        claim_uid: optional(record.claim_uid.map(|uid| uid.0))?,
        replid: optional(record.replid.map(|id| id.0))?,
        continues: optional(record.continues.map(|id| id.0))?,
        served,
        planned: record.planned.then_some(true),
        recorded_at: None,
    })
}
