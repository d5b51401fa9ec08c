//! Copies of worlds into the memory of other worlds: a search makes millions of them.

use wellcake_core::facts::Replid;

use crate::actions::Action;
use crate::history::Data;
use crate::operator::Operator;
use crate::world::{Api, Pod, Process, World};

/// `Clone` for a type of which the named fields keep their memory when they are copied into; all others are `Copy`.
macro_rules! keeps_memory {
    ($type:ident: $($field:ident),+) => {
        impl Clone for $type {
            fn clone(&self) -> Self {
                Self { $($field: self.$field.clone(),)+ ..*self }
            }

            fn clone_from(&mut self, source: &Self) {
                $(
                    let mut $field = std::mem::take(&mut self.$field);
                    $field.clone_from(&source.$field);
                )+
                *self = Self { $($field,)+ ..*source };
            }
        }
    };
}

keeps_memory!(Data: log);
keeps_memory!(Process: data, in_socket, waiting, ails);
keeps_memory!(Pod: process, disk);
keeps_memory!(Api: kept);
keeps_memory!(Operator: cache, pods, reach, former, queue, sight, truth);
keeps_memory!(World: pods, zombies, api, operators, acks, forfeited, left_behind, promoted, faults);

impl Default for Data {
    /// What is left when its memory is taken away.
    fn default() -> Self {
        Self::empty(Replid(0))
    }
}

/// Which part of a world an event may change, beside what is copied with one assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One operator.
    Operator(usize),
    /// Pods, and processes whose pods are gone.
    Pods,
    /// Any.
    Any,
}

impl Part {
    /// The part that an event may change.
    pub const fn changed_by(action: Action) -> Self {
        match action {
            Action::Watch(o)
            | Action::Look(o)
            | Action::Poll { operator: o, .. }
            | Action::Decide(o)
            | Action::Crash(o)
            | Action::Elect(o) => Self::Operator(o),
            Action::Replicate(_)
            | Action::Start(_)
            | Action::Recreate(_)
            | Action::Report(_)
            | Action::Snapshot(_) => Self::Pods,
            _ => Self::Any,
        }
    }
}

impl World {
    /// Becomes equal to `source` again, from which it differs in one part only.
    pub fn restore(&mut self, source: &Self, part: Part) {
        match part {
            Part::Any => self.clone_from(source),
            Part::Operator(o) => {
                self.restore_small(source);
                if let (Some(own), Some(other)) =
                    (self.operators.get_mut(o), source.operators.get(o))
                {
                    own.clone_from(other);
                }
            }
            Part::Pods => {
                self.restore_small(source);
                self.pods.clone_from(&source.pods);
                self.zombies.clone_from(&source.zombies);
            }
        }
    }

    fn restore_small(&mut self, source: &Self) {
        let Self {
            spec,
            disk,
            now,
            pods: _,
            zombies: _,
            api: _,
            lease_until,
            operators: _,
            connection,
            acks: _,
            forfeited: _,
            left_behind: _,
            zombie_writes,
            promoted: _,
            last_id,
            template,
            replicas,
            made_elsewhere,
            // Only random runs have any.
            faults: _,
            hands,
        } = source;
        (self.spec, self.disk, self.now) = (*spec, *disk, *now);
        (self.lease_until, self.connection) = (*lease_until, *connection);
        (self.zombie_writes, self.last_id) = (*zombie_writes, *last_id);
        (self.template, self.replicas) = (*template, *replicas);
        (self.made_elsewhere, self.hands) = (*made_elsewhere, *hands);
    }
}
