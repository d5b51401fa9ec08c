//! What is wrong with servers, their volumes, nodes and networks. Each rule follows a measurement on real servers or the function of
//! Valkey's source, or the page of Kubernetes' documentation that is named.

use serde::{Deserialize, Serialize};
use wellcake_core::facts::{Millis, Replid, Tick, Trouble};

use super::Mishap;
use super::kind::Kind;
use super::standing::Node;
use crate::history::Data;
use crate::replication::REPL_TIMEOUT;
use crate::world::{Disk, Process, World};

/// How long a slow start loads: long enough that operators look in between, and shorter than what they wait for at most.
const LOADS: Millis = Millis(7_000);

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// It arrives long after its sender gave up: a connection that was closed delivers what was sent before (measured).
    Delayed,
}

impl Fate {
    /// All fates.
    pub const ALL: [Self; 3] = [Self::Lost, Self::AnswerLost, Self::Delayed];

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Lost => Kind::CommandLost,
            Self::AnswerLost => Kind::CommandAnswerLost,
            Self::Delayed => Kind::CommandDelayed,
        }
    }
}

impl World {
    /// What becomes of the next command of operator `o`, if anything special does.
    pub(crate) fn take_fate(&mut self, o: usize) -> Option<Fate> {
        let fate = self
            .faults
            .as_deref_mut()?
            .operators
            .get_mut(o)?
            .fate
            .take()?;
        self.fired(fate.kind());
        Some(fate)
    }

    /// A moment as operator `o` writes it to Kubernetes, by its own clock.
    pub(crate) fn written_by(&self, o: usize, at: Tick) -> Tick {
        let ahead = self.on_operator(o).map_or(0, |it| i64::from(it.ahead));
        Tick(at.0.saturating_add_signed(ahead * 1_000))
    }

    /// A moment that Kubernetes keeps, as operator `o` understands it (`interpreter/src/clock.rs`): by its own clock, which counts
    /// on from when it started.
    pub(crate) fn read_by(&self, o: usize, at: Tick) -> Tick {
        let ahead = self.on_operator(o).map_or(0, |it| i64::from(it.ahead));
        Tick(at.0.saturating_add_signed(-ahead * 1_000))
    }

    /// Clients do not reach a pod any more: its connections are over.
    fn cut_clients(&mut self, n: usize) {
        self.faults_mut().pod(n).clients_cut = true;
        let run = self.process(n).map(|process| process.run);
        if self.connection.is_some() && self.connection == run {
            self.connection = None;
            self.fired(Kind::ClientsCutOff);
        }
    }

    /// Something befalls a pod.
    pub(super) fn befall(&mut self, mishap: Mishap) {
        match mishap {
            Mishap::Restart(n) => self.restart(n),
            Mishap::Busy(n) => self.run_script(n),
            Mishap::Stall(n) => self.stall(n),
            Mishap::LoadSlowly(n) => {
                self.end(n, false);
                self.faults_mut().pod(n).loads_slowly = true;
                self.start(n);
            }
            Mishap::FillDisk(n) => self.fill_disk(n),
            Mishap::LockOperatorOut(n) => self.lock_out(n, Kind::OperatorLockedOut),
            Mishap::LockReplicasOut(n) => self.lock_out(n, Kind::ReplicasLockedOut),
            Mishap::JumpClock(n) => self.jump_clock(n),
            Mishap::CutClients(n) => self.cut_clients(n),
            Mishap::CutAnswers(n) | Mishap::CutStream(n) | Mishap::CutAcknowledgements(n) => {
                self.cut(n, mishap)
            }
            Mishap::LoseNode(n) => self.lose_node(n),
            Mishap::SwitchOff(n) => self.switch_off(n),
            Mishap::MarkOutOfService(n) => self.mark_out_of_service(n),
            Mishap::Obstruct { pod, trouble } => {
                self.faults_mut().pod(pod).trouble = Some(trouble);
            }
            Mishap::LoseVolume(n) | Mishap::RemakeClaim(n) => {
                self.lose_volume(n, matches!(mishap, Mishap::RemakeClaim(_)));
            }
            Mishap::BackUp(n) => {
                let disk = self.pods.get(n).and_then(|pod| pod.disk.clone());
                self.faults_mut().pod(n).backup = disk;
            }
            Mishap::Restore(n) => self.restore_volume(n),
            _ => {}
        }
    }

    /// The kubelet ends a container in order and starts it again in the same pod (as for a liveness probe; "Pod Lifecycle").
    fn restart(&mut self, n: usize) {
        let runs = self.pods.get(n).is_some_and(|pod| pod.process.is_some());
        if runs && self.is_node_up(n) {
            self.end(n, true);
            self.start(n);
            self.fired(Kind::ServerRestarted);
        }
    }

