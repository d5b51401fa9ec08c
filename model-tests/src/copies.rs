//! Copies of worlds into the memory of other worlds: a search makes millions of them.

use wellcake_core::facts::Replid;

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
keeps_memory!(Process: data);
keeps_memory!(Pod: process, disk);
keeps_memory!(Api: kept);
keeps_memory!(Operator: cache, pods, reach, former, queue, sight, truth);
keeps_memory!(World: pods, zombies, api, operators, acks, forfeited, left_behind, promoted);

impl Default for Data {
    /// What is left when its memory is taken away.
    fn default() -> Self {
        Self::empty(Replid(0))
    }
}
