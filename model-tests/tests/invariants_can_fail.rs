//! Each invariant notices what it is there for: worlds made by hand, and decisions that are wrong on purpose.

use wellcake_core::effects::{Decision, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::invariants::*;
use wellcake_model_tests::random::settle;
use wellcake_model_tests::world::{Ack, Disk, World};

/// A cluster of three at rest, in which every pod holds one acknowledged write.
fn at_rest() -> World {
    let mut world = World::new(3, Disk::None, Profile::Cache);
    settle(&mut world, step, None).expect("comes to rest");
    world.apply(Action::Write, step).expect("writes");
    for n in 0..3 {
        world.apply(Action::Replicate(n), step).expect("replicates");
    }
    assert_eq!(world.acks.len(), 1, "the write was acknowledged");
    world
}

fn name(result: Result<impl std::fmt::Debug, Violation>) -> &'static str {
    result.expect_err("a violation").invariant
}

#[test]
fn s1_sees_two_writers_of_one_epoch() {
    let mut world = at_rest();
    let ack = world.acks[0];
    world.acks.push(Ack {
        pod: PodUid(999),
        ..ack
    });
    assert_eq!(
        name(one_writer_per_epoch(&world)),
        "S1 one writer per epoch"
    );
}

fn pod(world: &World, n: usize) -> (usize, PodUid) {
    (n, world.pods[n].uid)
}

#[test]
fn s4_sees_a_handover_to_a_copy_that_lacks_a_write() {
    let mut world = at_rest();
    world.apply(Action::Cut(1), step).expect("a fault");
    world.apply(Action::Write, step).expect("writes");
    let (_, behind) = pod(&world, 1);
    let lossless = |reason| planned_moves_are_lossless(&world, behind, reason);
    assert_eq!(
        name(lossless(Reason::PrimaryLeaves)),
        "S4 planned moves are lossless"
    );
    assert!(lossless(Reason::PrimaryDied).is_ok());
}

#[test]
fn s17_sees_writes_of_a_second_primary_that_nobody_counts() {
    let mut world = at_rest();
    let (_, second) = pod(&world, 0);
    let write = world.acks[0].write;
    let process = world.process(1).expect("runs");
    process.primary = true;
    process.data.promote(Replid(777));
    let run = world.process(0).expect("runs").run;
    world.connection = Some(run);
    world.apply(Action::Write, step).expect("writes");
    world.apply(Action::Look(0), step).expect("looks");
    let seen = world.observe(0).expect("an observation");
    let of = ((Ordinal(0), second), Ordinal(1));
    assert!(discarded::is_counted(&world, &seen, of).is_ok());
    // The primary lacks a write that the offsets say it holds.
    world
        .process(1)
        .expect("runs")
        .data
        .log
        .retain(|it| *it != write);
    assert_eq!(
        name(discarded::is_counted(&world, &seen, of)),
        "S17 what a demotion loses is counted"
    );
}

/// The Durable cluster at rest, of whose silent primary the first operator has asked in vain for long.
fn silent() -> (World, PodUid) {
    let mut world = World::new(3, Disk::Aof, Profile::Durable);
    settle(&mut world, step, None).expect("comes to rest");
    let uid = world.pods[0].uid;
    for action in [
        Action::Isolate(0),
        Action::Replicate(1),
        Action::Replicate(2),
        Action::Look(0),
        Action::Advance(31_000),
        Action::Look(0),
    ] {
        world.apply(action, step).expect("a fault");
    }
    (world, uid)
}

#[test]
fn s18_sees_a_promotion_by_who_did_not_hear_the_silence() {
    let (world, uid) = silent();
    assert!(silence::was_asked_in_vain(&world, 0, uid).is_ok());
    assert_eq!(
        name(silence::was_asked_in_vain(&world, 1, uid)),
        "S18 silence was heard by who decides"
    );
}

