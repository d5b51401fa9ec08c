//! Guards that forget a part.

use wellcake_core::effects::{Held, InSync};

use super::{Mutant, guarded};
use crate::hands::Hands;

mutants! {
    GUARDS,
    guards_forget_the_epoch: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.epoch = None),
    guards_forget_pod_and_process: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| {
        guard.pod = None;
        guard.run = None;
    }),
    guards_forget_the_role: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.replica = None),
    guards_forget_what_others_hold: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.absent = Held::Nothing),
    guards_forget_the_copy: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.copied = false),
    guards_forget_the_primary_before: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.before = None),
    guards_forget_who_is_in_sync: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.in_sync = InSync::NotAsked),
    guards_forget_silence: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.silent = None),
    guards_forget_who_is_foremost: |spec, seen, hints, now| guarded(spec, seen, hints, now, |guard| guard.foremost = false),
}
