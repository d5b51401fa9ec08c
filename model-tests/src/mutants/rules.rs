//! Rules that only some worlds need: clusters of another operator, Durable primaries, sleep, labels, directives, orders.

use wellcake_core::effects::{Effect, Guard, Verb};
use wellcake_core::facts::{
    Known, Link, Observation, Offset, Port, Record, Role, RoleLabel, ServerFacts, Upstream,
};
use wellcake_core::reasons::Reason;

use super::{Effects, Mutant, answering, but, on, values};
use crate::hands::Hands;

mutants! {
    RULES,
    // Clusters that another operator made.
    who_is_promoted_there_is_not_admitted: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        let promotes = effects.iter().any(|effect| matches!(effect.verb, Verb::Promote { .. }));
        effects.retain(|effect| !(promotes && matches!(effect.verb, Verb::Open { .. })));
    }),
    servers_that_began_by_themselves_go_on: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::Fence { .. }));
    }),
    what_began_by_itself_is_behind_the_fence: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.unfenced = false);
    }),
    what_began_by_itself_was_admitted: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| if server.unfenced { server.port = Port::Client; });
    }),

    // Primaries that stop by themselves.
    no_primary_needs_a_replica: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::NeedReplica { needed: true, .. }));
    }),
    a_primary_alone_needs_a_replica_for_ever: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| effect.reason != Reason::WritesNeedNoReplica);
    }),
    a_silent_replica_is_not_waited_for: |spec, seen, hints, now| {
        let ended = on(spec, seen, hints, now, |seen| {
            let primary = seen.record.map(|record| record.pod.index());
            for (n, pod) in seen.pods.iter_mut().enumerate() {
                if Some(n) != primary && matches!(pod.server, Known::Maybe { .. }) {
                    pod.object = Known::Absent;
                }
            }
        });
        let alone = |effect: &Effect| effect.reason == Reason::WritesNeedNoReplica;
        but(spec, seen, hints, now, |effects| {
            effects.extend(ended.effects.into_iter().filter(alone));
        })
    },

    // Handovers.
    orders_are_not_remembered: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        for effect in effects.iter_mut() {
            if let Verb::RecordPrimary { serves, .. } = &mut effect.verb {
                *serves = None;
            }
        }
    }),
    a_handover_that_came_to_nothing_stays_recorded: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| effect.reason != Reason::HandoverAbandoned);
    }),
    a_handover_is_never_seen_through: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| effect.reason != Reason::ClientsMoved);
    }),
    a_second_primary_is_not_seen: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        let recorded = seen.record.map(|record| record.pod_uid);
        values(seen, |server| if Some(server.pod_uid) != recorded && server.serves_writes() {
            server.role = Role::Replica { upstream: Upstream::Nobody, link: Link::Never, syncing: false };
        });
    }),

    // What people did by hand.
    who_leads_by_hand_is_not_noticed: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        by_hand(seen, |server, _| server.role = Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Down { seconds: 1 },
            syncing: false,
        });
    }),
    whoever_leads_by_hand_holds_everything: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        by_hand(seen, |server, record| {
            server.replid2 = record.replid;
            server.replid2_until = Offset(u64::MAX);
        });
    }),

    // Sleep.
    sleep_begins_whoever_leads: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        if spec.hibernate && seen.objects.replicas_applied > 0 {
            let (verb, guard) = (Verb::ScaleIn { to: 0 }, Guard::NONE);
            effects.clear();
            effects.push(Effect { verb, guard, reason: Reason::Hibernated });
        }
    }),
    sleep_has_no_guard: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        for effect in effects.iter_mut().filter(|it| it.reason == Reason::Hibernated) {
            effect.guard = Guard::NONE;
        }
    }),

    // Labels.
    labels_are_not_set: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::SetLabel { .. }));
    }),
    a_former_primary_keeps_its_label: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        let replica = |effect: &Effect| matches!(effect.verb, Verb::SetLabel { label: RoleLabel::Replica, .. });
        let was_primary = |effect: &Effect| match effect.verb {
            Verb::SetLabel { pod, .. } => seen.pod(pod)
                .and_then(|pod| pod.object.value())
                .is_some_and(|object| object.label == RoleLabel::Primary),
            _ => false,
        };
        effects.retain(|effect| !(replica(effect) && was_primary(effect)));
    }),

    // Directives.
    all_servers_get_their_directives_at_once: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        let sets = |effect: &&Effect| matches!(effect.verb, Verb::Configure { .. });
        let Some(first) = effects.iter().find(sets).copied() else { return };
        for (pod, uid, server) in answering(seen) {
            let guard = Guard { pod: Some((pod, uid)), run: Some(server.run), ..first.guard };
            effects.push(Effect { verb: Verb::Configure { pod }, guard, ..first });
        }
    }),
    the_primary_gets_its_directives_first: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        primary_first(seen, effects);
    }),
}

/// Whoever takes writes while the recorded primary, which served, is a replica.
fn by_hand(seen: &mut Observation, change: impl Fn(&mut ServerFacts, &Record)) {
    let Some(record) = seen.record.filter(|it| it.replid.is_some()) else {
        return;
    };
    let recorded = seen.pod(record.pod).and_then(|pod| pod.server.value());
    if recorded.is_some_and(|server| matches!(server.role, Role::Replica { .. })) {
        values(seen, |server| {
            if server.pod_uid != record.pod_uid && server.serves_writes() {
                change(server, &record);
            }
        });
    }
}

/// The server that is to be configured is the primary, if that was not.
fn primary_first(seen: &Observation, effects: &mut Effects) {
    use wellcake_core::facts::Directives::Set;
    let leads = seen.record.map(|record| record.pod);
    let primary =
        answering(seen).find(|(pod, _, server)| Some(*pod) == leads && server.directives != Set);
    let Some((primary, uid, server)) = primary else {
        return;
    };
    for effect in effects.iter_mut() {
        if let Verb::Configure { pod } = &mut effect.verb {
            *pod = primary;
            effect.guard.pod = Some((primary, uid));
            effect.guard.run = Some(server.run);
        }
    }
}