#[test]
fn s18_sees_a_replica_that_nobody_asked() {
    let (mut world, uid) = silent();
    assert!(silence::nobody_follows(&world, 0, uid).is_ok());
    world.process(1).expect("runs").linked = true;
    assert!(
        silence::nobody_follows(&world, 0, uid).is_ok(),
        "it was seen without"
    );
    world.apply(Action::Hide(1), step).expect("a fault");
    world.apply(Action::Look(0), step).expect("looks");
    assert_eq!(
        name(silence::nobody_follows(&world, 0, uid)),
        "S18 silence has witnesses"
    );
}

#[test]
fn s18_sees_a_durable_primary_that_goes_on() {
    let (mut world, uid) = silent();
    assert!(silence::has_stopped(&world, uid).is_ok());
    world.process(0).expect("runs").needs_replica = false;
    assert!(silence::has_stopped(&world, uid).is_err());
    let at = Tick(world.now.0 - 11_000);
    let process = world.process(0).expect("runs");
    (process.needs_replica, process.acknowledged) = (true, Some(at));
    assert_eq!(
        name(silence::has_stopped(&world, uid)),
        "S18 a silent Durable primary stops"
    );
    // A client holds on to it.
    let run = world.process(0).expect("runs").run;
    world.connection = Some(run);
    world.left_behind.insert(run, true);
    assert_eq!(
        name(world.apply(Action::Write, step)),
        "S18 a silent Durable primary stops"
    );
}

#[test]
fn s18_sees_a_copy_that_holds_more_than_the_winner() {
    let (mut world, uid) = silent();
    let run = world.process(0).expect("runs").run;
    world.connection = Some(run);
    world.process(0).expect("runs").needs_replica = false;
    world.apply(Action::Write, step).expect("writes");
    let (held, winner) = (
        world.process(0).expect("runs").data.clone(),
        world.process(2).expect("runs").clone(),
    );
    assert!(silence::loses_nothing_that_others_hold(&world, &winner, uid).is_ok());
    world.process(1).expect("runs").data = held;
    assert_eq!(
        name(silence::loses_nothing_that_others_hold(
            &world, &winner, uid
        )),
        "S18 silence costs only what one server holds"
    );
}

#[test]
fn s2_sees_a_full_copy_from_a_server_that_lacks_a_write() {
    let world = at_rest();
    let victim = world.pods[1].process.as_ref().expect("runs").data.clone();
    let mut source = victim.clone();
    source.log.clear();
    assert_eq!(
        name(full_copy_keeps_what_is_owed(&world, &victim, &source)),
        "S2 never destroy the last copy"
    );
}

#[test]
fn s3_sees_an_empty_restarted_server_win() {
    let mut world = at_rest();
    for action in [Action::Kill(0), Action::Start(0)] {
        world.apply(action, step).expect("a fault");
    }
    assert_eq!(
        name(before_promotion(&world, 0, pod(&world, 0), 2, None)),
        "S3 empty never wins"
    );
}

#[test]
fn s5_sees_a_promotion_beside_a_primary_that_lives() {
    let world = at_rest();
    assert_eq!(
        name(before_promotion(&world, 0, pod(&world, 1), 2, None)),
        "S5 death is proven"
    );
}

#[test]
fn s5_sees_a_better_copy_passed_over() {
    let mut world = at_rest();
    world.apply(Action::Cut(1), step).expect("a fault");
    world.apply(Action::Replicate(1), step).expect("a cut link");
    world.apply(Action::Write, step).expect("writes");
    world.apply(Action::Replicate(2), step).expect("replicates");
    world.apply(Action::Kill(0), step).expect("a fault");
    let run = world.process(2).expect("runs").run;
    world.operators[0].sight[2] = Some((run, true));
    assert_eq!(
        name(before_promotion(&world, 0, pod(&world, 1), 2, None)),
        "S5 the best copy wins"
    );
    assert!(before_promotion(&world, 0, pod(&world, 2), 2, None).is_ok());
}

