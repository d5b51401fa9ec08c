//! Every order of events in a scope, nearest first.
//!
//! * [`scope`]: what may happen, and how much of it;
//! * [`digest`](mod@digest): when two worlds are the same;
//! * [`visited`]: the worlds that were seen, 16 bytes for each;
//! * [`tree`]: the shortest way to each of them, two bytes for each;
//! * [`rest`]: whether a world comes to rest without faults.

pub mod digest;
pub mod rest;
pub mod scope;
pub mod tree;
pub mod visited;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::actions::Action;
use crate::copies::Part;
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{heal, perform, settle};
use crate::world::World;

use digest::{Names, digest};
use rest::Rest;
use scope::{Budget, Scope};
use tree::{Grown, Tree, Walker};
use visited::Visited;

/// Pieces of a layer that each thread takes on average: enough for all to end at about the same time.
const PIECES: usize = 16;

/// How a search is done.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Threads.
    pub threads: usize,
    /// Whether every world must come to rest without faults.
    pub rest: bool,
    /// Worlds after which the search is given up; `None` for none.
    pub most: Option<u64>,
}

/// How far a search is; others may look while it goes on.
#[derive(Debug, Default)]
pub struct Progress {
    /// Different worlds.
    pub states: AtomicU64,
    /// Events tried.
    pub events: AtomicU64,
    /// Turns without faults.
    pub turns: AtomicU64,
    /// Decisions, in events and in turns.
    pub decisions: AtomicU64,
    /// Events on the way to the farthest worlds.
    pub depth: AtomicU64,
    /// Worlds in the layer that is being left.
    pub frontier: AtomicU64,
}

/// What a search has seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Different worlds.
    pub states: u64,
    /// Events tried.
    pub events: u64,
    /// Turns of the check that every world comes to rest.
    pub turns: u64,
    /// Decisions of the core, each of them made anew.
    pub decisions: u64,
    /// Events on the shortest way to the farthest world.
    pub depth: u32,
    /// Events on that way.
    pub farthest: Vec<Action>,
    /// Whether nothing new can happen any more in the scope.
    pub complete: bool,
    /// How long it took.
    pub took: Duration,
    /// Bytes of the set of worlds that were seen, at the end.
    pub visited_bytes: usize,
    /// Bytes of the ways to them.
    pub tree_bytes: usize,
    /// Bytes of the worlds that are known to come to rest.
    pub rest_bytes: usize,
}

/// An invariant that did not hold, with the events that lead there; the last one breaks it, or after all of them rest is not
/// reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What did not hold.
    pub violation: Violation,
    /// Events from the start of the scope.
    pub events: Vec<Action>,
}

struct Search<'a> {
    scope: &'a Scope,
    brain: Brain,
    way: Way,
    visited: Visited,
    rest: Rest,
    progress: &'a Progress,
    over: AtomicBool,
}

/// Events from the start of a scope in words, with what was decided and what became of it. With `rest`, what happens then
/// without faults follows, unless one of the events breaks an invariant.
pub fn story(
    scope: &Scope,
    events: &[Action],
    brain: Brain,
    rest: bool,
) -> Result<String, Violation> {
    Ok(story_from(scope.world()?, events, brain, rest))
}

/// The same from another start.
pub fn story_from(mut world: World, events: &[Action], brain: Brain, rest: bool) -> String {
    let mut text = String::new();
    for event in events {
        if perform(&mut world, *event, brain, Some(&mut text)).is_err() {
            return text;
        }
    }
    if rest {
        text.push_str("and then, without faults:\n");
        let ended = heal(&mut world, brain, Some(&mut text))
            .and_then(|()| settle(&mut world, brain, Some(&mut text)));
        if let Err(violation) = ended {
            let _ = writeln!(text, "VIOLATION {violation}");
        }
    }
    text
}

/// Tries every order of events of a scope, nearest first.
pub fn search(scope: &Scope, brain: Brain, way: Way, progress: &Progress) -> Result<Seen, Broken> {
    let start = scope.world().map_err(|violation| Broken {
        violation,
        events: Vec::new(),
    })?;
    search_from(start, scope, brain, way, progress)
}

