//! Scripts that show one thing each.

use wellcake_model_tests::differential::model::{Outcome, Worlds};
use wellcake_model_tests::differential::run::{Covered, compare, run};
use wellcake_model_tests::differential::script::{Script, Step};
use wellcake_model_tests::world::Disk;

use Step::{
    Burst, CloseClients, Cut, Follow, Freeze, Kill, Need, Nobody, Open, Pause, Promote, Rest,
    Snapshot, Start, Stretch, Thaw, Write,
};

/// A primary with two replicas, which then meet `steps`.
fn of_three(disk: Disk, steps: &[Step]) -> Script {
    let begin = [
        Open(0),
        Open(1),
        Open(2),
        Promote(0),
        Write(0),
        Follow(1, 0),
        Follow(2, 0),
        Rest,
    ];
    Script {
        seed: 0,
        disk,
        steps: begin.iter().chain(steps).copied().collect(),
    }
}

fn agree(disk: Disk, steps: &[Step]) {
    let script = of_three(disk, steps);
    match run(&super::program(), &script, &mut Covered::new()) {
        Ok(None) => {}
        Ok(Some(difference)) => panic!("{difference}"),
        Err(why) => panic!("{why:#}"),
    }
}

#[test]
fn a_server_that_was_frozen_does_what_it_was_told_meanwhile_although_nobody_waits_any_more() {
    agree(
        Disk::None,
        &[
            Freeze(1),
            Promote(1),
            Write(0),
            Thaw(1),
            Rest,
            Write(1),
            Freeze(0),
            Nobody(0),
            Need(0, true),
            Thaw(0),
            Rest,
            Write(0),
            Freeze(2),
            Follow(2, 1),
            CloseClients(2),
            Thaw(2),
            Rest,
        ],
    );
}

#[test]
fn a_frozen_replica_gets_what_waited_in_its_socket_from_a_primary_that_has_been_killed() {
    agree(
        Disk::None,
        &[Freeze(1), Write(0), Write(0), Kill(0), Rest, Thaw(1), Rest],
    );
}

#[test]
fn a_primary_begins_a_new_history_with_its_first_replica_and_none_counts_what_was_before() {
    agree(
        Disk::Rdb,
        &[
            Snapshot(0),
            Kill(0),
            Kill(1),
            Kill(2),
            Start(0, true),
            Open(0),
            Promote(0),
            Write(0),
            Start(1, true),
            Follow(1, 0),
            Rest,
        ],
    );
}

#[test]
fn a_replica_that_is_paused_applies_no_writes_and_has_no_position_when_its_link_ends() {
    agree(
        Disk::None,
        &[
            Pause(1, true),
            Write(0),
            Rest,
            Cut(1, true),
            Rest,
            Step::Join(1),
            Rest,
            Pause(1, false),
            Rest,
        ],
    );
}

#[test]
fn a_demoted_primary_without_a_link_keeps_its_replicas_until_they_time_out() {
    agree(
        Disk::None,
        &[
            Nobody(0),
            Rest,
            Stretch,
            Rest,
            Promote(1),
            Follow(2, 1),
            Rest,
        ],
    );
}

#[test]
fn a_copy_that_is_overtaken_by_the_backlog_is_made_anew() {
    agree(
        Disk::Aof,
        &[
            Cut(1, true),
            Burst(0),
            Step::Join(1),
            Rest,
            Promote(1),
            Rest,
        ],
    );
}

#[test]
fn a_difference_is_noticed() {
    let script = of_three(Disk::None, &[Promote(1), Rest]);
    let told = |step| match step {
        Promote(1) => Nobody(1),
        other => other,
    };
    let seen = compare(&super::program(), &script, told, &mut Covered::new());
    let difference = seen.expect("the script runs").expect("a difference");
    assert_eq!(difference.at, 8, "{difference}");
}

#[test]
fn an_outcome_that_the_model_does_not_allow_is_noticed() {
    let mut worlds = Worlds::new(Disk::None);
    worlds.step(Open(0), &Outcome::Done);
    let replica = worlds.clone();
    worlds.step(Write(0), &Outcome::Done);
    assert_eq!(worlds.count(), 0, "a replica takes no writes");
    let mut worlds = replica;
    worlds.step(Write(0), &Outcome::Refused("READONLY".to_owned()));
    assert_eq!(worlds.count(), 1);
}
