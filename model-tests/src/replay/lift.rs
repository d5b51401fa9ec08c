//! A world of the simulator as an operator saw it. Where it saw nothing, there is the worst that fits what it saw:
//!
//! * a primary that does not answer has taken one more write than anybody knows of;
//! * a server that does not answer lives and goes on, unless its end was seen: the kubelet reports it, or its address refuses;
//! * a server that never answered is what the record says of it, else it has just started;
//! * a snapshot on a volume holds nothing, an append-only file everything;
//! * whoever feeds a replica from an address that nobody knows is a primary that nobody sees.
//!
//! What the simulator has no part of is taken as it should be: objects, passwords, directives, sizes of volumes.

use thiserror::Error;
use wellcake_core::exec::Authority;
use wellcake_core::facts::{
    Container, Fresh, Kept, Known, Link, Ordinal, PodFacts, PodUid, Port, Reachability, Role,
    RoleLabel, RunId, ServerFacts, Tick, Upstream,
};
use wellcake_crds::v1beta1::Topology;

use crate::history::Data;
use crate::operator::{LEASE, Operator};
use crate::recorded::Moment;
use crate::world::{Ack, Api, Disk, Pod, Process, World, Zombie};

use super::lift_data::Histories;

/// Highest number of an identity that is lifted: above it there must be room for those that the world gives.
const HIGHEST: u16 = 50_000;

/// Why a pass cannot be lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotLifted {
    /// Another topology.
    #[error("the simulator has clusters with replicas only")]
    Topology,
    /// The object is being deleted.
    #[error("the ValkeyCluster is being deleted")]
    Deleting,
    /// No pods.
    #[error("there is no pod")]
    Empty,
    /// Servers of another operator's template.
    #[error("its servers were made by another operator")]
    MadeElsewhere,
    /// More pods than a search can number the events of.
    #[error("it has more than {} pods", super::diverge::PODS)]
    Pods,
    /// Numbers of identities that leave no room for new ones.
    #[error("its numbers leave no room for new ones")]
    Numbers,
}

/// The world of a moment, with the operator that saw it as the leader.
pub fn lift(moment: &Moment) -> Result<World, NotLifted> {
    let seen = &moment.seen;
    check(moment)?;
    let disk = disk(moment);
    let asked = moment.spec.pods.max(seen.objects.replicas_applied);
    let count = u8::try_from(seen.pods.len()).unwrap_or(u8::MAX).max(asked);
    let mut world = World::new(count, disk, moment.spec.profile);
    world.now = moment.now;
    world.spec = moment.spec;
    world.lease_until = moment.now.after(LEASE);
    world.last_id = highest(moment).ok_or(NotLifted::Numbers)?;
    world.replicas = seen.objects.replicas_applied;
    world.template = 1;
    world.api = Api {
        record: seen.record,
        kept: vec![None; usize::from(count)],
        down_since: seen.primary_down_since,
        routes: [seen.objects.client_route, seen.objects.primary_route],
    };
    if let Some(kept) = seen.kept_record
        && let Some(place) = world.api.kept.get_mut(kept.pod.index())
    {
        *place = Some(kept);
    }
    let mut lifting = Lifting::new(moment, world);
    lifting.pods();
    lifting.zombies();
    lifting.links();
    lifting.owe();
    let mut world = lifting.world;
    world.operators = operators(moment, &world);
    Ok(world)
}

fn check(moment: &Moment) -> Result<(), NotLifted> {
    let servers = moment.seen.pods.iter().filter_map(|pod| pod.server.last());
    if moment.spec.topology != Topology::Replication {
        Err(NotLifted::Topology)
    } else if moment.spec.deleting {
        Err(NotLifted::Deleting)
    } else if moment.seen.pods.is_empty() {
        Err(NotLifted::Empty)
    } else if moment.spec.adopt || servers.into_iter().any(|server| server.unfenced) {
        Err(NotLifted::MadeElsewhere)
    } else {
        Ok(())
    }
}

const fn disk(moment: &Moment) -> Disk {
    let persistence = moment.spec.persistence;
    if !persistence.claims {
        Disk::None
    } else if persistence.aof {
        Disk::Aof
    } else if persistence.rdb {
        Disk::Rdb
    } else {
        Disk::None
    }
}

