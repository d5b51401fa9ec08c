//! Operations in which the operator ends before and after each effect in turn.
//!
//! Each operation is done once without an end of the operator, which tells its effects. Then it is done again with an end at each
//! crash point, and at each pair of them: the second is counted from the restart. Whoever leads next, the operator that started
//! again or another one, must bring the operation to its goal and then do nothing more; no invariant may break on the way.
//!
//! * [`operations`]: what is done, and where;
//! * [`all`]: all operations with all crash points.

pub mod all;
pub mod operations;

use wellcake_core::effects::Decision;
use wellcake_core::facts::Hints;
use wellcake_core::status;
use wellcake_crds::v1beta1::Phase;

use crate::actions::Action;
use crate::invariants::{self, Violation};
use crate::operator::Brain;
use crate::random::perform;
use crate::world::World;

use operations::{Operation, Place};

/// A turn lasts this long, in milliseconds.
const TURN: u64 = 500;
/// Turns within which an operation must reach its goal: three minutes, of which a new leader waits 15 s twice.
const TURNS: u32 = 360;
/// Turns without anything to do after which it has.
const QUIET: u32 = 5;
/// Turns after which the kubelet starts a container again.
const RESTART: u32 = 2;
/// Turns that a pod takes to end which a person deleted.
const GRACE: u32 = 8;
/// Turns in which a client writes.
const WRITES: u32 = 40;

/// A place at which the operator ends: before or after one of the effects since it started, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The effect.
    pub effect: u32,
    /// Whether it was done.
    pub after: bool,
}

/// What came of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Effects that operators did or tried since the last one of them started.
    pub effects: u32,
    /// Turns that it took.
    pub turns: u32,
}

struct Run<'a> {
    world: World,
    brain: Brain,
    operation: &'a Operation,
    points: Vec<Point>,
    /// Whether another operator takes the lease after an end.
    other: bool,
    next: usize,
    effects: u32,
    /// For each pod, for how many turns its container has not run, or has been about to end.
    down: Vec<u32>,
    ends: Vec<u32>,
    /// Every event in words, for who asks.
    trace: Option<String>,
}

impl Operation {
    /// Does it in a cluster at rest, with an end of the operator at each of the points in turn.
    pub fn run(
        &self,
        place: Place,
        points: &[Point],
        other: bool,
        brain: Brain,
    ) -> Result<Outcome, Violation> {
        self.start(place, other, brain).finish(points)
    }

    /// The same in words.
    pub fn story(&self, place: Place, points: &[Point], other: bool, brain: Brain) -> String {
        let mut run = self.start(place, other, brain);
        run.trace = Some(String::new());
        let outcome = run.finish(points);
        let end = match outcome {
            Ok(outcome) => format!("{outcome:?}"),
            Err(violation) => violation.to_string(),
        };
        run.trace.unwrap_or_default() + &end
    }

    fn start(&self, place: Place, other: bool, brain: Brain) -> Run<'_> {
        Run {
            world: World::new(place.pods, place.disk, place.profile),
            brain,
            operation: self,
            points: Vec::new(),
            other,
            next: 0,
            effects: 0,
            down: vec![0; usize::from(place.pods)],
            ends: vec![0; usize::from(place.pods)],
            trace: None,
        }
    }
}

