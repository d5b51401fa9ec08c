//! Writes what the operators of a simulated world see, decide and do, as real ones write it.

use std::collections::BTreeMap;

use serde::Serialize;
use wellcake_core::effects::{Decision, Effect};
use wellcake_core::facts::{Hints, Known, Object, Observation, SpecFacts, Tick};

use super::{Ending, Outcome, SCHEMA};
use crate::actions::Action;
use crate::invariants::Violation;
use crate::operator::{Brain, Done};
use crate::world::World;

/// The lines of one operator.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// JSON lines, each ended by a line break.
    pub text: String,
    /// Passes among them.
    pub passes: usize,
    /// Whether every pass is written, also one in which nothing differs.
    every: bool,
    processes: usize,
    last: Option<(SpecFacts, Observation, Decision)>,
    outcomes: Vec<Outcome>,
}

#[derive(Serialize)]
struct Line<'a, T> {
    schema: u64,
    kind: &'static str,
    time: String,
    namespace: &'static str,
    name: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Serialize)]
struct Pass<'a> {
    spec: &'a SpecFacts,
    seen: &'a Observation,
    hints: &'a Hints,
    now: Tick,
    decision: &'a Decision,
}

#[derive(Serialize)]
struct Outcomes<'a> {
    outcomes: &'a [Outcome],
}

#[derive(Serialize)]
struct Names {
    names: Numbers,
}

#[derive(Serialize)]
struct Numbers {
    numbers: BTreeMap<String, u16>,
}

#[derive(Serialize)]
struct Happened<'a> {
    happened: &'a str,
}

impl Lines {
    fn write(&mut self, kind: &'static str, now: Tick, body: &impl Serialize) {
        let line = Line {
            schema: SCHEMA,
            kind,
            time: wall(now),
            namespace: "simulated",
            name: "world",
            body,
        };
        if let Ok(line) = serde_json::to_string(&line) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    /// An operator process begins, of which so many went before: numbers are its own.
    fn begin(&mut self, now: Tick) {
        let numbers = BTreeMap::from([(format!("process {}", self.processes), 0)]);
        self.processes += 1;
        let names = Numbers { numbers };
        self.write("names", now, &Names { names });
    }

    /// A pass, if anything but time stamps and numbers that always move differs from the last one.
    fn pass(&mut self, pass: &Pass<'_>) {
        let like = (*pass.spec, still(pass.seen), pass.decision.clone());
        let news = !pass.decision.effects.is_empty() || self.last.as_ref() != Some(&like);
        if !news && !self.every {
            return;
        }
        self.last = Some(like);
        self.passes += 1;
        self.write("pass", pass.now, pass);
    }

    /// The outcomes of effects that were done since the last pass.
    fn close(&mut self, now: Tick) {
        let outcomes = std::mem::take(&mut self.outcomes);
        if !outcomes.is_empty() {
            let outcomes = &outcomes;
            self.write("outcomes", now, &Outcomes { outcomes });
        }
    }
}

/// A world whose operators write down what they do.
pub struct Recording {
    /// The world.
    pub world: World,
    brain: Brain,
    operators: Vec<Lines>,
}

impl Recording {
    /// Of a world in which this decides.
    pub fn new(world: World, brain: Brain) -> Self {
        let mut operators = vec![Lines::default(); world.operators.len()];
        for lines in &mut operators {
            lines.begin(world.now);
        }
        Self {
            world,
            brain,
            operators,
        }
    }

    /// The same, and every pass is written, also one in which nothing differs.
    #[must_use]
    pub fn of_every_pass(mut self) -> Self {
        for lines in &mut self.operators {
            lines.every = true;
        }
        self
    }

    /// What each operator wrote.
    pub fn end(mut self) -> Vec<Lines> {
        let now = self.world.now;
        for lines in &mut self.operators {
            lines.close(now);
        }
        self.operators
    }

    /// Tells all operators' traces what happens to the world.
    pub fn tell(&mut self, happened: &str) {
        let now = self.world.now;
        for lines in &mut self.operators {
            lines.close(now);
            lines.write("event", now, &Happened { happened });
        }
    }

    /// Lets something happen and judges the result.
    pub fn act(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Stretch(seconds) => {
                for _ in 0..seconds {
                    self.second()?;
                }
                Ok(())
            }
            action => one(&mut self.world, &mut self.operators, self.brain, action),
        }
    }

    /// A second in which everybody goes on.
    pub fn second(&mut self) -> Result<(), Violation> {
        let Self {
            world,
            brain,
            operators,
        } = self;
        world.second(|world, action| one(world, operators, *brain, action))
    }
}

fn one(
    world: &mut World,
    operators: &mut [Lines],
    brain: Brain,
    action: Action,
) -> Result<(), Violation> {
    match action {
        Action::Decide(o) => {
            let seen = world.observe(o);
            let decision = world.decide(o, brain)?;
            if let (Some(lines), Some(seen), Some(decision)) =
                (operators.get_mut(o), seen, decision)
            {
                lines.close(world.now);
                lines.pass(&Pass {
                    spec: &world.spec,
                    seen: &seen,
                    hints: &Hints::default(),
                    now: world.now,
                    decision: &decision,
                });
            }
        }
        Action::Execute(o) => {
            let effect = world.operators.get(o).and_then(|it| it.queue.last());
            let effect = effect.copied();
            let done = world.execute(o)?;
            if let (Some(effect), Some(lines)) = (effect, operators.get_mut(o)) {
                lines.outcomes.extend(outcome(effect, done));
            }
        }
        Action::Crash(o) => {
            if let Some(lines) = operators.get_mut(o) {
                lines.begin(world.now);
            }
            return world.act(action, brain, None);
        }
        // Another ValkeyCluster has another task.
        Action::Renew => {
            for lines in operators {
                lines.begin(world.now);
            }
            return world.act(action, brain, None);
        }
        other => return world.act(other, brain, None),
    }
    world.notice_returns();
    Ok(())
}

/// A look without what moves although nothing happens. Watches of a simulated world stamp everything anew with each look, as real
/// ones do not.
fn still(seen: &Observation) -> Observation {
    let mut still = seen.settled();
    for object in Object::ALL {
        let mut state = still.objects.state(object);
        unstamp(&mut state);
        still.objects.set(object, state);
    }
    unstamp(&mut still.objects.password);
    for pod in &mut still.pods {
        unstamp(&mut pod.object);
        unstamp(&mut pod.claim);
    }
    still
}

fn unstamp<T>(known: &mut Known<T>) {
    if let Known::Seen(stamped) = known {
        stamped.at = Tick(0);
    }
}

fn outcome(effect: Effect, done: Done) -> Option<Outcome> {
    let (outcome, why) = match done {
        Done::Nothing => return None,
        Done::Done(_) => (Ending::Done, None),
        Done::Failed(_, why) if why.contains("in time") => (Ending::TimedOut, Some(why)),
        Done::Failed(_, why) => (Ending::Failed, Some(why)),
    };
    Some(Outcome {
        effect,
        outcome,
        why,
        millis: 1,
    })
}

/// A moment of a simulated world, which begins on the first day of 2026.
fn wall(now: Tick) -> String {
    let millis = now.0.saturating_sub(1_000_000);
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    let (days, hours) = (hours / 24, hours % 24);
    format!(
        "2026-01-{:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z",
        1 + days % 31
    )
}
