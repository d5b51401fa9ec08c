//! Everything that could have happened from one pass on: the world of the pass, and every order of events within a bound.

use crate::actions::Action;
use crate::hands::Hands;
use crate::operator::Brain;
use crate::recorded::Moment;
use crate::search::scope::{Budget, Fault, Looks, Scope, Start};
use crate::search::{Broken, Progress, Seen, Way, search_from, story_from};
use crate::world::World;

use super::lift::{NotLifted, lift};

/// Most pods of a world whose events a search can number.
pub const PODS: usize = 12;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Faults.
    pub faults: u8,
    /// Writes of clients.
    pub writes: u8,
    /// Times that so many milliseconds pass.
    pub spans: (u8, u64),
    /// Longest order of events; 0 stands for any.
    pub depth: u32,
}

/// What is searched, and where it begins.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The world of the pass.
    pub start: World,
    scope: Scope,
}

impl Branch {
    /// From a moment on.
    pub fn of(moment: &Moment, bound: Bound) -> Result<Self, NotLifted> {
        let start = lift(moment)?;
        if start.pods.len() > PODS {
            return Err(NotLifted::Pods);
        }
        let epoch = start.api.record.map_or(0, |record| record.epoch.0);
        let scope = Scope {
            about: String::new(),
            pods: moment.spec.pods,
            disk: start.disk,
            profile: moment.spec.profile,
            hands: Hands::Right,
            operators: start.operators.len(),
            start: Start::Settled,
            looks: Looks::Whole,
            faults: vec![
                Fault::Kill,
                Fault::Delete,
                Fault::DeleteByForce,
                Fault::Freeze,
                Fault::Crash,
            ],
            wishes: Vec::new(),
            spans: vec![bound.spans.1],
            most: Budget {
                faults: bound.faults,
                wishes: 0,
                writes: bound.writes,
                spans: bound.spans.0,
            },
            // The next promotion, and what may follow from that.
            epochs: epoch.saturating_add(1),
            depth: bound.depth,
            found: None,
        };
        Ok(Self { start, scope })
    }

    /// Tries every order of events, nearest first.
    pub fn search(&self, brain: Brain, way: Way, progress: &Progress) -> Result<Seen, Broken> {
        search_from(self.start.clone(), &self.scope, brain, way, progress)
    }

    /// Events from the pass on in words.
    pub fn story(&self, events: &[Action], brain: Brain, rest: bool) -> String {
        story_from(self.start.clone(), events, brain, rest)
    }
}
