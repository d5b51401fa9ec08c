//! The invariants that speak of what was seen and of what was done, judged over a trace. They need no truth behind the observation,
//! so that they hold of what a real operator recorded, whatever its servers did.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use wellcake_core::effects::{Danger, Decision, Effect, Lane, Verb};
use wellcake_core::facts::{Epoch, Observation, Ordinal, PodUid, Record, Tick};
use wellcake_core::reasons::Reason;
use wellcake_core::{exec, limits};

use crate::invariants::Violation;
use crate::recorded::{Ending, Moment};

/// Passes whose effects may still be under way.
const UNDER_WAY: usize = 64;
/// Passes at the beginning of a trace, in which effects of a time before it may end.
const BEGINNING: usize = 8;

/// A broken invariant in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Number of the line.
    pub line: usize,
    /// What did not hold.
    pub violation: Violation,
}

/// What is remembered of the passes before.
#[derive(Default)]
pub struct Judge {
    process: u32,
    passes: usize,
    /// The newest record that was seen, and whether it was gone since.
    record: Option<Record>,
    /// Pods that were promoted, by epoch.
    promoted: BTreeMap<Epoch, PodUid>,
    /// What was decided in the last passes.
    decided: VecDeque<Vec<Effect>>,
}

impl Judge {
    /// Judges the next pass; answers everything that does not hold.
    pub fn see(&mut self, moment: &Moment) -> Vec<Broken> {
        if moment.process != self.process {
            // Numbers of another process mean something else.
            *self = Self {
                process: moment.process,
                ..Self::default()
            };
        }
        let decision = &moment.decision;
        let seen = &moment.seen;
        let own = [
            self.epochs_grow(seen),
            self.one_promotion_per_epoch(moment),
            self.nothing_undecided_is_done(moment),
            guards_name_what_is_meant(decision),
            facts_are_fresh(decision, seen, moment.now),
            nobody_is_promoted_beside_a_primary(decision, seen, moment.now),
            the_best_copy_wins(decision, seen, moment.now),
            one_pod_is_taken_at_a_time(decision, seen, moment.now),
            lanes_stop_at_failures(moment),
        ];
        self.passes += 1;
        let broken = own.into_iter().filter_map(Result::err);
        let line = moment.line;
        broken.map(|violation| Broken { line, violation }).collect()
    }

    /// S11, epochs: the epoch of the primary record never goes down, unless the record was gone, as after the ValkeyCluster was made
    /// anew.
    fn epochs_grow(&mut self, seen: &Observation) -> Result<(), Violation> {
        let before = std::mem::replace(&mut self.record, seen.record);
        if seen.record.is_none() {
            self.promoted.clear();
        }
        let (Some(before), Some(now)) = (before, seen.record) else {
            return Ok(());
        };
        hold(before.epoch <= now.epoch, "S11 epochs only grow", || {
            format!("epoch {} after {}", now.epoch.0, before.epoch.0)
        })
    }

    /// S12, promotions: two pods are never promoted under one epoch.
    fn one_promotion_per_epoch(&mut self, moment: &Moment) -> Result<(), Violation> {
        let done = moment
            .outcomes
            .iter()
            .filter(|it| it.outcome.may_have_happened());
        for effect in done.map(|it| it.effect) {
            let (Verb::Promote { .. }, Some(epoch), Some((_, uid))) =
                (effect.verb, effect.guard.epoch, effect.guard.pod)
            else {
                continue;
            };
            let earlier = *self.promoted.entry(epoch).or_insert(uid);
            hold(earlier == uid, "S12 one promotion at a time", || {
                format!(
                    "{uid:?} is promoted under epoch {} after {earlier:?}",
                    epoch.0
                )
            })?;
        }
        Ok(())
    }

