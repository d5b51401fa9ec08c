//! The clients that every fault is done under: one that writes through the client Service, one that writes to the pod
//! whose address it is told, and one each that reads through the Services of the primary and of the replicas.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::apply::{Applied, address};
use crate::ledger::{LIMIT, Ledger, Outcome, Record};
use crate::told::Told;
use crate::valkey::{Connection, PATIENT, Reply};

/// Writes of each client before a fault, and after the recovery.
pub const SOME: u64 = 300;
/// Longest time that a cluster may need to serve again in a test; how long it needs is the concern of measurements.
pub const RECOVERY: Duration = Duration::from_secs(60);
const MARKER: &str = "marker";
const READ_PACE: Duration = Duration::from_millis(5);

/// The clients at work.
pub struct Load {
    told: Told,
    at_pods: Ledger,
    through_service: Ledger,
    readers: Vec<Reader>,
    password: String,
}

/// What the clients saw.
pub struct Finished {
    /// Writes at pod level.
    pub at_pods: Record,
    /// Writes through the Service.
    pub through_service: Record,
    /// What became of all of them.
    pub outcome: Outcome,
    /// Reads that were answered.
    pub reads: u64,
    /// Reads of a key that was always there which found nothing.
    pub empty_reads: u64,
}

impl Load {
    /// Starts the clients and waits until writes flow.
    pub async fn start(cluster: &Applied) -> Result<Self> {
        let password = cluster.password().await?;
        let (_, primary) = cluster.primary().await?;
        let mut connection = Connection::open(address(&primary)?, Some(&password), PATIENT)?;
        connection.ok(&["SET", MARKER, "set"])?;
        connection.ok(&["WAIT", "2", "1000"])?;
        let readers = [
            cluster.name.client_service(),
            cluster.name.replicas_service(),
        ];
        let mut addresses = Vec::new();
        for name in readers {
            addresses.push(cluster.service(&name).await?);
        }
        let readers = addresses
            .into_iter()
            .map(|address| Reader::start(address, password.clone()))
            .collect();
        let told = Told::start(cluster);
        let number = Instant::now().elapsed().subsec_nanos() ^ std::process::id();
        let (pods, service) = (format!("p{number}"), format!("s{number}"));
        let at_pods = Ledger::start(&pods, &[Arc::clone(&told.address)], Some(&password));
        let through = cluster.client_address().await?;
        let through_service = Ledger::start(&service, &[through], Some(&password));
        let load = Self {
            told,
            at_pods,
            through_service,
            readers,
            password,
        };
        load.progress().await?;
        Ok(load)
    }

    /// Waits for some more acknowledged writes of each client.
    pub async fn progress(&self) -> Result<()> {
        self.at_pods.progress(SOME, RECOVERY).await?;
        self.through_service.progress(SOME, RECOVERY).await
    }

    /// Waits until writes flow, ends the clients, waits until the cluster is whole and reads everything back.
    pub async fn finish(self, cluster: &Applied) -> Result<Finished> {
        if let Err(why) = self.progress().await {
            return Err(why.context(cluster.story().await));
        }
        self.finish_as_is(cluster).await
    }

    /// The same without waiting until writes flow.
    pub async fn finish_as_is(self, cluster: &Applied) -> Result<Finished> {
        let (mut reads, mut empty_reads) = (0, 0);
        for reader in self.readers {
            let (all, empty) = reader.stop()?;
            reads += all;
            empty_reads += empty;
        }
        let (at_pods, through_service) = (self.at_pods.stop()?, self.through_service.stop()?);
        drop(self.told);
        let look = cluster.wait_ready(RECOVERY).await?;
        let primary = look
            .recorded()
            .ok_or_else(|| anyhow!("there is no primary record"))?;
        let address = address(&cluster.pod(primary).await?)?;
        let mut outcome = Outcome::default();
        for record in [&at_pods, &through_service] {
            let part = record.check(address, Some(&self.password))?;
            outcome.acknowledged += part.acknowledged;
            outcome.lost += part.lost;
            outcome.altered += part.altered;
        }
        Ok(Finished {
            at_pods,
            through_service,
            outcome,
            reads,
            empty_reads,
        })
    }
}

impl Finished {
    /// Every acknowledged write is there, and nobody ever read an empty server.
    ///
    /// # Errors
    /// With the counts and what the clients met.
    pub fn nothing_lost(&self) -> Result<()> {
        let seen = format!(
            "{:?}, {} of {} reads found nothing\nat pods: {}through the Service: {}",
            self.outcome,
            self.empty_reads,
            self.reads,
            self.at_pods.failures(),
            self.through_service.failures()
        );
        ensure!(
            self.outcome.acknowledged > 0 && self.reads > 0,
            "nothing was written or read: {seen}"
        );
        ensure!(
            self.outcome.lost == 0,
            "acknowledged writes are gone: {seen}"
        );
        ensure!(
            self.outcome.altered == 0,
            "acknowledged writes were taken back: {seen}"
        );
        ensure!(self.empty_reads == 0, "an empty server was read: {seen}");
        Ok(())
    }

    /// How long after a fault writes were acknowledged again: at pod level, and through the Service.
    pub fn recovery(&self, fault: Instant) -> Option<(Duration, Duration)> {
        Some((
            self.at_pods.recovery(fault)?,
            self.through_service.recovery(fault)?,
        ))
    }
}

/// Reads one key again and again.
struct Reader {
    stop: Arc<AtomicBool>,
    counts: Arc<(AtomicU64, AtomicU64)>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(address: SocketAddr, password: String) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::<(AtomicU64, AtomicU64)>::default();
        let (ended, seen) = (Arc::clone(&stop), Arc::clone(&counts));
        let thread = std::thread::spawn(move || {
            let mut kept = None;
            while !ended.load(Ordering::Relaxed) {
                match read(&mut kept, address, &password) {
                    Some(found) => {
                        seen.0.fetch_add(1, Ordering::Relaxed);
                        seen.1.fetch_add(u64::from(!found), Ordering::Relaxed);
                    }
                    None => kept = None,
                }
                std::thread::sleep(READ_PACE);
            }
        });
        Self {
            stop,
            counts,
            thread,
        }
    }

    fn stop(self) -> Result<(u64, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("a reader panicked"))?;
        Ok((
            self.counts.0.load(Ordering::Relaxed),
            self.counts.1.load(Ordering::Relaxed),
        ))
    }
}

/// Whether the key was found; `None` when nobody answered that question.
fn read(kept: &mut Option<Connection>, address: SocketAddr, password: &str) -> Option<bool> {
    let connection = match kept {
        Some(connection) => connection,
        None => kept.insert(Connection::open(address, Some(password), LIMIT).ok()?),
    };
    match connection.call(&["GET", MARKER]).ok()? {
        Reply::Text(text) => Some(text.is_some()),
        _ => None,
    }
}
