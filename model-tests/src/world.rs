//! The world as a value.

use serde::{Deserialize, Serialize};
use wellcake_core::facts::{
    Container, Ordinal, Persistence, PodUid, Port, Record, Replid, RoleLabel, RunId, SpecFacts,
    Tick,
};
use wellcake_crds::v1beta1::{Profile, Topology};

use crate::faults::standing::{Ails, Faults};
use crate::hands::Hands;
use crate::history::{Data, Write};
use crate::operator::Operator;
use crate::servers::{Command, REPLICA_LAG};
use crate::sorted::{Map, Set};

/// How data outlives a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Disk {
    /// Not at all.
    None,
    /// By snapshots: an old part of the history, with its lineage.
    Rdb,
    /// By an append-only file: everything, without lineage.
    Aof,
}

/// A server process.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Identity.
    pub run: RunId,
    /// Port that it listens on.
    pub port: Port,
    /// Whether it is a primary.
    pub primary: bool,
    /// Address that it replicates from.
    pub upstream: Option<u16>,
    /// Whether its link is up.
    pub linked: bool,
    /// The process that accepted it as a replica: the other end of its link, once that is up.
    pub fed_by: Option<RunId>,
    /// When that sent something last.
    pub heard: Tick,
    /// What waits in its socket while it is frozen or paused: its data with what was sent to it since.
    pub in_socket: Option<Data>,
    /// When the link went down.
    pub unlinked_at: Option<Tick>,
    /// Whether a full copy is on its way.
    pub syncing: bool,
    /// Since when it writes its append-only file anew after a full copy, while it does.
    pub rewrites: Option<Tick>,
    /// Since when it does nothing at all.
    pub frozen: Option<Tick>,
    /// Commands that were sent to it while it is frozen.
    pub waiting: Vec<Command>,
    /// Until when it takes no writes.
    pub paused_until: Option<Tick>,
    /// Its data.
    pub data: Data,
    /// When it started.
    pub started: Tick,
    /// Epoch of the record under which it was promoted.
    pub epoch: u32,
    /// Whether it takes writes only while a replica acknowledges.
    pub needs_replica: bool,
    /// Whether it was sent its directives.
    pub configured: bool,
    /// When a replica acknowledged last.
    pub acknowledged: Option<Tick>,
    /// If another operator's template started it.
    pub unfenced: Option<Unfenced>,
    /// What is wrong with it.
    pub ails: Option<Box<Ails>>,
}

/// What is known of a process that began with its client port open. Its port counts as the fence's until it was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unfenced {
    /// Whether it began after the world did: nobody but its template made it what it is.
    pub by_itself: bool,
    /// Whether it replicates from the first pod, by that pod's name.
    pub named: bool,
    /// Whether it logs in to a primary with this operator's password.
    pub with_our_password: bool,
}

impl Process {
    /// Whether it takes writes, at once or after a pause.
    pub fn serves(&self) -> bool {
        let open = self.port == Port::Client || self.unfenced.is_some();
        self.primary && open && self.frozen.is_none() && !self.is_loading()
    }

    /// Whether it took clients before anybody had looked at it.
    pub fn is_by_itself(&self) -> bool {
        let by_itself = self.unfenced.is_some_and(|it| it.by_itself);
        by_itself && self.port == Port::Fence
    }

    /// Whether it would acknowledge a write now.
    pub fn acks(&self, now: Tick) -> bool {
        let saves = !self.ails(|it| it.disk_full);
        self.serves() && !self.is_paused(now) && !self.has_stopped(now) && saves
    }

    /// Whether it takes no writes for now, from clients and from its primary.
    pub fn is_paused(&self, now: Tick) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// Its link is gone, with what waited in its socket. One that ends while a write of it is paused leaves no position to
    /// continue from (`networking.c: freeClient` keeps no primary that is blocked).
    pub fn end_link(&mut self, now: Tick) {
        let waited = self.in_socket.take().is_some();
        self.data.lost |= waited && self.is_paused(now);
        self.linked = false;
        self.fed_by = None;
        self.syncing = false;
    }

