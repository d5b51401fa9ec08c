//! A cluster that sleeps: its pods are taken away in order, its volumes are kept.

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{Object, Observation, SpecFacts};
use crate::reasons::Reason;

/// Whether no pods are asked for any more since the cluster is to sleep.
pub fn is_under_way(spec: &SpecFacts, seen: &Observation) -> bool {
    let made = seen.objects.state(Object::StatefulSet).value().is_some();
    spec.hibernate && made && seen.objects.replicas_applied == 0
}

/// Whether it sleeps: no pod is left.
pub fn is_asleep(spec: &SpecFacts, seen: &Observation) -> bool {
    is_under_way(spec, seen) && seen.pods.iter().all(|pod| pod.object.is_absent())
}

/// Notes that the last pods are still going.
pub fn await_end(spec: &SpecFacts, seen: &Observation, decision: &mut Decision) {
    if !is_asleep(spec, seen) {
        decision.wait(Reason::GoingToSleep, None);
    }
}

/// Takes all pods away, under a guard that names the primary. It ends in order and leaves what it holds on its volume
/// ([`Persistence::saves_at_end`](crate::facts::Persistence)).
pub fn begin(guard: Guard, decision: &mut Decision) {
    decision.wait(Reason::GoingToSleep, None);
    decision.act(Verb::ScaleIn { to: 0 }, guard, Reason::Hibernated);
}
