//! Moves every moment of a case by the same span.

use wellcake_core::facts::*;

use crate::shapes::Case;

fn tick(at: &mut Tick, by: u64) {
    at.0 += by;
}

fn known<T>(known: &mut Known<T>, by: u64) {
    match known {
        Known::Absent => {}
        Known::Maybe { since, last } => {
            tick(since, by);
            if let Some(stamped) = last {
                tick(&mut stamped.at, by);
            }
        }
        Known::Seen(stamped) => tick(&mut stamped.at, by),
    }
}

fn reach(reach: &mut Reachability, by: u64) {
    match &mut reach.kept {
        Kept::Closed { at } | Kept::TimedOut { at } => tick(at, by),
        Kept::Never | Kept::Up => {}
    }
    match &mut reach.fresh {
        Fresh::Refused { at } | Fresh::TimedOut { at } => tick(at, by),
        Fresh::NotTried => {}
    }
}

/// The same case, `by` milliseconds later.
pub fn later(case: &Case, by: u64) -> Case {
    let mut case = case.clone();
    for at in [
        &mut case.hints.objects.at,
        &mut case.hints.pods.at,
        &mut case.hints.volumes.at,
        &mut case.hints.handover_failed_at,
    ]
    .into_iter()
    .flatten()
    {
        tick(at, by);
    }
    let seen = &mut case.seen;
    if let Some(at) = &mut seen.primary_down_since {
        tick(at, by);
    }
    for former in &mut seen.former {
        reach(&mut former.reach, by);
        known(&mut former.server, by);
        if let Known::Seen(answer)
        | Known::Maybe {
            last: Some(answer), ..
        } = &mut former.server
        {
            tick(&mut answer.value.run_since, by);
        }
    }
    for pod in &mut seen.pods {
        known(&mut pod.object, by);
        known(&mut pod.claim, by);
        known(&mut pod.server, by);
        if let Known::Seen(answer)
        | Known::Maybe {
            last: Some(answer), ..
        } = &mut pod.server
        {
            tick(&mut answer.value.run_since, by);
        }
        if let Some(address) = &mut pod.reach {
            reach(address, by);
        }
    }
    for object in Object::ALL {
        let mut state = seen.objects.state(object);
        known(&mut state, by);
        seen.objects.set(object, state);
    }
    known(&mut seen.objects.password, by);
    case
}