    /// Whether it takes no writes for want of a replica.
    pub fn has_stopped(&self, now: Tick) -> bool {
        let in_time = |at| now.since(at) <= REPLICA_LAG;
        self.needs_replica && !self.acknowledged.is_some_and(in_time)
    }
}

/// A pod with its volume; the volume stays when the pod goes, unless nothing is persisted.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Pod {
    /// Whether the object exists.
    pub exists: bool,
    /// Whether its claim was made after the ValkeyCluster.
    pub claim_is_young: bool,
    /// Uid.
    pub uid: PodUid,
    /// Address.
    pub addr: u16,
    /// Whether the object has a deletion timestamp.
    pub terminating: bool,
    /// What the kubelet reported last.
    pub reported: Container,
    /// Starts after the first.
    pub restarts: u16,
    /// Label.
    pub label: RoleLabel,
    /// The server, if one runs.
    pub process: Option<Process>,
    /// What the volume holds.
    pub disk: Option<Data>,
    /// The operators cannot reach it.
    pub hidden: bool,
    /// It cannot reach the server that it replicates from.
    pub cut: bool,
    /// The template that it was made from.
    pub made_from: u8,
    /// An operator took it away, and it has not been in sync since.
    pub taken: bool,
    /// It was taken away for good, with fewer pods asked for, and has not been made anew.
    pub given_up: bool,
}

impl Pod {
    /// Whether it is there to stay and serves clients with a copy or as primary.
    pub fn is_in_sync(&self) -> bool {
        let serves = self.process.as_ref().is_some_and(|process| {
            process.port == Port::Client && (process.primary || process.linked)
        });
        self.exists && !self.terminating && serves
    }
}

/// A process whose pod object is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Zombie {
    /// Ordinal of its pod.
    pub ordinal: Ordinal,
    /// Uid of its pod.
    pub uid: PodUid,
    /// Its address.
    pub addr: u16,
    /// The operators cannot reach it.
    pub hidden: bool,
    /// The process.
    pub process: Process,
}

/// What the API server holds.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Api {
    /// The primary record.
    pub record: Option<Record>,
    /// The copy of a record on each claim.
    pub kept: Vec<Option<Record>>,
    /// `primaryDownSince`.
    pub down_since: Option<Tick>,
    /// Pods that the selectors of the client and the primary Service name.
    pub routes: [Option<Ordinal>; 2],
}

/// A write that a client got an acknowledgement for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ack {
    /// The write.
    pub write: Write,
    /// Epoch of the server that acknowledged it.
    pub epoch: u32,
    /// Pod of that server.
    pub pod: PodUid,
}

/// Everything.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// What is asked for.
    pub spec: SpecFacts,
    /// Persistence.
    pub disk: Disk,
    /// Time.
    pub now: Tick,
    /// Pods by ordinal.
    pub pods: Vec<Pod>,
    /// Processes whose pods are gone.
    pub zombies: Vec<Zombie>,
    /// API server.
    pub api: Api,
    /// Until when the lease is held, as its last renewal says.
    pub lease_until: Tick,
    /// Operators.
    pub operators: Vec<Operator>,
    /// Process to which the client's connection leads.
    pub connection: Option<RunId>,
    /// Acknowledged writes.
    pub acks: Vec<Ack>,
    /// Writes that an earlier promotion could not save; every one is charged to the faults before it.
    pub forfeited: Set<Write>,
    /// Primaries that were left behind alive when another was promoted on their silence, and whether each was to have stopped by
    /// itself.
    pub left_behind: Map<RunId, bool>,
    /// Writes that such a primary acknowledged afterwards.
    pub zombie_writes: u32,
    /// Pod that was promoted in each epoch.
    pub promoted: Map<u32, PodUid>,
    /// Last number given to any identity.
    pub last_id: u16,
    /// The newest template of the pods.
    pub template: u8,
    /// Replicas that the StatefulSet asks for.
    pub replicas: u8,
    /// Whether the first template, and what was made from it, is another operator's.
    pub made_elsewhere: bool,
    /// Faults that stand beside those above; only random runs have any.
    pub faults: Option<Box<Faults>>,
    /// How operators carry effects out.
    pub hands: Hands,
}

