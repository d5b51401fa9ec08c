//! Decisions that are wrong on purpose, and right ones that are carried out wrongly: each forgets one fact, one part of a guard, or
//! one rule of order. What the invariants do not notice of them, they would not notice of a change of the core either.
//!
//! * this file: facts that are forgotten or believed without reason, effects that are left out or done too early;
//! * [`guards`]: parts of guards;
//! * [`rules`]: rules that only some worlds need;
//! * [`objects`]: rules of objects and directives;
//! * [`executor`]: how effects are carried out;
//! * [`means`]: by what each is found out;
//! * [`kill`]: whether it is.

use wellcake_core::effects::{Decision, Effect, Guard, Verb};
use wellcake_core::facts::{
    Container, Epoch, Fresh, Hints, Kept, Known, Link, Observation, Offset, Ordinal, PodFacts,
    Port, Reachability, Record, Replid, Role, ServerFacts, SpecFacts, Stamped, Tick, Upstream,
};
use wellcake_core::reasons::Reason;
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;

use crate::hands::Hands;
use crate::operator::Brain;

/// A decision that is wrong on purpose, or one that is carried out wrongly.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// Its name, which says what it does wrong.
    pub name: &'static str,
    /// The decision.
    pub brain: Brain,
    /// How it is carried out.
    pub hands: Hands,
}

macro_rules! mutants {
    ($list:ident, $($name:ident: $brain:expr,)+) => {
        /// Wrong decisions.
        pub const $list: &[Mutant] = &[$(Mutant {
            name: stringify!($name),
            brain: $brain,
            hands: Hands::Right,
        },)+];
    };
}

mod executor;
mod guards;
pub mod kill;
pub mod means;
mod objects;
mod rules;

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Mutant> {
    let lists = [
        MUTANTS,
        guards::GUARDS,
        rules::RULES,
        objects::OBJECTS,
        executor::EXECUTOR,
    ];
    lists.into_iter().flatten()
}

/// One of them.
pub fn find(name: &str) -> Option<&'static Mutant> {
    all().find(|mutant| mutant.name == name)
}

