//! Operations, and the worlds in which they are done.

use wellcake_crds::v1beta1::Profile;

use crate::actions::Action;
use crate::world::{Disk, World};

/// Something that is asked for, or that happens, and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// What happens before it begins.
    pub before: &'static [Action],
    /// What begins it.
    pub begins: &'static [Action],
    /// What happens after so many turns.
    pub later: Option<(u32, &'static [Action])>,
    /// Whether no acknowledged write may be lost.
    pub lossless: Lossless,
    /// What must be reached, beside a cluster that serves, or sleeps; whether the operator ended meanwhile.
    pub goal: fn(&World, ended: bool) -> bool,
}

/// When no acknowledged write may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lossless {
    /// Wherever the operator ends.
    Always,
    /// Where data is on volumes: who sends to sleep what is in memory only gives it up.
    OnVolumes,
    /// Where data is on volumes, or the operator does not end: it is away for longer than a pod takes to end.
    OnVolumesOrLed,
    /// It is a fault, which may cost what replication had not brought over.
    Never,
}

impl Lossless {
    /// Whether it holds where data outlives a process like that, and whether the operator ended.
    pub const fn holds(self, disk: Disk, ended: bool) -> bool {
        match self {
            Self::Always => true,
            Self::OnVolumes => !matches!(disk, Disk::None),
            Self::OnVolumesOrLed => !ended || !matches!(disk, Disk::None),
            Self::Never => false,
        }
    }
}

/// Where an operation happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Pods.
    pub pods: u8,
    /// How data outlives a process.
    pub disk: Disk,
    /// Profile.
    pub profile: Profile,
}

/// Worlds in which operations are done.
pub const PLACES: [Place; 5] = [
    Place::new(2, Disk::None, Profile::Cache),
    Place::new(3, Disk::None, Profile::Cache),
    Place::new(2, Disk::Aof, Profile::Durable),
    Place::new(3, Disk::Aof, Profile::Durable),
    Place::new(3, Disk::Rdb, Profile::Durable),
];

impl Place {
    const fn new(pods: u8, disk: Disk, profile: Profile) -> Self {
        Self {
            pods,
            disk,
            profile,
        }
    }
}

const fn serves(_: &World, _: bool) -> bool {
    true
}

fn was_served(world: &World, _: bool) -> bool {
    world.spec.failover.is_none()
}

/// A handover is given up when the operator ends between its record and its first step; the order counts as served.
fn has_moved(world: &World, ended: bool) -> bool {
    let moved = world.api.record.is_some_and(|record| record.pod.0 == 1);
    was_served(world, ended) && (moved || ended)
}

fn is_replaced(world: &World, _: bool) -> bool {
    let mut pods = world.pods.iter().filter(|pod| pod.exists);
    pods.all(|pod| pod.made_from == world.template)
}

fn is_scaled(world: &World, _: bool) -> bool {
    let there = world.pods.iter().filter(|pod| pod.exists).count();
    world.replicas == world.spec.pods && there == usize::from(world.spec.pods)
}

/// All operations.
pub const OPERATIONS: [Operation; 13] = {
    let planned = Operation {
        name: "",
        before: &[],
        begins: &[],
        later: None,
        lossless: Lossless::Always,
        goal: serves,
    };
    let fault = Operation {
        lossless: Lossless::Never,
        ..planned
    };
    [
        Operation {
            name: "another primary is asked for",
            begins: &[Action::Ask(None)],
            goal: was_served,
            ..planned
        },
        Operation {
            name: "pod 1 is asked to lead",
            begins: &[Action::Ask(Some(1))],
            goal: has_moved,
            ..planned
        },
        Operation {
            name: "the template changes",
            begins: &[Action::Change],
            goal: is_replaced,
            ..planned
        },
        Operation {
            name: "the template changes twice",
            begins: &[Action::Change],
            later: Some((14, &[Action::Change])),
            goal: is_replaced,
            ..planned
        },
        Operation {
            name: "one pod less is asked for",
            before: &[],
            begins: &[Action::Resize(1)],
            goal: is_scaled,
            ..planned
        },
        Operation {
            name: "more pods are asked for",
            before: &[Action::Resize(1)],
            begins: &[Action::Resize(9)],
            goal: is_scaled,
            ..planned
        },
        Operation {
            name: "fewer pods are asked for and pod 1 leads",
            before: &[Action::Ask(Some(1))],
            begins: &[Action::Resize(1)],
            goal: is_scaled,
            ..planned
        },
        Operation {
            name: "the cluster is sent to sleep",
            begins: &[Action::Hibernate(true)],
            lossless: Lossless::OnVolumes,
            ..planned
        },
        Operation {
            name: "the cluster is woken",
            before: &[Action::Hibernate(true)],
            begins: &[Action::Hibernate(false)],
            lossless: Lossless::OnVolumes,
            ..planned
        },
        Operation {
            name: "the primary's pod is deleted",
            begins: &[Action::Terminate(0)],
            lossless: Lossless::OnVolumesOrLed,
            ..planned
        },
        Operation {
            name: "the primary is killed",
            begins: &[Action::Kill(0)],
            ..fault
        },
        Operation {
            name: "the primary's pod is deleted by force",
            begins: &[Action::DeleteByForce(0)],
            later: Some((80, &[Action::Reap])),
            ..fault
        },
        Operation {
            name: "the primary is cut off for a minute",
            begins: &[Action::Isolate(0)],
            later: Some((120, &[Action::Show(0), Action::Join(1), Action::Join(2)])),
            ..fault
        },
    ]
};

impl Operation {
    /// Whether it can be done there.
    pub fn is_for(&self, place: Place) -> bool {
        let resizes = |events: &[Action]| {
            events
                .iter()
                .any(|event| matches!(event, Action::Resize(_)))
        };
        // A Durable primary without a replica takes no writes; the operator keeps two.
        let durable = place.profile == Profile::Durable && place.pods == 2;
        !(durable && resizes(self.begins))
    }
}