/// The highest number of an identity in a moment; `None` where it leaves no room.
fn highest(moment: &Moment) -> Option<u16> {
    let seen = &moment.seen;
    let servers = seen.pods.iter().filter_map(|pod| pod.server.last());
    let former = seen.former.iter().filter_map(|former| former.server.last());
    let of_server = |server: &ServerFacts| {
        let before = server.replid2.map_or(0, |replid| replid.0);
        let own = server.replid.0.max(server.run.0).max(before);
        own.max(server.pod_uid.0)
    };
    let of_record = seen.record.map_or(0, |record| {
        let served = record.served.map_or(0, |served| {
            served.pod_uid.0.max(served.replid.map_or(0, |it| it.0))
        });
        let replids = [record.replid, record.continues].into_iter().flatten();
        let replids = replids.map(|it| it.0).max().unwrap_or(0);
        record.pod_uid.0.max(served).max(replids)
    });
    let objects = seen.pods.iter().filter_map(|pod| pod.object.last());
    let uids = objects.map(|object| object.uid.0);
    let gone = seen.former.iter().map(|former| former.reach.pod_uid.0);
    let all = servers.chain(former).map(of_server);
    let highest = all.chain(uids).chain(gone).max().unwrap_or(0);
    let highest = highest.max(of_record);
    (highest < HIGHEST).then_some(highest)
}

struct Lifting<'a> {
    moment: &'a Moment,
    histories: Histories,
    world: World,
}

impl<'a> Lifting<'a> {
    fn new(moment: &'a Moment, mut world: World) -> Self {
        let histories = Histories::of(moment, || world.id());
        Self {
            moment,
            histories,
            world,
        }
    }

    fn pods(&mut self) {
        // Of pods that nobody looked at there are none.
        for pod in &mut self.world.pods {
            pod.exists = false;
            pod.process = None;
        }
        for (ordinal, facts) in self.moment.seen.ordinals() {
            let pod = self.pod(ordinal, facts);
            if let Some(place) = self.world.pods.get_mut(ordinal.index()) {
                *place = pod;
            }
        }
    }

    fn pod(&mut self, ordinal: Ordinal, facts: &PodFacts) -> Pod {
        let addr = self.world.id();
        let object = facts.object.last().copied();
        let asked = ordinal.0 < self.moment.spec.pods;
        // One that could not be looked at is there if it was, or if it should be.
        let exists = object.is_some() || (asked && !facts.object.is_absent());
        let uid = object.map_or_else(|| PodUid(self.world.id()), |object| object.uid);
        let container = object.map_or(Container::Running { restarts: 0 }, |it| it.container);
        let process = exists
            .then(|| self.process(ordinal, uid, container, facts))
            .flatten();
        let restarts = match container {
            Container::Running { restarts } | Container::Terminated { restarts } => restarts,
            Container::Waiting => 0,
        };
        let silent = facts.reach.is_some_and(is_unanswered);
        Pod {
            exists,
            claim_is_young: facts
                .claim
                .value()
                .is_none_or(|claim| claim.younger_than_cluster),
            uid,
            addr,
            terminating: object.is_some_and(|object| object.terminating),
            reported: container,
            restarts,
            label: object.map_or(RoleLabel::None, |it| it.label),
            disk: self.volume(process.as_ref(), facts),
            hidden: process.is_some() && facts.server.value().is_none() && silent,
            process,
            cut: false,
            made_from: u8::from(object.is_none_or(|object| !object.revision.is_outdated())),
            taken: object.is_some_and(|object| object.terminating),
            given_up: ordinal.0
                >= self
                    .moment
                    .seen
                    .objects
                    .replicas_applied
                    .max(self.moment.spec.pods),
        }
    }

    /// The process in a pod: what it answered last, or what the record says of it. None where its end was seen.
    fn process(
        &mut self,
        ordinal: Ordinal,
        uid: PodUid,
        container: Container,
        facts: &PodFacts,
    ) -> Option<Process> {
        let answers = facts.server.value().is_some();
        let ended = !matches!(container, Container::Running { .. });
        if !answers && (ended || facts.reach.is_some_and(has_ended)) {
            return None;
        }
        match facts.server.last().copied() {
            Some(server) if server.pod_uid == uid => Some(self.known(&server, answers)),
            _ => Some(self.unheard(ordinal, uid)),
        }
    }

