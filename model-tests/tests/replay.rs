//! What is judged of traces: of what the real decisions leave behind nothing is wrong, and each way of judging finds a fault that was
//! planted for it.

use std::path::Path;

use wellcake_core::effects::{Effect, Verb};
use wellcake_core::facts::{Epoch, Known, Millis, Ordinal, PodUid, Port, Role, ServerFacts};
use wellcake_core::step;
use wellcake_crds::v1beta1::{Profile, Topology};
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::museum::{Piece, faults::FAULTS, read};
use wellcake_model_tests::mutants;
use wellcake_model_tests::operator::Brain;
use wellcake_model_tests::random::{events, settle, world};
use wellcake_model_tests::recorded::write::{Lines, Recording};
use wellcake_model_tests::recorded::{Ending, Moment, Moments, Outcome};
use wellcake_model_tests::replay::diverge::{Bound, Branch};
use wellcake_model_tests::replay::exact::{Difference, causes};
use wellcake_model_tests::replay::judge::Judge;
use wellcake_model_tests::replay::lift::{NotLifted, lift};
use wellcake_model_tests::replay::perturb::{Broken, Perturb};
use wellcake_model_tests::search::{Progress, Way};
use wellcake_model_tests::world::{Disk, World};

fn pieces() -> Vec<Piece> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    read(&folder).unwrap_or_else(|why| panic!("{why}"))
}

fn piece(name: &str) -> Piece {
    let mut pieces = pieces().into_iter();
    pieces.find(|piece| piece.name == name).expect("a piece")
}

fn moments(lines: &[Lines]) -> Vec<Vec<Moment>> {
    let of = |lines: &Lines| {
        let moments = Moments::new(lines.text.as_bytes());
        moments.map(|moment| moment.expect("readable")).collect()
    };
    lines.iter().map(of).collect()
}

/// The traces of a piece when this decides.
fn traces(piece: &Piece, brain: Brain) -> Vec<Vec<Moment>> {
    moments(&piece.traces(brain).0)
}

/// The traces of the run of a seed when this decides.
fn of_seed(seed: u64, steps: u32, brain: Brain) -> Vec<Vec<Moment>> {
    let mut start = world(seed);
    settle(&mut start, step, None).expect("comes to rest");
    let mut recording = Recording::new(start, brain);
    for event in events(seed, steps, step) {
        if recording.act(event).is_err() {
            break;
        }
    }
    moments(&recording.end())
}

fn mutant(name: &str) -> Brain {
    let mut all = mutants::all().chain(FAULTS);
    all.find(|mutant| mutant.name == name)
        .expect("a mutant")
        .brain
}

#[test]
fn exact_finds_no_difference_in_what_the_real_decisions_recorded() {
    let mut passes = 0;
    for piece in pieces() {
        for moment in traces(&piece, step).concat() {
            passes += 1;
            let difference = Difference::of(&moment);
            assert!(difference.is_none(), "{}: {difference:?}", piece.name);
        }
    }
    assert!(passes > 250, "{passes}");
}

#[test]
fn exact_names_the_first_difference_and_the_facts_that_cause_it() {
    // It promotes whoever holds least: what makes the difference is how much the servers hold.
    let trace = traces(
        &piece("ready-but-not-synced"),
        mutant("offsets_are_not_compared"),
    );
    let all = trace.concat();
    let first = all.iter().find(|moment| Difference::of(moment).is_some());
    let first = first.expect("it decides otherwise");
    let facts: Vec<String> = causes(first).iter().map(|fact| fact.in_words()).collect();
    assert!(
        facts
            .iter()
            .any(|fact| fact.starts_with("the offset of pod")),
        "{facts:?}"
    );
}

fn judged(traces: &[Vec<Moment>]) -> Vec<String> {
    let mut broken = Vec::new();
    for trace in traces {
        let mut judge = Judge::default();
        let all = trace.iter().flat_map(|moment| judge.see(moment));
        broken.extend(all.map(|it| format!("line {}: {}", it.line, it.violation)));
    }
    broken
}

#[test]
fn invariants_hold_of_everything_that_the_real_decisions_recorded() {
    for piece in pieces() {
        let broken = judged(&traces(&piece, step));
        assert!(broken.is_empty(), "{}: {broken:#?}", piece.name);
    }
    for seed in 0..200 {
        let broken = judged(&of_seed(seed, 300, step));
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    }
}

