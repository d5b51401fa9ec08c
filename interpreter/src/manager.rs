//! Runs the watches and the reads by name always, and the tasks of the clusters while this process leads.
//!
//! Who waits to lead knows all that it takes to connect to every server, so that a change of leaders is short.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use thiserror::Error;
use tokio::sync::{Notify, watch as channel};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wellcake_crds::names::ClusterName;

use crate::clock::Clock;
use crate::events::Teller;
use crate::execute::Kubernetes;
use crate::fetch::Fetcher;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::observe::{Subject, View};
use crate::outside::Outside;
use crate::pass::{State, Worker};
use crate::record::{Recorder, Traces};
use crate::router::Router;
use crate::tell::Tales;
use crate::valkey::{Pace, Surroundings};
use crate::watch::{Caches, Cluster, Kept, Key, Scope};

/// When what a new leader knows already is read again.
const READ_AGAIN: Duration = Duration::from_secs(3);
/// Pause between two clusters in this.
const READ_APART: Duration = Duration::from_millis(50);

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Namespaces to serve; none given: all.
    pub watch_namespaces: Vec<String>,
    /// Where traces are written, one file for each ValkeyCluster.
    pub record_dir: Option<PathBuf>,
    /// The newest part of each trace, for whoever wants to read it.
    pub traces: Arc<Traces>,
    /// Name of this process in events.
    pub instance: String,
    /// Network and wall clock.
    pub outside: Outside,
}

/// Why it ended before it was asked to.
#[derive(Debug, Error)]
pub enum Error {
    /// Nobody publishes leadership any more.
    #[error("the leader election ended; without it nothing may be done")]
    NoElection,
}

/// Runs until `stop` is cancelled. `ready` becomes true once the caches hold what is there.
///
/// # Errors
/// When it cannot go on.
pub async fn run(
    client: Client,
    options: Options,
    leadership: channel::Receiver<Leadership>,
    metrics: Arc<dyn Metrics>,
    ready: channel::Sender<bool>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let scope = match options.watch_namespaces.as_slice() {
        [] => Scope::All,
        names => Scope::Namespaces(names.to_vec()),
    };
    let caches = Arc::new(Caches::new(&scope));
    let router = Arc::new(Router::default());
    let clock = Clock::beside(options.outside.wall);
    caches.watch(&client, &scope, clock, &router, &stop);
    let teller = Teller::start(client.clone(), options.instance.clone());
    let mut manager = Manager {
        client,
        options,
        caches,
        router,
        clock,
        leadership,
        metrics,
        teller,
        known: BTreeMap::new(),
        workers: BTreeMap::new(),
    };
    let outcome = manager.run(&ready, &stop).await;
    manager.end_all().await;
    outcome
}

/// What is read by name of one cluster, whoever leads.
struct Known {
    uid: String,
    fetcher: Arc<Fetcher>,
    /// Wakes the cluster's task.
    changed: Arc<Notify>,
    _reading: DropGuard,
}

