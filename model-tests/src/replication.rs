//! What Valkey does by itself: replicas connect, copy, receive the stream and notice that a link is gone. Each rule follows a
//! measurement on real servers or the function of Valkey's source that is named.

use wellcake_core::facts::{Millis, Port, Replid};

use crate::faults::kind::Kind;
use crate::history::Data;
use crate::invariants::{self, Violation};
use crate::world::{Disk, Process, World};

/// `repl-timeout`: how long a link survives that brings nothing.
pub const REPL_TIMEOUT: Millis = Millis(15_000);
/// How long a server writes its append-only file anew after a full copy: a real one takes as long as its data is large.
const REWRITE: Millis = Millis(3_000);

impl World {
    /// A moment of replication of one pod: it asks for what it lacks, gets that, receives the stream, or notices that the link is
    /// gone.
    pub fn replicate(&mut self, n: usize) -> Result<(), Violation> {
        self.resolve(n);
        let replica = self.pods.get(n).and_then(|pod| pod.process.as_ref());
        let Some(process) = replica.filter(|process| !process.primary) else {
            return Ok(());
        };
        if process.frozen.is_none() && process.in_socket.is_some() && !process.is_paused(self.now) {
            self.empty_socket(n);
            return Ok(());
        }
        if process.is_loading() {
            return Ok(());
        }
        match (process.linked, process.fed_by) {
            (true, _) if self.is_unheard(n) => self.unlink(n),
            (true, _) if self.is_pod(n, |it| it.stream_cut) => self.acknowledge_in_vain(n),
            (true, _) => self.stream(n),
            (false, _) if process.frozen.is_some() => {}
            (false, Some(_)) => return self.begin_link(n),
            (false, None) => self.ask_upstream(n),
        }
        Ok(())
    }

    /// A replica without a link asks the server that it follows, which accepts if it serves replicas now: client port open, and
    /// primary or itself linked (else `-NOMASTERLINK`).
    fn ask_upstream(&mut self, n: usize) {
        let now = self.now;
        let Some(source) = self.upstream_of(n).filter(|source| {
            let serves = source.primary || (source.linked && !source.syncing);
            source.frozen.is_none() && serves && self.is_let_in(n, source)
        }) else {
            return;
        };
        if self.is_pod(n, |it| it.acknowledgements_cut.is_some()) {
            return;
        }
        let (run, data) = (source.run, source.data.clone());
        let Some(process) = self.process(n) else {
            return;
        };
        process.fed_by = Some(run);
        process.heard = now;
        process.syncing = !data.can_continue(&process.data);
        let (syncing, upstream) = (process.syncing, process.upstream);
        if syncing && data.backlog.is_none() {
            let replid = Replid(self.id());
            if let Some(source) = upstream.and_then(|addr| self.at_mut(addr)) {
                source.data.begin_backlog(replid);
            }
        }
    }