#[test]
fn invariants_find_faults_that_were_planted_in_decisions() {
    let piece = piece("two-operators");
    let broken = judged(&traces(&piece, mutant("guards_forget_the_epoch")));
    let expected = "S13 guards name what is meant";
    let found = broken.iter().any(|it| it.contains(expected));
    assert!(found, "{broken:#?}");
}

/// The trace of a failover, and which of its passes promotes.
fn failover() -> (Vec<Moment>, usize) {
    let mut start = World::new(3, Disk::None, Profile::Cache);
    settle(&mut start, step, None).expect("comes to rest");
    let mut recording = Recording::new(start, step);
    for action in [
        Action::Stretch(3),
        Action::Kill(0),
        Action::Stretch(10),
        Action::Start(0),
        Action::Report(0),
        Action::Stretch(20),
    ] {
        recording.act(action).expect("no invariant breaks");
    }
    let trace = moments(&recording.end()).swap_remove(0);
    let promotes = |moment: &Moment| promotion(moment).is_some();
    let at = trace
        .iter()
        .position(promotes)
        .expect("somebody takes over");
    (trace, at)
}

fn promotion(moment: &Moment) -> Option<Effect> {
    let mut effects = moment.decision.effects.iter().copied();
    effects.find(|effect| matches!(effect.verb, Verb::Promote { .. }))
}

/// What servers answered that are not promoted.
fn others(moment: &mut Moment, change: impl Fn(&mut ServerFacts)) {
    let promoted = promotion(moment).and_then(|effect| effect.guard.pod);
    for (n, pod) in moment.seen.pods.iter_mut().enumerate() {
        let own = promoted.is_some_and(|(ordinal, _)| ordinal.index() == n);
        if let (Known::Seen(answer), false) = (&mut pod.server, own) {
            change(&mut answer.value);
        }
    }
}

/// A way to make a trace one in which something is wrong: gets the trace and which of its passes promotes.
type Plant = fn(&mut Vec<Moment>, usize);

const PLANTED: [(&str, Plant); 7] = [
    ("S11 epochs only grow", |trace, _| {
        let last = trace.last_mut().expect("a pass");
        last.seen.record.as_mut().expect("a record").epoch = Epoch(0);
    }),
    ("S12 one promotion at a time", |trace, at| {
        let promoted = promotion(&trace[at]).expect("a promotion");
        let (ordinal, uid) = promoted.guard.pod.expect("a pod");
        let mut effect = promoted;
        effect.guard.pod = Some((ordinal, PodUid(uid.0 + 1)));
        let outcome = Outcome {
            effect,
            outcome: Ending::TimedOut,
            why: None,
            millis: 1,
        };
        trace.last_mut().expect("a pass").outcomes.push(outcome);
    }),
    ("S13 only what was decided is done", |trace, at| {
        let mut outcome = trace[at].outcomes[0].clone();
        outcome.effect.verb = Verb::Evict { pod: Ordinal(2) };
        let again = trace.clone();
        trace.extend(again);
        trace.last_mut().expect("a pass").outcomes.push(outcome);
    }),
    ("S14 facts are fresh", |trace, at| {
        trace[at].now = trace[at].now.after(Millis(3_000));
    }),
    ("S5 death is proven", |trace, at| {
        others(&mut trace[at], |server| {
            server.role = Role::Primary;
            server.port = Port::Client;
        });
    }),
    ("S5 the best copy wins", |trace, at| {
        others(&mut trace[at], |server| server.offset.0 += 100);
    }),
    ("S16 a lane stops at its first failure", |trace, at| {
        trace[at].outcomes[0].outcome = Ending::Failed;
    }),
];

#[test]
fn invariants_find_faults_that_were_planted_in_traces() {
    let (whole, at) = failover();
    assert!(judged(std::slice::from_ref(&whole)).is_empty());
    for (invariant, plant) in PLANTED {
        let mut trace = whole.clone();
        plant(&mut trace, at);
        let broken = judged(&[trace]);
        let found = broken.iter().any(|it| it.contains(invariant));
        assert!(found, "{invariant}: {broken:#?}");
    }
}