impl World {
    /// A new cluster whose pods have just started.
    pub fn new(pods: u8, disk: Disk, profile: Profile) -> Self {
        let mut world = Self {
            spec: spec(pods, disk, profile),
            disk,
            now: Tick(1_000_000),
            pods: Vec::new(),
            zombies: Vec::new(),
            api: Api {
                record: None,
                kept: vec![None; usize::from(pods)],
                down_since: None,
                routes: [None; 2],
            },
            lease_until: Tick(1_000_000).after(crate::operator::LEASE),
            operators: Vec::new(),
            connection: None,
            acks: Vec::new(),
            forfeited: Set::new(),
            left_behind: Map::new(),
            zombie_writes: 0,
            promoted: Map::new(),
            last_id: 0,
            template: 0,
            replicas: pods,
            made_elsewhere: false,
            faults: None,
            hands: Hands::Right,
        };
        for _ in 0..pods {
            let uid = PodUid(world.id());
            let addr = world.id();
            let process = Some(world.boot(None));
            world.pods.push(Pod {
                exists: true,
                claim_is_young: true,
                uid,
                addr,
                terminating: false,
                reported: Container::Running { restarts: 0 },
                restarts: 0,
                label: RoleLabel::None,
                process,
                disk: None,
                hidden: false,
                cut: false,
                made_from: 0,
                taken: false,
                given_up: false,
            });
        }
        world.operators = (0..2).map(|n| Operator::new(&world, n == 0)).collect();
        world
    }

    /// The next identity.
    pub fn id(&mut self) -> u16 {
        self.last_id += 1;
        self.last_id
    }

    /// A process that starts behind the fence with what the volume holds.
    pub fn boot(&mut self, disk: Option<&Data>) -> Process {
        let run = RunId(self.id());
        let replid = Replid(self.id());
        let data = match (self.disk, disk) {
            (Disk::Rdb, Some(data)) => data.restored(replid),
            (Disk::Aof, Some(data)) => data.without_lineage(replid),
            _ => Data::empty(replid),
        };
        Process {
            run,
            port: Port::Fence,
            primary: false,
            upstream: None,
            linked: false,
            fed_by: None,
            heard: self.now,
            in_socket: None,
            unlinked_at: None,
            syncing: false,
            rewrites: None,
            frozen: None,
            waiting: Vec::new(),
            paused_until: None,
            data,
            started: self.now,
            epoch: 0,
            needs_replica: false,
            configured: false,
            acknowledged: None,
            unfenced: None,
            ails: None,
        }
    }

    /// A process of pod `n` that starts as the template of that pod says.
    pub fn boot_pod(&mut self, n: usize, template: u8, disk: Option<&Data>) -> Process {
        let mut process = self.boot(disk);
        if !self.made_elsewhere || template > 0 {
            return process;
        }
        if n == 0 {
            // A server that loads a snapshot as a primary keeps its history as the one before, and a backlog (measured;
            // `server.c: loadDataFromDisk`).
            let replid = Replid(self.id());
            process.data.promote(replid);
            process.data.backlog = process.data.position;
        }
        Process {
            primary: n == 0,
            unfenced: Some(Unfenced {
                by_itself: true,
                named: n > 0,
                with_our_password: false,
            }),
            ..process
        }
    }

