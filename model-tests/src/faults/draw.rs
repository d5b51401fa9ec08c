//! Which mishap happens next.

use wellcake_core::facts::{Login, Object, PasswordSource, Trouble};

use super::Mishap;
use super::api::Answer;
use super::lag::Cache;
use super::servers::Fate;
use super::standing::Node;
use super::wishes::Edit;
use crate::random::Numbers;
use crate::world::World;

/// Kinds of mishaps that are drawn, each with its own part of runs.
pub const KINDS: u64 = 42;

const TROUBLES: [Trouble; 5] = [
    Trouble::NoNode,
    Trouble::Image,
    Trouble::Container,
    Trouble::Crashes,
    Trouble::Config,
];

const PASSWORDS: [PasswordSource; 4] = [
    PasswordSource::SecretMissing,
    PasswordSource::KeyMissing,
    PasswordSource::Changed,
    PasswordSource::Usable,
];

/// Something that goes wrong, of the kinds in `swarm`; else something ends that stands.
pub fn draw(world: &World, o: usize, numbers: &mut Numbers, swarm: u64) -> Mishap {
    let pods = world.pods.len();
    let n = numbers.index(pods);
    let lead = world.api.record.map_or(n, |record| record.pod.index());
    let lead = if lead < pods { lead } else { n };
    // What is said of a primary needs it to be the one.
    let m = if numbers.below(2) == 0 { lead } else { n };
    let kind = numbers.below(KINDS);
    if swarm & 1 << kind == 0 || numbers.below(4) == 0 {
        return match numbers.below(8) {
            0 => Mishap::MendAll,
            1..=3 => Mishap::Relist(o),
            _ => Mishap::Mend(n),
        };
    }
    if let Some(off) = (0..pods).find(|n| world.is_pod(*n, |it| it.node == Node::Off))
        && numbers.below(6) == 0
    {
        return Mishap::MarkOutOfService(off);
    }
    match kind {
        0..=11 => of_operators(kind, o, numbers),
        12..=28 => of_pods(kind, (n, m), numbers),
        _ => of_people(kind, (n, m), numbers),
    }
}

fn of_operators(kind: u64, o: usize, numbers: &mut Numbers) -> Mishap {
    match kind {
        0..=3 => Mishap::Answer {
            operator: o,
            answer: Answer::ALL[numbers.index(Answer::ALL.len())],
            times: [1, 1, 1, 3][numbers.index(4)],
        },
        4..=6 => Mishap::Lag {
            operator: o,
            cache: Cache::ALL[numbers.index(Cache::ALL.len())],
        },
        7 => Mishap::DecideAgain(o),
        8 => Mishap::Twice(o),
        9 => Mishap::Command {
            operator: o,
            fate: Fate::ALL[numbers.index(Fate::ALL.len())],
        },
        10 => Mishap::Forget(o),
        _ => Mishap::CrashWithClock {
            operator: o,
            ahead: [-120, -3, 3, 120][numbers.index(4)],
        },
    }
}

fn of_pods(kind: u64, (n, m): (usize, usize), numbers: &mut Numbers) -> Mishap {
    match kind {
        12 => Mishap::Restart(m),
        13 => Mishap::Busy(m),
        14 => Mishap::Stall(m),
        15 => Mishap::LoadSlowly(m),
        16 => Mishap::FillDisk(m),
        17 => Mishap::LockOperatorOut(m),
        18 => Mishap::LockReplicasOut(m),
        19 => Mishap::JumpClock(m),
        20 => Mishap::CutAnswers(m),
        21 => Mishap::CutClients(m),
        22 => Mishap::CutStream(n),
        23 => Mishap::CutAcknowledgements(n),
        24 => Mishap::LoseNode(m),
        25 => Mishap::SwitchOff(m),
        26 => Mishap::Obstruct {
            pod: m,
            trouble: TROUBLES[numbers.index(TROUBLES.len())],
        },
        27 if numbers.below(2) == 0 => Mishap::RemakeClaim(n),
        27 => Mishap::LoseVolume(m),
        _ if numbers.below(2) == 0 => Mishap::BackUp(m),
        _ => Mishap::Restore(m),
    }
}

/// Edits that stop much of what the operator does.
fn rare(object: Object, numbers: &mut Numbers) -> Edit {
    match numbers.below(12) {
        0 => Edit::Unserved,
        1 => Edit::Rotation,
        2 => Edit::OlderImage,
        3 => Edit::UnknownTarget,
        4 | 5 => Edit::Roll,
        6 => Edit::NotAdopted,
        7 => Edit::Login([Login::Denied, Login::Open][numbers.index(2)]),
        8 => Edit::Users,
        9 | 10 => Edit::TakeBack(object),
        _ => Edit::Rival,
    }
}

fn of_people(kind: u64, (n, m): (usize, usize), numbers: &mut Numbers) -> Mishap {
    let object = Object::ALL[numbers.index(Object::ALL.len())];
    match kind {
        29 => Mishap::Drain(m),
        30 => Mishap::ExceedQuota,
        31 => Mishap::Follow { pod: n, of: m },
        32 => Mishap::Failover(n),
        33 => Mishap::Scale(u8::try_from(n).unwrap_or(0) + u8::from(numbers.below(4) > 0)),
        34 => Mishap::DeleteObject(object),
        35 => Mishap::ChangeObject(object),
        36 => Mishap::ForeignObject(object),
        37 => Mishap::Password(PASSWORDS[numbers.index(PASSWORDS.len())]),
        38 => Mishap::Order {
            pod: n,
            late: numbers.below(2) == 0,
        },
        39 => Mishap::Edit(Edit::Directives {
            refused: numbers.below(4) == 0,
        }),
        40 => Mishap::Edit(Edit::Storage),
        _ => Mishap::Edit(rare(object, numbers)),
    }
}
