//! Every state of two objects of Kubernetes at a time, around servers of several kinds: what a decision may do to objects, and what
//! it must.
//!
//! * this file: what is put before a decision;
//! * [`rules`]: what must hold of it.

pub mod rules;

use wellcake_core::effects::Decision;
use wellcake_core::facts::{
    Backoff, Directives, Hints, Known, Object, ObjectState, Observation, PasswordSource, Revision,
    ServerFacts, SpecFacts, Tick, Trouble, Unserved, Volume,
};
use wellcake_core::{limits, step};
use wellcake_crds::v1beta1::Profile;

use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::settle;
use crate::world::{Disk, World};

/// What is put before a decision, with the decision.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// What is asked for.
    pub spec: &'a SpecFacts,
    /// What is seen.
    pub seen: &'a Observation,
    /// Hints.
    pub hints: &'a Hints,
    /// The time.
    pub now: Tick,
    /// What was decided.
    pub decision: &'a Decision,
}

/// States in which an object may be.
const STATES: [ObjectState; 9] = [
    ObjectState::Matches,
    ObjectState::Differs,
    ObjectState::Foreign,
    ObjectState::Theirs,
    ObjectState::TakenBack,
    ObjectState::Kept,
    ObjectState::RollAsked,
    ObjectState::Superfluous,
    ObjectState::NotWanted,
];

const PASSWORDS: [PasswordSource; 4] = [
    PasswordSource::Usable,
    PasswordSource::SecretMissing,
    PasswordSource::KeyMissing,
    PasswordSource::Changed,
];

type Change = fn(&mut SpecFacts, &mut Observation, &mut Hints, Tick);

/// Kinds of clusters.
const KINDS: [Change; 14] = [
    |_, _, _, _| (),
    |_, seen, _, _| seen.record = None,
    |spec, seen, _, _| {
        spec.adopt = true;
        seen.record = None;
    },
    |spec, seen, _, _| {
        spec.image_major = Some(limits::NEWER_FORMAT - 1);
        each_server(seen, |server| server.major = limits::NEWER_FORMAT);
    },
    |spec, _, _, _| spec.unserved = Some(Unserved::Tls),
    |spec, _, _, _| (spec.deleting, spec.adopt, spec.foreign_finalizer) = (true, true, true),
    |spec, _, _, _| spec.pods -= 1,
    |_, _, hints, now| {
        hints.objects = Backoff {
            at: Some(now),
            failures: 5,
        };
    },
    |_, seen, _, _| {
        for pod in &mut seen.pods {
            if let Known::Seen(claim) = &mut pod.claim {
                claim.value.volume = Volume::Smaller;
            }
        }
    },
    |_, seen, _, _| each_server(seen, |server| server.directives = Directives::Due),
    |_, seen, _, _| {
        let mut next = Directives::Refused;
        each_server(seen, |server| {
            server.directives = next;
            next = Directives::Due;
        });
    },
    |_, seen, _, _| each_server(seen, |server| server.other_users = true),
    |_, seen, _, _| {
        seen.objects.config_before = true;
        fail_to_start(seen);
    },
    |_, seen, _, _| {
        (seen.objects.config_before, seen.objects.config_refused) = (true, true);
        fail_to_start(seen);
    },
];

fn each_server(seen: &mut Observation, mut change: impl FnMut(&mut ServerFacts)) {
    for pod in &mut seen.pods {
        if let Known::Seen(server) = &mut pod.server {
            change(&mut server.value);
        }
    }
}

/// The last pod does not start with the newest file.
fn fail_to_start(seen: &mut Observation) {
    if let Some(pod) = seen.pods.last_mut()
        && let Known::Seen(object) = &mut pod.object
    {
        object.value.trouble = Some(Trouble::Config);
        object.value.revision = Revision::Current;
    }
}

/// Puts all of it before a decision. Answers how many cases there were, and what the first wrong decision broke.
pub fn sweep(brain: Brain) -> (u64, Result<(), Violation>) {
    let mut cases = 0;
    let mut world = World::new(3, Disk::Aof, Profile::Durable);
    if let Err(violation) = settle(&mut world, step, None) {
        return (cases, Err(violation));
    }
    let Some(at_rest) = world.observe(0) else {
        return (cases, Ok(()));
    };
    let now = world.now;
    for change in KINDS {
        let (mut spec, mut seen, mut hints) = (world.spec, at_rest.clone(), Hints::default());
        change(&mut spec, &mut seen, &mut hints, now);
        let outcome = each_pair(&mut seen, now, |seen| {
            cases += 1;
            let decision = brain(&spec, seen, &hints, now);
            let case = Case {
                spec: &spec,
                seen,
                hints: &hints,
                now,
                decision: &decision,
            };
            rules::all(case)
        });
        if outcome.is_err() {
            return (cases, outcome);
        }
    }
    (cases, Ok(()))
}

fn each_pair(
    seen: &mut Observation,
    now: Tick,
    mut judge: impl FnMut(&Observation) -> Result<(), Violation>,
) -> Result<(), Violation> {
    for (at, first) in Object::ALL.into_iter().enumerate() {
        let before = seen.objects.state(first);
        for own in states(now) {
            seen.objects.set(first, own);
            for second in Object::ALL.into_iter().skip(at + 1) {
                let other_before = seen.objects.state(second);
                for other in states(now) {
                    seen.objects.set(second, other);
                    judge(seen)?;
                }
                seen.objects.set(second, other_before);
            }
            for password in passwords(now) {
                let usable = std::mem::replace(&mut seen.objects.password, password);
                judge(seen)?;
                seen.objects.password = usable;
            }
        }
        seen.objects.set(first, before);
    }
    Ok(())
}

/// Everything that may be known of an object: it is not there, cannot be looked at, or is in a state since now or for long.
fn states(now: Tick) -> impl Iterator<Item = Known<ObjectState>> {
    let long_ago = Tick(now.0.saturating_sub(2 * limits::TAKE_OVER_QUIET.0));
    let seen = move |state| [Known::seen(now, state), Known::seen(long_ago, state)];
    [Known::Absent, Known::unknown(now)]
        .into_iter()
        .chain(STATES.into_iter().flat_map(seen))
}

fn passwords(now: Tick) -> impl Iterator<Item = Known<PasswordSource>> {
    let seen = move |source| Known::seen(now, source);
    [Known::Absent, Known::unknown(now)]
        .into_iter()
        .chain(PASSWORDS.into_iter().map(seen))
}