    /// A process that answered. One that does not answer now, and takes writes, has taken one more.
    fn known(&mut self, server: &ServerFacts, answers: bool) -> Process {
        let now = self.world.now;
        let primary = server.role == Role::Primary;
        let mut process = self.world.boot(None);
        process.run = server.run;
        process.port = server.port;
        process.primary = primary;
        process.data = self.histories.data(server);
        process.started = before(now, u64::from(server.uptime) * 1_000);
        process.needs_replica = server.needs_replica;
        process.configured = true;
        process.acknowledged = server.has_replica.then_some(now);
        process.rewrites = server.rewriting.then_some(now);
        if let Role::Replica { link, syncing, .. } = server.role {
            process.linked = link == Link::Up;
            process.syncing = syncing;
            process.unlinked_at = match link {
                Link::Down { seconds } => Some(before(now, u64::from(seconds) * 1_000)),
                Link::Up | Link::Never => None,
            };
        }
        if primary && let Some(record) = self.moment.seen.record {
            let served = record.served.map(|served| served.pod_uid);
            if record.pod_uid == server.pod_uid {
                process.epoch = record.epoch.0;
            } else if served == Some(server.pod_uid) {
                process.epoch = record.epoch.0.saturating_sub(1);
            }
        }
        let may_write = !server.needs_replica || server.has_replica;
        if primary && !answers && server.port == Port::Client && may_write {
            let write = self.world.id();
            process.data.write(write, self.world.disk == Disk::Aof);
        }
        process
    }

    /// A process that was never heard of: the recorded primary, or one that has just started.
    fn unheard(&mut self, ordinal: Ordinal, uid: PodUid) -> Process {
        let mut process = self.world.boot(None);
        let record = self.moment.seen.record;
        if let Some(record) = record.filter(|it| it.pod == ordinal && it.pod_uid == uid)
            && let Some(replid) = record.replid
        {
            process.primary = true;
            process.port = Port::Client;
            process.epoch = record.epoch.0;
            process.configured = true;
            process.data = self
                .histories
                .all_of(replid, self.moment.seen.primary_offset);
            let write = self.world.id();
            process.data.write(write, self.world.disk == Disk::Aof);
        }
        process
    }

    /// What a volume holds.
    fn volume(&self, process: Option<&Process>, facts: &PodFacts) -> Option<Data> {
        match (self.world.disk, process, facts.server.last()) {
            (Disk::None, ..) => None,
            (Disk::Aof, Some(process), _) if process.rewrites.is_some() => None,
            (Disk::Aof, Some(process), _) => Some(process.data.clone()),
            (Disk::Rdb, Some(_), _) => None,
            (_, None, Some(server)) => Some(self.histories.data(server)),
            (_, None, None) => None,
        }
    }

    /// Servers whose pods are gone live on, unless their addresses refuse.
    fn zombies(&mut self) {
        let seen = &self.moment.seen;
        for former in &seen.former {
            let uid = former.reach.pod_uid;
            let answers = former.server.value().is_some();
            let Some(server) = former.server.last() else {
                continue;
            };
            if !answers && has_ended(former.reach) {
                continue;
            }
            let process = self.known(server, answers);
            let record = seen.record;
            let pod = record
                .filter(|record| record.pod_uid == uid)
                .map(|it| it.pod);
            let served = record.and_then(|record| record.served);
            let served = served.filter(|it| it.pod_uid == uid).map(|it| it.pod);
            let addr = self.world.id();
            self.world.zombies.push(Zombie {
                ordinal: pod.or(served).unwrap_or(Ordinal(0)),
                uid,
                addr,
                hidden: !answers,
                process,
            });
        }
    }

    /// Replicas have their links to whom they follow.
    fn links(&mut self) {
        let now = self.world.now;
        for (ordinal, facts) in self.moment.seen.ordinals() {
            let Some(Role::Replica { upstream, .. }) = facts.server.last().map(|it| it.role) else {
                continue;
            };
            let source = match upstream {
                Upstream::Nobody => None,
                Upstream::Pod(of) => self.world.pods.get(of.index()).map(|pod| {
                    let run = pod.process.as_ref().map(|process| process.run);
                    (pod.addr, run)
                }),
                Upstream::Other => Some(self.unseen(ordinal, facts)),
            };
            let Some(pod) = self.world.pods.get_mut(ordinal.index()) else {
                continue;
            };
            let Some(process) = pod.process.as_mut() else {
                continue;
            };
            let lives = source.is_some_and(|(_, run)| run.is_some());
            // It would have its link again if it could.
            pod.cut = lives && !process.syncing && process.unlinked_at.is_some();
            process.upstream = source.map(|(addr, _)| addr);
            let fed = process.linked || process.syncing;
            process.fed_by = source.and_then(|(_, run)| run).filter(|_| fed);
            process.heard = now;
            if process.syncing && process.fed_by.is_none() {
                process.syncing = false;
            }
            if process.linked && process.fed_by.is_none() {
                // Its server has just ended, and it has not noticed.
                process.fed_by = Some(RunId(0));
            }
        }
    }