    /// S13, effects: nothing is done that was not decided lately.
    fn nothing_undecided_is_done(&mut self, moment: &Moment) -> Result<(), Violation> {
        self.decided.push_back(moment.decision.effects.to_vec());
        // What was begun before the trace begins was decided before it.
        let whole = self.passes >= BEGINNING;
        if self.decided.len() > UNDER_WAY {
            self.decided.pop_front();
        }
        if !whole {
            return Ok(());
        }
        let decided: HashSet<&Effect> = self.decided.iter().flatten().collect();
        let odd = moment
            .outcomes
            .iter()
            .find(|it| !decided.contains(&it.effect));
        hold(odd.is_none(), "S13 only what was decided is done", || {
            format!("{:?} was not decided", odd.map(|it| it.effect.verb))
        })
    }
}

/// S13, guards: what is done to a server names the pod's uid and the process, and what could do harm that lasts also the epoch.
fn guards_name_what_is_meant(decision: &Decision) -> Result<(), Violation> {
    for effect in &decision.effects {
        let Some(pod) = on_server(effect.verb) else {
            continue;
        };
        let guard = effect.guard;
        let named = guard.pod.is_some_and(|(ordinal, _)| ordinal == pod) && guard.run.is_some();
        let first = guard.epoch.is_some() || effect.verb.danger() == Danger::Free;
        hold(
            named && (first || !is_of_a_reign(effect.verb)),
            "S13 guards name what is meant",
            || format!("{:?} has the guard {guard:?}", effect.verb),
        )?;
    }
    Ok(())
}

/// The pod of an effect that is a command to its server.
const fn on_server(verb: Verb) -> Option<Ordinal> {
    match verb {
        Verb::Promote { pod }
        | Verb::Follow { pod, .. }
        | Verb::StepDown { pod }
        | Verb::Detach { pod }
        | Verb::PauseWrites { pod } => Some(pod),
        _ => None,
    }
}

/// Whether an effect means something under one record only.
const fn is_of_a_reign(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Promote { .. } | Verb::Follow { .. } | Verb::StepDown { .. }
    )
}

/// S14: a command that can do harm is planned on an answer of the same process that is at most two seconds old.
fn facts_are_fresh(decision: &Decision, seen: &Observation, now: Tick) -> Result<(), Violation> {
    for effect in &decision.effects {
        let guard = effect.guard;
        let (Some(_), Some((pod, uid)), Some(run)) = (on_server(effect.verb), guard.pod, guard.run)
        else {
            continue;
        };
        let fresh = seen
            .server_of(pod, uid, now, limits::DESTRUCTIVE_AGE)
            .is_some_and(|server| server.run == run);
        hold(fresh, "S14 facts are fresh", || {
            format!(
                "{:?} is planned on an old answer of another process",
                effect.verb
            )
        })?;
    }
    Ok(())
}

/// The effect of a decision that promotes a pod, with the pod.
fn promotion(decision: &Decision) -> Option<(Ordinal, &Effect)> {
    let mut effects = decision.effects.iter();
    effects.find_map(|effect| match effect.verb {
        Verb::Promote { pod } => Some((pod, effect)),
        _ => None,
    })
}

/// S5, death: nobody is promoted while another server is seen to take writes, unless that one steps down before.
fn nobody_is_promoted_beside_a_primary(
    decision: &Decision,
    seen: &Observation,
    now: Tick,
) -> Result<(), Violation> {
    let Some((winner, _)) = promotion(decision) else {
        return Ok(());
    };
    let steps_down = |pod: Ordinal| {
        let mut effects = decision.effects.iter();
        effects.any(|effect| effect.verb == Verb::StepDown { pod })
    };
    let other = seen.ordinals().map(|(pod, _)| pod).find(|pod| {
        let server = seen.server(*pod, now, limits::DESTRUCTIVE_AGE);
        let serves = server.is_some_and(|server| server.serves_writes());
        *pod != winner && serves && !steps_down(*pod)
    });
    hold(other.is_none(), "S5 death is proven", || {
        format!("pod {} is promoted while {other:?} takes writes", winner.0)
    })
}