    /// A script that runs past `busy-reply-threshold`: everything but a few commands is answered with `-BUSY`, `INFO` too
    /// (measured; `server.c: processCommand`). The stream of a primary waits in the socket (`networking.c: processInputBuffer`),
    /// nothing is sent (`replicationCron` does not run), and SIGTERM is not acted on.
    fn run_script(&mut self, n: usize) {
        let now = self.now;
        let Some(process) = self.process(n).filter(|it| it.frozen.is_none()) else {
            return;
        };
        process.frozen = Some(now);
        process.ails_mut().busy = true;
        self.fired(Kind::ServerBusy);
    }

    /// A server whose disk does not answer does nothing else either: a write that waits for `fdatasync` for two seconds blocks its
    /// only thread (`aof.c: flushAppendOnlyFile`). Without persistence nothing waits.
    fn stall(&mut self, n: usize) {
        let (now, disk) = (self.now, self.disk);
        let Some(process) = self.process(n).filter(|_| disk != Disk::None) else {
            return;
        };
        if process.frozen.is_none() {
            process.frozen = Some(now);
            self.fired(Kind::DiskStalls);
        }
    }

    /// A full disk: a primary answers `-MISCONF` to writes, with an append-only file (`everysec`) as with snapshots (measured;
    /// `config.c: writeCommandsDeniedByDiskError`). A replica that cannot write what it gets ends itself (`server.c:
    /// processCommand`).
    fn fill_disk(&mut self, n: usize) {
        let persists = self.disk != Disk::None;
        if let Some(process) = self.process(n).filter(|_| persists) {
            process.ails_mut().disk_full = true;
            self.fired(Kind::DiskFull);
        }
    }

    /// `ACL DELUSER` of the user of operators or of replicas: its connections end, and it gets none any more until the process
    /// starts anew with its file (`acl.c: ACLFreeUserAndKillClients`).
    fn lock_out(&mut self, n: usize, kind: Kind) {
        let Some(process) = self.process(n) else {
            return;
        };
        if kind == Kind::OperatorLockedOut {
            process.ails_mut().denies_operator = true;
        } else {
            process.ails_mut().denies_replicas = true;
            let run = process.run;
            self.end_links_of(|it| it.fed_by == Some(run));
        }
        self.fired(kind);
    }

    /// The clock of a server jumps ahead by more than `repl-timeout`: what it measures with `server.unixtime` is over. It gives
    /// up its link and those of its replicas (`replication.c: replicationCron`), and no replica acknowledged lately
    /// (`replication.c: refreshGoodReplicasCount`).
    fn jump_clock(&mut self, n: usize) {
        let Some(process) = self.process(n).filter(|it| it.frozen.is_none()) else {
            return;
        };
        process.acknowledged = None;
        process.paused_until = None;
        let run = process.run;
        self.end_links_of(|it| it.run == run || it.fed_by == Some(run));
        self.fired(Kind::ServerClockJumps);
    }

    fn end_links_of(&mut self, is: impl Fn(&Process) -> bool) {
        for other in 0..self.pods.len() {
            let ends = self.process(other).is_some_and(|process| is(process));
            if ends {
                self.unlink(other);
            }
        }
    }

    fn cut(&mut self, n: usize, what: Mishap) {
        let now = self.now;
        let pod = self.faults_mut().pod(n);
        match what {
            Mishap::CutAnswers(_) => pod.answers_cut = true,
            Mishap::CutStream(_) => pod.stream_cut = true,
            _ => pod.acknowledgements_cut = pod.acknowledgements_cut.or(Some(now)),
        }
    }

    /// A node that nobody reaches: its servers go on, its kubelet reports nothing and does nothing, and the pod objects stay
    /// ("Nodes", section "Node status").
    fn lose_node(&mut self, n: usize) {
        if !self.pods.get(n).is_some_and(|pod| pod.exists) {
            return;
        }
        self.isolate(n);
        self.cut_clients(n);
        self.faults_mut().pod(n).node = Node::Lost;
        self.fired(Kind::NodeLost);
    }

    /// A node that is switched off without notice: what ran on it is gone, nobody answers at its addresses, not even with a
    /// refusal, and the pod objects stay ("Non-graceful node shutdown").
    fn switch_off(&mut self, n: usize) {
        if !self.pods.get(n).is_some_and(|pod| pod.exists) {
            return;
        }
        self.end(n, false);
        self.faults_mut().pod(n).node = Node::Off;
        self.fired(Kind::NodeOff);
    }

    /// The taint `node.kubernetes.io/out-of-service`, on a node that is off as it asks for: pods on it are deleted by force and
    /// their volumes detached ("Non-graceful node shutdown").
    fn mark_out_of_service(&mut self, n: usize) {
        if self.is_pod(n, |it| it.node == Node::Off) {
            self.faults_mut().pod(n).node = Node::OutOfService;
            self.fired(Kind::NodeOutOfService);
        }
    }

