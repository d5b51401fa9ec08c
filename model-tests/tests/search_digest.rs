//! When two worlds are one to a search: only if nothing that happens later can tell them apart.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use wellcake_core::facts::{Known, Millis, Tick};
use wellcake_core::step;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::copies::Part;
use wellcake_model_tests::search::digest::{Names, digest};
use wellcake_model_tests::search::scope::{Budget, Scope, committed};
use wellcake_model_tests::world::World;

/// Worlds of each scope that are looked at.
const WORLDS: usize = 6_000;

fn scopes() -> Vec<Scope> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scopes");
    let all = committed(&folder).expect("there are scopes");
    all.iter()
        .map(|(_, path)| Scope::read(path).expect("it is a scope"))
        .collect()
}

fn same(world: &World) -> u128 {
    digest(world, 0, &mut Names::default())
}

/// The first worlds of a scope by digest, and each pair of worlds that differ and have one digest.
fn first_worlds(scope: &Scope) -> (Vec<(World, Budget)>, Vec<[World; 2]>) {
    let mut names = Names::default();
    let mut worlds = vec![(scope.world().expect("it starts"), Budget::default())];
    let mut by_digest: HashMap<u128, usize> = HashMap::new();
    let (mut pairs, mut moves, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some((world, spent)) = worlds.get(at).cloned() {
        scope.enabled(&world, spent, &mut moves);
        for (action, spent) in &moves {
            let mut after = world.clone();
            after.act(*action, step, None).expect("no invariant breaks");
            let digest = digest(&after, spent.as_word(), &mut names);
            match by_digest.get(&digest) {
                Some(first) if worlds[*first].0 != after => {
                    pairs.push([worlds[*first].0.clone(), after]);
                }
                Some(_) => {}
                None => {
                    by_digest.insert(digest, worlds.len());
                    worlds.push((after, *spent));
                }
            }
        }
        at += 1;
        if worlds.len() > WORLDS {
            break;
        }
    }
    (worlds, pairs)
}

#[test]
fn what_has_one_digest_goes_on_in_the_same_way() {
    let mut pairs_seen = 0;
    for scope in scopes() {
        let (_, pairs) = first_worlds(&scope);
        pairs_seen += pairs.len();
        for [one, other] in pairs {
            let (mut moves, mut others) = (Vec::new(), Vec::new());
            scope.enabled(&one, Budget::default(), &mut moves);
            scope.enabled(&other, Budget::default(), &mut others);
            assert_eq!(moves, others, "{one:#?}\n{other:#?}");
            for (action, _) in moves {
                let (mut one, mut other) = (one.clone(), other.clone());
                let outcomes = [
                    one.act(action, step, None).is_ok(),
                    other.act(action, step, None).is_ok(),
                ];
                assert_eq!(outcomes[0], outcomes[1], "{action:?} breaks one of them");
                assert_eq!(
                    same(&one),
                    same(&other),
                    "{action:?} tells them apart: {one:#?}\n{other:#?}"
                );
            }
        }
    }
    println!("{pairs_seen} pairs of different worlds with one digest");
    assert!(pairs_seen > 1_000, "{pairs_seen}");
}

#[test]
fn identities_and_the_time_of_day_make_no_difference() {
    let scope = &scopes()[0];
    let world = scope.world().expect("it starts");
    let after = |events: &[Action]| {
        let mut world = world.clone();
        for event in events {
            world.act(*event, step, None).expect("no invariant breaks");
        }
        world
    };
    let one = after(&[
        Action::Kill(0),
        Action::Kill(1),
        Action::Start(0),
        Action::Start(1),
    ]);
    let other = after(&[
        Action::Kill(0),
        Action::Kill(1),
        Action::Start(1),
        Action::Start(0),
    ]);
    assert_ne!(one, other);
    assert_eq!(same(&one), same(&other));
    let third = after(&[Action::Kill(0), Action::Kill(1), Action::Start(0)]);
    assert_ne!(same(&one), same(&third));
}

#[test]
fn a_difference_in_any_part_makes_another_digest() {
    let scope = &scopes()[0];
    let mut world = scope.world().expect("it starts");
    for event in [
        Action::Write,
        Action::Kill(0),
        Action::Look(0),
        Action::Decide(0),
    ] {
        world.act(event, step, None).expect("no invariant breaks");
    }
    let changes: [fn(&mut World); 22] = [
        |w| w.now = w.now.after(Millis(1)),
        |w| w.spec.hibernate = true,
        |w| w.spec.pods += 1,
        |w| w.replicas += 1,
        |w| w.last_id += 1,
        |w| w.connection = w.pods[1].process.as_ref().map(|p| p.run),
        |w| w.acks.clear(),
        |w| w.promoted.clear(),
        |w| {
            w.forfeited
                .extend(w.acks.iter().map(|ack| ack.write).collect::<Vec<_>>())
        },
        |w| w.api.down_since = Some(Tick(5)),
        |w| w.api.routes[1] = None,
        |w| w.api.record = None,
        |w| w.pods[0].hidden = true,
        |w| w.pods[0].taken = true,
        |w| w.pods[1].restarts += 1,
        |w| w.pods[1].process.as_mut().expect("it runs").linked ^= true,
        |w| {
            w.pods[1]
                .process
                .as_mut()
                .expect("it runs")
                .data
                .log
                .push(999)
        },
        |w| w.pods[1].process.as_mut().expect("it runs").epoch += 1,
        |w| w.operators[0].cache.record = None,
        |w| w.operators[0].pods[0].server = Known::Absent,
        |w| w.operators[0].replicas += 1,
        |w| w.operators[0].offset = None,
    ];
    let mut digests = HashSet::from([same(&world)]);
    for (at, change) in changes.iter().enumerate() {
        let mut other = world.clone();
        change(&mut other);
        assert!(digests.insert(same(&other)), "change {at} is not noticed");
    }
}

#[test]
fn a_world_is_restored_by_the_part_that_an_event_may_change() {
    let mut tried = 0;
    for scope in scopes() {
        let (worlds, _) = first_worlds(&scope);
        let mut moves = Vec::new();
        for (world, spent) in worlds.iter().step_by(7) {
            scope.enabled(world, *spent, &mut moves);
            for (action, _) in &moves {
                let mut other = world.clone();
                other.act(*action, step, None).expect("no invariant breaks");
                other.restore(world, Part::changed_by(*action));
                assert_eq!(&other, world, "{action:?} changes more");
                tried += 1;
            }
        }
    }
    assert!(tried > 10_000, "{tried}");
}
