//! Right decisions that are carried out wrongly.

use wellcake_core::step;

use super::Mutant;
use crate::hands::Hands;

const fn hands(name: &'static str, hands: Hands) -> Mutant {
    Mutant {
        name,
        brain: step,
        hands,
    }
}

/// All of them.
pub const EXECUTOR: &[Mutant] = &[
    hands("guards_are_not_looked_at", Hands::GuardsAreNotLookedAt),
    hands("commands_go_to_any_process", Hands::CommandsGoToAnyProcess),
    hands("own_writes_are_not_seen", Hands::OwnWritesAreNotSeen),
];
