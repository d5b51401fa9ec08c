//! All operations with all crash points.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::invariants::Violation;
use crate::operator::Brain;

use super::Point;
use super::operations::{OPERATIONS, Operation, PLACES, Place};

/// What was tried of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// The operation.
    pub name: &'static str,
    /// Runs with one end of the operator.
    pub points: u64,
    /// Runs with two.
    pub pairs: u64,
    /// Turns of half a second in all of them.
    pub turns: u64,
    /// What broke.
    pub broken: Vec<Broken>,
}

/// A run in which something broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where it was done.
    pub place: Place,
    /// Where the operator ended.
    pub points: Vec<Point>,
    /// Whether another operator took over.
    pub other: bool,
    /// What broke.
    pub violation: Violation,
    /// Every event and decision.
    pub story: String,
}

/// Tries every operation in every place with an end of the operator at every crash point, and with a second at every one after
/// that if `pairs` says so. `shown` is called with the number of parts that are done, and of all.
pub fn all(
    brain: Brain,
    pairs: bool,
    threads: usize,
    shown: impl Fn(usize, usize) + Sync,
) -> Vec<Tried> {
    let mut parts = Vec::new();
    for (at, operation) in OPERATIONS.iter().enumerate() {
        for place in PLACES.into_iter().filter(|place| operation.is_for(*place)) {
            parts.extend([false, true].map(|other| (at, operation, place, other)));
        }
    }
    let tried: Vec<Mutex<Tried>> = OPERATIONS
        .iter()
        .map(|operation| {
            Mutex::new(Tried {
                name: operation.name,
                ..Tried::default()
            })
        })
        .collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((at, operation, place, other)) =
                    parts.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let part = Part {
                        operation,
                        place: *place,
                        other: *other,
                        brain,
                    };
                    let own = part.run(pairs);
                    if let Some(Ok(mut sum)) = tried.get(*at).map(Mutex::lock) {
                        sum.add(own);
                    }
                    shown(done.fetch_add(1, Ordering::Relaxed) + 1, parts.len());
                }
            });
        }
    });
    let whole = tried.into_iter().filter_map(|sum| sum.into_inner().ok());
    whole.collect()
}

/// The first violation in an operation with one end of the operator at each crash point, and the number of runs until then.
pub fn first(operation: &Operation, brain: Brain) -> (u64, Option<Violation>) {
    let mut runs = 0;
    for place in PLACES.into_iter().filter(|place| operation.is_for(*place)) {
        for other in [false, true] {
            let part = Part {
                operation,
                place,
                other,
                brain,
            };
            let mut tried = Tried::default();
            for point in part.next_points(&mut tried, &[]) {
                if tried.broken.is_empty() {
                    tried.points += 1;
                    part.next_points(&mut tried, &[point]);
                }
            }
            runs += tried.points + 1;
            if let Some(broken) = tried.broken.into_iter().next() {
                return (runs, Some(broken.violation));
            }
        }
    }
    (runs, None)
}

impl Tried {
    fn add(&mut self, other: Self) {
        self.points += other.points;
        self.pairs += other.pairs;
        self.turns += other.turns;
        self.broken.extend(other.broken);
    }
}

struct Part<'a> {
    operation: &'a Operation,
    place: Place,
    other: bool,
    brain: Brain,
}

impl Part<'_> {
    fn run(&self, pairs: bool) -> Tried {
        let mut tried = Tried::default();
        for point in self.next_points(&mut tried, &[]) {
            tried.points += 1;
            let second = self.next_points(&mut tried, &[point]);
            for next in second.into_iter().filter(|_| pairs) {
                tried.pairs += 1;
                self.next_points(&mut tried, &[point, next]);
            }
        }
        tried
    }

    /// Does it with these ends. Answers where it may end next.
    fn next_points(&self, tried: &mut Tried, points: &[Point]) -> Vec<Point> {
        match self
            .operation
            .run(self.place, points, self.other, self.brain)
        {
            Ok(outcome) => {
                tried.turns += u64::from(outcome.turns);
                let each = |effect| [false, true].map(|after| Point { effect, after });
                (0..outcome.effects).flat_map(each).collect()
            }
            Err(violation) => {
                let story = self
                    .operation
                    .story(self.place, points, self.other, self.brain);
                tried.broken.push(Broken {
                    place: self.place,
                    points: points.to_vec(),
                    other: self.other,
                    violation,
                    story,
                });
                Vec::new()
            }
        }
    }
}
