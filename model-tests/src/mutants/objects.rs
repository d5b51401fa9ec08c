//! Rules of objects and directives.

use wellcake_core::effects::{Effect, Guard, Verb};
use wellcake_core::facts::{
    Directives, Hints, Known, Object, ObjectState, Observation, PasswordSource, SpecFacts, Tick,
    Volume,
};
use wellcake_core::reasons::Reason;
use wellcake_core::step;

use super::{Mutant, but, on, values};
use crate::hands::Hands;

mutants! {
    OBJECTS,
    what_cannot_be_looked_at_is_not_there: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        states(seen, |known| if matches!(known, Known::Maybe { .. }) { *known = Known::Absent; });
    }),
    foreign_objects_are_ours: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        becomes(seen, ObjectState::Foreign, ObjectState::Differs);
    }),
    objects_of_another_operator_are_ours: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        becomes(seen, ObjectState::Theirs, ObjectState::Differs);
    }),
    what_was_taken_back_is_taken_again: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        states(seen, |known| if let Known::Seen(found) = known { found.at = Tick(0); });
    }),
    older_servers_read_newer_files: |spec, seen, hints, now| {
        step(&SpecFacts { image_major: None, ..*spec }, seen, hints, now)
    },
    a_password_is_made_up: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        if let Known::Seen(source) = &mut seen.objects.password {
            source.value = PasswordSource::Usable;
        }
    }),
    what_drifts_is_left: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        becomes(seen, ObjectState::Differs, ObjectState::Matches);
    }),
    what_is_not_wanted_is_deleted: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        becomes(seen, ObjectState::NotWanted, ObjectState::Superfluous);
    }),
    failures_are_tried_again_at_once: |spec, seen, _, now| step(spec, seen, &Hints::default(), now),
    all_volumes_grow: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        for pod in &mut seen.pods {
            if let Known::Seen(claim) = &mut pod.claim {
                claim.value.volume = Volume::Smaller;
            }
        }
    }),
    the_file_is_written_at_once: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.directives = Directives::Set);
    }),
    a_refusal_is_not_noticed: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| if server.directives == Directives::Refused {
            server.directives = Directives::Due;
        });
    }),
    a_file_that_nobody_starts_with_stays: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        for pod in &mut seen.pods {
            if let Known::Seen(object) = &mut pod.object {
                object.value.trouble = None;
            }
        }
    }),
    a_file_is_taken_back_again_and_again: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        seen.objects.config_refused = false;
    }),
    users_go_with_the_template: |spec, seen, hints, now| on(spec, seen, hints, now, |seen| {
        values(seen, |server| server.other_users = false);
    }),
    fewer_pods_are_applied_with_the_rest: |spec, seen, hints, now| but(spec, seen, hints, now, |effects| {
        if effects.iter().any(|effect| matches!(effect.verb, Verb::ScaleIn { .. })) {
            let (verb, guard) = (Verb::Apply(Object::StatefulSet), Guard::NONE);
            effects.push(Effect { verb, guard, reason: Reason::ObjectCorrected });
        }
    }),
    a_deletion_is_not_noticed: |spec, seen, hints, now| {
        step(&SpecFacts { deleting: false, ..*spec }, seen, hints, now)
    },
    what_is_not_served_is_left_out: |spec, seen, hints, now| {
        step(&SpecFacts { unserved: None, ..*spec }, seen, hints, now)
    },
}

fn states(seen: &mut Observation, change: impl Fn(&mut Known<ObjectState>)) {
    for object in Object::ALL {
        let mut known = seen.objects.state(object);
        change(&mut known);
        seen.objects.set(object, known);
    }
}

fn becomes(seen: &mut Observation, from: ObjectState, to: ObjectState) {
    states(seen, |known| {
        if let Known::Seen(found) = known
            && found.value == from
        {
            found.value = to;
        }
    });
}
