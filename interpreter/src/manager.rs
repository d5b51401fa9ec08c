//! Runs the watches always and the tasks of the clusters while this process leads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use thiserror::Error;
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wellcake_crds::names::ClusterName;

use crate::clock::Clock;
use crate::events::Teller;
use crate::execute::Kubernetes;
use crate::fetch::Fetcher;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::observe::{Subject, View};
use crate::pass::{State, Worker};
use crate::record::{Recorder, Traces};
use crate::router::Router;
use crate::tell::Tales;
use crate::valkey::{Pace, Surroundings};
use crate::watch::{Caches, Cluster, Kept, Key, Scope};

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
    let clock = Clock::start();
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
        workers: BTreeMap::new(),
    };
    let outcome = manager.run(&ready, &stop).await;
    manager.end_all().await;
    outcome
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
                if epoch.is_some() {
                    self.start_and_end().await;
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

    /// Starts the tasks of new clusters and ends those of clusters that are gone.
    async fn start_and_end(&mut self) {
        let present: BTreeMap<Key, String> = self
            .caches
            .clusters
            .all()
            .iter()
            .map(|seen| (seen.value.key().clone(), seen.value.uid().to_owned()))
            .collect();
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
        let stop = CancellationToken::new();
        let worker = self.worker(&key, &uid, name, &stop);
        let router = Arc::clone(&self.router);
        let (end, at) = (stop.clone(), key.clone());
        let task = tokio::spawn(async move {
            worker.run(end).await;
            router.forget(&at);
            router.all.notify_one();
        });
        self.workers.insert(key, Running { uid, stop, task });
    }

    fn worker(&self, key: &Key, uid: &str, name: ClusterName, stop: &CancellationToken) -> Worker {
        let changed = self.router.register(key);
        let (client, clock) = (self.client.clone(), self.clock);
        let fetcher = Fetcher::new(client, clock, &key.namespace, &name, Arc::clone(&changed));
        let fetcher = Arc::new(fetcher);
        self.start_fetcher(&fetcher, key, uid, stop);
        let pace = Arc::new(Pace::default());
        let around = Surroundings {
            clock,
            pace: Arc::clone(&pace),
            changed: Arc::clone(&changed),
            password: fetcher.password(),
            denied: fetcher.again(),
            leadership: self.leadership.clone(),
            metrics: Arc::clone(&self.metrics),
        };
        let kubernetes = Kubernetes {
            client: self.client.clone(),
            caches: Arc::clone(&self.caches),
            clock,
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
            view: View::new(subject, Arc::clone(&self.caches), clock, fetcher, around),
            kubernetes,
            clock,
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

    fn start_fetcher(
        &self,
        fetcher: &Arc<Fetcher>,
        key: &Key,
        uid: &str,
        stop: &CancellationToken,
    ) {
        let (caches, fetcher) = (Arc::clone(&self.caches), Arc::clone(fetcher));
        let (key, uid) = (key.clone(), uid.to_owned());
        let cluster = move || -> Option<Arc<Cluster>> {
            let seen = caches.clusters.get(&key)?;
            (seen.value.uid() == uid).then_some(seen.value)
        };
        let work = async move { fetcher.run(cluster).await };
        tokio::spawn(stop.clone().run_until_cancelled_owned(work));
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