    /// A volume that fails takes its server with it. A claim goes once its pod does ("Storage object in use protection").
    fn lose_volume(&mut self, n: usize, with_claim: bool) {
        if self.disk == Disk::None || !self.is_node_up(n) {
            return;
        }
        match with_claim {
            true => self.delete(n),
            false => self.end(n, false),
        }
        let ended = self.pods.get(n).is_some_and(|pod| pod.process.is_none());
        let zombie = self.zombies.iter().any(|z| z.ordinal.index() == n);
        if !ended || zombie {
            return;
        }
        if let Some(pod) = self.pods.get_mut(n) {
            pod.disk = None;
            pod.claim_is_young |= with_claim;
        }
        if with_claim {
            if let Some(kept) = self.api.kept.get_mut(n) {
                *kept = None;
            }
            let pod = self.faults_mut().pod(n);
            pod.claims = pod.claims.saturating_add(1);
        }
        self.fired(if with_claim {
            Kind::ClaimMadeAnew
        } else {
            Kind::VolumeLost
        });
    }

    /// A volume is set back to what it was: whoever writes to it ends first.
    fn restore_volume(&mut self, n: usize) {
        if self.on_pod(n).is_none_or(|it| it.backup.is_none()) || !self.is_node_up(n) {
            return;
        }
        self.end(n, false);
        let ended = self.pods.get(n).is_some_and(|pod| pod.process.is_none());
        let zombie = self.zombies.iter().any(|z| z.ordinal.index() == n);
        let backup = self.on_pod(n).and_then(|it| it.backup.clone());
        let Some(backup) = backup.filter(|_| ended && !zombie) else {
            return;
        };
        if let Some(pod) = self.pods.get_mut(n)
            && pod.disk.as_ref() != Some(&backup)
        {
            pod.disk = Some(backup);
            self.fired(Kind::VolumeOld);
        }
    }

    /// A pod that was made, or a container that is to start, does not run. Whether it does not.
    pub(crate) fn is_obstructed(&mut self, n: usize) -> bool {
        let kind = match self.obstructs(n) {
            Some(Trouble::NoNode) => Kind::PodNotScheduled,
            Some(Trouble::Image) => Kind::ImageMissing,
            Some(Trouble::Container) => Kind::ContainerNotMade,
            Some(Trouble::Crashes) => Kind::ServerCrashes,
            Some(Trouble::Config) => Kind::ConfigNotUnderstood,
            None => return false,
        };
        self.fired(kind);
        true
    }

    /// A server that starts with much data loads it for a while; it answers all the while, and says `loading:1` (measured).
    /// Without anything to load there is nothing to wait for.
    pub(crate) fn load(&mut self, n: usize, process: &mut Process) {
        let empty = process.data.log.is_empty();
        if empty || !self.is_pod(n, |it| it.loads_slowly) {
            return;
        }
        self.faults_mut().pod(n).loads_slowly = false;
        let replid = Replid(self.id());
        process.ails_mut().loads = Some((self.now.after(LOADS), replid));
        self.fired(Kind::ServerLoads);
    }

    /// Servers that have loaded everything by now.
    pub(crate) fn end_loads(&mut self) {
        if self.faults.is_none() {
            return;
        }
        let now = self.now;
        let is_over = |it: &super::standing::Ails| it.loads.is_some_and(|(at, _)| at <= now);
        let pods = self.pods.iter_mut().filter_map(|pod| pod.process.as_mut());
        let zombies = self.zombies.iter_mut().map(|zombie| &mut zombie.process);
        for process in pods.chain(zombies) {
            if process.ails(is_over) {
                process.ails_mut().loads = None;
            }
        }
    }

    /// A linked replica to which nothing comes goes on to acknowledge what it has, until it gives up its link.
    pub(crate) fn acknowledge_in_vain(&mut self, n: usize) {
        let now = self.now;
        let Some(process) = self.pods.get(n).and_then(|pod| pod.process.as_ref()) else {
            return;
        };
        if now.since(process.heard) >= REPL_TIMEOUT {
            self.unlink(n);
        } else if process.frozen.is_none() && !self.pods.get(n).is_some_and(|pod| pod.cut) {
            let upstream = process.upstream;
            self.acknowledge(upstream);
        }
        self.fired(Kind::StreamCut);
    }

    /// Whether a primary has heard nothing of pod `n` for so long that it ends the link (`replication.c: replicationCron`).
    pub(crate) fn is_unheard(&self, n: usize) -> bool {
        let since = self.on_pod(n).and_then(|it| it.acknowledgements_cut);
        since.is_some_and(|at: Tick| self.now.since(at) >= REPL_TIMEOUT)
    }

    /// A replica with a full disk ends itself when it gets a write for its append-only file (`server.c: processCommand`, unless
    /// `replica-ignore-disk-write-errors`). Whether it did.
    pub(crate) fn ends_on_full_disk(&mut self, n: usize, data: &Data) -> bool {
        let aof = self.disk == Disk::Aof;
        let ends = self.process(n).is_some_and(|process| {
            aof && process.ails(|it| it.disk_full) && process.data.log != data.log
        });
        if ends {
            self.end(n, false);
        }
        ends
    }
}
