//! Role labels.

use crate::effects::{Decision, Guard, Verb};
use crate::facts::{Known, Observation, Ordinal, PodFacts, Port, Record, RoleLabel, Tick};
use crate::limits;
use crate::reasons::Reason;

/// Labels for people and for the Service of the replicas; a pod that cannot be seen keeps its label.
pub fn label(
    ordinal: Ordinal,
    pod: &PodFacts,
    seen: &Observation,
    record: &Record,
    now: Tick,
    decision: &mut Decision,
) {
    let Known::Seen(object) = pod.object else {
        return;
    };
    let wanted = if ordinal == record.pod {
        RoleLabel::Primary
    } else {
        match seen.server(ordinal, now, limits::FACT_AGE) {
            None => return,
            Some(server) if server.follows(record.pod) && server.is_reached_by_clients() => {
                RoleLabel::Replica
            }
            Some(server) if server.port == Port::Fence && !server.unfenced => RoleLabel::None,
            Some(_) => return,
        }
    };
    if object.value.label != wanted {
        let guard = Guard {
            epoch: Some(record.epoch),
            pod: Some((ordinal, object.value.uid)),
            ..Guard::NONE
        };
        decision.act(
            Verb::SetLabel {
                pod: ordinal,
                label: wanted,
            },
            guard,
            Reason::RoleLabelled,
        );
    }
}
