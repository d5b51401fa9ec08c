//! Each invariant of changes, of patience and of rest notices what it is there for, in worlds made by hand.

use wellcake_core::effects::{Decision, Effect, Guard, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action::{self, *};
use wellcake_model_tests::invariants::*;
use wellcake_model_tests::random::settle;
use wellcake_model_tests::world::{Disk, World};

/// A cluster of three at rest, in which every pod holds one acknowledged write.
fn at_rest(disk: Disk, profile: Profile) -> World {
    let mut world = World::new(3, disk, profile);
    settle(&mut world, step, None).expect("comes to rest");
    happen(&mut world, &[Write, Replicate(1), Replicate(2), Look(0)]);
    assert_eq!(world.acks.len(), 1, "the write was acknowledged");
    world
}

fn memory() -> World {
    at_rest(Disk::None, Profile::Cache)
}

fn durable() -> World {
    at_rest(Disk::Aof, Profile::Durable)
}

fn happen(world: &mut World, events: &[Action]) {
    for event in events {
        world.act(*event, step, None).expect("no invariant breaks");
    }
}

fn name(result: Result<impl std::fmt::Debug, Violation>) -> &'static str {
    result.expect_err("a violation").invariant
}

fn seen(world: &World) -> Observation {
    world.observe(0).expect("an observation")
}

fn guard(world: &World, n: u8) -> Guard {
    let uid = world.pods[usize::from(n)].uid;
    Guard {
        pod: Some((Ordinal(n), uid)),
        ..Guard::NONE
    }
}

#[test]
fn s4_sees_a_successor_whose_file_lacks_a_write() {
    let mut world = durable();
    let successor = world.pods[1].uid;
    let kept = |world: &World| {
        planned::successor_has_it_on_its_volume(world, successor, Reason::PrimaryLeaves)
    };
    assert!(kept(&world).is_ok());
    world.pods[1].disk = None;
    assert_eq!(
        name(kept(&world)),
        "S4 a planned successor has it on its volume"
    );
    assert!(
        planned::successor_has_it_on_its_volume(&world, successor, Reason::PrimaryDied).is_ok()
    );
}

#[test]
fn s4_sees_a_primary_that_steps_down_for_a_copy_that_lacks_something() {
    let mut world = memory();
    let effect = Effect {
        verb: Verb::StepDown { pod: Ordinal(0) },
        guard: Guard {
            primary: guard(&world, 1).pod,
            ..guard(&world, 0)
        },
        reason: Reason::HandoverOrdered,
    };
    assert!(planned::nobody_steps_down_in_vain(&world, &effect, &seen(&world)).is_ok());
    happen(&mut world, &[Cut(1), Write, Look(0)]);
    assert_eq!(
        name(planned::nobody_steps_down_in_vain(
            &world,
            &effect,
            &seen(&world)
        )),
        "S4 nobody steps down in vain"
    );
}

#[test]
fn s4_sees_a_sleep_that_begins_while_nobody_leads() {
    let mut world = memory();
    let begins =
        |world: &World, to| planned::sleep_begins_while_the_primary_serves(world, &seen(world), to);
    assert!(begins(&world, 0).is_ok());
    happen(&mut world, &[Kill(0), Look(0)]);
    assert_eq!(
        name(begins(&world, 0)),
        "S4 sleep begins while the primary serves"
    );
    assert!(begins(&world, 1).is_ok());
}

#[test]
fn s12_sees_an_eviction_while_another_pod_is_missing() {
    let mut world = memory();
    let evicted =
        |world: &World, n| planned::what_is_missing_stops_a_change(world, &seen(world), Ordinal(n));
    assert!(evicted(&world, 1).is_ok());
    happen(&mut world, &[Kill(2), Look(0)]);
    assert_eq!(
        name(evicted(&world, 1)),
        "S12 what is missing stops a change"
    );
    assert!(evicted(&world, 2).is_ok());
}

#[test]
fn s12_sees_a_primary_that_is_configured_before_a_replica() {
    let mut world = memory();
    let mut decision = Decision::default();
    let verb = Verb::Configure { pod: Ordinal(0) };
    decision.act(verb, Guard::NONE, Reason::DirectivesSet);
    let judged = |world: &World| planned::one_at_a_time(world, &seen(world), &decision);
    assert!(judged(&world).is_ok());
    world.process(1).expect("runs").configured = false;
    happen(&mut world, &[Look(0)]);
    assert_eq!(name(judged(&world)), "S12 the primary is configured last");
}

