//! Guards: what an effect was planned for, checked again right before it is done.

use serde::{Deserialize, Serialize};

use crate::facts::{
    Container, Epoch, Fresh, Known, Link, Observation, Offset, Ordinal, PodUid, Reachability, Role,
    RunId, Tick, Upstream,
};
use crate::limits;

/// What a server may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Held {
    /// Nothing in particular.
    #[default]
    Nothing,
    /// A copy that was in sync since the server started.
    Copy,
    /// Any key, or what some server feeds to it.
    Data,
}

impl Held {
    fn is_seen_beside(self, pod: Ordinal, seen: &Observation, now: Tick) -> bool {
        seen.ordinals()
            .filter(|(ordinal, _)| *ordinal != pod)
            .filter_map(|(ordinal, _)| seen.server(ordinal, now, limits::FACT_AGE))
            .any(|server| match self {
                Self::Nothing => false,
                Self::Copy => server.is_synced_replica(),
                Self::Data => server.keys > 0 || server.is_fed() || server.is_synced_replica(),
            })
    }
}

/// Which pods must be in sync, as [`Observation::is_in_sync`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InSync {
    /// None in particular.
    #[default]
    NotAsked,
    /// All pods but the guarded one, which is to be replaced.
    Others,
    /// The recorded primary, and not the guarded pod, so that nothing is lost with it.
    NotThisOne,
    /// None, and the guarded pod neither runs nor answers.
    NotRunning,
    /// The recorded primary, which is one of so many pods that are to stay, and another one of these if there is to be one.
    Staying(u8),
}

impl InSync {
    fn holds(self, pod: Ordinal, seen: &Observation, now: Tick) -> bool {
        if self == Self::NotRunning {
            let object = seen.pod(pod).and_then(|found| found.object.value());
            let runs =
                object.is_none_or(|object| matches!(object.container, Container::Running { .. }));
            return !runs && !seen.answers(pod);
        }
        let Some(primary) = seen.record.map(|record| record.pod) else {
            return self == Self::NotAsked;
        };
        let mut others = seen.ordinals().map(|(ordinal, _)| ordinal);
        let is = |ordinal| seen.is_in_sync(ordinal, now);
        match self {
            Self::NotAsked | Self::NotRunning => true,
            Self::Others => others.all(|other| other == pod || is(other)),
            Self::NotThisOne => is(primary) && !is(pod),
            Self::Staying(count) => {
                let stays = |ordinal: Ordinal| ordinal.0 < count;
                let copy = others.any(|other| other != primary && stays(other) && is(other));
                stays(primary) && is(primary) && (copy || count < 2)
            }
        }
    }
}

/// What must still be true. Every part that is given is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// Epoch of the primary record.
    pub epoch: Option<Epoch>,
    /// A pod with its uid. It may be one whose object is gone and whose server is still asked.
    pub pod: Option<(Ordinal, PodUid)>,
    /// The server process of that pod, as seen at most [`limits::DESTRUCTIVE_AGE`] ago.
    pub run: Option<RunId>,
    /// That server must be a replica (true) or a primary (false).
    pub replica: Option<bool>,
    /// That server must have no link to a primary: it was planned for one that had lost it.
    pub unfed: bool,
    /// That server must not be behind this offset.
    pub offset_floor: Option<Offset>,
    /// A second pod with its uid: the primary that the first shall follow.
    pub primary: Option<(Ordinal, PodUid)>,
    /// Whether the server of that second pod must hold all that the first one's was seen to hold, which steps down for it.
    pub copied: bool,
    /// A pod with its uid: the primary that handed over. Its server, as seen last and not long ago, must be a replica, and
    /// the first pod's must hold all that it does.
    pub before: Option<(Ordinal, PodUid)>,
    /// What no other server may hold: the promotion was planned while none was seen to.
    pub absent: Held,
    /// Which pods must be in sync.
    pub in_sync: InSync,
    /// A pod with its uid: a primary that did not answer. It must not have, and no server may have a link to it again.
    pub silent: Option<(Ordinal, PodUid)>,
    /// A pod with its uid: a primary that is gone. It must not answer, and no server may have a link to somebody unseen.
    pub gone: Option<(Ordinal, PodUid)>,
    /// No other server may be seen to hold more of the history of the first pod's.
    pub foremost: bool,
}

