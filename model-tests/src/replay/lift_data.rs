//! What servers hold, from their histories and offsets: writes that fit all of them.

use std::collections::BTreeMap;

use wellcake_core::facts::{Observation, Offset, Record, Replid, Role, ServerFacts};

use crate::history::{Data, Write};
use crate::recorded::Moment;

/// Histories of the servers of a moment, with a write for each place at which a server stands.
pub struct Histories {
    /// For each history the one that it continues, and up to where.
    before: BTreeMap<Replid, (Replid, u64)>,
    /// Writes by where they end.
    writes: BTreeMap<(Replid, u64), Write>,
}

impl Histories {
    /// Of a moment; `id` gives each write its number.
    pub fn of(moment: &Moment, mut id: impl FnMut() -> u16) -> Self {
        let all = servers(&moment.seen);
        let mut before = BTreeMap::new();
        for server in &all {
            if let Some(replid) = server.replid2 {
                let until = server.replid2_until.0;
                let known = before.entry(server.replid).or_insert((replid, until));
                if known.0 == replid {
                    known.1 = known.1.min(until);
                }
            }
        }
        let mut own = Self {
            before,
            writes: BTreeMap::new(),
        };
        for server in all.iter().filter(|server| server.keys > 0) {
            let end = (server.replid, server.offset.0);
            let place = own.place(end);
            own.writes.entry(place).or_insert_with(&mut id);
        }
        own
    }

    /// Where an offset of a history lies: in the history before, if it was reached there already.
    fn place(&self, (replid, offset): (Replid, u64)) -> (Replid, u64) {
        let mut place = (replid, offset);
        // Each history continues an earlier one; a trace that says otherwise has no end.
        for _ in 0..self.before.len() {
            match self.before.get(&place.0) {
                Some((earlier, until)) if place.1 <= *until => place.0 = *earlier,
                _ => break,
            }
        }
        place
    }

    /// Writes of a history up to an offset, in order.
    fn up_to(&self, replid: Replid, offset: u64) -> Vec<Write> {
        let mut spans = vec![(replid, offset)];
        let mut at = (replid, offset);
        for _ in 0..self.before.len() {
            let Some((earlier, until)) = self.before.get(&at.0) else {
                break;
            };
            at = (*earlier, at.1.min(*until));
            spans.push(at);
        }
        let mut held = Vec::new();
        for (replid, offset) in spans.into_iter().rev() {
            let range = self.writes.range((replid, 0)..=(replid, offset));
            for (_, write) in range {
                if !held.contains(write) {
                    held.push(*write);
                }
            }
        }
        held
    }

    /// What a server holds.
    pub fn data(&self, server: &ServerFacts) -> Data {
        let primary = server.role == Role::Primary;
        let none = !primary && server.offset.0 <= 1;
        let log = if server.keys == 0 {
            Vec::new()
        } else {
            self.up_to(server.replid, server.offset.0)
        };
        let position = (!none).then_some(server.offset.0);
        Data {
            log,
            replid: server.replid,
            before: server
                .replid2
                .map(|replid| (replid, server.replid2_until.0)),
            position,
            backlog: position.filter(|_| primary || server.is_synced_replica()),
            lost: false,
        }
    }

    /// All of a history, for a server that was never heard of.
    pub fn all_of(&self, replid: Replid, known: Option<Offset>) -> Data {
        let most = self.writes.keys().filter(|(of, _)| *of == replid);
        let most = most.map(|(_, offset)| *offset).max().unwrap_or(0);
        let end = most.max(known.map_or(0, |offset| offset.0));
        Data {
            log: self.up_to(replid, end),
            replid,
            before: self.before.get(&replid).copied(),
            position: Some(end),
            backlog: Some(end),
            lost: false,
        }
    }

    /// What is owed of a history whose primary does not serve: what there is of it, up to where it was seen to come last.
    pub fn owed(&self, history: Replid, last: Option<Offset>) -> Vec<Write> {
        self.up_to(history, last.map_or(u64::MAX, |offset| offset.0))
    }

    /// The history that the recorded pod began, if its promotion was seen.
    pub fn begun_by(seen: &Observation, record: Record) -> Option<Replid> {
        let server = seen.known_of(record.pod, record.pod_uid)?.last()?;
        (server.role == Role::Primary).then_some(server.replid)
    }
}

/// Every server that answered once.
fn servers(seen: &Observation) -> Vec<ServerFacts> {
    let pods = seen.pods.iter().filter_map(|pod| pod.server.last());
    let former = seen.former.iter().filter_map(|former| former.server.last());
    pods.chain(former).copied().collect()
}