#[test]
fn s12_and_s2_see_two_changes_in_one_decision() {
    let world = memory();
    let judged = |verbs: &[Verb]| {
        let mut decision = Decision::default();
        for verb in verbs {
            decision.act(*verb, Guard::NONE, Reason::PodReplaced);
        }
        planned::one_at_a_time(&world, &seen(&world), &decision)
    };
    let evict = |n| Verb::Evict { pod: Ordinal(n) };
    let follow = |n| Verb::Follow {
        pod: Ordinal(n),
        primary: Ordinal(0),
    };
    assert!(judged(&[evict(1), follow(2)]).is_ok());
    assert_eq!(
        name(judged(&[evict(1), evict(2)])),
        "S12 one change at a time"
    );
    assert_eq!(
        name(judged(&[follow(1), follow(2)])),
        "S2 one copy is re-pointed at a time"
    );
}

/// A record of pod 1 after the end of the primary.
fn succession(world: &World, reason: Reason) -> Effect {
    let before = world.api.record.expect("a record");
    let record = Record {
        epoch: before.epoch.next(),
        pod: Ordinal(1),
        pod_uid: world.pods[1].uid,
        claim_uid: None,
        replid: None,
        continues: before.replid,
        served: Some(before.own()),
        planned: false,
    };
    let verb = Verb::RecordPrimary {
        record,
        serves: None,
    };
    let run = world.pods[1].process.as_ref().map(|process| process.run);
    let guard = Guard { run, ..Guard::NONE };
    Effect {
        verb,
        guard,
        reason,
    }
}

#[test]
fn s5_sees_a_durable_primary_that_nobody_waits_for() {
    let mut world = durable();
    happen(&mut world, &[Cut(1), Write, Look(0), Kill(0), Look(0)]);
    let judged = |world: &World| {
        patience::is_kept(world, &seen(world), &succession(world, Reason::PrimaryDied))
    };
    assert_eq!(
        name(judged(&world)),
        "S5 the data of a Durable primary is waited for"
    );
    let long_ago = Tick(world.now.0 - 61_000);
    world.api.down_since = Some(long_ago);
    happen(&mut world, &[Look(0)]);
    assert!(judged(&world).is_ok());
}

#[test]
fn s3_sees_a_volume_that_nobody_waits_for() {
    let mut world = durable();
    happen(
        &mut world,
        &[Cut(1), Write, Kill(0), Kill(1), Kill(2), Start(1), Look(0)],
    );
    let judged = |world: &World| {
        patience::is_kept(
            world,
            &seen(world),
            &succession(world, Reason::PrimaryReturned),
        )
    };
    assert_eq!(
        name(judged(&world)),
        "S3 volumes that are away are waited for"
    );
    happen(&mut world, &[Advance(30_000)]);
    assert!(judged(&world).is_ok());
}

#[test]
fn s5_sees_a_primary_whose_pod_is_gone_and_that_answers() {
    let mut world = memory();
    let winner = world.pods[1].uid;
    let judged =
        |world: &World| patience::nobody_who_is_gone_answers(world, 0, winner, Reason::PrimaryGone);
    happen(&mut world, &[DeleteByForce(0), Show(0), Look(0)]);
    assert_eq!(name(judged(&world)), "S5 death is proven");
    happen(&mut world, &[Reap, Look(0)]);
    assert!(judged(&world).is_ok());
}

#[test]
fn s17_sees_a_demotion_that_is_told_as_something_else() {
    let mut world = memory();
    let hand = Hand { pod: 1, of: None };
    happen(&mut world, &[hand, Look(0)]);
    let told = |n: u8| {
        let of = (Ordinal(n), world.pods[usize::from(n)].uid);
        discarded::is_told(&world, &seen(&world), of)
    };
    assert_eq!(name(told(1)), "S17 a demotion is told as one");
    assert!(told(2).is_ok());
}

#[test]
fn s17_sees_a_pod_with_the_label_of_another_role() {
    let mut world = memory();
    assert!(rest::is_well(&world).is_ok());
    world.pods[2].label = RoleLabel::Primary;
    assert_eq!(name(rest::is_well(&world)), "S17 labels tell roles");
}

#[test]
fn s18_sees_a_durable_primary_at_rest_that_would_go_on() {
    let mut world = durable();
    assert!(rest::is_well(&world).is_ok());
    world.process(0).expect("runs").needs_replica = false;
    assert_eq!(
        name(rest::is_well(&world)),
        "S18 a Durable primary would stop"
    );
}

#[test]
fn l1_sees_a_primary_at_rest_that_takes_no_writes() {
    let mut world = memory();
    world.process(0).expect("runs").port = Port::Fence;
    assert_eq!(name(rest::is_well(&world)), "L1 comes to rest");
}
