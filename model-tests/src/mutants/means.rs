//! By what each wrong decision is found out: the cheapest of random runs, a search, crash points, a piece of the museum and a
//! written story.

use wellcake_crds::v1beta1::Profile;

use crate::actions::Action::{self, *};
use crate::crashes::operations::Place;
use crate::random::End;
use crate::weather::Weather;
use crate::weather::faults::*;
use crate::world::{Disk, World};

/// A means.
#[derive(Clone, Copy, Debug)]
pub enum Means {
    /// Random runs as `tests/random.rs` does them, from a seed on.
    Runs {
        /// The first seed.
        from: u64,
    },
    /// Random runs in worlds that another operator made.
    Elsewhere {
        /// The first seed.
        from: u64,
    },
    /// Random runs in a world and with faults that are chosen.
    Weather {
        /// Which.
        weather: Weather,
        /// The first seed.
        from: u64,
    },
    /// A search of a scope: its name and its file.
    Scope(&'static str, &'static str),
    /// An operation in which the operator ends at every effect.
    CrashPoints(&'static str),
    /// Every state of two objects of Kubernetes.
    Objects,
    /// A piece of the museum: its name and its file.
    Piece(&'static str, &'static str),
    /// Events that are written down, with a name.
    Story(&'static str, Story),
}

/// Events in a cluster at rest, and what must come of them.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// Where.
    pub place: Place,
    /// What happens.
    pub events: &'static [Action],
    /// Whether a client must get a write acknowledged after the last of them, before any fault ends.
    pub serves: bool,
    /// What must be reached in the end.
    pub goal: fn(&World, End) -> bool,
}

/// What a wrong decision breaks, and by what it is found out.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// The file of the rule, in `core/src` or `interpreter/src`.
    pub rule: &'static str,
    /// The means.
    pub means: Means,
}

/// The plan for one.
pub fn of(name: &str) -> Plan {
    let found = PLANS.iter().find(|plan| plan.name == name);
    found.copied().unwrap_or(Plan {
        name: "",
        rule: "",
        means: runs(0),
    })
}

const fn runs(from: u64) -> Means {
    Means::Runs { from }
}

const fn elsewhere(from: u64) -> Means {
    Means::Elsewhere { from }
}

const fn weather(weather: Weather, from: u64) -> Means {
    Means::Weather { weather, from }
}

macro_rules! scope {
    ($name:literal) => {
        Means::Scope(
            $name,
            include_str!(concat!("../../scopes/", $name, ".json")),
        )
    };
}

macro_rules! piece {
    ($name:literal) => {
        Means::Piece(
            $name,
            include_str!(concat!("../../museum/", $name, ".jsonl")),
        )
    };
}

macro_rules! plans {
    ($($rule:literal { $($name:ident: $means:expr,)+ })+) => {
        /// All of them, by the file of the rule.
        pub const PLANS: &[Plan] = &[$($(Plan {
            name: stringify!($name),
            rule: $rule,
            means: $means,
        },)+)+];
    };
}