#[test]
fn s5_sees_a_primary_recorded_whose_file_lacks_its_copy() {
    let mut world = World::new(2, Disk::Aof, Profile::Durable);
    settle(&mut world, step, None).expect("comes to rest");
    world.process(1).expect("runs").rewrites = Some(world.now);
    world.apply(Action::Look(0), step).expect("looks");
    let mut seen = world.observe(0).expect("an observation");
    let before = seen.record.expect("a record");
    let next = Record {
        epoch: before.epoch.next(),
        pod: Ordinal(1),
        pod_uid: world.pods[1].uid,
        ..before
    };
    let holds =
        |seen: &Observation, record, reason| file::holds_the_copy(&world, seen, record, reason);
    assert_eq!(
        name(holds(&seen, &next, Reason::PrimaryDied)),
        "S5 the file of who leads holds its copy"
    );
    assert!(holds(&seen, &next, Reason::PromotedByOrder).is_ok());
    assert!(holds(&seen, &before, Reason::HistoryRecorded).is_ok());
    seen.primary_down_since = Some(Tick(world.now.0.saturating_sub(60_000)));
    assert!(
        holds(&seen, &next, Reason::PrimaryDied).is_ok(),
        "the minute passed"
    );
}

#[test]
fn s5_sees_a_write_that_is_gone_and_was_not_given_up() {
    let mut world = at_rest();
    assert!(nothing_owed_is_missing(&world).is_ok());
    world.process(0).expect("runs").data.log.clear();
    assert_eq!(
        name(nothing_owed_is_missing(&world)),
        "S5 losses are attributed"
    );
}

#[test]
fn s12_sees_two_pods_promoted_under_one_epoch() {
    let mut world = at_rest();
    world.apply(Action::Kill(0), step).expect("a fault");
    assert_eq!(
        name(before_promotion(&world, 0, pod(&world, 1), 1, None)),
        "S12 one promotion at a time"
    );
}

#[test]
fn s17_sees_a_status_that_says_available_of_a_primary_that_did_not_take_writes() {
    let mut world = at_rest();
    world.apply(Action::Look(0), step).expect("looks");
    assert!(world.apply(Action::Decide(0), step).is_ok());
    let at = world.now;
    world.operators[0].truth[0] = Some((at, false));
    assert_eq!(
        name(world.apply(Action::Decide(0), step)),
        "S17 status tells the truth"
    );
}

/// Wrong on purpose: does nothing.
fn idle(_: &SpecFacts, _: &Observation, _: &Hints, _: Tick) -> Decision {
    Decision::default()
}

#[test]
fn l1_sees_a_cluster_that_never_comes_to_life() {
    let mut world = World::new(3, Disk::None, Profile::Cache);
    assert_eq!(name(settle(&mut world, idle, None)), "L1 comes to rest");
}

/// Wrong on purpose: makes the servers of all pods primaries as soon as it sees them, whoever serves.
fn promotes_everybody(spec: &SpecFacts, seen: &Observation, hints: &Hints, now: Tick) -> Decision {
    let mut decision = step(spec, seen, hints, now);
    for (pod, facts) in seen.ordinals() {
        if let (Some(server), Some(object)) = (facts.server.value(), facts.object.value()) {
            let guard = wellcake_core::effects::Guard {
                epoch: seen.record.map(|record| record.epoch),
                pod: Some((pod, object.uid)),
                run: Some(server.run),
                ..Default::default()
            };
            let reason = Reason::PrimaryDied;
            decision.act(Verb::Promote { pod }, guard, reason);
        }
    }
    decision
}

#[test]
fn a_decision_that_promotes_everybody_is_caught_by_the_random_runs() {
    let caught = (0..20)
        .filter(|seed| {
            wellcake_model_tests::random::run(*seed, 100, promotes_everybody, None).is_err()
        })
        .count();
    assert!(caught >= 15, "{caught} of 20 runs");
}
