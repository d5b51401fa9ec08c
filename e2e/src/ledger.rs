//! Clients that write and remember what was acknowledged.
//!
//! Each client keeps one connection and has one write in flight. A write that is not acknowledged within 50 ms, or is
//! refused, is tried again at once over a new connection until it is; its value carries the number of the attempt, so
//! that a read at the end also tells a value that was taken back from one that is missing.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::valkey::{Connection, PATIENT, Reply};

/// Connect and read limit of a client.
pub const LIMIT: Duration = Duration::from_millis(50);
/// Pause between two writes of a client: about 500 writes a second each, which two processors carry beside Kubernetes.
const PACE: Duration = Duration::from_millis(2);
/// Pause after an attempt that failed at once, such as a refused connection.
const AGAIN: Duration = Duration::from_millis(2);
/// Keys that are read back with one command.
const BATCH: usize = 500;

/// Where a client connects: one address, which somebody may replace. A client leaves its connection when it is.
#[derive(Default)]
pub struct Address {
    value: Mutex<Option<SocketAddr>>,
    version: AtomicU64,
}

impl Address {
    /// An address that stays.
    pub fn fixed(address: SocketAddr) -> Arc<Self> {
        let it = Self::default();
        it.tell(address);
        Arc::new(it)
    }

    /// Replaces the address.
    pub fn tell(&self, address: SocketAddr) {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if *value != Some(address) {
            *value = Some(address);
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    fn read(&self) -> (Option<SocketAddr>, u64) {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        (*value, self.version.load(Ordering::Acquire))
    }
}

/// An acknowledged write.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    attempt: u32,
    at: Instant,
}

/// What one client did: the acknowledged writes in their order, the position being the sequence number.
#[derive(Default)]
struct Journal {
    writes: Vec<Acknowledged>,
    failures: Vec<String>,
}

/// Clients that write until they are stopped.
pub struct Ledger {
    run: String,
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Journal>>,
    counts: Vec<Arc<AtomicU64>>,
}

impl Ledger {
    /// Starts one client for each address. `run` is part of the keys.
    pub fn start(run: &str, addresses: &[Arc<Address>], password: Option<&str>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let counts: Vec<Arc<AtomicU64>> = addresses.iter().map(|_| Arc::default()).collect();
        let clients =
            addresses
                .iter()
                .zip(&counts)
                .enumerate()
                .map(|(number, (address, count))| {
                    let client = Client {
                        prefix: prefix(run, number),
                        address: Arc::clone(address),
                        password: password.map(str::to_owned),
                        stop: Arc::clone(&stop),
                        count: Arc::clone(count),
                    };
                    std::thread::spawn(move || client.run())
                });
        Self {
            run: run.to_owned(),
            clients: clients.collect(),
            stop,
            counts,
        }
    }

