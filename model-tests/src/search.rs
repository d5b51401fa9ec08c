//! Every order of events at small scope.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::actions::Action;
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::settle;
use crate::world::World;

/// What a search has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Different worlds.
    pub worlds: usize,
    /// Events tried.
    pub events: usize,
    /// Worlds from which rest was reached again.
    pub settled: usize,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Longest order of events.
    pub depth: u32,
    /// Most faults in it.
    pub faults: u32,
    /// Most worlds.
    pub worlds: usize,
    /// Every how many worlds one is followed until it comes to rest.
    pub settle_every: usize,
}

struct Node {
    world: World,
    faults: u32,
    path: Vec<Action>,
}

/// Tries every order of events from `start`, nearest first. An error comes with the events that lead to it.
pub fn search(start: World, scope: Scope, brain: Brain) -> Result<Seen, (Violation, Vec<Action>)> {
    let mut visited = HashSet::new();
    let mut seen = Seen::default();
    let mut frontier = vec![Node {
        world: start,
        faults: 0,
        path: Vec::new(),
    }];
    for _ in 0..scope.depth {
        let mut next = Vec::new();
        for node in &frontier {
            for action in enabled(&node.world, node.faults < scope.faults) {
                seen.events += 1;
                let mut world = node.world.clone();
                let mut path = node.path.clone();
                path.push(action);
                if let Err(violation) = world.apply(action, brain) {
                    return Err((violation, path));
                }
                let faults = node.faults + u32::from(action.is_fault());
                if !visited.insert(digest(&world, faults)) {
                    continue;
                }
                seen.worlds += 1;
                if seen.worlds % scope.settle_every == 0 {
                    comes_to_rest(world.clone(), brain).map_err(|v| (v, path.clone()))?;
                    seen.settled += 1;
                }
                if seen.worlds >= scope.worlds {
                    return Ok(seen);
                }
                next.push(Node {
                    world,
                    faults,
                    path,
                });
            }
        }
        frontier = next;
    }
    Ok(seen)
}

fn comes_to_rest(mut world: World, brain: Brain) -> Result<(), Violation> {
    world.apply(Action::Reap, brain)?;
    for n in 0..world.pods.len() {
        for action in [
            Action::Thaw(n),
            Action::Start(n),
            Action::Recreate(n),
            Action::Report(n),
        ] {
            world.apply(action, brain)?;
        }
    }
    settle(&mut world, brain, None).map(|_| ())
}

fn digest(world: &World, faults: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    faults.hash(&mut hasher);
    hasher.finish()
}

/// Events that change something: at this scope one operator looks at everything at once and decides after each look.
fn enabled(world: &World, faults: bool) -> Vec<Action> {
    let mut actions = vec![Action::Look(0), Action::Write, Action::Advance(1_000)];
    match world.operators.first() {
        Some(operator) if !operator.queue.is_empty() => actions.push(Action::Execute(0)),
        _ => actions.push(Action::Decide(0)),
    }
    for (n, pod) in world.pods.iter().enumerate() {
        match &pod.process {
            Some(process) if !process.primary => actions.push(Action::Replicate(n)),
            Some(_) => {}
            None if pod.exists => actions.push(Action::Start(n)),
            None => actions.push(Action::Recreate(n)),
        }
        if faults && pod.process.is_some() {
            actions.extend([Action::Kill(n), Action::DeleteByForce(n)]);
        }
    }
    if faults {
        actions.push(Action::Crash(0));
    }
    if world.leader().is_none() {
        actions.push(Action::Elect(0));
    }
    actions
}
