//! What a cluster's task tells while it works: events and counts, each when something begins, none while it lasts.

use std::collections::BTreeSet;
use std::sync::Arc;

use wellcake_core::discarded::{self, Discarded};
use wellcake_core::effects::{Decision, Effect, Note, Verb};
use wellcake_core::facts::{Ordinal, Unserved};
use wellcake_core::reasons::{Nature, Reason};
use wellcake_core::status::{Words, sentence};

use crate::events::{About, Teller, Told};
use crate::metrics::Metrics;
use crate::observe::Subject;

/// Tells for one cluster.
pub struct Tales {
    teller: Teller,
    metrics: Arc<dyn Metrics>,
    reasons: BTreeSet<Reason>,
    refusals: BTreeSet<(Reason, Option<Ordinal>)>,
}

impl Tales {
    /// Nothing was told yet.
    pub fn new(teller: Teller, metrics: Arc<dyn Metrics>) -> Self {
        Self {
            teller,
            metrics,
            reasons: BTreeSet::new(),
            refusals: BTreeSet::new(),
        }
    }

    /// A decision was made.
    pub fn decided(
        &mut self,
        subject: &Subject,
        decision: &Decision,
        unserved: Option<Unserved>,
        words: &Words<'_>,
    ) {
        let notes = decision
            .waits
            .iter()
            .chain(&decision.refusals)
            .map(|note| note.reason);
        let reasons: BTreeSet<Reason> = decision
            .effects
            .iter()
            .map(|effect| effect.reason)
            .chain(notes)
            .collect();
        reasons
            .difference(&self.reasons)
            .for_each(|reason| self.metrics.decision(*reason));
        self.reasons = reasons;
        let refusals: BTreeSet<_> = decision
            .refusals
            .iter()
            .map(|note| (note.reason, note.pod))
            .collect();
        for (reason, pod) in refusals.difference(&self.refusals) {
            let note = Note {
                reason: *reason,
                pod: *pod,
            };
            let text = sentence(note, unserved, words, &subject.name);
            self.tell(subject, note, true, "Refuse", text);
        }
        self.refusals = refusals;
    }

    /// An effect was done; `discarded` is what demotions of the same decision throw away.
    pub fn done(&self, subject: &Subject, effect: &Effect, discarded: &[Discarded]) {
        if let Verb::Promote { .. } = effect.verb {
            let kind = match effect.reason {
                Reason::PrimaryReturned => Some("return"),
                Reason::PromotedByOrder => Some("order"),
                Reason::HandoverOrdered | Reason::PrimaryLeaves => Some("handover"),
                Reason::SilentPrimarySucceeded => Some("silence"),
                Reason::FirstPrimary | Reason::PromotionResumed => None,
                _ => Some("death"),
            };
            if let Some(kind) = kind {
                self.metrics
                    .failover(&subject.key.namespace, &subject.key.name, kind);
            }
        }
        // A promotion is one deed of several effects under one reason; it is told once, when the server did it.
        let hands_over = matches!(
            effect.reason,
            Reason::HandoverOrdered | Reason::PrimaryLeaves
        );
        let is_part = match effect.verb {
            // Nothing but the record is written where another leads already.
            Verb::RecordPrimary { .. } => !matches!(
                effect.reason,
                Reason::LeadsByHand | Reason::PrimaryTakenOver
            ),
            Verb::CloseClients { .. } | Verb::Detach { .. } => true,
            Verb::Promote { .. } => false,
            _ => hands_over,
        };
        if effect.reason.nature() == Nature::Deed && !is_part {
            let note = Note {
                reason: effect.reason,
                pod: pod_of(effect.verb),
            };
            let mut text = sentence(note, None, &Words::NONE, &subject.name);
            let lost = discarded.iter().find(|lost| is_of(lost, effect));
            if let Some(lost) = lost {
                text = format!("{text} {}", discarded::sentence(*lost));
            }
            self.tell(subject, note, false, action_of(effect.verb), text);
        }
    }

    fn tell(
        &self,
        subject: &Subject,
        note: Note,
        warning: bool,
        action: &'static str,
        text: String,
    ) {
        self.teller.tell(Told {
            about: About {
                namespace: subject.key.namespace.clone(),
                name: subject.key.name.clone(),
                uid: subject.uid.clone(),
                pod: note.pod.map(|pod| subject.name.pod(u32::from(pod.0))),
                reason: note.reason.as_str(),
            },
            warning,
            action,
            note: text,
        });
    }
}

fn is_of(lost: &Discarded, effect: &Effect) -> bool {
    effect.reason == Reason::SecondPrimaryDemoted && pod_of(effect.verb) == Some(lost.pod)
}

const fn pod_of(verb: Verb) -> Option<Ordinal> {
    match verb {
        Verb::Promote { pod }
        | Verb::Follow { pod, .. }
        | Verb::StepDown { pod }
        | Verb::Open { pod }
        | Verb::CloseClients { pod }
        | Verb::Evict { pod }
        | Verb::GrowVolume { pod, .. }
        | Verb::PauseWrites { pod }
        | Verb::ResumeWrites { pod }
        | Verb::AwaitCopy { pod, .. }
        | Verb::Detach { pod }
        | Verb::NeedReplica { pod, .. }
        | Verb::Configure { pod }
        | Verb::Fence { pod }
        | Verb::SetLabel { pod, .. }
        | Verb::SetRoute { pod, .. } => Some(pod),
        Verb::RecordPrimary { record, .. } => Some(record.pod),
        Verb::CreateCredentials
        | Verb::Apply(_)
        | Verb::Delete(_)
        | Verb::ScaleIn { .. }
        | Verb::GoBackToConfig
        | Verb::DeleteOldConfig
        | Verb::KeepRecord { .. }
        | Verb::ReleaseFinalizer
        | Verb::MarkPrimaryDown { .. } => None,
    }
}

/// What was done, as the field `action` of an event wants it.
const fn action_of(verb: Verb) -> &'static str {
    match verb {
        Verb::CreateCredentials => "CreateCredentials",
        Verb::Apply(_) => "Apply",
        Verb::Delete(_) => "Delete",
        Verb::SetRoute { .. } => "Route",
        Verb::RecordPrimary { .. } => "RecordPrimary",
        Verb::KeepRecord { .. } => "KeepRecord",
        Verb::MarkPrimaryDown { .. } => "MarkPrimaryDown",
        Verb::SetLabel { .. } => "Label",
        Verb::Promote { .. } => "Promote",
        Verb::Follow { .. } => "Follow",
        Verb::StepDown { .. } => "StepDown",
        Verb::Open { .. } => "Open",
        Verb::PauseWrites { .. } => "PauseWrites",
        Verb::ResumeWrites { .. } => "ResumeWrites",
        Verb::AwaitCopy { .. } => "AwaitCopy",
        Verb::CloseClients { .. } => "CloseClients",
        Verb::Evict { .. } => "Evict",
        Verb::ScaleIn { .. } => "ScaleIn",
        Verb::GrowVolume { .. } => "GrowVolume",
        Verb::Detach { .. } => "Detach",
        Verb::NeedReplica { .. } => "NeedReplica",
        Verb::Configure { .. } => "Configure",
        Verb::GoBackToConfig => "GoBackToConfig",
        Verb::DeleteOldConfig => "DeleteOldConfig",
        Verb::Fence { .. } => "Fence",
        Verb::ReleaseFinalizer => "ReleaseFinalizer",
    }
}
