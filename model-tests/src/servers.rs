//! What Valkey does with commands. Each rule follows a measurement on real servers or the function of Valkey's source that is named.

use wellcake_core::facts::{Millis, Ordinal, PodUid, Port, Replid};

use crate::invariants;
use crate::world::{Ack, Disk, World};

/// How long a server with `min-replicas-to-write` takes writes after the last acknowledgement at most: `min-replicas-max-lag 10`,
/// kept in whole seconds and looked at once a second (`replication.c: refreshGoodReplicasCount`).
pub const REPLICA_LAG: Millis = Millis(12_000);

/// A command that changes a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// `REPLICAOF NO ONE`.
    Promote {
        /// Epoch of the record under which it is promoted.
        epoch: u32,
        /// Pod of a primary that it succeeds on its silence.
        silent: Option<PodUid>,
    },
    /// `REPLICAOF` an address.
    Follow(u16),
    /// `REPLICAOF` the address of nobody.
    Nobody,
    /// `CONFIG SET port`: the client port.
    Open,
    /// `CONFIG SET` of the directives of a spec.
    Configure,
    /// `CONFIG SET min-replicas-to-write`.
    NeedReplica(bool),
    /// `CLIENT PAUSE` of writes for so long.
    Pause(Millis),
    /// `CLIENT UNPAUSE`.
    Unpause,
    /// `CLIENT KILL TYPE normal`.
    CloseClients,
}

impl Command {
    /// Whether a server refuses it with `-LOADING` (measured; `commands/replicaof.json`).
    pub const fn is_of_replication(self) -> bool {
        matches!(self, Self::Promote { .. } | Self::Follow(_) | Self::Nobody)
    }
}

impl World {
    /// A command arrives after everything else that is on its way.
    pub(crate) fn delay(&mut self, uid: PodUid, command: Command) {
        if let Some(process) = self.process_of(uid) {
            process.waiting.push(command);
        }
    }

    /// A command reaches a server. One that is frozen gets it when it goes on, although whoever sent it has given up and closed
    /// the connection by then (measured, on connections that were there and on new ones).
    pub fn send(&mut self, uid: PodUid, command: Command) {
        match self.process_of(uid) {
            Some(process) if process.frozen.is_some() => process.waiting.push(command),
            _ => self.obey(uid, command, false),
        }
    }

    /// A server that was frozen goes on, with what it was sent meanwhile.
    pub fn thaw(&mut self, n: usize) {
        let Some(uid) = self.pods.get(n).map(|pod| pod.uid) else {
            return;
        };
        let Some(process) = self.process(n) else {
            return;
        };
        process.frozen = None;
        if process.ails(|it| it.busy) {
            process.ails_mut().busy = false;
        }
        for command in std::mem::take(&mut process.waiting) {
            self.obey(uid, command, true);
        }
    }

    /// A server does what it is told, or what it was told while it was frozen.
    fn obey(&mut self, uid: PodUid, command: Command, late: bool) {
        let now = self.now;
        match command {
            Command::Promote { epoch, silent } => {
                self.promote(uid, epoch);
                let succeeded = self.promoted.iter().any(|(newer, _)| *newer > epoch);
                // Another was promoted since: what this one lacks is not given up with it.
                if !(late && succeeded) {
                    self.charge(uid, silent);
                }
                return;
            }
            Command::Follow(addr) => return self.follow(uid, addr),
            Command::Nobody => return self.detach(uid),
            _ => {}
        }
        let Some(process) = self.process_of(uid) else {
            return;
        };
        match command {
            Command::Open => {
                process.port = Port::Client;
                if let Some(unfenced) = &mut process.unfenced {
                    unfenced.with_our_password = true;
                }
            }
            Command::Configure => {
                process.configured = true;
                let directives = process.ails.as_deref().and_then(|it| it.directives);
                let answered = self.answer_directives(directives);
                if let Some(process) = self.process_of(uid).filter(|it| it.ails.is_some()) {
                    process.ails_mut().directives = answered;
                }
            }
            Command::NeedReplica(needed) => process.needs_replica = needed,
            Command::Pause(time) => process.paused_until = Some(now.after(time)),
            Command::Unpause => process.paused_until = None,
            _ => {
                let run = process.run;
                self.connection = self.connection.filter(|it| *it != run);
            }
        }
    }

    /// What a promoted server lacks is given up; one that it succeeds on its silence is left behind.
    fn charge(&mut self, uid: PodUid, silent: Option<PodUid>) {
        if let Some(run) = self.process_of(uid).map(|process| process.run) {
            self.left_behind.remove(&run);
        }
        invariants::charge_losses(self, uid);
        if let Some(silent) = silent {
            self.leave_behind(silent);
        }
    }

    /// The process of a pod.
    pub fn process(&mut self, n: usize) -> Option<&mut crate::world::Process> {
        self.pods.get_mut(n)?.process.as_mut()
    }

    /// `REPLICAOF NO ONE`; nothing changes where it is a primary (`replication.c: replicaofCommand`).
    pub fn promote(&mut self, uid: PodUid, epoch: u32) {
        let now = self.now;
        let replid = Replid(self.id());
        if let Some(process) = self.process_of(uid) {
            process.end_link(now);
            if !process.primary {
                process.data.promote(replid);
            }
            process.primary = true;
            if let Some(unfenced) = &mut process.unfenced {
                unfenced.named = false;
            }
            process.upstream = None;
            process.unlinked_at = None;
            process.epoch = epoch;
        }
    }

    /// `REPLICAOF` the address of nobody. A replica that had a link counts the time without one from now.
    fn detach(&mut self, uid: PodUid) {
        let now = self.now;
        if let Some(process) = self.process_of(uid) {
            if process.upstream.is_some() {
                let known = process.linked || process.unlinked_at.is_some();
                process.unlinked_at = known.then_some(now);
            }
            if process.primary {
                process.data.demote();
            }
            process.primary = false;
            if let Some(unfenced) = &mut process.unfenced {
                unfenced.named = false;
            }
            process.upstream = None;
            process.end_link(now);
        }
    }

    /// `REPLICAOF` an address. A replica of it already stays linked. Measured: a replica that is re-pointed counts the time
    /// without a link from 0, also if it had none before; a primary that is demoted, and a replica that never had a link,
    /// say -1.
    fn follow(&mut self, uid: PodUid, addr: u16) {
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
        if process.primary {
            process.data.demote();
        }
        process.primary = false;
        process.upstream = Some(addr);
        process.end_link(now);
        process.unlinked_at = known.then_some(now);
    }

    /// A client writes over the connection that it has, else over a new one through the Service. Where the server does not
    /// take it, nothing is acknowledged and the connection is given up.
    pub fn write(&mut self) {
        let kept = self.connection.filter(|run| {
            self.processes()
                .any(|(_, p)| p.run == *run && p.acks(self.now))
        });
        let kept = kept.filter(|run| !self.is_cut_from_clients(*run));
        let routed = || {
            let Ordinal(n) = self.api.routes[0]?;
            if self.is_pod(usize::from(n), |it| it.clients_cut) {
                return None;
            }
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
                process.data.write(write, aof);
                if process.is_by_itself() {
                    // The price of another operator's template: nobody vouches for what such a server takes.
                    continue;
                }
                self.acks.push(Ack {
                    write,
                    epoch: process.epoch,
                    pod: pod.uid,
                });
                if aof && process.appends() {
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
                zombie.process.data.write(write, aof);
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
}
