//! Whoever follows whom: from every arrangement of three servers the cluster comes to rest with one primary that all follow, and
//! nothing that was acknowledged is lost. Only of two that lead beside a recorded one that does not, a person chooses.

use wellcake_core::facts::PodUid;
use wellcake_core::reasons::Reason;
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::random::{End, settle};
use wellcake_model_tests::world::{Disk, World};

/// What a server follows.
#[derive(Clone, Copy, Debug)]
enum Upstream {
    Nobody,
    Itself,
    Pod(usize),
    /// An address that nobody has.
    Gone,
    /// None: it acts as a primary, by `REPLICAOF NO ONE`.
    Leads,
}

const ALL: [Upstream; 7] = [
    Upstream::Nobody,
    Upstream::Itself,
    Upstream::Pod(0),
    Upstream::Pod(1),
    Upstream::Pod(2),
    Upstream::Gone,
    Upstream::Leads,
];

/// A cluster of three at rest, in which every pod holds what was acknowledged.
fn at_rest(disk: Disk, profile: Profile) -> World {
    let mut world = World::new(3, disk, profile);
    settle(&mut world, step, None).expect("comes to rest");
    for _ in 0..3 {
        world.apply(Action::Write, step).expect("writes");
        for n in 0..3 {
            world.apply(Action::Replicate(n), step).expect("replicates");
        }
    }
    world
}

fn arrange(world: &mut World, upstreams: [Upstream; 3]) {
    let addresses: Vec<u16> = world.pods.iter().map(|pod| pod.addr).collect();
    let uids: Vec<PodUid> = world.pods.iter().map(|pod| pod.uid).collect();
    for (n, upstream) in upstreams.into_iter().enumerate() {
        let leads = matches!(upstream, Upstream::Leads);
        if leads && n > 0 {
            // What it acknowledges counts for no epoch of the record.
            world.promote(uids[n], 90 + u32::try_from(n).expect("few"));
        }
        let process = world.process(n).expect("it runs");
        process.primary = leads;
        process.linked = false;
        process.syncing = false;
        process.upstream = match upstream {
            Upstream::Nobody | Upstream::Leads => None,
            Upstream::Itself => addresses.get(n).copied(),
            Upstream::Pod(of) => addresses.get(of).copied(),
            Upstream::Gone => Some(9_999),
        };
    }
}

fn every_arrangement(disk: Disk, profile: Profile) {
    let start = at_rest(disk, profile);
    for first in ALL {
        for second in ALL {
            for third in ALL {
                let upstreams = [first, second, third];
                let mut world = start.clone();
                arrange(&mut world, upstreams);
                let end = settle(&mut world, step, None);
                let leading = |it: &&Upstream| matches!(it, Upstream::Leads);
                let beside = upstreams.iter().skip(1).filter(leading).count();
                if beside == 2 && !matches!(first, Upstream::Leads) {
                    let asked = Ok(End::NeedsPerson(Reason::HistoriesDiffer));
                    assert_eq!(end, asked, "{upstreams:?}");
                    continue;
                }
                assert_eq!(end, Ok(End::Settled), "{upstreams:?}");
                let linked = world.pods.iter().filter(|pod| {
                    let process = pod.process.as_ref();
                    process.is_some_and(|it| it.linked && !it.primary)
                });
                assert_eq!(linked.count(), 2, "{upstreams:?}");
            }
        }
    }
}

#[test]
fn from_every_arrangement_of_followers_one_primary_leads_and_all_follow_it() {
    every_arrangement(Disk::None, Profile::Cache);
    every_arrangement(Disk::Aof, Profile::Durable);
}