/// Which part of a guard does not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum GuardFailure {
    /// Another promotion was recorded.
    #[error("another promotion was recorded meanwhile")]
    Epoch,
    /// The pod was replaced.
    #[error("the pod was replaced meanwhile")]
    Pod,
    /// The server restarted, or was not seen lately.
    #[error("the server restarted, or did not answer lately")]
    Run,
    /// The server has another role.
    #[error("the server has another role meanwhile")]
    Role,
    /// The server has a link to a primary again.
    #[error("the server has a link to a primary again")]
    Fed,
    /// The server's data is older than it was.
    #[error("the server's data is behind what it was")]
    Offset,
    /// The primary to follow was replaced.
    #[error("the primary to follow was replaced meanwhile")]
    Primary,
    /// The copy lacks something.
    #[error("the copy does not hold all that its primary holds")]
    Copy,
    /// The primary that was to hand over still is one, or is not known to be none.
    #[error("the primary before is not known to have become a replica")]
    Before,
    /// Another pod is not in sync, or the one that was not is.
    #[error("which pods are in sync changed meanwhile")]
    InSync,
    /// Another server holds data.
    #[error("another server was seen to hold data meanwhile")]
    Data,
    /// The primary that was silent lives.
    #[error("the primary that was silent has answered, or has a replica again")]
    Silent,
    /// The leadership under which the effect was planned is over.
    #[error("this operator is not the leader any more")]
    Leadership,
}

impl Guard {
    /// Nothing to check but the leadership.
    pub const NONE: Self = Self {
        epoch: None,
        pod: None,
        run: None,
        replica: None,
        unfed: false,
        offset_floor: None,
        primary: None,
        copied: false,
        before: None,
        absent: Held::Nothing,
        in_sync: InSync::NotAsked,
        silent: None,
        gone: None,
        foremost: false,
    };

    /// Checks every part against what is known now.
    pub fn check(&self, seen: &Observation, now: Tick) -> Result<(), GuardFailure> {
        if let Some(epoch) = self.epoch
            && seen.record.map_or(Epoch(0), |r| r.epoch) != epoch
        {
            return Err(GuardFailure::Epoch);
        }
        if let Some((ordinal, uid)) = self.pod {
            let gone = seen.is_gone(ordinal, uid) && seen.former_of(uid).is_some();
            if !gone && !is_pod(seen, ordinal, uid) {
                return Err(GuardFailure::Pod);
            }
            self.check_server(seen, ordinal, uid, now)?;
            if self.absent.is_seen_beside(ordinal, seen, now) {
                return Err(GuardFailure::Data);
            }
            if !self.in_sync.holds(ordinal, seen, now) {
                return Err(GuardFailure::InSync);
            }
        }
        match self.primary {
            Some((ordinal, uid)) if !is_pod(seen, ordinal, uid) => {
                return Err(GuardFailure::Primary);
            }
            _ => {}
        }
        let alive = self.silent.is_some_and(|of| !is_silent(of, seen, now))
            || self.gone.is_some_and(|of| !is_gone(of, seen, now));
        if alive {
            return Err(GuardFailure::Silent);
        }
        if self.foremost && self.pod.is_some_and(|(own, _)| is_passed(own, seen, now)) {
            return Err(GuardFailure::Data);
        }
        self.check_handover(seen, now)
    }

    /// What the two sides of a handover must hold.
    fn check_handover(&self, seen: &Observation, now: Tick) -> Result<(), GuardFailure> {
        let server = |(ordinal, uid)| {
            seen.known_of(ordinal, uid)
                .and_then(|known| known.recent(now, limits::DESTRUCTIVE_AGE))
        };
        let own = self.pod.and_then(server);
        if self.copied {
            let copy = self.primary.and_then(server);
            let whole = own
                .zip(copy)
                .is_some_and(|(own, copy)| copy.holds_all_of(own));
            if !whole {
                return Err(GuardFailure::Copy);
            }
        }
        let Some(before) = self.before else {
            return Ok(());
        };
        let Some(before) = server(before).filter(|server| server.role != Role::Primary) else {
            return Err(GuardFailure::Before);
        };
        if own.is_none_or(|own| !own.holds_all_of(before)) {
            return Err(GuardFailure::Copy);
        }
        Ok(())
    }

