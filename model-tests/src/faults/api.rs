//! What the API server answers to writes. Each answer means that nothing was written, but for a lost answer to a write that was.

use serde::{Deserialize, Serialize};
use wellcake_core::effects::{Decision, Effect, Lane, Verb};
use wellcake_core::exec;
use wellcake_core::facts::{Hints, Object, ObjectState, Observation};

use super::kind::Kind;
use crate::invariants::Violation;
use crate::world::World;

/// An answer to a write (Kubernetes API conventions, "HTTP Status codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// 409: the object is another by now.
    Conflict,
    /// 422: an admission rule refuses it.
    Invalid,
    /// 403: a quota or a missing permission forbids it.
    Forbidden,
    /// 429: come again later; to an eviction also where a disruption budget allows none (API-initiated eviction).
    TooMany,
    /// 500.
    Internal,
    /// None: the request was lost.
    Lost,
    /// None: it was done, and the answer was lost.
    AnswerLost,
}

impl Answer {
    /// All answers.
    pub const ALL: [Self; 7] = [
        Self::Conflict,
        Self::Invalid,
        Self::Forbidden,
        Self::TooMany,
        Self::Internal,
        Self::Lost,
        Self::AnswerLost,
    ];

    /// The kind of fault that it is.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Conflict => Kind::WriteConflicts,
            Self::Invalid => Kind::WriteNotAdmitted,
            Self::Forbidden => Kind::WriteForbidden,
            Self::TooMany => Kind::WriteThrottled,
            Self::Internal => Kind::WriteFails,
            Self::Lost => Kind::WriteLost,
            Self::AnswerLost => Kind::WriteAnswerLost,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Conflict => "409: the object has been modified",
            Self::Invalid => "422: an admission rule refuses it",
            Self::Forbidden => "403: forbidden",
            Self::TooMany => "429: too many requests",
            Self::Internal => "500: internal error",
            Self::Lost | Self::AnswerLost => "no answer in time",
        }
    }
}

/// What a write to the API server is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The status of the ValkeyCluster.
    Status,
    /// The selector of a Service.
    Route,
    /// An annotation of a claim.
    Claim,
    /// A label of a pod.
    Label,
    /// An eviction.
    Eviction,
    /// The replicas of the StatefulSet.
    Scale,
    /// An object.
    Object,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 7] = [
        Self::Status,
        Self::Route,
        Self::Claim,
        Self::Label,
        Self::Eviction,
        Self::Scale,
        Self::Object,
    ];

    /// What an effect writes, if it is one on Kubernetes.
    pub const fn of(verb: Verb) -> Option<Self> {
        Some(match verb {
            Verb::RecordPrimary { .. } | Verb::MarkPrimaryDown { .. } | Verb::ReleaseFinalizer => {
                Self::Status
            }
            Verb::SetRoute { .. } => Self::Route,
            Verb::KeepRecord { .. } | Verb::GrowVolume { .. } => Self::Claim,
            Verb::SetLabel { .. } => Self::Label,
            Verb::Evict { .. } => Self::Eviction,
            Verb::ScaleIn { .. } => Self::Scale,
            Verb::CreateCredentials
            | Verb::Apply(_)
            | Verb::Delete(_)
            | Verb::GoBackToConfig
            | Verb::DeleteOldConfig => Self::Object,
            _ => return None,
        })
    }
}

impl World {
    /// An effect of operator `o` is carried out, or the API server answers something else to it.
    pub(crate) fn carry_out_or_not(
        &mut self,
        o: usize,
        effect: &Effect,
        seen: &Observation,
    ) -> Result<Result<(), String>, Violation> {
        let Some((class, answer)) = self.answer_to(o, effect.verb) else {
            return self.carry_out(o, effect, seen);
        };
        self.faults_mut().fired.note_answer(class, answer);
        if answer == Answer::AnswerLost {
            let before = self.operators.get(o).map(|operator| {
                (
                    operator.cache.clone(),
                    operator.pods.clone(),
                    operator.replicas,
                )
            });
            let _done = self.carry_out(o, effect, seen)?;
            if let (Some(operator), Some((cache, pods, replicas))) =
                (self.operators.get_mut(o), before)
            {
                operator.cache = cache;
                operator.pods = pods;
                operator.replicas = replicas;
            }
        }
        Ok(Err(answer.words().to_owned()))
    }

    fn answer_to(&mut self, o: usize, verb: Verb) -> Option<(Class, Answer)> {
        let class = Class::of(verb)?;
        let answers = &mut self.faults.as_deref_mut()?.operators.get_mut(o)?.answers;
        let (answer, left) = (*answers)?;
        *answers = left
            .checked_sub(1)
            .filter(|left| *left > 0)
            .map(|left| (answer, left));
        Some((class, answer))
    }

    /// What operator `o` remembers; nothing in worlds of searches, where it is always lost.
    pub(crate) fn hints(&self, o: usize) -> Hints {
        self.on_operator(o)
            .map_or_else(Hints::default, |it| it.hints)
    }

    /// Operator `o` has decided anew.
    pub(crate) fn note_decision(&mut self, o: usize, decision: &Decision) {
        let now = self.now;
        if let Some(faults) = self.faults.as_deref_mut() {
            let operator = faults.operator(o);
            let hints = exec::after_safety(operator.hints, decision, false, now);
            operator.hints = hints;
            let failed = exec::after_safety(Hints::default(), decision, true, now);
            operator.hands_over = failed != Hints::default();
        }
    }

    /// What operator `o` remembers of how an effect ended.
    pub(crate) fn remember(&mut self, o: usize, effect: &Effect, done: bool) {
        let now = self.now;
        let Some(faults) = self.faults.as_deref_mut() else {
            return;
        };
        let operator = faults.operator(o);
        let lane = effect.verb.lane();
        if lane == Lane::Provisioning {
            operator.hints = exec::after_batch(operator.hints, &[(effect.verb.kind(), done)], now);
        } else if !done && operator.hands_over {
            operator.hints.handover_failed_at = Some(now);
        }
    }

    /// An object is made what it should be.
    pub(crate) fn apply_object(&mut self, object: Object) {
        let elsewhere = self.made_elsewhere && self.template == 0;
        let now = self.now;
        if let Some(faults) = self.faults.as_deref_mut() {
            let roll = faults.arranged.roll;
            let state = *faults.object(object);
            if object == Object::Config && state == Some(ObjectState::Differs) {
                faults.arranged.old_configs = 1;
            }
            let kept = state == Some(ObjectState::Kept);
            let keeps = object == Object::StatefulSet && elsewhere && !kept;
            *faults.object(object) = Some(match keeps {
                true => ObjectState::Kept,
                false => ObjectState::Matches,
            });
            faults.changed_at = now;
            if object == Object::StatefulSet && elsewhere && roll && !keeps {
                self.template = 1;
            }
        }
        if object == Object::StatefulSet {
            self.apply_replicas();
        }
    }

    /// An object that is not wanted goes.
    pub(crate) fn remove_object(&mut self, object: Object) {
        if let Some(faults) = self.faults.as_deref_mut() {
            *faults.object(object) = Some(ObjectState::NotWanted);
        }
    }

    /// Whether an object is there.
    pub(crate) fn is_there(&self, object: Object) -> bool {
        let faults = self.faults.as_deref();
        faults.is_none_or(|faults| faults.objects[object as usize].is_some())
    }
}
