//! How often each kind of fault and of people's wishes comes in a run.

use crate::actions::Action;
use crate::random::Numbers;

/// Kinds that have a rate of their own.
const KINDS: usize = 15;

/// The place of an event's kind; `None` for what goes on by itself.
const fn kind(action: Action) -> Option<usize> {
    Some(match action {
        Action::Kill(_) => 0,
        Action::Delete(_) => 1,
        Action::DeleteByForce(_) => 2,
        Action::Freeze(_) => 3,
        Action::Hide(_) => 4,
        Action::Cut(_) => 5,
        Action::Crash(_) => 6,
        Action::Terminate(_) => 7,
        Action::Ask(_) => 8,
        Action::Renew => 9,
        Action::Change => 10,
        Action::Resize(_) => 11,
        Action::Hibernate(true) => 12,
        Action::Isolate(_) => 13,
        Action::Poll { lost: true, .. } => 14,
        _ => return None,
    })
}

/// One of how many events of each kind happens.
#[derive(Clone, Copy, Debug)]
pub struct Rates([u64; KINDS]);

impl Rates {
    /// Every one.
    pub const ALL: Self = Self([1; KINDS]);

    /// Some kinds come up to eight times as often as others, and all of them up to 64 times rarer than in other runs: rare faults
    /// meet a cluster that is at rest again, frequent ones meet each other.
    pub fn by(numbers: &mut Numbers) -> Self {
        let all = [1, 2, 4, 16, 64][numbers.index(5)];
        Self(std::array::from_fn(|_| all << numbers.below(4)))
    }

    /// Whether an event that could happen does.
    pub fn let_happen(&self, action: Action, numbers: &mut Numbers) -> bool {
        let one_of = kind(action).and_then(|kind| self.0.get(kind).copied());
        one_of.is_none_or(|one_of| one_of == 1 || numbers.below(one_of) == 0)
    }
}