    fn check_server(
        &self,
        seen: &Observation,
        ordinal: Ordinal,
        uid: PodUid,
        now: Tick,
    ) -> Result<(), GuardFailure> {
        let Some(run) = self.run else { return Ok(()) };
        let server = seen
            .server_of(ordinal, uid, now, limits::DESTRUCTIVE_AGE)
            .filter(|server| server.run == run)
            .ok_or(GuardFailure::Run)?;
        if self
            .replica
            .is_some_and(|replica| replica == matches!(server.role, Role::Primary))
        {
            return Err(GuardFailure::Role);
        }
        if self.unfed && server.is_fed() {
            return Err(GuardFailure::Fed);
        }
        if self.offset_floor.is_some_and(|floor| server.offset < floor) {
            return Err(GuardFailure::Offset);
        }
        Ok(())
    }
}

/// Whether nothing was heard of a primary for as long as it takes to plan on that, and nobody seen to have a link to it.
fn is_silent((ordinal, uid): (Ordinal, PodUid), seen: &Observation, now: Tick) -> bool {
    let unheard = seen.pod(ordinal).is_some_and(|pod| {
        let tried = |reach: Reachability| {
            let recent = |at| now.since(at) <= limits::FACT_AGE;
            let failed = match reach.fresh {
                Fresh::Refused { at } | Fresh::TimedOut { at } => recent(at),
                Fresh::NotTried => false,
            };
            failed && reach.pod_uid == uid
        };
        // It may have answered in between, and be silent again.
        let long = match pod.server {
            Known::Maybe { since, .. } => now.since(since) >= limits::SILENT_ASKING,
            _ => false,
        };
        long && pod.reach.is_some_and(tried)
    });
    let linked = seen
        .ordinals()
        .filter_map(|(other, _)| seen.server(other, now, limits::FACT_AGE))
        .any(|server| server.is_linked_to(ordinal));
    unheard && !linked
}

/// Whether nothing was heard of a primary whose pod is gone, and nobody is seen that it may feed.
fn is_gone((ordinal, uid): (Ordinal, PodUid), seen: &Observation, now: Tick) -> bool {
    let former = seen.former_of(uid).map(|former| former.server);
    let heard = former.is_some_and(|server| server.fresh(now, limits::FACT_AGE).is_some());
    seen.is_gone(ordinal, uid) && !heard && !is_somebody_fed_by_unseen(seen, now)
}

/// Whether a server has its link to an address that is no present pod's.
fn is_somebody_fed_by_unseen(seen: &Observation, now: Tick) -> bool {
    seen.ordinals()
        .filter_map(|(other, _)| seen.server(other, now, limits::FACT_AGE))
        .any(|server| match server.role {
            Role::Replica { upstream, link, .. } => upstream == Upstream::Other && link == Link::Up,
            Role::Primary => false,
        })
}

/// Whether another server holds more of the same history.
fn is_passed(own: Ordinal, seen: &Observation, now: Tick) -> bool {
    let others = seen.ordinals().filter(|(ordinal, _)| *ordinal != own);
    let server = seen.server(own, now, limits::DESTRUCTIVE_AGE);
    server.is_none_or(|server| {
        others
            .filter_map(|(other, _)| seen.server(other, now, limits::FACT_AGE))
            .filter(|other| {
                !other.loading && !matches!(other.role, Role::Replica { syncing: true, .. })
            })
            .any(|other| other.replid == server.replid && other.offset > server.offset)
    })
}

fn is_pod(seen: &Observation, ordinal: Ordinal, uid: PodUid) -> bool {
    seen.pod(ordinal)
        .and_then(|pod| pod.object.value())
        .is_some_and(|object| object.uid == uid)
}
