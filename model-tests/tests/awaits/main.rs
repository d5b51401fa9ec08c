//! The interpreter itself, in a simulated Kubernetes with simulated servers, and with its end at every await.
//!
//! The interpreter runs as in production: its watches, pollers, lanes and timers, the Kubernetes client, the client of servers.
//! Only what lies behind these two clients is simulated: an API server over the objects, and servers over the world of the model,
//! which also judges what happens.
//!
//! * [`life`]: one operator process, poll by poll;
//! * [`operation`]: what is done, and with which ends of the operator;
//! * [`cluster`]: everything that is not the operator;
//! * [`objects`], [`api`], [`requests`]: the API server and the way to it;
//! * [`kubernetes`]: controllers and kubelet;
//! * [`servers`], [`network`]: the servers and the way to them;
//! * [`wrong`]: an interpreter that is wrong on purpose.

mod api;
mod cluster;
mod kubernetes;
mod life;
mod network;
mod objects;
mod operation;
mod requests;
mod servers;
mod wrong;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::world::Disk;

use cluster::Cluster;
use operation::{Broken, Crash, OPERATIONS, Operation, Outcome, Place, Trial, before};
use requests::Fate;
use wrong::Wrong;

const TWO: Place = Place {
    pods: 2,
    disk: Disk::None,
    profile: Profile::Cache,
};
const THREE: Place = Place {
    pods: 3,
    disk: Disk::Aof,
    profile: Profile::Durable,
};
/// How much later than else arrives what an operator had sent before it ended, in milliseconds: its successor acts by then.
const LATE: u64 = 700;
/// One in so many ends is tried in every run of the tests, of two pods and of three.
const SHARE: [usize; 2] = [4, 12];

#[track_caller]
fn sound<T>(outcome: Result<T, Broken>) -> T {
    match outcome {
        Ok(outcome) => outcome,
        Err(broken) => panic!("{}\n{}", broken.violation, broken.story),
    }
}

type Tried = (Trial, Result<Outcome, Broken>);

/// Does an operation with each of these in the way, two at a time, until `enough` of them break. Answers what came of each.
fn each(operation: &Operation, cluster: &Cluster, trials: &[Trial], enough: usize) -> Vec<Tried> {
    let (next, broken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while broken.load(Ordering::Relaxed) < enough
                    && let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let outcome = operation.run(cluster, *trial);
                    broken.fetch_add(usize::from(outcome.is_err()), Ordering::Relaxed);
                    all.lock().expect("no panic").push((*trial, outcome));
                }
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// An end of the operator at one in `every` of the awaits that leave another world behind than the one before; with `AWAITS=differ`
/// at all of these, with `AWAITS=all` at each await.
fn ends(led: &Outcome, late: u64, every: usize) -> Vec<Trial> {
    let polls: Vec<u64> = match std::env::var("AWAITS").as_deref() {
        Ok("all") => (1..=led.polls).collect(),
        Ok(_) => led.awaits.iter().map(|it| it.poll).collect(),
        _ => led.awaits.iter().step_by(every).map(|it| it.poll).collect(),
    };
    let end = |poll| Trial {
        crash: Some(Crash { poll, late }),
        fate: None,
    };
    polls.into_iter().map(end).collect()
}

#[track_caller]
fn all_hold(operation: &Operation, place: Place, tried: Vec<Tried>) {
    for (trial, outcome) in tried {
        if let Err(broken) = outcome {
            let Operation { name, .. } = operation;
            let Broken { violation, story } = broken;
            panic!(
                "{name}, {} pods, {trial:?}: {violation}\n{story}",
                place.pods
            );
        }
    }
}

#[test]
fn operations_reach_their_goal_wherever_the_operator_ends() {
    let begun = Instant::now();
    let (mut awaits, mut count) = (0, 0);
    for place in [TWO, THREE] {
        for operation in &OPERATIONS {
            let cluster = sound(before(operation, place));
            let led = sound(operation.run(&cluster, Trial::default()));
            let (late, every) = if place.pods == 2 {
                (LATE, SHARE[0])
            } else {
                (0, SHARE[1])
            };
            println!(
                "{}, {} pods: {} awaits, {} of them differ, {} writes, {} decisions",
                operation.name,
                place.pods,
                led.polls,
                led.awaits.len(),
                led.writes,
                led.decisions,
            );
            let tried = each(operation, &cluster, &ends(&led, late, every), 1);
            println!(
                "  {} ends of the operator, {:.1?}",
                tried.len(),
                begun.elapsed()
            );
            awaits += led.polls;
            count += tried.len();
            all_hold(operation, place, tried);
        }
    }
    println!(
        "{awaits} awaits, {count} ends of the operator, {:.1?}",
        begun.elapsed()
    );
}

#[test]
fn operations_reach_their_goal_whatever_becomes_of_a_write() {
    let begun = Instant::now();
    let everything = std::env::var_os("AWAITS").is_some();
    let fates = [
        Fate::Refused(409),
        Fate::Refused(422),
        Fate::Lost,
        Fate::Unheard,
    ];
    for operation in &OPERATIONS {
        let cluster = sound(before(operation, TWO));
        let led = sound(operation.run(&cluster, Trial::default()));
        let trial = |nth| {
            fates.map(|fate| Trial {
                crash: None,
                fate: Some((nth, fate)),
            })
        };
        let all = (1..=led.requests).flat_map(trial);
        // The next fate for the next write.
        let share = if everything { 1 } else { fates.len() + 1 };
        let trials: Vec<Trial> = all.step_by(share).collect();
        let tried = each(operation, &cluster, &trials, 1);
        println!(
            "{}: {} writes to the API server, {} fates, {:.1?}",
            operation.name,
            led.requests,
            tried.len(),
            begun.elapsed()
        );
        all_hold(operation, TWO, tried);
    }
}

#[test]
fn a_wrong_interpreter_is_noticed() {
    for wrong in Wrong::ALL {
        let mut noticed = None;
        for operation in &OPERATIONS {
            let mut cluster = sound(before(operation, TWO));
            let led = sound(operation.run(&cluster, Trial::default()));
            cluster.wrong = wrong;
            let mut trials = vec![Trial::default()];
            trials.extend(ends(&led, LATE, 1));
            let tried = each(operation, &cluster, &trials, 1);
            let broken = tried
                .into_iter()
                .find_map(|(trial, it)| Some((trial, it.err()?)));
            if let Some((trial, broken)) = broken {
                println!(
                    "{wrong:?}: {}, {trial:?}: {}",
                    operation.name, broken.violation
                );
                noticed = Some(broken);
                break;
            }
        }
        assert!(noticed.is_some(), "{wrong:?} breaks nothing");
    }
}
