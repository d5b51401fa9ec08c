//! What Valkey does. Each rule follows a measurement on real servers or the function of Valkey's source that is named.

use wellcake_core::facts::{Millis, Ordinal, PodUid, Port, Replid};

use crate::history::Data;
use crate::invariants::{self, Violation};
use crate::world::{Ack, Disk, World};

/// `repl-timeout`: how long a link survives a server that says nothing.
const REPL_TIMEOUT: Millis = Millis(15_000);
/// How long a server with `min-replicas-to-write` takes writes after the last acknowledgement at most: `min-replicas-max-lag 10`,
/// kept in whole seconds and looked at once a second (`replication.c: refreshGoodReplicasCount`).
pub const REPLICA_LAG: Millis = Millis(12_000);

impl World {
    /// A moment of replication of one pod: connects, starts or ends a full copy, receives the stream, or notices that the
    /// link is gone.
    pub fn replicate(&mut self, n: usize) -> Result<(), Violation> {
        let Some(pod) = self.pods.get(n) else {
            return Ok(());
        };
        if pod
            .process
            .as_ref()
            .is_none_or(|p| p.primary || p.frozen.is_some())
        {
            return Ok(());
        }
        self.resolve(n);
        let Some(process) = self.pods.get(n).and_then(|pod| pod.process.clone()) else {
            return Ok(());
        };
        let Some(source) = self.source(n) else {
            let stays = process.linked && (self.is_quiet(process.upstream) || self.is_held(n));
            if !stays {
                self.unlink(n);
            }
            return Ok(());
        };
        let streaming = process.linked && !process.syncing;
        if streaming || source.can_continue(&process.data) {
            self.receive(n, source);
        } else if process.syncing {
            let untouched = self.api.record.is_none() && process.unfenced.is_some();
            if process.is_by_itself() || untouched {
                // Its template has it copy from the first pod, whatever that holds.
                self.give_up(n, &source);
            } else {
                invariants::full_copy_keeps_what_is_owed(self, &process.data, &source)?;
            }
            self.receive(n, source);
        } else if let Some(process) = self.process(n) {
            process.syncing = true;
        }
        Ok(())
    }

    /// A server that follows the first pod by its name follows whoever that is.
    fn resolve(&mut self, n: usize) {
        let first = self
            .pods
            .first()
            .filter(|pod| pod.exists)
            .map(|pod| pod.addr);
        if let Some(process) = self.process(n)
            && process.unfenced.is_some_and(|it| it.named)
            && !process.linked
        {
            process.upstream = first.or(process.upstream);
        }
    }