mutants! {
    MUTANTS,
    // Facts that are forgotten or believed without reason.
    old_answers_count_as_new: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        servers(seen, |answer| answer.at = now);
    }),
    what_was_seen_last_still_holds: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        for pod in &mut seen.pods {
            if let Known::Maybe { last: Some(last), .. } = pod.server {
                pod.server = Known::seen(now, last.value);
            }
        }
    }),
    a_time_out_is_a_death: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        reaches(seen, |reach| {
            if let (Kept::TimedOut { at }, Fresh::TimedOut { at: again }) = (reach.kept, reach.fresh) {
                reach.kept = Kept::Closed { at };
                reach.fresh = Fresh::Refused { at: again };
            }
        });
    }),
    replicas_are_no_witnesses: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| if let Role::Replica { link, .. } = &mut server.role
            && *link == Link::Up
        {
            *link = Link::Down { seconds: 30 };
        });
    }),
    the_fence_is_not_seen: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.port = Port::Client);
    }),
    a_copy_under_way_is_a_copy: |spec, seen, hints, now| {
        let mut decision = on(spec, seen, hints, now, |seen| {
            values(seen, |server| if let Role::Replica { syncing, link, .. } = &mut server.role
                && *syncing
            {
                *syncing = false;
                *link = Link::Down { seconds: 0 };
                server.offset = Offset(server.offset.0.max(2));
            });
        });
        each_guard(&mut decision.effects, |guard| guard.offset_floor = None);
        decision
    },
    offsets_are_not_compared: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.offset = Offset(1_000_000));
    }),
    the_least_data_wins: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.offset = Offset(1_000_000 - server.offset.0.min(999_999)));
    }),
    keys_are_compared_instead_of_offsets: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.offset = Offset(u64::from(server.keys) + 1));
    }),
    all_histories_are_one: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.replid = Replid(1));
        if let Some(record) = &mut seen.record {
            record.replid = record.replid.map(|_| Replid(1));
        }
    }),
    no_history_continues_another: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.replid2 = None);
    }),
    the_recorded_history_is_forgotten: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        record(seen, |record| { record.replid = None; record.continues = None; });
    }),
    the_primary_before_is_forgotten: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        record(seen, |record| record.served = None);
    }),
    a_new_pod_is_the_old_one: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        let present = seen.record.and_then(|r| Some(seen.pod(r.pod)?.object.value()?.uid));
        record(seen, |record| record.pod_uid = present.unwrap_or(record.pod_uid));
    }),
    bounds_have_passed: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        seen.primary_down_since = seen.primary_down_since.map(|_| Tick(0));
        values(seen, |server| server.uptime = u32::MAX);
    }),
    the_marker_is_forgotten: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        seen.primary_down_since = None;
    }),
    files_hold_their_copies: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.rewriting = false);
    }),
    the_primary_was_never_ahead: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        seen.primary_offset = Some(Offset(0));
    }),
    what_is_gone_is_dead: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        for former in &mut seen.former {
            former.reach.kept = Kept::Closed { at: Tick(0) };
            former.reach.fresh = Fresh::Refused { at: now };
            former.server = former.server.failed(now);
        }
    }),
    the_kubelets_word_is_enough: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        for pod in &mut seen.pods {
            let ended = pod.object.value().is_some_and(|o| matches!(o.container, Container::Terminated { .. }));
            if let (true, Some(reach)) = (ended, &mut pod.reach) {
                reach.fresh = Fresh::Refused { at: now };
            }
        }
    }),
    answers_from_before_the_fault_count: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.run_since = Tick(0));
        reaches(seen, |reach| if matches!(reach.kept, Kept::Closed { .. }) {
            reach.kept = Kept::Closed { at: Tick(0) };
        });
    }),
    everybody_is_empty: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.keys = 0);
    }),
    nobody_is_empty: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.keys = server.keys.max(1));
    }),
    pods_that_do_not_answer_are_not_there: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        for pod in &mut seen.pods {
            if matches!(pod.server, Known::Maybe { .. }) {
                pod.object = Known::Absent;
            }
        }
    }),
    there_is_no_record: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| seen.record = None),
    another_upstream_is_not_noticed: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        let primary = seen.record.map(|r| r.pod);
        values(seen, |server| if let (Role::Replica { upstream, .. }, Some(primary)) = (&mut server.role, primary) {
            *upstream = Upstream::Pod(primary);
        });
    }),

    // Handovers.
    a_handover_is_a_death: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        record(seen, |record| record.planned = false);
    }),
    nobody_steps_down: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::StepDown { .. }));
        each_guard(effects, |guard| guard.before = None);
    }),
    who_steps_down_follows_at_once: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        for effect in effects.iter_mut() {
            if let (Verb::StepDown { pod }, Some((primary, _))) = (effect.verb, effect.guard.primary) {
                effect.verb = Verb::Follow { pod, primary };
            }
        }
    }),
    a_copy_is_promoted_before_the_primary_steps_down: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        each_guard(effects, |guard| guard.before = None);
        effects.sort_by_key(|effect| matches!(effect.verb, Verb::StepDown { .. }));
    }),

    // Changes of the pods.
    pods_are_replaced_all_at_once: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        replace_all(seen, effects, |_| true);
    }),
    the_primary_is_replaced_without_a_handover: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        let leads = seen.record.map(|record| record.pod);
        let due = effects.iter().any(|effect| effect.reason == Reason::PrimaryIsReplaced);
        if due {
            effects.clear();
            replace_all(seen, effects, |pod| Some(pod) == leads);
        }
    }),
    pods_are_taken_away_whoever_leads: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        if seen.objects.replicas_applied > spec.pods {
            effects.push(Effect { verb: Verb::ScaleIn { to: spec.pods }, guard: Guard::NONE, reason: Reason::ScaledIn });
        }
    }),
    pods_that_nobody_asks_for_hold_nothing: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        seen.objects.replicas_applied = spec.pods;
    }),

    // Effects that are left out, done too early or wrong.
    promotions_are_not_recorded: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::RecordPrimary { .. }));
        each_guard(effects, |guard| guard.epoch = None);
    }),
    promotions_are_recorded_afterwards: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        each_guard(effects, |guard| guard.epoch = None);
        effects.sort_by_key(|effect| matches!(effect.verb, Verb::RecordPrimary { .. }));
    }),
    every_promotion_has_the_epoch_before: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        let epoch = seen.record.map_or(Epoch(1), |r| r.epoch);
        for effect in effects.iter_mut() {
            if let Verb::RecordPrimary { record, .. } = &mut effect.verb {
                record.epoch = epoch;
            }
            if effect.guard.epoch == Some(epoch.next()) {
                effect.guard.epoch = Some(epoch);
            }
        }
    }),
    the_history_is_not_recorded: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| effect.reason != Reason::HistoryRecorded);
    }),
    the_history_is_recorded_last: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.sort_by_key(|effect| effect.reason == Reason::HistoryRecorded);
    }),
    nobody_is_opened: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::Open { .. }));
    }),
    everybody_is_opened_at_once: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        for (pod, uid, server) in fenced(seen) {
            let guard = Guard { pod: Some((pod, uid)), run: Some(server.run), ..Guard::NONE };
            effects.push(Effect { verb: Verb::Open { pod }, guard, reason: Reason::PrimaryOpened });
        }
    }),
    traffic_stays_where_it_is: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::SetRoute { .. }));
    }),
    nobody_follows: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::Follow { .. }));
    }),
    second_primaries_stay: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| effect.reason != Reason::SecondPrimaryDemoted);
    }),
    all_copies_are_repointed_at_once: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        repoint_all(seen, effects);
    }),
    whoever_answers_leads_after_a_refusal: |spec, seen, hints, now| insist(spec, seen, hints, now, |decision| {
        !decision.refusals.is_empty()
    }),
    whoever_answers_leads_instead_of_waiting: |spec, seen, hints, now| insist(spec, seen, hints, now, |decision| {
        !decision.waits.is_empty()
    }),

    // Silence.
    the_marker_alone_shows_silence: |spec, seen, hints, now| but_on(spec, seen, hints, now, |seen| {
        let marked = seen.primary_down_since.is_some();
        silent_primary(seen, |pod| if let (true, Known::Maybe { since, .. }) = (marked, &mut pod.server) {
            *since = Tick(0);
            let uid = pod.object.value().map(|object| object.uid);
            let reach = uid.map(|pod_uid| Reachability {
                pod_uid,
                kept: Kept::Never,
                fresh: Fresh::TimedOut { at: now },
            });
            pod.reach = reach;
        });
    }, |guard| guard.silent = None),
    replicas_that_nobody_sees_have_ended: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        let primary = seen.record.map(|record| record.pod.index());
        for (n, pod) in seen.pods.iter_mut().enumerate() {
            if Some(n) != primary && matches!(pod.server, Known::Maybe { .. }) {
                pod.object = Known::Absent;
            }
        }
    }),
    a_link_that_was_lost_just_now_was_lost_long_ago: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| if let Role::Replica { link: Link::Down { seconds }, .. } = &mut server.role {
            *seconds = 3600;
        });
    }),
    a_silent_primary_is_taken_to_stop_by_itself: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        silent_primary(seen, |pod| if let Known::Maybe { last: Some(last), .. } = &mut pod.server {
            last.value.needs_replica = true;
            last.at = now;
        });
    }),
    a_durable_primary_is_taken_for_a_cache: |spec, seen, hints, now| {
        let cache = SpecFacts { profile: Profile::Cache, ..*spec };
        step(&cache, seen, hints, now)
    },
    replicas_are_not_detached: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::Detach { .. }));
    }),
    a_silent_primary_is_recorded_as_dead: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        for effect in effects.iter_mut().filter(|e| e.reason == Reason::SilentPrimarySucceeded) {
            if let Verb::RecordPrimary { record, .. } = &mut effect.verb {
                record.planned = false;
            }
        }
    }),
    the_marker_is_not_written: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        effects.retain(|effect| !matches!(effect.verb, Verb::MarkPrimaryDown { .. }));
    }),
}

