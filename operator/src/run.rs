//! `valkey-operator run`: from the flags to the end of the process.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wellcake_interpreter::outside::Outside;
use wellcake_interpreter::{self as interpreter, Leadership, Options, Traces};

use crate::flags::Run;
use crate::http::{self, Server};
use crate::lease::decide::{Identity, Timing};
use crate::lease::run::Participant;
use crate::metrics::Metrics;
use crate::{client, logging};

/// How long what is under way at SIGTERM may take before the lease is given away.
const DRAIN: Duration = Duration::from_millis(700);

/// Runs the operator until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, or when a part of it ended that should not have.
pub async fn run(flags: Run) -> anyhow::Result<()> {
    logging::start(flags.log_format, flags.log_level.clone()).context("cannot start logging")?;
    let timing = flags.timing().map_err(|why| anyhow!("{why}; see --help"))?;
    let stop = stop_on_signal()?;
    let metrics = Arc::new(Metrics::default());
    let traces = Arc::new(Traces::default());
    let (ready, is_ready) = watch::channel(false);
    let probes = Server::bind(flags.probe_addr, http::probes(is_ready), "--probe-addr").await?;
    let numbers = http::numbers(Arc::clone(&metrics), Arc::clone(&traces));
    let numbers = Server::bind(flags.metrics_addr, numbers, "--metrics-addr").await?;
    for server in [probes, numbers].into_iter().flatten() {
        tokio::spawn(server.serve());
    }
    let client = client::connect(Arc::clone(&metrics)).await?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), namespaces = ?flags.namespaces(), "starting");

    let (publish, leadership) = watch::channel(Leadership::Follower);
    tokio::spawn(count_leadership(
        Arc::clone(&metrics),
        flags.lease_name.clone(),
        leadership.clone(),
    ));
    let me = identity();
    let options = Options {
        watch_namespaces: flags.namespaces(),
        record_dir: flags.record.clone(),
        traces,
        instance: me.as_str().to_owned(),
        outside: Outside::default(),
    };
    let election = Election::new(&flags, me, timing, &client, publish);
    let work = interpreter::run(client, options, leadership, metrics, ready, stop.clone());
    let work = async { work.await.map_err(anyhow::Error::from) };
    let outcome = election.run_with(work, &stop).await;
    tracing::info!("stopped");
    outcome
}

/// Who this process is, in the Lease and in events.
fn identity() -> Identity {
    let pod = env::var("POD_NAME").unwrap_or_else(|_| "valkey-operator".to_owned());
    // A randomly keyed hash of nothing: the standard library's way to 64 random bits.
    Identity::new(&pod, RandomState::new().build_hasher().finish())
}

/// Leadership by the Lease, or without asking anyone.
enum Election {
    Lease(Box<Participant>),
    None(watch::Sender<Leadership>),
}

impl Election {
    fn new(
        flags: &Run,
        me: Identity,
        timing: Timing,
        client: &Client,
        publish: watch::Sender<Leadership>,
    ) -> Self {
        if !flags.leader_elect {
            tracing::warn!("leader election is off: make sure that no second operator runs");
            return Self::None(publish);
        }
        let namespace = flags
            .lease_namespace
            .clone()
            .or_else(|| env::var("POD_NAMESPACE").ok())
            .unwrap_or_else(|| client.default_namespace().to_owned());
        let lease = (namespace.as_str(), flags.lease_name.as_str());
        Self::Lease(Box::new(Participant::new(
            client.clone(),
            lease,
            me,
            timing,
            publish,
        )))
    }

    /// Does the work while taking part, until it ends or `stop` is cancelled. Then the work has [`DRAIN`] to end, before the
    /// lease is released: nobody else leads while something of ours is under way.
    async fn run_with(
        mut self,
        work: impl Future<Output = anyhow::Result<()>> + Send + 'static,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let mut work = tokio::spawn(work);
        let early = tokio::select! {
            outcome = &mut work => Some(outcome),
            () = self.take_part(stop) => None,
        };
        let asked = stop.is_cancelled();
        stop.cancel();
        let outcome = match early {
            Some(outcome) => Some(outcome),
            None => tokio::time::timeout(DRAIN, &mut work).await.ok(),
        };
        if outcome.is_none() {
            tracing::warn!("what was under way did not end within {DRAIN:?}; it is left behind");
            work.abort();
        }
        if let Self::Lease(participant) = &mut self {
            participant.release().await;
        }
        match outcome {
            Some(Err(died)) => Err(anyhow!(died).context("a part of the operator died")),
            Some(Ok(Err(why))) => Err(why),
            Some(Ok(Ok(()))) if !asked => Err(anyhow!("the operator ended without being asked to")),
            Some(Ok(Ok(()))) | None => Ok(()),
        }
    }

    async fn take_part(&mut self, stop: &CancellationToken) {
        match self {
            Self::Lease(participant) => participant.run(stop).await,
            Self::None(publish) => {
                let year = Duration::from_secs(365 * 86_400);
                publish.send_replace(Leadership::Leader {
                    epoch: 0,
                    valid_until: tokio::time::Instant::now() + 30 * year,
                });
                stop.cancelled().await;
            }
        }
    }
}

async fn count_leadership(
    metrics: Arc<Metrics>,
    lease: String,
    mut leadership: watch::Receiver<Leadership>,
) {
    loop {
        let leading = matches!(*leadership.borrow_and_update(), Leadership::Leader { .. });
        metrics.leading(&lease, leading);
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

/// A token that is cancelled by SIGTERM or SIGINT.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot handle SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot handle SIGINT")?;
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
        cancel.cancel();
    });
    Ok(stop)
}