/// S5, choice: of the servers that answered, none holds more of the history of the one that is promoted, unless a person chose it. One
/// that a primary hands over to may be behind when that is planned: the guard asks that it holds all before it is promoted.
fn the_best_copy_wins(decision: &Decision, seen: &Observation, now: Tick) -> Result<(), Violation> {
    let Some((winner, effect)) = promotion(decision) else {
        return Ok(());
    };
    let by_order = effect.reason == Reason::PromotedByOrder;
    let planned = by_order || effect.guard.before.is_some();
    let server = |pod| seen.server(pod, now, limits::DESTRUCTIVE_AGE);
    let Some(own) = server(winner).filter(|_| !planned) else {
        return Ok(());
    };
    let better = seen.ordinals().map(|(pod, _)| pod).find(|pod| {
        let ahead = server(*pod).is_some_and(|other| {
            let copy = other.is_synced_replica();
            copy && other.replid == own.replid && other.offset > own.offset
        });
        *pod != winner && ahead
    });
    hold(better.is_none(), "S5 the best copy wins", || {
        format!("pod {} is promoted and {better:?} holds more", winner.0)
    })
}

/// S12, changes: at most one pod that is in sync is taken away by a decision, and none while another copy is missed.
fn one_pod_is_taken_at_a_time(
    decision: &Decision,
    seen: &Observation,
    now: Tick,
) -> Result<(), Violation> {
    let taken: BTreeSet<Ordinal> = decision
        .effects
        .iter()
        .filter_map(|effect| match effect.verb {
            Verb::Evict { pod } => Some(pod),
            _ => None,
        })
        .collect();
    hold(taken.len() <= 1, "S12 one change at a time", || {
        format!("{taken:?} are evicted at once")
    })?;
    let Some(pod) = taken.first().filter(|pod| seen.is_in_sync(**pod, now)) else {
        return Ok(());
    };
    let mut others = seen.ordinals().map(|(pod, _)| pod);
    let missed = others.find(|other| {
        let terminating = seen
            .pod(*other)
            .and_then(|pod| pod.object.value())
            .is_some_and(|object| object.terminating);
        other != pod && terminating
    });
    hold(missed.is_none(), "S12 one change at a time", || {
        format!("pod {} is evicted while {missed:?} is missed", pod.0)
    })
}

/// S16: a lane stops at its first failure, since later effects rely on earlier ones. The two routes are moved at the same time.
fn lanes_stop_at_failures(moment: &Moment) -> Result<(), Violation> {
    let is_route = |verb| matches!(verb, Verb::SetRoute { .. });
    for lane in [Lane::Safety, Lane::Provisioning] {
        let order: Vec<Effect> = exec::lane(&moment.decision, lane).copied().collect();
        let place = |effect: &Effect| order.iter().position(|it| it == effect);
        let failed = moment
            .outcomes
            .iter()
            .filter(|it| it.outcome != Ending::Done);
        let first = failed
            .filter(|it| !matches!(it.effect.verb, Verb::MarkPrimaryDown { .. }))
            .filter_map(|it| Some((place(&it.effect)?, it.effect.verb)))
            .min_by_key(|(at, _)| *at);
        let Some((first, verb)) = first else { continue };
        let later = moment
            .outcomes
            .iter()
            .filter(|it| it.outcome == Ending::Done)
            .filter(|it| !(is_route(verb) && is_route(it.effect.verb)))
            .filter(|it| !matches!(it.effect.verb, Verb::MarkPrimaryDown { .. }))
            .find(|it| place(&it.effect).is_some_and(|at| at > first));
        hold(
            later.is_none(),
            "S16 a lane stops at its first failure",
            || {
                format!(
                    "{:?} was done after {verb:?} failed",
                    later.map(|it| it.effect.verb)
                )
            },
        )?;
    }
    Ok(())
}

fn hold(
    holds: bool,
    invariant: &'static str,
    seen: impl FnOnce() -> String,
) -> Result<(), Violation> {
    crate::invariants::require(holds, invariant, seen)
}