    /// The same world as another operator made it: the first pod is a primary and the others follow it, all open, and nobody
    /// knows this operator.
    #[must_use]
    pub fn made_elsewhere(mut self) -> Self {
        self.made_elsewhere = true;
        self.spec.adopt = true;
        let first = self.pods.first().map(|pod| pod.addr);
        let leader = self.pods.first().and_then(|pod| pod.process.as_ref());
        let run = leader.map(|process| process.run);
        let data = leader.map(|process| {
            let mut data = process.data.clone();
            data.begin_backlog(data.replid);
            data
        });
        for (n, pod) in self.pods.iter_mut().enumerate() {
            let Some(process) = pod.process.as_mut() else {
                continue;
            };
            process.primary = n == 0;
            process.upstream = first.filter(|_| n > 0);
            process.linked = n > 0;
            process.fed_by = run.filter(|_| n > 0);
            process.data = data.clone().unwrap_or_else(|| process.data.clone());
            process.unfenced = Some(Unfenced {
                by_itself: false,
                named: n > 0,
                with_our_password: false,
            });
        }
        self
    }

    /// The process at an address.
    pub fn at(&self, addr: u16) -> Option<&Process> {
        let pod = self
            .pods
            .iter()
            .filter(|pod| pod.addr == addr && pod.exists)
            .find_map(|pod| pod.process.as_ref());
        pod.or_else(|| {
            self.zombies
                .iter()
                .find(|zombie| zombie.addr == addr)
                .map(|zombie| &zombie.process)
        })
    }

    /// The process at an address.
    pub fn at_mut(&mut self, addr: u16) -> Option<&mut Process> {
        let mut pods = self.pods.iter_mut();
        let pod = pods.find(|pod| pod.addr == addr && pod.exists && pod.process.is_some());
        match pod {
            Some(pod) => pod.process.as_mut(),
            None => self
                .zombies
                .iter_mut()
                .find(|zombie| zombie.addr == addr)
                .map(|zombie| &mut zombie.process),
        }
    }

    /// Every process that lives, with the uid of its pod.
    pub fn processes(&self) -> impl Iterator<Item = (PodUid, &Process)> {
        let pods = self
            .pods
            .iter()
            .filter_map(|pod| Some((pod.uid, pod.process.as_ref()?)));
        pods.chain(self.zombies.iter().map(|z| (z.uid, &z.process)))
    }

    /// The process in a pod, by the uid of that pod, whether its object exists or not.
    pub fn process_of(&mut self, uid: PodUid) -> Option<&mut Process> {
        let in_pod = self
            .pods
            .iter_mut()
            .find(|pod| pod.exists && pod.uid == uid);
        match in_pod {
            Some(pod) => pod.process.as_mut(),
            None => self
                .zombies
                .iter_mut()
                .find(|zombie| zombie.uid == uid)
                .map(|zombie| &mut zombie.process),
        }
    }

    /// Whether operators can reach what runs in a pod.
    pub fn is_reachable(&self, uid: PodUid) -> bool {
        let pod = self.pods.iter().find(|pod| pod.exists && pod.uid == uid);
        match pod {
            Some(pod) => !pod.hidden,
            None => self
                .zombies
                .iter()
                .any(|zombie| zombie.uid == uid && !zombie.hidden),
        }
    }

    /// Acknowledged writes that no promotion has given up.
    pub fn owed(&self) -> impl Iterator<Item = Write> {
        self.acks
            .iter()
            .map(|ack| ack.write)
            .filter(|write| !self.forfeited.contains(write))
    }
}

fn spec(pods: u8, disk: Disk, profile: Profile) -> SpecFacts {
    SpecFacts {
        generation: 1,
        topology: Topology::Replication,
        profile,
        pods,
        persistence: Persistence {
            aof: disk == Disk::Aof,
            rdb: disk == Disk::Rdb,
            claims: disk != Disk::None,
            saves_at_end: disk != Disk::None,
        },
        needs_replica: profile == Profile::Durable,
        replica_lag: 10,
        image_major: None,
        unserved: None,
        promote: None,
        failover: None,
        hibernate: false,
        adopt: false,
        foreign_finalizer: false,
        rotation_asked: false,
        deleting: false,
    }
}