/// The same from another start than that of the scope.
pub fn search_from(
    start: World,
    scope: &Scope,
    brain: Brain,
    way: Way,
    progress: &Progress,
) -> Result<Seen, Broken> {
    let begun = Instant::now();
    let search = Search {
        scope,
        brain,
        way,
        visited: Visited::default(),
        rest: Rest::default(),
        progress,
        over: AtomicBool::new(false),
    };
    let mut names = Names::default();
    search
        .visited
        .insert(digest(&start, Budget::default().as_word(), &mut names));
    progress.states.fetch_add(1, Ordering::Relaxed);
    let mut tree = Tree::new(start);
    let mut depth = 0;
    while !search.over.load(Ordering::Relaxed) && (scope.depth == 0 || depth < scope.depth) {
        let fresh = search.layer(&mut tree)?;
        if fresh == 0 {
            break;
        }
        depth += 1;
        progress.depth.store(u64::from(depth), Ordering::Relaxed);
    }
    Ok(Seen {
        states: progress.states.load(Ordering::Relaxed),
        events: progress.events.load(Ordering::Relaxed),
        turns: progress.turns.load(Ordering::Relaxed),
        decisions: progress.decisions.load(Ordering::Relaxed),
        depth,
        farthest: tree.farthest(scope, brain),
        complete: !search.over.load(Ordering::Relaxed),
        took: begun.elapsed(),
        visited_bytes: search.visited.bytes(),
        tree_bytes: tree.bytes(),
        rest_bytes: search.rest.bytes(),
    })
}

impl Search<'_> {
    /// Leaves every world of the last layer by everything that may happen. Answers how many worlds are new.
    fn layer(&self, tree: &mut Tree) -> Result<usize, Broken> {
        let states = self.progress.states.load(Ordering::Relaxed);
        self.progress
            .frontier
            .store(tree.last_layer() as u64, Ordering::Relaxed);
        self.move_base(tree, states);
        let pieces = tree.pieces(self.way.threads * PIECES);
        let next = AtomicUsize::new(0);
        let grown = Mutex::new(Vec::new());
        let broken = Mutex::new(None);
        std::thread::scope(|threads| {
            for _ in 0..self.way.threads {
                threads.spawn(|| {
                    let (mut names, mut after) = (Names::default(), tree.start().clone());
                    while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut growth = Grown::new(piece);
                        let mut walker = Walker::new(tree, piece, self.scope, self.brain);
                        let outcome = walker.each(tree.depth(), |world, spent, moves| {
                            self.leave(world, spent, moves, (&mut names, &mut after), &mut growth)
                        });
                        if let Err((violation, last)) = outcome {
                            self.over.store(true, Ordering::Relaxed);
                            let events = walker.way(last);
                            keep(&broken, Broken { violation, events });
                        }
                        keep_all(&grown, growth);
                        if self.over.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
        });
        if let Some(broken) = broken.into_inner().ok().flatten() {
            return Err(broken);
        }
        Ok(tree.grow(grown.into_inner().unwrap_or_default()))
    }

    /// Worlds themselves are kept of one layer only, so few that they do not count; those of later layers are made again from
    /// them.
    fn move_base(&self, tree: &mut Tree, states: u64) {
        if let Some(depth) = tree.better_base(states) {
            let mut worlds = Vec::new();
            for piece in tree.pieces(1) {
                let mut walker = Walker::new(tree, &piece, self.scope, self.brain);
                let _ = walker.each(depth, |world, spent, _| {
                    worlds.push((world.clone(), spent));
                    Ok::<(), (Violation, Action)>(())
                });
            }
            tree.set_base(depth, worlds);
        }
    }

    /// Tries everything that may happen in a world.
    fn leave(
        &self,
        world: &World,
        spent: Budget,
        moves: &mut Vec<(Action, Budget)>,
        (names, after): (&mut Names, &mut World),
        growth: &mut Grown,
    ) -> Result<(), (Violation, Action)> {
        self.scope.enabled(world, spent, moves);
        let mut differs = Part::Any;
        let (mut fresh, mut turns_made, mut decisions) = (0, 0, 0);
        for (index, (action, spent)) in moves.iter().enumerate() {
            after.restore(world, differs);
            differs = Part::changed_by(*action);
            let outcome = after.act(*action, self.brain, None);
            outcome.map_err(|violation| (violation, *action))?;
            decisions += u64::from(matches!(action, Action::Decide(_)));
            if !self.visited.insert(digest(after, spent.as_word(), names)) {
                continue;
            }
            fresh += 1;
            growth.push(index);
            if self.way.rest {
                differs = Part::Any;
                let turns = self.rest.reached_from(after, self.brain, names);
                let (more, decided) = turns.map_err(|violation| (violation, *action))?;
                turns_made += more;
                decisions += decided;
            }
        }
        growth.close(fresh);
        let progress = self.progress;
        progress.turns.fetch_add(turns_made, Ordering::Relaxed);
        progress.decisions.fetch_add(decisions, Ordering::Relaxed);
        progress
            .events
            .fetch_add(moves.len() as u64, Ordering::Relaxed);
        let states = progress.states.fetch_add(fresh, Ordering::Relaxed) + fresh;
        if self.way.most.is_some_and(|most| states >= most) {
            self.over.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn keep(place: &Mutex<Option<Broken>>, broken: Broken) {
    if let Ok(mut place) = place.lock() {
        place.get_or_insert(broken);
    }
}

fn keep_all(place: &Mutex<Vec<Grown>>, grown: Grown) {
    if let Ok(mut place) = place.lock() {
        place.push(grown);
    }
}
