//! Whether the present core decides the same on the same facts.

use wellcake_core::effects::Decision;

use crate::explain::why::{Fact, Given, make_the_difference, rests_on};
use crate::recorded::Moment;

/// A pass that is decided otherwise now.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Number of its line.
    pub line: usize,
    /// Wall clock.
    pub time: String,
    /// What was decided then.
    pub then: Decision,
    /// What the present core decides.
    pub now: Decision,
}

impl Difference {
    /// Of a moment, if there is one.
    pub fn of(moment: &Moment) -> Option<Self> {
        let now = moment.decided_otherwise()?;
        Some(Self {
            line: moment.line,
            time: moment.time.clone(),
            then: moment.decision.clone(),
            now,
        })
    }
}

/// The facts that cause a difference: those without any one of which the present core would decide as it was decided then. Where
/// no single one does that, those without which it would not decide what it does.
pub fn causes(moment: &Moment) -> Vec<Fact> {
    let given = Given {
        spec: moment.spec,
        seen: moment.seen.clone(),
        hints: moment.hints,
        now: moment.now,
    };
    let alone = make_the_difference(&given, &moment.decision);
    if !alone.is_empty() {
        return alone;
    }
    let now = given.decide();
    rests_on(&given, |decision| *decision == now)
}