    /// Whether `source` lets pod `n` in: with its client port open, by this operator's password; a server that was not admitted
    /// knows only the password of its own kind.
    fn is_let_in(&self, n: usize, source: &Process) -> bool {
        if source.is_loading() || source.ails(|it| it.denies_replicas) {
            return false;
        }
        let own = self
            .pods
            .get(n)
            .and_then(|pod| pod.process.as_ref()?.unfenced);
        if own.is_none_or(|it| it.with_our_password) {
            source.port == Port::Client
        } else {
            source.unfenced.is_some()
        }
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
            && process.frozen.is_none()
            && !process.primary
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

    /// A replica gets what it asked for. What was accepted is sent also by a server that has been demoted meanwhile.
    fn begin_link(&mut self, n: usize) -> Result<(), Violation> {
        let Some(own) = self.pods.get(n).and_then(|pod| pod.process.as_ref()) else {
            return Ok(());
        };
        let syncing = own.syncing;
        let source = self.feeder_of(n).filter(|_| self.is_in_time(n));
        let Some((source, frozen)) = source.map(|it| (it.data.clone(), it.frozen.is_some())) else {
            self.unlink(n);
            return Ok(());
        };
        if frozen {
            return Ok(());
        }
        if syncing {
            if own.ails(|it| it.disk_full) && self.disk != Disk::None {
                // The file that arrives has no room (`replication.c: readSyncBulkPayload`).
                self.unlink(n);
                return Ok(());
            }
            let untouched = self.api.record.is_none() && own.unfenced.is_some();
            let by_hand = own.ails(|it| it.by_hand);
            if own.is_by_itself() || untouched || by_hand {
                // Its template has it copy from the first pod, whatever that holds.
                self.give_up(n, &source);
            } else {
                invariants::full_copy_keeps_what_is_owed(self, &own.data, &source)?;
            }
            self.end_links_to(n);
            let copy = Data::copy_of(&source);
            self.keep_copy(n, &copy);
            self.receive(n, copy);
        } else if source.can_continue(&own.data) {
            let mut data = own.data.clone();
            data.continue_from(&source);
            self.receive(n, data);
        } else {
            self.unlink(n);
        }
        Ok(())
    }

    /// A linked replica gets what its source has, or notices that the link is gone. A frozen one notices nothing: what is sent to
    /// it waits in its socket, until the other side has noticed that it says nothing.
    fn stream(&mut self, n: usize) {
        let now = self.now;
        let Some(own) = self.pods.get(n).and_then(|pod| pod.process.as_ref()) else {
            return;
        };
        let feeder = self.feeder_of(n).filter(|_| self.is_in_time(n));
        let sent = feeder.map(|source| {
            let whole = source.data.streams_to(&own.data);
            (source.frozen.is_some(), whole.then(|| source.data.clone()))
        });
        let noticed = |since| now.since(since) >= REPL_TIMEOUT;
        match (sent, own.frozen) {
            (Some((false, Some(source))), frozen) if !frozen.is_some_and(noticed) => {
                let mut data = own.data.clone();
                data.continue_from(&source);
                match frozen {
                    Some(_) => self.fill_socket(n, data),
                    None => self.receive(n, data),
                }
            }
            (_, Some(_)) | (Some((true, _)), None) => {}
            _ => self.unlink(n),
        }
    }

    /// A full copy arrives as a snapshot, which stays on the volume (`replication.c: readSyncBulkPayload`). An append-only file is
    /// written anew afterwards; until that is done, the file of before is what a start loads, whatever was written since
    /// (`replication.c: restartAOFAfterSYNC`, measured).
    fn keep_copy(&mut self, n: usize, copy: &Data) {
        let (now, disk) = (self.now, self.disk);
        let Some(pod) = self.pods.get_mut(n) else {
            return;
        };
        let Some(process) = pod.process.as_mut() else {
            return;
        };
        match disk {
            Disk::Rdb => pod.disk = Some(copy.saved(false)),
            Disk::Aof => process.rewrites = Some(now),
            Disk::None => {}
        }
    }

    /// A server has written its append-only file anew. Whether it was to.
    pub fn end_rewrite(&mut self, n: usize) -> bool {
        let Some(pod) = self.pods.get_mut(n) else {
            return false;
        };
        let Some(process) = pod.process.as_mut().filter(|it| it.frozen.is_none()) else {
            return false;
        };
        let wrote = process.rewrites.take().is_some();
        if wrote {
            pod.disk = Some(process.data.clone());
        }
        wrote
    }

    /// Files that were begun long enough ago are written.
    fn end_rewrites(&mut self) {
        for n in 0..self.pods.len() {
            let begun = self.process(n).and_then(|process| process.rewrites);
            if begun.is_some_and(|at| self.now.since(at) >= REWRITE) {
                self.end_rewrite(n);
            }
        }
    }

    /// A server that loads a full copy ends the links of its own replicas (`replication.c: replicationAttachToNewPrimary`). One
    /// that cannot be reached sees for itself that nothing comes any more.
    fn end_links_to(&mut self, n: usize) {
        let addr = self.pods.get(n).map(|pod| pod.addr);
        for other in 0..self.pods.len() {
            let follows = self
                .process(other)
                .is_some_and(|it| it.fed_by.is_some() && it.upstream == addr);
            let reached = self.pods.get(other).is_some_and(|pod| !pod.cut);
            if other != n && follows && reached {
                self.unlink(other);
            }
        }
    }

    /// The server that pod `n` replicates from, where it can be reached.
    fn upstream_of(&self, n: usize) -> Option<&Process> {
        let pod = self.pods.get(n).filter(|pod| !pod.cut)?;
        if self.is_pod(n, |it| it.stream_cut) {
            return None;
        }
        let process = pod.process.as_ref()?;
        let source = self.at(process.upstream?)?;
        (source.run != process.run).then_some(source)
    }

    /// The process at the other end of the connection of pod `n`, while both can be reached.
    fn feeder_of(&self, n: usize) -> Option<&Process> {
        let process = self.pods.get(n)?.process.as_ref()?;
        self.upstream_of(n)
            .filter(|source| process.fed_by == Some(source.run))
    }

    /// Whether the connection of pod `n` brought something lately. That to a frozen server does not, nor that to one that has no
    /// link of its own, as a demoted primary first has (measured: it stays up, and ends after `repl-timeout`).
    fn is_in_time(&self, n: usize) -> bool {
        let process = self.pods.get(n).and_then(|pod| pod.process.as_ref());
        process
            .is_some_and(|process| self.is_fed(n) || self.now.since(process.heard) < REPL_TIMEOUT)
    }

    /// Whether PINGs and writes of a primary come to pod `n`, over whichever others.
    pub fn is_fed(&self, n: usize) -> bool {
        let mut at = n;
        for _ in 0..self.pods.len() {
            let Some(source) = self
                .upstream_of(at)
                .filter(|source| source.frozen.is_none())
            else {
                return false;
            };
            if source.primary {
                return true;
            }
            let position = self.pods.iter().position(|pod| {
                let process = pod.process.as_ref();
                process.is_some_and(|it| it.run == source.run && it.linked)
            });
            let Some(next) = position else { return false };
            at = next;
        }
        // They follow each other, and nobody is the first.
        false
    }

    fn receive(&mut self, n: usize, data: Data) {
        let now = self.now;
        let aof = self.disk == Disk::Aof;
        let fed = self.is_fed(n);
        if self.ends_on_full_disk(n, &data) {
            return;
        }
        let Some(pod) = self.pods.get_mut(n) else {
            return;
        };
        let Some(process) = pod.process.as_mut() else {
            return;
        };
        if process.is_paused(now) && !process.syncing {
            process.data.take_all_but_writes(&data);
            process.in_socket = (process.data.log != data.log).then_some(data);
        } else {
            process.data = data;
        }
        if fed || !process.linked {
            process.heard = now;
        }
        process.linked = true;
        process.syncing = false;
        process.unlinked_at = None;
        if aof && process.appends() {
            pod.disk = Some(process.data.clone());
        }
        let upstream = process.upstream;
        if self.is_pod(n, |it| it.acknowledgements_cut.is_some()) {
            return self.fired(Kind::AcknowledgementsCut);
        }
        self.acknowledge(upstream);
    }

    /// What pod `n` has sent by now waits in the sockets of its replicas, whatever becomes of it.
    pub fn leave_in_sockets(&mut self, n: usize) {
        let Some(source) = self.pods.get(n).and_then(|pod| pod.process.clone()) else {
            return;
        };
        for other in 0..self.pods.len() {
            let own = self.pods.get(other).and_then(|pod| pod.process.as_ref());
            let follows = |own: &&Process| own.linked && own.fed_by == Some(source.run);
            if let Some(own) = own.filter(follows)
                && source.data.streams_to(&own.data)
            {
                let mut data = own.data.clone();
                data.continue_from(&source.data);
                self.fill_socket(other, data);
            }
        }
    }

    fn fill_socket(&mut self, n: usize, data: Data) {
        if let Some(process) = self.process(n) {
            process.in_socket = (data != process.data).then_some(data);
        }
    }

    /// A replica that goes on gets what waited in its socket before it sees the end of its link, also from a process that has
    /// ended meanwhile (measured).
    fn empty_socket(&mut self, n: usize) {
        let aof = self.disk == Disk::Aof;
        let Some(pod) = self.pods.get_mut(n) else {
            return;
        };
        let Some(process) = pod.process.as_mut() else {
            return;
        };
        if let Some(data) = process.in_socket.take() {
            process.data = data;
            if aof && process.appends() {
                pod.disk = Some(process.data.clone());
            }
        }
    }

    /// A replica's `REPLCONF ACK` reaches the server at an address.
    pub(crate) fn acknowledge(&mut self, addr: Option<u16>) {
        let now = self.now;
        if let Some(process) = addr.and_then(|addr| self.at_mut(addr)) {
            process.acknowledged = Some(now);
        }
    }

    pub(crate) fn unlink(&mut self, n: usize) {
        let now = self.now;
        if let Some(process) = self.process(n) {
            if process.linked {
                process.unlinked_at = Some(now);
            }
            process.end_link(now);
        }
    }

    /// Primaries with a linked replica send it a PING, which goes on to those that follow that one.
    pub fn ping(&mut self) {
        self.end_rewrites();
        self.hear();
        for n in 0..self.pods.len() {
            let addr = self.pods.get(n).map(|pod| pod.addr);
            let mut processes = self.pods.iter().filter_map(|pod| pod.process.as_ref());
            if processes.any(|p| p.linked && p.upstream == addr) {
                self.ping_from(n);
            }
        }
    }

    /// A paused replica gets a PING that was sent before the first write that waits. Whether there was one.
    pub fn pass_ping(&mut self, n: usize) -> bool {
        let Some(process) = self.process(n) else {
            return false;
        };
        let waits = process.in_socket.as_ref();
        let passes = waits.is_some_and(|waits| waits.holds_ping_for(&process.data));
        if passes {
            process.data.ping();
        }
        passes
    }

    /// Links that bring something have just done so.
    pub fn hear(&mut self) {
        let now = self.now;
        for n in 0..self.pods.len() {
            if self.is_fed(n)
                && let Some(process) = self.process(n).filter(|process| process.linked)
            {
                process.heard = now;
            }
        }
    }

    /// The primary in pod `n` sends a PING, if a replica acknowledged lately: it may not have seen the end of that one's link.
    /// Whether it did.
    pub fn ping_from(&mut self, n: usize) -> bool {
        let now = self.now;
        let Some(process) = self.process(n) else {
            return false;
        };
        let heard = process
            .acknowledged
            .is_some_and(|at| now.since(at) <= REPL_TIMEOUT);
        let pings = heard && process.primary && process.frozen.is_none();
        if pings {
            process.data.ping();
        }
        pings
    }
}