struct Running {
    uid: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct Manager {
    client: Client,
    options: Options,
    caches: Arc<Caches>,
    router: Arc<Router>,
    clock: Clock,
    leadership: channel::Receiver<Leadership>,
    metrics: Arc<dyn Metrics>,
    teller: Teller,
    known: BTreeMap<Key, Known>,
    workers: BTreeMap<Key, Running>,
}

impl Manager {
    async fn run(
        &mut self,
        ready: &channel::Sender<bool>,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let mut epoch = None;
        while !stop.is_cancelled() {
            if self.caches.are_complete() {
                ready.send_replace(true);
                self.metrics.clusters(self.caches.clusters.len());
                let present = self.leadership.borrow().epoch();
                if present != epoch {
                    // What was planned under another leadership is over.
                    self.end_all().await;
                    epoch = present;
                }
                let present = self.present();
                self.know(&present);
                if epoch.is_some() {
                    self.start_and_end(present).await;
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.router.all.notified() => {}
                changed = self.leadership.changed() => changed.map_err(|_| Error::NoElection)?,
            }
        }
        Ok(())
    }

    /// The clusters that are there, with their uids.
    fn present(&self) -> BTreeMap<Key, String> {
        let clusters = self.caches.clusters.all();
        let named = clusters
            .iter()
            .map(|seen| (seen.value.key().clone(), seen.value.uid().to_owned()));
        named.collect()
    }

    /// Reads what is read by name of the clusters that are there, and of no others.
    fn know(&mut self, present: &BTreeMap<Key, String>) {
        self.known
            .retain(|key, known| present.get(key) == Some(&known.uid));
        for (key, uid) in present {
            if self.known.contains_key(key) {
                continue;
            }
            // One whose name cannot be served is told of when its task would start.
            if let Ok(name) = ClusterName::parse(&key.name) {
                let known = self.read(key, uid, &name);
                self.known.insert(key.clone(), known);
            }
        }
    }

    fn read(&self, key: &Key, uid: &str, name: &ClusterName) -> Known {
        let changed = Arc::<Notify>::default();
        let (client, told) = (self.client.clone(), Arc::clone(&changed));
        let fetcher = Arc::new(Fetcher::new(client, self.clock, &key.namespace, name, told));
        let stop = CancellationToken::new();
        let (caches, reader) = (Arc::clone(&self.caches), Arc::clone(&fetcher));
        let (at, of) = (key.clone(), uid.to_owned());
        let cluster = move || -> Option<Arc<Cluster>> {
            let seen = caches.clusters.get(&at)?;
            (seen.value.uid() == of).then_some(seen.value)
        };
        let work = async move { reader.run(cluster).await };
        tokio::spawn(stop.clone().run_until_cancelled_owned(work));
        Known {
            uid: uid.to_owned(),
            fetcher,
            changed,
            _reading: stop.drop_guard(),
        }
    }

    /// Starts the tasks of new clusters and ends those of clusters that are gone.
    async fn start_and_end(&mut self, present: BTreeMap<Key, String>) {
        let gone: Vec<Key> = self
            .workers
            .iter()
            .filter(|(key, worker)| {
                present.get(*key) != Some(&worker.uid) || worker.task.is_finished()
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.end(&key).await;
        }
        for (key, uid) in present {
            if !self.workers.contains_key(&key) {
                self.start(key, uid);
            }
        }
    }

    fn start(&mut self, key: Key, uid: String) {
        let name = match ClusterName::parse(&key.name) {
            Ok(name) => name,
            Err(why) => {
                tracing::warn!(cluster = %key, error = %why, "this ValkeyCluster cannot be served");
                return;
            }
        };
        let Some(known) = self.known.get(&key) else {
            return;
        };
        let (fetcher, changed) = (Arc::clone(&known.fetcher), Arc::clone(&known.changed));
        // Nobody waited for what was missing: the leader before may have made it.
        fetcher.doubt_absence();
        self.read_again(&fetcher);
        let stop = CancellationToken::new();
        let worker = self.worker(&key, &uid, name, fetcher, changed);
        let router = Arc::clone(&self.router);
        let (end, at) = (stop.clone(), key.clone());
        let task = tokio::spawn(async move {
            worker.run(end).await;
            router.forget(&at);
            router.all.notify_one();
        });
        self.workers.insert(key, Running { uid, stop, task });
    }

    /// What was read before this process led is read again soon: nobody watched for reasons to. Not at once: a new leader has
    /// more urgent things to do; and not of all clusters at the same time.
    fn read_again(&self, fetcher: &Arc<Fetcher>) {
        let turn = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        let pause = READ_AGAIN.saturating_add(READ_APART.saturating_mul(turn));
        let fetcher = Arc::downgrade(fetcher);
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            if let Some(fetcher) = fetcher.upgrade() {
                fetcher.again().notify_one();
            }
        });
    }

    fn worker(
        &self,
        key: &Key,
        uid: &str,
        name: ClusterName,
        fetcher: Arc<Fetcher>,
        changed: Arc<Notify>,
    ) -> Worker {
        self.router.register(key, Arc::clone(&changed));
        let pace = Arc::new(Pace::default());
        let around = Surroundings {
            clock: self.clock,
            pace: Arc::clone(&pace),
            changed: Arc::clone(&changed),
            password: fetcher.password(),
            denied: fetcher.again(),
            credentials: fetcher.credentials(),
            leadership: self.leadership.clone(),
            metrics: Arc::clone(&self.metrics),
            network: Arc::clone(&self.options.outside.network),
        };
        let kubernetes = Kubernetes {
            client: self.client.clone(),
            caches: Arc::clone(&self.caches),
            clock: self.clock,
            fetcher: Arc::clone(&fetcher),
            namespace: key.namespace.clone(),
            name: name.clone(),
        };
        let subject = Subject {
            key: key.clone(),
            name,
            uid: uid.to_owned(),
        };
        Worker {
            view: View::new(
                subject,
                Arc::clone(&self.caches),
                self.clock,
                fetcher,
                around,
            ),
            kubernetes,
            clock: self.clock,
            leadership: self.leadership.clone(),
            changed,
            pace,
            recorder: Recorder::new(
                key,
                Arc::clone(&self.options.traces),
                self.options.record_dir.as_ref(),
            ),
            tales: Tales::new(self.teller.clone(), Arc::clone(&self.metrics)),
            metrics: Arc::clone(&self.metrics),
            newest: channel::Sender::new(None),
            state: State::default(),
        }
    }

    async fn end(&mut self, key: &Key) {
        if let Some(worker) = self.workers.remove(key) {
            worker.stop.cancel();
            let _ = worker.task.await;
        }
    }

    async fn end_all(&mut self) {
        self.workers
            .values()
            .for_each(|worker| worker.stop.cancel());
        for (_, worker) in std::mem::take(&mut self.workers) {
            let _ = worker.task.await;
        }
    }
}
