//! What could have happened instead: the world of a pass, with one thing that goes otherwise, until it has come to rest without faults.

use std::collections::HashSet;

use wellcake_core::effects::Lane;
use wellcake_core::exec;

use crate::actions::Action;
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{heal, perform, settle};
use crate::recorded::Moment;
use crate::search::digest::{Names, digest};
use crate::world::World;

use super::lift::{NotLifted, lift};

/// Time after which a lease that is not renewed is free, in milliseconds.
const LEASE: u64 = 16_000;

/// One thing that goes otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// Nothing does.
    Nothing,
    /// The operator ends after so many effects, and one of the two takes over: itself, started again, or the other.
    Ends {
        /// Effects that it does.
        after: usize,
        /// Who takes over.
        next: usize,
    },
    /// Something happens that the operator does not see before it acts.
    Unseen(Action),
    /// The newest answer of a pod does not come.
    Lost(usize),
    /// The newest of the API server does not come.
    Unwatched,
}

impl Otherwise {
    /// In words.
    pub fn in_words(self) -> String {
        match self {
            Self::Nothing => "nothing goes otherwise".to_owned(),
            Self::Ends { after, next: 0 } => {
                format!("the operator ends after {after} effects and starts again")
            }
            Self::Ends { after, .. } => {
                format!("the operator ends after {after} effects and another takes over")
            }
            Self::Unseen(action) => format!("{action:?} happens unseen before it acts"),
            Self::Lost(pod) => format!("the next answer of pod {pod} does not come"),
            Self::Unwatched => "the newest of the API server does not come".to_owned(),
        }
    }

    /// Everything of this kind in a world in which so many effects are planned.
    fn all(world: &World, effects: usize) -> Vec<Self> {
        let mut all = vec![Self::Nothing, Self::Unwatched, Self::Unseen(Action::Write)];
        for after in 0..=effects {
            all.extend([0, 1].map(|next| Self::Ends { after, next }));
        }
        for n in 0..world.pods.len() {
            all.push(Self::Lost(n));
            let faults = [
                Action::Kill(n),
                Action::Delete(n),
                Action::DeleteByForce(n),
                Action::Freeze(n),
                Action::Isolate(n),
                Action::Thaw(n),
                Action::Show(n),
                Action::Start(n),
                Action::Recreate(n),
                Action::Replicate(n),
            ];
            all.extend(faults.map(Self::Unseen));
        }
        all
    }
}

/// An invariant that breaks when something goes otherwise in a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Number of the line of the pass.
    pub line: usize,
    /// What goes otherwise.
    pub otherwise: Otherwise,
    /// What does not hold.
    pub violation: Violation,
}

/// What was tried on a trace.
#[derive(Default)]
pub struct Perturb {
    known: HashSet<u128>,
    names: Names,
    /// Passes that were lifted into a world.
    pub lifted: usize,
    /// Passes whose worlds were tried before.
    pub repeated: usize,
    /// Passes that could not be lifted, and why the last one could not.
    pub left_out: (usize, Option<NotLifted>),
    /// Runs.
    pub runs: usize,
}

impl Perturb {
    /// Tries everything on a pass; answers what breaks.
    pub fn see(&mut self, moment: &Moment, brain: Brain) -> Vec<Broken> {
        let world = match lift(moment) {
            Ok(world) => world,
            Err(why) => {
                self.left_out = (self.left_out.0 + 1, Some(why));
                return Vec::new();
            }
        };
        if !self.known.insert(digest(&world, 0, &mut self.names)) {
            self.repeated += 1;
            return Vec::new();
        }
        self.lifted += 1;
        let decision = &moment.decision;
        let effects = exec::lane(decision, Lane::Safety).count()
            + exec::lane(decision, Lane::Provisioning).count();
        let mut broken = Vec::new();
        for otherwise in Otherwise::all(&world, effects) {
            self.runs += 1;
            if let Err(violation) = run(world.clone(), otherwise, brain, None) {
                broken.push(Broken {
                    line: moment.line,
                    otherwise,
                    violation,
                });
            }
        }
        broken
    }
}

/// What happens when something goes otherwise in a pass, in words.
pub fn story(moment: &Moment, otherwise: Otherwise, brain: Brain) -> Result<String, NotLifted> {
    let mut text = String::new();
    // Whoever asks knows what breaks.
    let _ = run(lift(moment)?, otherwise, brain, Some(&mut text));
    Ok(text)
}

fn run(
    mut world: World,
    otherwise: Otherwise,
    brain: Brain,
    trace: Option<&mut String>,
) -> Result<(), Violation> {
    let mut run = Run {
        world: &mut world,
        brain,
        trace,
    };
    run.suffer(otherwise)?;
    run.rest()
}

struct Run<'a> {
    world: &'a mut World,
    brain: Brain,
    trace: Option<&'a mut String>,
}

impl Run<'_> {
    fn act(&mut self, action: Action) -> Result<(), Violation> {
        perform(self.world, action, self.brain, self.trace.as_deref_mut())
    }

    fn suffer(&mut self, otherwise: Otherwise) -> Result<(), Violation> {
        match otherwise {
            Otherwise::Nothing => {}
            Otherwise::Ends { after, next } => {
                self.act(Action::Decide(0))?;
                for _ in 0..after {
                    self.act(Action::Execute(0))?;
                }
                self.act(Action::Crash(0))?;
                self.act(Action::Advance(LEASE))?;
                self.act(Action::Elect(next))?;
                return self.act(Action::Look(next));
            }
            Otherwise::Unseen(action) => self.act(action)?,
            Otherwise::Lost(lost) => {
                self.act(Action::Watch(0))?;
                for pod in 0..self.world.pods.len() {
                    let (operator, lost) = (0, pod == lost);
                    self.act(Action::Poll {
                        operator,
                        pod,
                        lost,
                    })?;
                }
            }
            Otherwise::Unwatched => {
                for pod in 0..self.world.pods.len() {
                    let (operator, lost) = (0, false);
                    self.act(Action::Poll {
                        operator,
                        pod,
                        lost,
                    })?;
                }
            }
        }
        self.act(Action::Decide(0))?;
        while self.world.is_busy(0) {
            self.act(Action::Execute(0))?;
        }
        self.act(Action::Write)
    }

    fn rest(&mut self) -> Result<(), Violation> {
        heal(self.world, self.brain, self.trace.as_deref_mut())?;
        settle(self.world, self.brain, self.trace.as_deref_mut()).map(|_| ())
    }
}
