//! Rules for carrying out effects, without sockets or clocks: production and the model tester run the same code.

use serde::{Deserialize, Serialize};

use crate::effects::{Decision, Effect, GuardFailure, Kind, Lane, Verb};
use crate::facts::{Hints, Observation, Tick};

/// What entitles a process to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Authority {
    /// Nothing does.
    Follower,
    /// It holds the lease.
    Leader {
        /// `leaseTransitions` of the lease.
        epoch: u64,
        /// When the process must stop acting unless the lease was renewed: before anybody else may take it.
        valid_until: Tick,
    },
}

impl Authority {
    /// Whether the process may act at `now`.
    pub fn holds(self, now: Tick) -> bool {
        matches!(self, Self::Leader { valid_until, .. } if now < valid_until)
    }
}

/// Whether an effect may be done now: the leadership holds and so does every part of its guard. `seen` must be the newest
/// observation, the process's own acknowledged writes included.
pub fn admit(
    effect: &Effect,
    seen: &Observation,
    authority: Authority,
    now: Tick,
) -> Result<(), GuardFailure> {
    if !authority.holds(now) {
        return Err(GuardFailure::Leadership);
    }
    effect.guard.check(seen, now)
}

/// The effects of one lane in the order in which they are to be done. A lane stops at its first failure: later effects
/// rely on earlier ones.
pub fn lane(decision: &Decision, lane: Lane) -> impl Iterator<Item = &Effect> {
    decision
        .effects
        .iter()
        .filter(move |effect| effect.verb.lane() == lane)
}

/// Hints after a batch of the provisioning lane: the effects that were tried, and whether each was done.
#[must_use]
pub fn after_batch(hints: Hints, tried: &[(Kind, bool)], now: Tick) -> Hints {
    let mut after = hints;
    for (kind, done) in tried {
        let of = match kind {
            Kind::Evict | Kind::ScaleIn => &mut after.pods,
            Kind::GrowVolume => &mut after.volumes,
            // What the server says is kept with it.
            Kind::Configure => continue,
            _ => &mut after.objects,
        };
        *of = of.after(!done, now);
    }
    after
}

/// Hints after effects of the safety lane, of which `failed` failed.
#[must_use]
pub fn after_safety(hints: Hints, decision: &Decision, failed: bool, now: Tick) -> Hints {
    let hands_over =
        lane(decision, Lane::Safety).any(|effect| matches!(effect.verb, Verb::PauseWrites { .. }));
    if failed && hands_over {
        Hints {
            handover_failed_at: Some(now),
            ..hints
        }
    } else {
        hints
    }
}
