//! A run as a sequence diagram.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;

use wellcake_core::effects::{Decision, Effect, Verb};
use wellcake_core::facts::{Hints, Observation, SpecFacts, Tick};
use wellcake_core::step;

use super::saved::Saved;
use crate::actions::Action;
use crate::invariants::Violation;
use crate::museum::page::{decision_in_words, in_words};
use crate::operator::{Brain, Done};
use crate::random::{heal, settle};
use crate::world::World;

thread_local! {
    static DECIDES: Cell<Brain> = const { Cell::new(step) };
    static DECIDED: RefCell<Vec<Decision>> = const { RefCell::new(Vec::new()) };
}

/// Decides as [`DECIDES`] does and keeps what was decided.
fn noted(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let decision = DECIDES.get()(spec, seen, hints, now);
    DECIDED.with_borrow_mut(|decided| decided.push(decision.clone()));
    decision
}

/// The diagram in the language of Mermaid: the world around, clients, operators, the API server and pods; what happens, what was
/// decided, and what broke.
pub fn sequence(saved: &Saved, brain: Brain) -> String {
    DECIDES.set(brain);
    let mut world = saved.head.start.world();
    let mut diagram = Diagram::new(world.pods.len());
    let broken = tell(saved, &mut world, &mut diagram).err();
    DECIDED.take();
    let end = broken.map_or_else(
        || "No invariant breaks.".to_owned(),
        |violation| violation.to_string(),
    );
    diagram.note(&end);
    diagram.text
}

fn tell(saved: &Saved, world: &mut World, diagram: &mut Diagram) -> Result<(), Violation> {
    settle(world, noted, None)?;
    DECIDED.take();
    diagram.note("The cluster is at rest.");
    for event in &saved.events {
        diagram.event(world, *event)?;
    }
    diagram.note("Every fault that can end does so, and everybody goes on.");
    let ended = heal(world, noted, None).and_then(|()| settle(world, noted, None));
    diagram.decisions(world.leader().unwrap_or(0));
    ended.map(|_| ())
}

/// The text so far.
struct Diagram {
    text: String,
    pods: usize,
    /// What was decided last, which is not told again.
    before: Vec<String>,
}

impl Diagram {
    fn new(pods: usize) -> Self {
        let mut text =
            "sequenceDiagram\n    participant W as the world\n    participant C as clients\n"
                .to_owned();
        for operator in 0..2 {
            let _ = writeln!(text, "    participant O{operator} as operator {operator}");
        }
        text.push_str("    participant A as API server\n");
        for pod in 0..pods {
            let _ = writeln!(text, "    participant P{pod} as pod {pod}");
        }
        Self {
            text,
            pods,
            before: Vec::new(),
        }
    }

    fn line(&mut self, who: &str, words: &str) {
        let _ = writeln!(self.text, "    {who}: {}", clean(words));
    }

    fn note(&mut self, words: &str) {
        let last = self.pods.saturating_sub(1);
        self.line(&format!("Note over W,P{last}"), words);
    }

    fn event(&mut self, world: &mut World, event: Action) -> Result<(), Violation> {
        if let Action::Execute(o) = event {
            let queue = world.operators.get(o).map(|operator| &operator.queue);
            let effect = queue.and_then(|queue| queue.last()).copied();
            let outcome = world.execute(o);
            if let Some(effect) = effect {
                self.effect(o, &effect, outcome.as_ref().ok());
            }
            outcome?;
            world.notice_returns();
            return Ok(());
        }
        let acks = world.acks.len();
        let outcome = world.apply(event, noted);
        self.words(event, world, acks);
        self.decisions(decider(event, world));
        outcome.map(|_| ())
    }

    /// What happens, but for an effect.
    fn words(&mut self, event: Action, world: &World, acks: usize) {
        match event {
            Action::Look(o) => self.line(&format!("Note over O{o}"), "looks at everything"),
            Action::Watch(o) => self.line(&format!("A->>O{o}"), "newest objects"),
            Action::Poll {
                operator,
                pod,
                lost,
            } => {
                let arrow = if lost { "--x" } else { "-->>" };
                let words = if lost { "answer is lost" } else { "answers" };
                self.line(&format!("P{pod}{arrow}O{operator}"), words);
            }
            Action::Replicate(n) => {
                let upstream = world
                    .pods
                    .get(n)
                    .and_then(|pod| pod.process.as_ref()?.upstream);
                let from = world
                    .pods
                    .iter()
                    .position(|pod| pod.exists && Some(pod.addr) == upstream);
                match from {
                    Some(from) => self.line(&format!("P{from}->>P{n}"), "replication"),
                    None => self.line(&format!("Note over P{n}"), "copies from nobody"),
                }
            }
            Action::Write => match world.acks.get(acks).map(|ack| ack.pod) {
                Some(uid) => {
                    let by = world.pods.iter().position(|pod| pod.uid == uid);
                    let by = by.map_or_else(|| "W".to_owned(), |n| format!("P{n}"));
                    self.line(&format!("{by}-->>C"), "a write is acknowledged");
                }
                None => self.line("Note over C", "a write is not acknowledged"),
            },
            Action::Decide(_) => {}
            Action::Advance(ms) => self.note(&format!("{ms} ms pass.")),
            other => {
                let words = in_words(other).unwrap_or_else(|| format!("{other:?}"));
                self.line("Note over W", &words);
            }
        }
    }

    /// What an operator decided since, unless it was the same as before.
    fn decisions(&mut self, operator: usize) {
        for decision in DECIDED.take() {
            let lines = decision_in_words(&decision);
            if lines != self.before && !lines.is_empty() {
                self.line(&format!("Note over O{operator}"), &lines.join("<br/>"));
            }
            self.before = lines;
        }
    }

    fn effect(&mut self, operator: usize, effect: &Effect, done: Option<&Done>) {
        let to = pod_of(effect.verb).map_or_else(|| "A".to_owned(), |pod| format!("P{pod}"));
        let kind = effect.verb.kind().as_str();
        match done {
            Some(Done::Failed(_, why)) => {
                self.line(&format!("O{operator}-x{to}"), &format!("{kind} ({why})"));
            }
            _ => self.line(&format!("O{operator}->>{to}"), kind),
        }
    }
}

/// The operator that decides in an event.
fn decider(event: Action, world: &World) -> usize {
    match event {
        Action::Decide(o) => o,
        _ => world.leader().unwrap_or(0),
    }
}

/// The pod whose server gets a command.
fn pod_of(verb: Verb) -> Option<usize> {
    match verb {
        Verb::Promote { pod }
        | Verb::Follow { pod, .. }
        | Verb::StepDown { pod }
        | Verb::Open { pod }
        | Verb::PauseWrites { pod }
        | Verb::ResumeWrites { pod }
        | Verb::AwaitCopy { pod, .. }
        | Verb::CloseClients { pod }
        | Verb::Detach { pod }
        | Verb::NeedReplica { pod, .. }
        | Verb::Configure { pod }
        | Verb::Fence { pod } => Some(pod.index()),
        _ => None,
    }
}

/// Words on one line without what Mermaid takes for its own.
fn clean(words: &str) -> String {
    let mut text = words.replace(';', ",").replace('\n', " ");
    text.retain(|c| !matches!(c, '#' | '`'));
    text
}
