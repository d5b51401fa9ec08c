//! Every order of few events at small scope.

use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::random::settle;
use wellcake_model_tests::search::{Scope, search};
use wellcake_model_tests::world::{Disk, World};

fn every_order(pods: u8, disk: Disk, profile: Profile) {
    let mut world = World::new(pods, disk, profile);
    settle(&mut world, step, None).expect("a new cluster comes to rest");
    let scope = Scope {
        depth: 12,
        faults: 2,
        worlds: 40_000,
        settle_every: 200,
    };
    match search(world, scope, step) {
        Ok(seen) => println!("{pods} pods, {disk:?}: {seen:?}"),
        Err((violation, path)) => panic!("{violation}\nafter {path:#?}"),
    }
}

#[test]
fn a_primary_and_a_replica_without_persistence() {
    every_order(2, Disk::None, Profile::Cache);
}

#[test]
fn a_primary_and_two_replicas_without_persistence() {
    every_order(3, Disk::None, Profile::Cache);
}

#[test]
fn a_primary_and_a_replica_with_an_append_only_file() {
    every_order(2, Disk::Aof, Profile::Durable);
}

#[test]
fn a_primary_and_a_replica_with_snapshots() {
    every_order(2, Disk::Rdb, Profile::Durable);
}