    /// Waits until each client had `more` further writes acknowledged.
    ///
    /// # Errors
    /// When that takes longer than `limit`.
    pub async fn progress(&self, more: u64, limit: Duration) -> Result<()> {
        let goals: Vec<u64> = self
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed) + more)
            .collect();
        let end = Instant::now() + limit;
        loop {
            let behind = self
                .counts
                .iter()
                .zip(&goals)
                .any(|(count, goal)| count.load(Ordering::Relaxed) < *goal);
            if !behind {
                return Ok(());
            }
            if Instant::now() > end {
                let counts: Vec<u64> = self
                    .counts
                    .iter()
                    .map(|count| count.load(Ordering::Relaxed))
                    .collect();
                bail!(
                    "writes did not go on within {limit:?}: acknowledged {counts:?}, waited for {goals:?}"
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the clients. What they remember is checked with [`Record::check`].
    ///
    /// # Errors
    /// When a client panicked.
    pub fn stop(mut self) -> Result<Record> {
        self.stop.store(true, Ordering::Relaxed);
        let journals = std::mem::take(&mut self.clients)
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .map_err(|_| anyhow!("a client of the ledger panicked"))
            })
            .collect::<Result<_>>()?;
        Ok(Record {
            run: self.run.clone(),
            journals,
        })
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn prefix(run: &str, client: usize) -> String {
    format!("ledger:{run}:{client}:")
}

struct Client {
    prefix: String,
    address: Arc<Address>,
    password: Option<String>,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Client {
    fn run(self) -> Journal {
        let mut journal = Journal::default();
        let mut connection: Option<(Connection, u64)> = None;
        let mut attempt = 0;
        while !self.stop.load(Ordering::Relaxed) {
            attempt += 1;
            let key = format!("{}{}", self.prefix, journal.writes.len());
            match self.write(&mut connection, &key, attempt) {
                Ok(()) => {
                    journal.writes.push(Acknowledged {
                        attempt,
                        at: Instant::now(),
                    });
                    self.count.fetch_add(1, Ordering::Relaxed);
                    attempt = 0;
                    std::thread::sleep(PACE);
                }
                Err(why) => {
                    connection = None;
                    if journal.failures.last() != Some(&why) && journal.failures.len() < 100 {
                        journal.failures.push(why);
                    }
                    std::thread::sleep(AGAIN);
                }
            }
        }
        journal
    }

    fn write(
        &self,
        kept: &mut Option<(Connection, u64)>,
        key: &str,
        attempt: u32,
    ) -> Result<(), String> {
        let (address, version) = self.address.read();
        let address = address.ok_or("no address was told yet")?;
        if kept.as_ref().is_some_and(|(_, of)| *of != version) {
            *kept = None;
        }
        let connection = match kept {
            Some((connection, _)) => connection,
            None => {
                let new = Connection::open(address, self.password.as_deref(), LIMIT)
                    .map_err(|why| format!("connect: {why}"))?;
                &mut kept.insert((new, version)).0
            }
        };
        match connection.call(&["SET", key, &attempt.to_string()]) {
            Ok(Reply::Status(_)) => Ok(()),
            Ok(other) => Err(format!("answer: {other:?}")),
            Err(why) => Err(format!("write: {why}")),
        }
    }
}

/// What all clients remember.
pub struct Record {
    run: String,
    journals: Vec<Journal>,
}

/// What became of the acknowledged writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Acknowledged writes.
    pub acknowledged: usize,
    /// Those whose key is gone.
    pub lost: usize,
    /// Those whose key holds another attempt than the acknowledged one: a write that was not acknowledged was applied
    /// after it.
    pub altered: usize,
}

impl Record {
    /// Reads everything back from the server at `address`, which should be the primary with all replicas in sync.
    ///
    /// # Errors
    /// When the server cannot be read.
    pub fn check(&self, address: SocketAddr, password: Option<&str>) -> Result<Outcome> {
        let mut connection = Connection::open(address, password, PATIENT)
            .with_context(|| format!("cannot read back from {address}"))?;
        let mut outcome = Outcome::default();
        for (client, journal) in self.journals.iter().enumerate() {
            let prefix = prefix(&self.run, client);
            for (batch, writes) in journal.writes.chunks(BATCH).enumerate() {
                let keys: Vec<String> = (0..writes.len())
                    .map(|offset| format!("{prefix}{}", batch * BATCH + offset))
                    .collect();
                let words: Vec<&str> = std::iter::once("MGET")
                    .chain(keys.iter().map(String::as_str))
                    .collect();
                let Reply::List(values) = connection.ok(&words)? else {
                    bail!("MGET did not answer with a list");
                };
                for (write, value) in writes.iter().zip(values) {
                    outcome.acknowledged += 1;
                    match value.text() {
                        None => outcome.lost += 1,
                        Some(text) if text != write.attempt.to_string() => outcome.altered += 1,
                        Some(_) => {}
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// How long after `fault` each client's longest pause between two acknowledgements ended, counting pauses that end
    /// after the fault: the slowest client's value. `None` when a client had nothing acknowledged after the fault.
    pub fn recovery(&self, fault: Instant) -> Option<Duration> {
        let mut slowest = Duration::ZERO;
        for journal in &self.journals {
            let pauses = journal.writes.windows(2).filter(|pair| pair[1].at > fault);
            let longest = pauses.max_by_key(|pair| pair[1].at - pair[0].at)?;
            slowest = slowest.max(longest[1].at - fault);
        }
        Some(slowest)
    }

    /// The longest pause between two acknowledgements of one client.
    pub fn longest_gap(&self) -> Duration {
        let gaps = self
            .journals
            .iter()
            .flat_map(|journal| journal.writes.windows(2));
        gaps.map(|pair| pair[1].at - pair[0].at)
            .max()
            .unwrap_or_default()
    }

    /// What the clients met, for the message of a failed test.
    pub fn failures(&self) -> String {
        let lines =
            self.journals.iter().enumerate().map(|(client, journal)| {
                format!("client {client}: {}\n", journal.failures.join("; "))
            });
        lines.collect()
    }
}
