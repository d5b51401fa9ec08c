//! Whether a wrong decision is found out, and by what.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wellcake_core::step;

use super::Mutant;
use super::means::{Means, Story, of};
use crate::actions::Action;
use crate::crashes::operations::OPERATIONS;
use crate::hands::Hands;
use crate::invariants::{Violation, require};
use crate::museum::Piece;
use crate::operator::Brain;
use crate::random::{self, End, heal, settle};
use crate::search::scope::Scope;
use crate::search::{Progress, Way, search};
use crate::world::World;

/// Events of a random run.
pub const STEPS: u32 = 300;
/// Random runs after which one is given up.
pub const MOST: u64 = 40_000;

/// What was tried, and what came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its name.
    pub name: &'static str,
    /// The file of the rule that it breaks.
    pub rule: &'static str,
    /// By what it was tried.
    pub by: String,
    /// Random runs, or events of a search, or runs of an operation, or one.
    pub runs: u64,
    /// What broke; `None` if nothing did.
    pub found: Option<Violation>,
    /// What broke with the right decision, in the same run: the tester is wrong then.
    pub control: Option<Violation>,
    /// How long it took.
    pub took: Duration,
}

impl Tried {
    /// Whether it was found out, and the right decision was not.
    pub const fn is_killed(&self) -> bool {
        self.found.is_some() && self.control.is_none()
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(
            f,
            "{:<48} {seconds:>7.3} s {:>8} {:<36} ",
            self.name, self.runs, self.by
        )?;
        match (&self.found, &self.control) {
            (_, Some(control)) => write!(f, "BROKEN: the right decision breaks {control}"),
            (Some(found), None) => write!(f, "{}", found.invariant),
            (None, None) => write!(f, "SURVIVES"),
        }
    }
}

/// What a search, a run or a story finds of a decision.
struct Found {
    by: String,
    runs: u64,
    wrong: Option<Violation>,
    right: Option<Violation>,
}

/// Tries the means that the table names for it.
pub fn kill(mutant: &Mutant, threads: usize) -> Tried {
    let plan = of(mutant.name);
    let begun = Instant::now();
    let found = plan.means.try_on(mutant, threads);
    Tried {
        name: mutant.name,
        rule: plan.rule,
        by: found.by,
        runs: found.runs,
        found: found.wrong,
        control: found.right,
        took: begun.elapsed(),
    }
}

type Outcome = Result<End, Violation>;

impl Means {
    fn try_on(&self, mutant: &Mutant, threads: usize) -> Found {
        let own = (mutant.brain, mutant.hands);
        match *self {
            Self::Runs { from } => seeds("all worlds", from, own, |seed, (brain, hands)| {
                random::run_with(random::world(seed), seed, STEPS, brain, hands)
            }),
            Self::Elsewhere { from } => seeds(
                "worlds of another operator",
                from,
                own,
                |seed, (brain, hands)| {
                    let world = random::world(seed).made_elsewhere();
                    random::run_with(world, seed, STEPS, brain, hands)
                },
            ),
            Self::Weather { weather, from } => seeds("a chosen world", from, own, |seed, own| {
                weather.run(seed, STEPS, own, None)
            }),
            Self::Scope(name, text) => in_scope(name, text, own, threads),
            Self::CrashPoints(at) => at_crash_points(at, own.0),
            Self::Piece(name, text) => in_museum(name, text, own.0),
            Self::Objects => {
                let (runs, wrong) = crate::objects::sweep(own.0);
                Found {
                    by: "every state of objects".to_owned(),
                    runs,
                    wrong: wrong.err(),
                    right: None,
                }
            }
            Self::Story(name, ref story) => Found {
                by: format!("story: {name}"),
                runs: 1,
                wrong: story.tell(own).err(),
                right: story.tell((step, Hands::Right)).err(),
            },
        }
    }
}

fn seeds(
    by: &str,
    from: u64,
    own: (Brain, Hands),
    run: impl Fn(u64, (Brain, Hands)) -> Outcome,
) -> Found {
    for seed in from..from + MOST {
        if let Err(wrong) = run(seed, own) {
            return Found {
                by: format!("{by}, seed {seed}"),
                runs: seed - from + 1,
                wrong: Some(wrong),
                right: run(seed, (step, Hands::Right)).err(),
            };
        }
    }
    Found {
        by: format!("{by}, seeds {from} to {}", from + MOST - 1),
        runs: MOST,
        wrong: None,
        right: None,
    }
}

/// The right decision is searched by the test of the scopes.
fn in_scope(name: &str, text: &str, (brain, hands): (Brain, Hands), threads: usize) -> Found {
    let by = format!("scope {name}");
    let scope: Scope = match serde_json::from_str(text) {
        Ok(scope) => scope,
        Err(why) => return unreadable(by, &why.to_string()),
    };
    let way = Way {
        threads,
        rest: true,
        most: None,
    };
    let progress = Progress::default();
    let scope = Scope { hands, ..scope };
    let wrong = search(&scope, brain, way, &progress).err();
    Found {
        by,
        runs: progress.events.load(Ordering::Relaxed),
        wrong: wrong.map(|broken| broken.violation),
        right: None,
    }
}

/// The right decision is put to all of them by a test of their own.
fn at_crash_points(at: &str, brain: Brain) -> Found {
    let mut found = Found {
        by: format!("crash points: {at}"),
        runs: 0,
        wrong: None,
        right: None,
    };
    for operation in OPERATIONS.iter().filter(|operation| operation.name == at) {
        let (runs, wrong) = crate::crashes::all::first(operation, brain);
        found.runs += runs;
        found.wrong = found.wrong.or(wrong);
    }
    found
}

fn in_museum(name: &str, text: &str, brain: Brain) -> Found {
    let by = format!("museum: {name}");
    match Piece::parse(name, text) {
        Ok(piece) => Found {
            by,
            runs: 1,
            wrong: piece.replay(brain, |_, _| ()).err(),
            right: piece.replay(step, |_, _| ()).err(),
        },
        Err(why) => unreadable(by, &why.to_string()),
    }
}

fn unreadable(by: String, why: &str) -> Found {
    Found {
        by,
        runs: 0,
        wrong: None,
        right: Some(Violation {
            invariant: "its file can be read",
            seen: why.to_owned(),
        }),
    }
}

impl Story {
    /// Lets it happen to a cluster that the right decision brought to rest.
    pub fn tell(&self, (brain, hands): (Brain, Hands)) -> Outcome {
        let place = self.place;
        let mut world = World::new(place.pods, place.disk, place.profile);
        settle(&mut world, step, None)?;
        world.hands = hands;
        for event in self.events {
            world.act(*event, brain, None)?;
        }
        if self.serves {
            let before = world.acks.len();
            world.act(Action::Write, brain, None)?;
            require(world.acks.len() > before, "L5 the rest goes on", || {
                "no write is acknowledged".to_owned()
            })?;
        }
        heal(&mut world, brain, None)?;
        let end = settle(&mut world, brain, None)?;
        require((self.goal)(&world, end), "L1 comes to rest", || {
            format!("{end:?}, and the goal is not reached")
        })?;
        Ok(end)
    }
}