type Effects = wellcake_core::effects::Effects;

/// Decides on changed facts.
fn on(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    change: impl FnOnce(&mut Observation),
) -> Decision {
    let mut seen = seen.clone();
    change(&mut seen);
    step(spec, &seen, hints, now)
}

/// Decides with changed effects.
fn but(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    change: impl FnOnce(&mut Effects),
) -> Decision {
    let mut decision = step(spec, seen, hints, now);
    change(&mut decision.effects);
    decision
}

/// Decides with changed guards.
fn guarded(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    change: impl Fn(&mut Guard),
) -> Decision {
    but(spec, seen, hints, now, |effects| {
        each_guard(effects, change)
    })
}

/// Decides on changed facts, with changed guards.
fn but_on(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    change: impl FnOnce(&mut Observation),
    forget: impl Fn(&mut Guard),
) -> Decision {
    let mut decision = on(spec, seen, hints, now, change);
    each_guard(&mut decision.effects, forget);
    decision
}

/// Changes what is known of the pod of the recorded primary.
fn silent_primary(seen: &mut Observation, change: impl FnOnce(&mut PodFacts)) {
    let primary = seen.record.map(|record| record.pod.index());
    if let Some(pod) = primary.and_then(|n| seen.pods.get_mut(n)) {
        change(pod);
    }
}