    /// What pod `n` alone holds and `source` lacks is the price of another operator's template.
    fn give_up(&mut self, n: usize, source: &Data) {
        let held = |write| {
            let mut others = self
                .pods
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != n);
            others.any(|(_, pod)| pod.process.as_ref().is_some_and(|p| p.data.holds(write)))
        };
        let Some(process) = self.pods.get(n).and_then(|pod| pod.process.as_ref()) else {
            return;
        };
        let lost: Vec<_> = self
            .owed()
            .filter(|write| process.data.holds(*write) && !source.holds(*write) && !held(*write))
            .collect();
        self.forfeited.extend(lost);
    }

    /// Data of the server that pod `n` replicates from, if it serves replicas now: client port open, and primary or itself
    /// linked (else `-NOMASTERLINK`).
    fn source(&self, n: usize) -> Option<Data> {
        let pod = self.pods.get(n)?;
        let process = pod.process.as_ref()?;
        let source = self.at(process.upstream?)?;
        // A server that was not admitted knows only the password of its own kind.
        let ours = process.unfenced.is_none_or(|it| it.with_our_password);
        let lets_in = if ours {
            source.port == Port::Client
        } else {
            source.unfenced.is_some()
        };
        let serves = lets_in
            && source.frozen.is_none()
            && source.run != process.run
            && (source.primary || (source.linked && !source.syncing));
        (serves && !pod.cut).then(|| source.data.clone())
    }

    /// Whether the server at the address is frozen, for too short a time to be noticed.
    fn is_quiet(&self, upstream: Option<u16>) -> bool {
        upstream
            .and_then(|addr| self.at(addr))
            .and_then(|source| source.frozen)
            .is_some_and(|since| self.now.since(since) < REPL_TIMEOUT)
    }

    /// Whether the upstream of pod `n` keeps the connection: a demoted primary keeps its replicas, and a replica without a link
    /// of its own does so too (measured), while nothing comes over it.
    fn is_held(&self, n: usize) -> bool {
        let Some(pod) = self.pods.get(n).filter(|pod| !pod.cut) else {
            return false;
        };
        pod.process
            .as_ref()
            .and_then(|process| self.at(process.upstream?))
            .is_some_and(|source| {
                let alone = !source.primary && !source.linked && !source.syncing;
                alone && source.port == Port::Client && source.frozen.is_none()
            })
    }

    fn receive(&mut self, n: usize, source: Data) {
        let aof = self.disk == Disk::Aof;
        let Some(pod) = self.pods.get_mut(n) else {
            return;
        };
        let Some(process) = pod.process.as_mut() else {
            return;
        };
        process.data = source;
        process.linked = true;
        process.syncing = false;
        process.unlinked_at = None;
        if aof {
            pod.disk = Some(process.data.clone());
        }
        let upstream = process.upstream;
        self.acknowledge(upstream);
    }

    /// A replica's `REPLCONF ACK` reaches the server at an address.
    fn acknowledge(&mut self, addr: Option<u16>) {
        let now = self.now;
        let uid = self
            .pods
            .iter()
            .find(|pod| pod.exists && Some(pod.addr) == addr)
            .map(|pod| pod.uid)
            .or_else(|| {
                let mut gone = self.zombies.iter();
                gone.find(|z| Some(z.addr) == addr).map(|z| z.uid)
            });
        if let Some(process) = uid.and_then(|uid| self.process_of(uid)) {
            process.acknowledged = Some(now);
        }
    }

    fn unlink(&mut self, n: usize) {
        let now = self.now;
        if let Some(process) = self.process(n) {
            if process.linked {
                process.unlinked_at = Some(now);
            }
            process.linked = false;
            process.syncing = false;
        }
    }

    /// The process of a pod.
    pub fn process(&mut self, n: usize) -> Option<&mut crate::world::Process> {
        self.pods.get_mut(n)?.process.as_mut()
    }

    /// `REPLICAOF NO ONE`.
    pub fn promote(&mut self, uid: PodUid, epoch: u32) {
        let replid = Replid(self.id());
        if let Some(process) = self.process_of(uid) {
            process.primary = true;
            if let Some(unfenced) = &mut process.unfenced {
                unfenced.named = false;
            }
            process.upstream = None;
            process.linked = false;
            process.unlinked_at = None;
            process.syncing = false;
            process.data.promote(replid);
            process.epoch = epoch;
            let run = process.run;
            self.left_behind.remove(&run);
        }
    }

    /// `REPLICAOF` the address of nobody, of a replica: it counts the time without a link from 0.
    pub fn detach(&mut self, uid: PodUid) {
        let now = self.now;
        if let Some(process) = self.process_of(uid).filter(|p| p.upstream.is_some()) {
            let known = process.linked || process.unlinked_at.is_some();
            if let Some(unfenced) = &mut process.unfenced {
                unfenced.named = false;
            }
            process.upstream = None;
            process.linked = false;
            process.syncing = false;
            process.unlinked_at = known.then_some(now);
        }
    }

    /// `REPLICAOF` the address of nobody.
    pub fn step_down(&mut self, uid: PodUid) {
        if let Some(process) = self.process_of(uid) {
            process.primary = false;
            process.upstream = None;
            process.linked = false;
            process.syncing = false;
            if let Some(unfenced) = &mut process.unfenced {
                unfenced.named = false;
            }
        }
    }

    /// `REPLICAOF` an address. A replica of it already stays linked. Measured: a replica that is re-pointed counts the time
    /// without a link from 0, also if it had none before; a primary that is demoted, and a replica that never had a link,
    /// say -1.
    pub fn follow(&mut self, uid: PodUid, addr: u16) {
        let now = self.now;
        let Some(process) = self.process_of(uid) else {
            return;
        };
        if let Some(unfenced) = &mut process.unfenced {
            unfenced.with_our_password = true;
            unfenced.named = false;
        }
        if process.upstream == Some(addr) && !process.primary {
            return;
        }
        let known = !process.primary && (process.linked || process.unlinked_at.is_some());
        process.primary = false;
        process.upstream = Some(addr);
        process.linked = false;
        process.syncing = false;
        process.unlinked_at = known.then_some(now);
    }

    /// A client writes over the connection that it has, else over a new one through the Service. Where the server does not
    /// take it, nothing is acknowledged and the connection is given up.
    pub fn write(&mut self) {
        let kept = self.connection.filter(|run| {
            self.processes()
                .any(|(_, p)| p.run == *run && p.acks(self.now))
        });
        let routed = || {
            let Ordinal(n) = self.api.routes[0]?;
            let pod = self.pods.get(usize::from(n)).filter(|pod| pod.exists)?;
            pod.process
                .as_ref()
                .filter(|p| p.acks(self.now))
                .map(|p| p.run)
        };
        self.connection = kept.or_else(routed);
        let Some(run) = self.connection else { return };
        let write = self.id();
        let aof = self.disk == Disk::Aof;
        for pod in &mut self.pods {
            if let Some(process) = pod.process.as_mut().filter(|p| p.run == run) {
                process.data.write(write);
                if process.is_by_itself() {
                    // The price of another operator's template: nobody vouches for what such a server takes.
                    continue;
                }
                self.acks.push(Ack {
                    write,
                    epoch: process.epoch,
                    pod: pod.uid,
                });
                if aof {
                    pod.disk = Some(process.data.clone());
                }
                if self.left_behind.contains_key(&run) {
                    // The price of a promotion on silence: another leads, and what this one takes is lost.
                    self.forfeited.insert(write);
                    self.zombie_writes += 1;
                }
            }
        }
        for zombie in &mut self.zombies {
            if zombie.process.run == run {
                zombie.process.data.write(write);
                if zombie.process.is_by_itself() {
                    continue;
                }
                self.acks.push(Ack {
                    write,
                    epoch: zombie.process.epoch,
                    pod: zombie.uid,
                });
                // Acknowledged by a server that Kubernetes has given up: counted, not owed.
                self.forfeited.insert(write);
            }
        }
    }

    /// Primaries with a linked replica send it a PING.
    pub fn ping(&mut self) {
        let followed: Vec<u16> = self
            .pods
            .iter()
            .filter_map(|pod| pod.process.as_ref())
            .filter(|p| p.linked)
            .filter_map(|p| p.upstream)
            .collect();
        for pod in &mut self.pods {
            let addr = pod.addr;
            if let Some(process) = pod.process.as_mut()
                && process.primary
                && process.frozen.is_none()
                && followed.contains(&addr)
            {
                process.data.ping();
            }
        }
    }
}
