//! What must hold right before a command is sent.

use wellcake_core::effects::{Effect, Verb};
use wellcake_core::facts::{Observation, Ordinal, PodUid};
use wellcake_core::reasons::Reason;

use crate::invariants::{self, Violation};
use crate::servers::Command;
use crate::world::World;

impl World {
    /// Judges a command of operator `o` to the server of a pod with this uid. What a person ordered costs what it costs.
    pub(crate) fn judge(
        &self,
        o: usize,
        (pod, uid): (Ordinal, PodUid),
        effect: &Effect,
        seen: &Observation,
        command: Command,
    ) -> Result<(), Violation> {
        match command {
            Command::Promote { epoch, .. } if self.is_ordered(effect.guard.epoch) => {
                invariants::one_promotion_per_epoch(self, uid, epoch)?;
            }
            Command::Promote { epoch, silent } => {
                invariants::before_promotion(self, o, (pod.index(), uid), epoch, silent)?;
                self.judge_promotion(o, uid, effect.reason, seen)?;
            }
            _ => {}
        }
        match effect.verb {
            Verb::Follow { primary, .. } if effect.reason == Reason::SecondPrimaryDemoted => {
                invariants::discarded::is_counted(self, seen, ((pod, uid), primary))
            }
            Verb::Follow { .. } => invariants::discarded::is_told(self, seen, (pod, uid)),
            Verb::StepDown { .. } => {
                invariants::planned::nobody_steps_down_in_vain(self, effect, seen)
            }
            _ => Ok(()),
        }
    }

    fn judge_promotion(
        &self,
        o: usize,
        uid: PodUid,
        reason: Reason,
        seen: &Observation,
    ) -> Result<(), Violation> {
        invariants::patience::nobody_who_is_gone_answers(self, o, uid, reason)?;
        if reason == Reason::PrimaryGone
            && let Some(before) = seen.record.and_then(|record| record.served)
        {
            invariants::silence::nobody_follows(self, o, before.pod_uid)?;
        }
        invariants::planned_moves_are_lossless(self, uid, reason)?;
        invariants::planned::successor_has_it_on_its_volume(self, uid, reason)
    }
}