fn each_guard(effects: &mut Effects, change: impl Fn(&mut Guard)) {
    for effect in effects.iter_mut() {
        change(&mut effect.guard);
    }
}

fn servers(seen: &mut Observation, change: impl Fn(&mut Stamped<ServerFacts>)) {
    for pod in &mut seen.pods {
        if let Known::Seen(answer) = &mut pod.server {
            change(answer);
        }
    }
}

fn values(seen: &mut Observation, change: impl Fn(&mut ServerFacts)) {
    servers(seen, |answer| change(&mut answer.value));
}

fn reaches(seen: &mut Observation, change: impl Fn(&mut Reachability)) {
    for pod in &mut seen.pods {
        if let Some(reach) = &mut pod.reach {
            change(reach);
        }
    }
}

fn record(seen: &mut Observation, change: impl FnOnce(&mut Record)) {
    if let Some(record) = &mut seen.record {
        change(record);
    }
}

type Answering = (
    wellcake_core::facts::Ordinal,
    wellcake_core::facts::PodUid,
    ServerFacts,
);

fn answering(seen: &Observation) -> impl Iterator<Item = Answering> {
    seen.ordinals().filter_map(|(ordinal, pod)| {
        let uid = pod.object.value()?.uid;
        let server = pod.server.value()?;
        (server.pod_uid == uid).then_some((ordinal, uid, *server))
    })
}

fn fenced(seen: &Observation) -> impl Iterator<Item = Answering> {
    answering(seen).filter(|(_, _, server)| server.port == Port::Fence)
}

/// Evicts every outdated pod that `which` chooses.
fn replace_all(seen: &Observation, effects: &mut Effects, which: impl Fn(Ordinal) -> bool) {
    for (pod, uid, server) in answering(seen) {
        let object = seen.pod(pod).and_then(|found| found.object.value());
        let outdated = object.is_some_and(|object| object.revision.is_outdated());
        if outdated && which(pod) {
            let guard = Guard {
                pod: Some((pod, uid)),
                run: Some(server.run),
                ..Guard::NONE
            };
            effects.push(Effect {
                verb: Verb::Evict { pod },
                guard,
                reason: Reason::PodReplaced,
            });
        }
    }
}

/// Points every replica that is not pointed at the recorded primary at it.
fn repoint_all(seen: &Observation, effects: &mut Effects) {
    let Some(record) = seen.record else { return };
    let serves =
        answering(seen).any(|(pod, _, server)| pod == record.pod && server.serves_writes());
    if !serves {
        return;
    }
    for (pod, uid, server) in answering(seen) {
        let Role::Replica { upstream, .. } = server.role else {
            continue;
        };
        if pod == record.pod || upstream == Upstream::Pod(record.pod) {
            continue;
        }
        let guard = Guard {
            pod: Some((pod, uid)),
            run: Some(server.run),
            ..Guard::NONE
        };
        let primary = record.pod;
        effects.push(Effect {
            verb: Verb::Follow { pod, primary },
            guard,
            reason: Reason::ReplicaAttached,
        });
    }
}

/// Promotes the first replica that answers where `when` says so.
fn insist(
    spec: &SpecFacts,
    seen: &Observation,
    hints: &Hints,
    now: Tick,
    when: impl FnOnce(&Decision) -> bool,
) -> Decision {
    let mut decision = step(spec, seen, hints, now);
    let serves = answering(seen).any(|(_, _, server)| server.serves_writes());
    let first = answering(seen).find(|(_, _, server)| matches!(server.role, Role::Replica { .. }));
    let (false, true, Some((pod, uid, server))) = (serves, when(&decision), first) else {
        return decision;
    };
    let epoch = seen.record.map_or(Epoch(0), |record| record.epoch);
    let record = Record {
        epoch: epoch.next(),
        pod,
        pod_uid: uid,
        claim_uid: None,
        replid: None,
        continues: None,
        served: None,
        planned: false,
    };
    let guard = Guard {
        epoch: Some(epoch),
        pod: Some((pod, uid)),
        run: Some(server.run),
        ..Guard::NONE
    };
    let planned = Guard {
        epoch: Some(record.epoch),
        ..guard
    };
    decision.effects.clear();
    decision.act(
        Verb::RecordPrimary {
            record,
            serves: None,
        },
        guard,
        Reason::PrimaryDied,
    );
    decision.act(Verb::Promote { pod }, planned, Reason::PrimaryDied);
    decision
}