#[test]
fn a_lifted_world_is_seen_and_decided_on_as_it_was() {
    let mut lifted = 0;
    for piece in pieces() {
        for moment in traces(&piece, step).concat() {
            let Ok(world) = lift(&moment) else { continue };
            lifted += 1;
            let seen = world.observe(0).expect("an operator");
            assert_eq!(
                seen.pods, moment.seen.pods,
                "{} line {}",
                piece.name, moment.line
            );
            let again = step(&world.spec, &seen, &moment.hints, moment.now);
            let (again, then) = (again.effects, &moment.decision.effects);
            assert_eq!(&again, then, "{} line {}", piece.name, moment.line);
        }
    }
    assert!(lifted > 250, "{lifted}");
}

#[test]
fn what_is_no_part_of_the_simulator_is_not_lifted() {
    let (trace, at) = failover();
    let lifted = |change: fn(&mut Moment)| {
        let mut moment = trace[at].clone();
        change(&mut moment);
        lift(&moment).map(|_| ())
    };
    assert_eq!(lifted(|_| ()), Ok(()));
    assert_eq!(
        lifted(|it| it.spec.topology = Topology::Standalone),
        Err(NotLifted::Topology)
    );
    assert_eq!(
        lifted(|it| it.spec.deleting = true),
        Err(NotLifted::Deleting)
    );
    assert_eq!(lifted(|it| it.seen.pods.clear()), Err(NotLifted::Empty));
    assert_eq!(
        lifted(|it| it.spec.adopt = true),
        Err(NotLifted::MadeElsewhere)
    );
    let far = |it: &mut Moment| it.seen.record.as_mut().expect("a record").pod_uid = PodUid(60_000);
    assert_eq!(lifted(far), Err(NotLifted::Numbers));
}

fn perturbed(traces: &[Vec<Moment>], brain: Brain) -> (Vec<Broken>, usize) {
    let mut perturb = Perturb::default();
    let mut broken = Vec::new();
    for moment in traces.iter().flatten() {
        broken.extend(perturb.see(moment, brain));
    }
    (broken, perturb.runs)
}

#[test]
fn perturb_breaks_nothing_of_the_real_decisions() {
    let mut all = 0;
    for piece in pieces() {
        let (broken, runs) = perturbed(&traces(&piece, step), step);
        all += runs;
        assert!(broken.is_empty(), "{}: {:?}", piece.name, broken.first());
    }
    assert!(all > 5_000, "{all}");
}

#[test]
fn perturb_finds_the_faults_of_most_incidents() {
    let mut missed = Vec::new();
    for piece in pieces() {
        let wrong = piece.wrong().expect("a wrong decision").brain;
        if perturbed(&traces(&piece, wrong), wrong).0.is_empty() {
            missed.push(piece.name);
        }
    }
    assert!(missed.len() <= 6, "{missed:?}");
}

const WAY: Way = Way {
    threads: 2,
    rest: true,
    most: Some(5_000),
};

const BOUND: Bound = Bound {
    faults: 1,
    writes: 1,
    spans: (0, 1_000),
    depth: 0,
};

#[test]
fn diverge_breaks_nothing_from_a_real_decision_and_finds_a_planted_fault() {
    let piece = piece("second-pod-right-after-the-first");
    let wrong = mutant("a_pod_is_replaced_in_every_pass");
    let trace = traces(&piece, step).concat();
    let evicts = |moment: &&Moment| {
        let mut effects = moment.decision.effects.iter();
        effects.any(|effect| matches!(effect.verb, Verb::Evict { .. }))
    };
    let moment = trace.iter().find(evicts).expect("a pod is replaced");
    let branch = Branch::of(moment, BOUND).expect("it can be lifted");
    let seen = branch.search(step, WAY, &Progress::default());
    let seen = seen.expect("the real decisions break nothing");
    assert!(seen.states >= 5_000, "{seen:?}");
    let broken = branch.search(wrong, WAY, &Progress::default());
    let broken = broken.expect_err("a pod is taken while another is missed");
    assert_eq!(broken.violation.invariant, "S12 one change at a time");
    assert!(broken.events.len() <= 3, "{:?}", broken.events);
    let story = branch.story(&broken.events, wrong, true);
    assert!(
        story.contains("VIOLATION S12 one change at a time"),
        "{story}"
    );
}
