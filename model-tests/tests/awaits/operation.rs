//! Operations, each done once without an end of the operator and then with one at every await.

use std::sync::{Arc, Mutex};

use wellcake_core::facts::Millis;
use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::invariants::{self, Violation};
use wellcake_model_tests::world::{Disk, World};

use crate::cluster::{Cluster, Shared, lock};
use crate::life::{Await, Life, Stop};
use crate::requests::Fate;
use crate::servers::require;

/// For how long nothing may be sent in the end: longer than the pause after which an operator looks without a cause.
const QUIET: Millis = Millis(11_000);
/// How long an operator that has just started gets to know a cluster at rest, in milliseconds.
const ACQUAINTED: u64 = 4_000;
/// Within which time a goal must be reached.
const TIME: u64 = 180_000;

/// Where an operation is done.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Pods.
    pub pods: u8,
    /// What outlives a process.
    pub disk: Disk,
    /// Profile.
    pub profile: Profile,
}

/// Something that is asked for, or that happens.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// Whether it begins with a cluster at rest; else with nothing but the ValkeyCluster.
    pub at_rest: bool,
    /// What begins it.
    pub begin: fn(&mut Cluster),
    /// What must be reached; whether anything was in the way.
    pub goal: fn(&Cluster, bool) -> bool,
    /// Whether no acknowledged write may be lost.
    pub lossless: bool,
}

/// All operations.
pub const OPERATIONS: [Operation; 4] = [
    Operation {
        name: "the first start",
        at_rest: false,
        begin: |_| {},
        goal: |_, _| true,
        lossless: true,
    },
    Operation {
        name: "the primary is killed",
        at_rest: true,
        begin: |cluster| cluster.happen(Action::Kill(leader(cluster))),
        goal: |_, _| true,
        lossless: false,
    },
    Operation {
        name: "another primary is asked for",
        at_rest: true,
        begin: Cluster::ask_for_handover,
        // One of which only the record was written is given up, and counts as served.
        goal: |cluster, disturbed| {
            cluster.world.spec.failover.is_none() && (disturbed || leader(cluster) != 0)
        },
        lossless: true,
    },
    Operation {
        name: "new pods are asked for",
        at_rest: true,
        begin: Cluster::ask_for_restart,
        goal: |cluster, _| {
            let world = &cluster.world;
            world.template > 0 && world.pods.iter().all(|pod| pod.made_from == world.template)
        },
        lossless: true,
    },
];

fn leader(cluster: &Cluster) -> usize {
    cluster
        .world
        .api
        .record
        .map_or(usize::MAX, |record| record.pod.index())
}

/// Where the operator ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// After how many polls since the operation began.
    pub poll: u64,
    /// How much later than else arrives what it had sent, in milliseconds.
    pub late: u64,
}

/// What is in the way of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// Where the operator ends.
    pub crash: Option<Crash>,
    /// What becomes of one of the writes to the API server, by its number from 1.
    pub fate: Option<(u64, Fate)>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Awaits until the last write.
    pub polls: u64,
    /// Those of them after which the outside is not as it was before.
    pub awaits: Vec<Await>,
    /// Writes that were sent to the API server until the goal was reached.
    pub requests: u64,
    /// Those that arrived, and commands that arrived at servers.
    pub writes: u64,
    /// Decisions that were decided again.
    pub decisions: usize,
}

/// What broke, with the story.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The rule.
    pub violation: Violation,
    /// Everything that happened.
    pub story: String,
}

/// A cluster in which an operation can begin.
pub fn before(operation: &Operation, place: Place) -> Result<Cluster, Broken> {
    let world = World::new(place.pods, place.disk, place.profile);
    let mut cluster = Cluster::new(world);
    cluster.make();
    if !operation.at_rest {
        return Ok(cluster);
    }
    let cluster: Shared = Arc::new(Mutex::new(cluster));
    let mut life = Life::start(&cluster, 1);
    let outcome = rest(&mut life, &cluster, |_| true);
    let ended = life.end(&cluster, 0).map(|_| ());
    told(&cluster, outcome.and(ended))?;
    let mut cluster = lock(&cluster).clone();
    cluster.story.clear();
    cluster.flights.clear();
    cluster.connections.clear();
    Ok(cluster)
}

impl Operation {
    /// Does it.
    pub fn run(&self, before: &Cluster, trial: Trial) -> Result<Outcome, Broken> {
        let cluster: Shared = Arc::new(Mutex::new(before.clone()));
        let outcome = self.run_in(&cluster, trial);
        told(&cluster, outcome)
    }

    fn run_in(&self, cluster: &Shared, trial: Trial) -> Result<Outcome, Violation> {
        let mut life = Life::start(cluster, 2);
        if self.at_rest {
            life.go_on(cluster, None, ACQUAINTED, |_| false);
        }
        let begun = life.polls;
        life.awaits.clear();
        {
            let mut cluster = lock(cluster);
            (cluster.writes, cluster.written_at) = (0, cluster.world.now);
            (cluster.requests, cluster.misfortune) = (0, trial.fate);
            (self.begin)(&mut cluster);
        }
        let mut outcome = Outcome::default();
        if let Some(crash) = trial.crash {
            let stop = life.go_on(cluster, Some(begun + crash.poll), TIME, |_| false);
            lock(cluster).tell(|| format!("the operator ends ({stop:?})"));
            broken(cluster)?;
            outcome.decisions += life.end(cluster, crash.late)?;
            life = Life::start(cluster, 3);
        }
        let disturbed = trial != Trial::default();
        rest(&mut life, cluster, |cluster| {
            (self.goal)(cluster, disturbed)
        })?;
        let awaits = std::mem::take(&mut life.awaits);
        let last = lock(cluster).written_at.0;
        outcome.awaits = awaits.into_iter().filter(|it| it.at <= last + 2).collect();
        for it in &mut outcome.awaits {
            it.poll -= begun.min(it.poll);
        }
        outcome.polls = outcome.awaits.last().map_or(0, |last| last.poll);
        outcome.decisions += life.end(cluster, 0)?;
        let cluster = lock(cluster);
        (outcome.requests, outcome.writes) = (cluster.requests, cluster.writes);
        invariants::nothing_owed_is_missing(&cluster.world)?;
        require(
            !self.lossless || cluster.world.forfeited.is_empty(),
            "S4 planned moves are lossless",
            || format!("{:?} are given up", cluster.world.forfeited),
        )?;
        Ok(outcome)
    }
}

/// Goes on until the goal is reached and nothing is sent any more.
fn rest(
    life: &mut Life,
    cluster: &Shared,
    goal: impl Fn(&Cluster) -> bool,
) -> Result<(), Violation> {
    let stop = life.go_on(cluster, None, TIME, |cluster| {
        cluster.rests(QUIET) && goal(cluster)
    });
    broken(cluster)?;
    require(stop == Stop::Reached, "L1 comes to rest", || {
        format!("the goal was not reached within {TIME} ms")
    })
}

fn broken(cluster: &Shared) -> Result<(), Violation> {
    lock(cluster).broken.clone().map_or(Ok(()), Err)
}

fn told<T>(cluster: &Shared, outcome: Result<T, Violation>) -> Result<T, Broken> {
    outcome.map_err(|violation| Broken {
        violation,
        story: lock(cluster).story.join("\n"),
    })
}