impl Run<'_> {
    fn finish(&mut self, points: &[Point]) -> Result<Outcome, Violation> {
        self.until_rest(&[], None)?;
        if !self.operation.before.is_empty() {
            self.until_rest(self.operation.before, None)?;
        }
        self.points = points.to_vec();
        self.effects = 0;
        let turns = self.until_rest(self.operation.begins, self.operation.later)?;
        // A point that was not reached would judge another run than the one that is told.
        invariants::require(self.next == points.len(), "L1 comes to rest", || {
            format!("{points:?} were not reached")
        })?;
        self.judge()?;
        Ok(Outcome {
            effects: self.effects,
            turns,
        })
    }

    fn act(&mut self, action: Action) -> Result<(), Violation> {
        perform(&mut self.world, action, self.brain, self.trace.as_mut())
    }

    /// Lets events happen and everybody have turns until there is nothing to do any more. Answers the turns.
    fn until_rest(
        &mut self,
        events: &[Action],
        later: Option<(u32, &[Action])>,
    ) -> Result<u32, Violation> {
        for event in events {
            self.act(*event)?;
        }
        let mut quiet = 0;
        for turn in 0..TURNS {
            if let Some((at, events)) = later
                && at == turn
            {
                for event in events {
                    self.act(*event)?;
                }
            }
            let decision = self.turn(turn)?;
            let is_over = later.is_none_or(|(at, _)| turn > at);
            let rests = is_over && turn >= WRITES && self.rests(decision.as_ref());
            quiet = if rests { quiet + 1 } else { 0 };
            if quiet == QUIET {
                return Ok(turn);
            }
        }
        Err(Violation {
            invariant: "L1 comes to rest",
            seen: format!("the goal was not reached within {TURNS} turns"),
        })
    }

    fn rests(&self, decision: Option<&Decision>) -> bool {
        let world = &self.world;
        let Some((decision, o)) = decision.zip(world.leader()) else {
            return false;
        };
        let phase = world
            .observe(o)
            .map(|seen| status::facts(&world.spec, &seen, decision, world.now).phase);
        let wanted = if world.spec.hibernate {
            Phase::Hibernated
        } else {
            Phase::Ready
        };
        let ends = world.pods.iter().any(|pod| pod.exists && pod.terminating);
        decision.effects.is_empty() && phase == Some(wanted) && !ends
    }

    /// What must be so in the end.
    fn judge(&self) -> Result<(), Violation> {
        let world = &self.world;
        let ended = !self.points.is_empty();
        invariants::require(
            (self.operation.goal)(world, ended),
            "L1 comes to rest",
            || "nothing is done any more, and the goal is not reached".to_owned(),
        )?;
        invariants::require(
            !self.operation.lossless.holds(world.disk, ended) || world.forfeited.is_empty(),
            "S4 planned moves are lossless",
            || format!("{:?} are given up", world.forfeited),
        )?;
        if world.spec.hibernate {
            let left = world.pods.iter().position(|pod| pod.exists);
            return invariants::require(left.is_none(), "L1 comes to rest", || {
                format!("pod {left:?} is there and the cluster sleeps")
            });
        }
        invariants::rest::is_well(world)
    }

    fn turn(&mut self, turn: u32) -> Result<Option<Decision>, Violation> {
        self.act(Action::Advance(TURN))?;
        if turn < WRITES {
            self.act(Action::Write)?;
        }
        for n in 0..self.world.pods.len() {
            self.kubernetes(n)?;
            self.act(Action::Replicate(n))?;
        }
        if self.world.leader().is_none() {
            let o = usize::from(self.other && self.next % 2 == 1);
            self.act(Action::Elect(o))?;
        }
        let Some(o) = self.world.leader() else {
            return Ok(None);
        };
        self.act(Action::Look(o))?;
        let seen = self.world.observe(o);
        let (spec, now) = (self.world.spec, self.world.now);
        let decision = seen.map(|seen| (self.brain)(&spec, &seen, &Hints::default(), now));
        self.act(Action::Decide(o))?;
        while self.is_busy(o) {
            let due = self.points.get(self.next).copied();
            let due = due.filter(|point| point.effect == self.effects);
            self.effects += 1;
            if due.is_none_or(|point| point.after) {
                self.act(Action::Execute(o))?;
            }
            if due.is_some() {
                self.act(Action::Crash(o))?;
                self.next += 1;
                self.effects = 0;
            }
        }
        Ok(decision)
    }

    fn is_busy(&self, o: usize) -> bool {
        let operator = self.world.operators.get(o);
        operator.is_some_and(|operator| !operator.queue.is_empty())
    }

    /// The kubelet and the StatefulSet controller see to a pod.
    fn kubernetes(&mut self, n: usize) -> Result<(), Violation> {
        let Some(pod) = self.world.pods.get(n) else {
            return Ok(());
        };
        let (runs, leaves, exists) = (pod.process.is_some(), pod.terminating, pod.exists);
        let count = |of: &mut Vec<u32>, counts: bool| {
            let place = of.get_mut(n)?;
            *place = if counts { *place + 1 } else { 0 };
            Some(*place)
        };
        let down = count(&mut self.down, exists && !runs).unwrap_or(0);
        let ends = count(&mut self.ends, exists && leaves).unwrap_or(0);
        if ends >= GRACE {
            self.act(Action::Delete(n))?;
        } else if !exists {
            self.act(Action::Recreate(n))?;
        } else if down >= RESTART {
            self.act(Action::Start(n))?;
        }
        self.act(Action::Report(n))
    }
}