plans! {
    "core/src/facts/known.rs" {
        old_answers_count_as_new: weather(Weather::memory(ASKS).in_parts(), 0),
        what_was_seen_last_still_holds: weather(Weather::memory(ASKS | FREEZES | CUTS), 100),
    }
    "core/src/facts/mod.rs" {
        pods_that_do_not_answer_are_not_there: weather(Weather::memory(FREEZES | KILLS | CUTS), 0),
        pods_that_nobody_asks_for_hold_nothing: runs(2_950),
    }
    "core/src/facts/server.rs" {
        a_copy_under_way_is_a_copy: weather(Weather::durable(Disk::Aof, KILLS).of(2).cache(), 350),
        the_fence_is_not_seen: runs(0),
    }
    "core/src/facts/cluster.rs" {
        the_primary_before_is_forgotten: scope!("handover-2"),
        there_is_no_record: runs(0),
    }
    "core/src/effects/guard.rs" {
        guards_forget_the_epoch: Means::CrashPoints("pod 1 is asked to lead"),
        guards_forget_pod_and_process: runs(0),
        guards_forget_the_role: Means::Story("a person makes a replica the primary right before it is attached", Story {
            place: MEMORY,
            events: &[Hand { pod: 1, of: Some(2) }, Look(0), Decide(0), Hand { pod: 1, of: None }, Look(0), Execute(0), Execute(0)],
            serves: false,
            goal: is_settled,
        }),
        guards_forget_what_others_hold: weather(Weather::memory(FORCE).of(2), 0),
        guards_forget_the_copy: weather(Weather::memory(ASKS), 0),
        guards_forget_the_primary_before: weather(Weather::memory(ASKS), 0),
        guards_forget_who_is_in_sync: weather(Weather::memory(CHANGES | KILLS), 50),
        guards_forget_silence: weather(Weather::memory(SILENCE | CUTS), 0),
        guards_forget_who_is_foremost: Means::Story("a replica has its link to a silent primary for a moment", Story {
            place: MEMORY,
            events: &[Isolate(0), Stretch(20), Advance(1_000), Look(0), Decide(0), Join(2), Replicate(2), Replicate(2), Cut(2), Replicate(2), Look(0), Execute(0), Execute(0), Execute(0), Execute(0)],
            serves: false,
            goal: is_settled,
        }),
    }
    "core/src/exec.rs" {
        guards_are_not_looked_at: weather(Weather::memory(SILENCE | CUTS), 600),
        promotions_are_recorded_afterwards: runs(0),
        the_history_is_recorded_last: runs(0),
    }
    "interpreter/src/execute" {
        commands_go_to_any_process: weather(Weather::memory(ASKS | KILLS), 350),
        own_writes_are_not_seen: weather(Weather::memory(KILLS), 0),
    }
    "core/src/plan/death.rs" {
        a_time_out_is_a_death: weather(Weather::memory(SILENCE | CUTS), 0),
        replicas_are_no_witnesses: weather(Weather::memory(KILLS), 0),
        what_is_gone_is_dead: weather(Weather::memory(FORCE | CUTS | HIDES), 0),
        the_kubelets_word_is_enough: weather(Weather::durable(Disk::Aof, KILLS | SILENCE), 1_200),
        answers_from_before_the_fault_count: weather(Weather::durable(Disk::Aof, KILLS).in_parts(), 0),
        a_new_pod_is_the_old_one: weather(Weather::memory(FORCE | CUTS | HIDES), 0),
    }
    "core/src/plan/election/mod.rs" {
        whoever_answers_leads_after_a_refusal: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
        whoever_answers_leads_instead_of_waiting: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
    }
    "core/src/plan/election/copies.rs" {
        the_least_data_wins: runs(0),
        offsets_are_not_compared: runs(0),
        keys_are_compared_instead_of_offsets: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
        the_primary_was_never_ahead: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
    }
    "core/src/plan/election/truth.rs" {
        all_histories_are_one: weather(Weather::memory(CHANGES | KILLS), 0),
        no_history_continues_another: weather(Weather::durable(Disk::Rdb, KILLS | DELETES | HIDES).made_elsewhere(), 0),
        the_recorded_history_is_forgotten: runs(0),
    }
    "core/src/plan/election/restart.rs" {
        everybody_is_empty: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
        bounds_have_passed: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
    }
    "core/src/plan/election/first.rs" {
        nobody_is_empty: runs(0),
    }
    "core/src/plan/replication.rs" {
        the_marker_is_forgotten: weather(Weather::memory(FORCE).in_parts(), 0),
        the_marker_is_not_written: weather(Weather::memory(FORCE).in_parts(), 0),
        promotions_are_not_recorded: runs(0),
        every_promotion_has_the_epoch_before: runs(0),
        the_history_is_not_recorded: weather(Weather::memory(CHANGES | KILLS), 0),
        nobody_is_opened: runs(0),
        everybody_is_opened_at_once: weather(Weather::memory(ASKS | CRASHES | KILLS), 0),
        traffic_stays_where_it_is: piece!("traffic-stays"),
    }
    "core/src/plan/attach.rs" {
        another_upstream_is_not_noticed: weather(Weather::memory(KILLS), 0),
        nobody_follows: weather(Weather::memory(KILLS), 0),
        second_primaries_stay: weather(Weather::memory(SILENCE | CUTS), 0),
        all_copies_are_repointed_at_once: weather(Weather::memory(ASKS), 0),
    }
    "core/src/plan/handover.rs" {
        a_handover_is_a_death: weather(Weather::memory(ASKS).in_parts(), 0),
        nobody_steps_down: weather(Weather::memory(ASKS), 0),
        who_steps_down_follows_at_once: weather(Weather::memory(ASKS), 0),
        a_copy_is_promoted_before_the_primary_steps_down: weather(Weather::memory(ASKS), 0),
        orders_are_not_remembered: runs(0),
        a_handover_that_came_to_nothing_stays_recorded: weather(Weather::memory(ASKS), 0),
        a_handover_is_never_seen_through: weather(Weather::memory(CHANGES | KILLS), 0),
        files_hold_their_copies: weather(Weather::durable(Disk::Aof, ASKS | KILLS), 0),
        a_second_primary_is_not_seen: weather(Weather::memory(SILENCE | CUTS), 0),
    }
    "core/src/plan/rollout.rs" {
        pods_are_replaced_all_at_once: weather(Weather::memory(CHANGES | KILLS), 0),
        the_primary_is_replaced_without_a_handover: weather(Weather::memory(CHANGES | KILLS), 0),
    }
    "core/src/plan/scale.rs" {
        pods_are_taken_away_whoever_leads: weather(Weather::memory(RESIZES | KILLS), 0),
    }
    "core/src/plan/silence.rs" {
        the_marker_alone_shows_silence: weather(Weather::memory(SILENCE | CUTS), 0),
        replicas_that_nobody_sees_have_ended: weather(Weather::memory(FORCE | CUTS | HIDES), 0),
        a_link_that_was_lost_just_now_was_lost_long_ago: weather(Weather::durable(Disk::Aof, SILENCE).in_parts(), 0),
        a_silent_primary_is_taken_to_stop_by_itself: weather(Weather::durable(Disk::Aof, SILENCE | DELETES).in_parts(), 1_950),
        a_durable_primary_is_taken_for_a_cache: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
        replicas_are_not_detached: Means::Story("a replica has its link to a silent primary again", Story {
            place: DURABLE,
            events: &[Isolate(0), Stretch(20), Advance(1_000), Look(0), Decide(0), Execute(0), Execute(0), Execute(0), Execute(0), Join(2), Replicate(2), Replicate(2), Write],
            serves: false,
            goal: is_settled,
        }),
        a_silent_primary_is_recorded_as_dead: weather(Weather::memory(SILENCE | CUTS), 0),
    }
    "core/src/plan/self_stop.rs" {
        no_primary_needs_a_replica: weather(Weather::durable(Disk::Aof, KILLS | DELETES), 0),
        a_primary_alone_needs_a_replica_for_ever: Means::Story("all replicas end", Story {
            place: DURABLE,
            events: &[Kill(1), Report(1), Kill(2), Report(2), Stretch(20)],
            serves: true,
            goal: is_settled,
        }),
        a_silent_replica_is_not_waited_for: weather(Weather::durable(Disk::Aof, SILENCE | FREEZES).of(2), 650),
    }
    "core/src/plan/by_hand.rs" {
        who_leads_by_hand_is_not_noticed: Means::Story("a person moves the lead", Story {
            place: MEMORY,
            events: &[Write, Replicate(1), Replicate(2), Hand { pod: 1, of: None }, Hand { pod: 0, of: Some(1) }],
            serves: false,
            goal: leads_1,
        }),
        whoever_leads_by_hand_holds_everything: Means::Story("a person moves the lead and leaves data behind", Story {
            place: MEMORY,
            events: &[
                Cut(1),
                Cut(2),
                Write,
                Hand { pod: 1, of: None },
                Hand { pod: 2, of: Some(0) },
                Hand { pod: 0, of: Some(2) },
            ],
            serves: false,
            goal: needs_person,
        }),
    }
    "core/src/plan/hibernation.rs" {
        sleep_begins_whoever_leads: weather(Weather::memory(SLEEPS | KILLS), 0),
        sleep_has_no_guard: weather(Weather::memory(SLEEPS | KILLS), 50),
    }
    "core/src/plan/labels.rs" {
        labels_are_not_set: runs(0),
        a_former_primary_keeps_its_label: weather(Weather::memory(ASKS), 0),
    }
    "core/src/plan/configuration.rs" {
        all_servers_get_their_directives_at_once: runs(0),
        the_primary_gets_its_directives_first: runs(0),
        the_file_is_written_at_once: Means::Objects,
        a_refusal_is_not_noticed: Means::Objects,
        a_file_that_nobody_starts_with_stays: Means::Objects,
        a_file_is_taken_back_again_and_again: Means::Objects,
    }
    "core/src/plan/provision.rs" {
        what_cannot_be_looked_at_is_not_there: Means::Objects,
        foreign_objects_are_ours: Means::Objects,
        older_servers_read_newer_files: Means::Objects,
        a_password_is_made_up: Means::Objects,
        what_drifts_is_left: Means::Objects,
        what_is_not_wanted_is_deleted: Means::Objects,
        failures_are_tried_again_at_once: Means::Objects,
        all_volumes_grow: Means::Objects,
        what_is_not_served_is_left_out: Means::Objects,
    }
    "core/src/plan/mod.rs" {
        fewer_pods_are_applied_with_the_rest: Means::Objects,
        a_deletion_is_not_noticed: Means::Objects,
    }
    "core/src/plan/adoption.rs" {
        who_is_promoted_there_is_not_admitted: elsewhere(0),
        servers_that_began_by_themselves_go_on: elsewhere(0),
        what_began_by_itself_is_behind_the_fence: elsewhere(0),
        what_began_by_itself_was_admitted: elsewhere(0),
        objects_of_another_operator_are_ours: Means::Objects,
        what_was_taken_back_is_taken_again: Means::Objects,
        users_go_with_the_template: Means::Objects,
    }
}

/// Three pods that keep nothing.
const MEMORY: Place = Place {
    pods: 3,
    disk: Disk::None,
    profile: Profile::Cache,
};
/// Three pods of profile Durable with append-only files.
const DURABLE: Place = Place {
    pods: 3,
    disk: Disk::Aof,
    profile: Profile::Durable,
};

fn is_settled(_: &World, end: End) -> bool {
    end == End::Settled
}

fn leads_1(world: &World, end: End) -> bool {
    is_settled(world, end) && world.api.record.is_some_and(|record| record.pod.0 == 1)
}

fn needs_person(_: &World, end: End) -> bool {
    matches!(end, End::NeedsPerson(_))
}