    /// The server at an address that is no present pod's: one whose pod is gone, or a primary that nobody sees if it feeds a replica.
    fn unseen(&mut self, ordinal: Ordinal, facts: &PodFacts) -> (u16, Option<RunId>) {
        let server = facts.server.last();
        let fed = server.is_some_and(ServerFacts::is_fed);
        let same = |zombie: &&Zombie| {
            server.is_some_and(|server| server.replid == zombie.process.data.replid)
        };
        if let Some(zombie) = self.world.zombies.iter().find(same) {
            return (zombie.addr, Some(zombie.process.run));
        }
        let addr = self.world.id();
        let Some(server) = server.filter(|_| fed) else {
            return (addr, None);
        };
        let uid = PodUid(self.world.id());
        let mut process = self.world.boot(None);
        process.primary = true;
        process.port = Port::Client;
        process.data = self.histories.data(server);
        process.acknowledged = Some(self.world.now);
        let run = process.run;
        self.world.zombies.push(Zombie {
            ordinal,
            uid,
            addr,
            hidden: true,
            process,
        });
        (addr, Some(run))
    }

    /// What was acknowledged, and who was promoted.
    fn owe(&mut self) {
        let Some(record) = self.moment.seen.record else {
            return;
        };
        // Once its promotion was seen the recorded pod counts, and whatever the one before goes on to take was charged with it.
        let promoted = Histories::begun_by(&self.moment.seen, record).is_some();
        let truth = if promoted {
            record.own()
        } else {
            record.truth()
        };
        self.world.promoted.insert(record.epoch.0, record.pod_uid);
        let leads = |process: &&Process| process.serves() && process.frozen.is_none();
        let server = self
            .world
            .process_of(truth.pod_uid)
            .map(|process| &*process);
        let history = truth.replid.or(server.map(|process| process.data.replid));
        let Some(history) = history else { return };
        let last = self.moment.seen.primary_offset;
        let owed = match server.filter(leads) {
            // What it alone holds is owed, too.
            Some(process) => process.data.log.clone(),
            None => self.histories.owed(history, last),
        };
        let epoch = record.epoch.0;
        let (uid, epoch) = if truth == record.own() {
            (record.pod_uid, epoch)
        } else {
            (truth.pod_uid, epoch.saturating_sub(1))
        };
        self.world.acks = owed
            .into_iter()
            .map(|write| Ack {
                write,
                epoch,
                pod: uid,
            })
            .collect();
        self.leave_behind(record.pod_uid, truth.pod_uid);
    }

    /// Other primaries than the recorded one, and the one before it, are of the past: what they take was charged when another was
    /// promoted.
    fn leave_behind(&mut self, recorded: PodUid, before: PodUid) {
        let others: Vec<RunId> = self
            .world
            .processes()
            .filter(|(uid, process)| process.primary && *uid != recorded && *uid != before)
            .map(|(_, process)| process.run)
            .collect();
        for run in others {
            self.world.left_behind.insert(run, false);
        }
    }
}

/// Whether nobody listens at an address where somebody did.
fn has_ended(reach: Reachability) -> bool {
    matches!(reach.fresh, Fresh::Refused { .. }) && !matches!(reach.kept, Kept::Up)
}

/// Whether asking at an address brings nothing.
fn is_unanswered(reach: Reachability) -> bool {
    matches!(reach.fresh, Fresh::TimedOut { .. }) || matches!(reach.kept, Kept::TimedOut { .. })
}

const fn before(now: Tick, millis: u64) -> Tick {
    Tick(now.0.saturating_sub(millis))
}

/// The operator of the trace, which leads, and another one that has just started.
fn operators(moment: &Moment, world: &World) -> Vec<Operator> {
    let seen = &moment.seen;
    let mut own = Operator::new(world, true);
    own.authority = Authority::Leader {
        epoch: 1,
        valid_until: moment.now.after(LEASE),
    };
    for (own, facts) in own.pods.iter_mut().zip(&seen.pods) {
        *own = *facts;
    }
    for reach in seen.pods.iter().filter_map(|facts| facts.reach) {
        own.reach.insert(reach.pod_uid, reach);
    }
    for former in &seen.former {
        own.reach.insert(former.reach.pod_uid, former.reach);
        own.former.insert(former.reach.pod_uid, former.server);
    }
    let truth = seen.record.map(|record| record.truth());
    own.offset = truth.zip(seen.primary_offset);
    for (place, facts) in own.truth.iter_mut().zip(&seen.pods) {
        if let Known::Seen(answer) = facts.server {
            *place = Some((answer.at, answer.value.serves_writes()));
        }
    }
    vec![own, Operator::new(world, false)]
}
