//! How an operator carries effects out: as production does, or with one fault on purpose.

use wellcake_core::effects::{Effect, GuardFailure};
use wellcake_core::exec::{self, Authority};
use wellcake_core::facts::{Observation, Tick};

/// How an operator carries effects out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hands {
    /// As production does.
    #[default]
    Right,
    /// Guards are not looked at: what was planned is done.
    GuardsAreNotLookedAt,
    /// A command goes to whatever process the pod has by now.
    CommandsGoToAnyProcess,
    /// What an operator wrote itself it does not see before its next look.
    OwnWritesAreNotSeen,
}

impl Hands {
    /// Whether an effect may be done now.
    pub fn admit(
        self,
        effect: &Effect,
        seen: &Observation,
        authority: Authority,
        now: Tick,
    ) -> Result<(), GuardFailure> {
        match self {
            Self::GuardsAreNotLookedAt if authority.holds(now) => Ok(()),
            _ => exec::admit(effect, seen, authority, now),
        }
    }
}
