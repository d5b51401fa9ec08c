//! The loop of a participant: watches the Lease, acts on [`evaluate`], publishes [`Leadership`], lets go at the end.
//!
//! A participant that waits makes no request but its watch; one that leads writes once per retry period. Every write
//! carries the resource version of the record it was decided on, so of two that try the API server lets one succeed.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wellcake_interpreter::Leadership;

use super::decide::{Held, Identity, Record, Seen, Timing, Verdict, evaluate};

/// Longest wait for the answer to one request.
const ANSWER: Duration = Duration::from_secs(5);
/// Longest time spent on letting go.
const RELEASE: Duration = Duration::from_millis(800);
const MANAGER: &str = "valkey-operator";

/// Takes part in the election until `stop` is cancelled; see [`Participant::release`] for what comes then.
pub struct Participant {
    api: Api<Lease>,
    name: String,
    me: Identity,
    timing: Timing,
    publish: watch::Sender<Leadership>,
    /// The Lease as last read or written; none when it does not exist. Meaningful once `seen` is set.
    object: Option<Lease>,
    seen: Option<Seen>,
    held: Option<Held>,
    /// A write was begun and its outcome is not known.
    pending: bool,
    /// No write before this.
    not_before: Instant,
}

impl Participant {
    /// A participant in the election of the Lease `name` in `namespace`, who does not lead yet.
    pub fn new(
        client: Client,
        (namespace, name): (&str, &str),
        me: Identity,
        timing: Timing,
        publish: watch::Sender<Leadership>,
    ) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            me,
            timing,
            publish,
            object: None,
            seen: None,
            held: None,
            pending: false,
            not_before: Instant::now(),
        }
    }

    /// Takes part until `stop` is cancelled. Leadership that was published then still stands: the caller ends what acts
    /// under it, then calls [`Self::release`].
    pub async fn run(&mut self, stop: &CancellationToken) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut changes = pin!(
            watcher(self.api.clone(), config)
                .backoff(Always(self.timing.retry))
                .fuse()
        );
        let mut listed = None;
        while !stop.is_cancelled() {
            let wake = tokio::select! {
                () = stop.cancelled() => return,
                wake = self.turn() => wake,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some(change) = changes.next() => self.observe(change, &mut listed),
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// Lets the next one lead at once, unless someone else already does. Takes at most 0.8 s.
    pub async fn release(&mut self) {
        self.publish.send_replace(Leadership::Follower);
        let held = self.held.take();
        if held.is_none() && !self.pending {
            return;
        }
        match tokio::time::timeout(RELEASE, self.write_release()).await {
            Ok(Ok(())) => {
                tracing::info!(
                    lease = self.name,
                    epoch = held.map(|h| h.epoch),
                    "released the lease"
                );
            }
            Ok(Err(why)) => tracing::warn!(
                lease = self.name, error = %why,
                "could not release the lease; the next leader waits until it expires"
            ),
            Err(_) => tracing::warn!(
                lease = self.name,
                "could not release the lease within {RELEASE:?}; the next leader waits until it expires"
            ),
        }
    }

    async fn write_release(&mut self) -> kube::Result<()> {
        for _ in 0..3 {
            if self.pending {
                self.read().await?;
            }
            let Some(mut lease) = self.object.clone().filter(|l| self.is_mine(l)) else {
                return Ok(());
            };
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(Timestamp::now()));
            match self.api.replace(&self.name, &params(), &lease).await {
                Err(kube::Error::Api(status)) if status.is_conflict() => self.pending = true,
                outcome => return outcome.map(drop),
            }
        }
        Ok(())
    }

    /// Does what is to be done now. Returns when to come back at the latest.
    async fn turn(&mut self) -> Instant {
        let now = Instant::now();
        let Some(seen) = &self.seen else {
            return now + self.timing.duration;
        };
        let epoch = match evaluate(seen, self.held.as_ref(), now, &self.me, &self.timing) {
            Verdict::Wait { until } => return until,
            Verdict::Lost => {
                self.lose();
                return now;
            }
            Verdict::Renew => self.held.map_or(0, |h| h.epoch),
            Verdict::Acquire { epoch } => epoch,
        };
        if now < self.not_before {
            return self.not_before.min(self.deadline());
        }
        self.not_before = now + self.timing.retry;
        match self.write(epoch, now).await {
            Ok(()) => now + self.timing.retry,
            Err(Refused::Changed(why)) => {
                self.catch_up(&why).await;
                self.not_before.min(self.deadline())
            }
            Err(Refused::Other(why)) => {
                self.report(&why);
                self.not_before.min(self.deadline())
            }
        }
    }

    /// Reads the Lease after a write was refused as outdated; the next try may come at once if it was.
    async fn catch_up(&mut self, why: &str) {
        let before = self.object.as_ref().map(version_of);
        match self.read_within(ANSWER).await {
            Err(why) => self.report(&why),
            Ok(()) if self.object.as_ref().map(version_of) == before => self.report(why),
            Ok(()) => self.not_before = Instant::now(),
        }
    }

    /// When leadership ends by itself; far away without leadership.
    fn deadline(&self) -> Instant {
        match self.held {
            Some(held) => held.renewed + self.timing.deadline,
            None => Instant::now() + self.timing.duration,
        }
    }

    /// Writes ourselves as holder of `epoch`; on success leadership counts from `sent`.
    async fn write(&mut self, epoch: u64, sent: Instant) -> Result<(), Refused> {
        let lease = self.with_me(epoch);
        let limit = ANSWER.min(self.deadline().saturating_duration_since(sent));
        let params = params();
        self.pending = true;
        let answer = tokio::time::timeout(limit, async {
            match self.object {
                Some(_) => self.api.replace(&self.name, &params, &lease).await,
                None => self.api.create(&params, &lease).await,
            }
        })
        .await;
        let written = match answer {
            Err(_) => return Err(Refused::Other(format!("no answer within {limit:?}"))),
            // 409 also says that it exists already, 404 that it was deleted meanwhile.
            Ok(Err(kube::Error::Api(status))) if [404, 409].contains(&status.code) => {
                return Err(Refused::Changed(status.message.clone()));
            }
            Ok(Err(error)) => return Err(Refused::Other(self.explain(&error))),
            Ok(Ok(lease)) => lease,
        };
        self.pending = false;
        self.take(Some(written));
        self.lead(epoch, sent);
        Ok(())
    }

    fn lead(&mut self, epoch: u64, sent: Instant) {
        if self.held.is_none() {
            tracing::info!(
                lease = self.name,
                identity = self.me.as_str(),
                epoch,
                "leading"
            );
        }
        self.held = Some(Held {
            epoch,
            renewed: sent,
        });
        self.publish.send_replace(Leadership::Leader {
            epoch,
            valid_until: (sent + self.timing.deadline).into(),
        });
    }

    fn lose(&mut self) {
        if let Some(held) = self.held.take() {
            let holder = self.object.as_ref().and_then(|l| record(l).holder);
            tracing::warn!(
                lease = self.name,
                epoch = held.epoch,
                holder = holder.as_deref().unwrap_or(""),
                "no longer leading"
            );
        }
        self.publish.send_replace(Leadership::Follower);
    }

    /// The Lease as it is to be written: everything that others put there stays.
    fn with_me(&self, epoch: u64) -> Lease {
        let mut lease = self.object.clone().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec::default()),
        });
        let now = MicroTime(Timestamp::now());
        let spec = lease.spec.get_or_insert_default();
        let transitions = i32::try_from(epoch).unwrap_or(i32::MAX);
        if spec.lease_transitions != Some(transitions)
            || spec.holder_identity.as_deref() != Some(self.me.as_str())
        {
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.me.as_str().to_owned());
        spec.lease_duration_seconds =
            Some(i32::try_from(self.timing.duration.as_secs()).unwrap_or(i32::MAX));
        spec.lease_transitions = Some(transitions);
        spec.renew_time = Some(now);
        lease
    }

    async fn read_within(&mut self, limit: Duration) -> Result<(), String> {
        match tokio::time::timeout(limit, self.read()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.explain(&error)),
            Err(_) => Err(format!("no answer within {limit:?}")),
        }
    }

    async fn read(&mut self) -> kube::Result<()> {
        let lease = self.api.get_opt(&self.name).await?;
        self.pending = false;
        self.take(lease);
        Ok(())
    }

    fn observe(
        &mut self,
        change: Result<watcher::Event<Lease>, watcher::Error>,
        listed: &mut Option<Lease>,
    ) {
        use watcher::Event;
        match change {
            Ok(Event::Init) => *listed = None,
            Ok(Event::InitApply(lease)) => *listed = Some(lease),
            Ok(Event::InitDone) => {
                let lease = listed.take();
                self.take_if_newer(lease);
            }
            Ok(Event::Apply(lease)) => self.take_if_newer(Some(lease)),
            // A deletion carries the version it had when it was deleted.
            Ok(Event::Delete(lease)) => {
                if !self.is_older(&lease) {
                    self.take(None);
                }
            }
            Err(why) => {
                let why = self.explain_watch(&why);
                tracing::warn!(
                    lease = self.name,
                    "the watch of the lease broke and begins again: {why}"
                );
            }
        }
    }

    /// Takes over what a watch delivered, unless our own write was faster.
    fn take_if_newer(&mut self, lease: Option<Lease>) {
        if !lease.as_ref().is_some_and(|l| self.is_older(l)) {
            self.take(lease);
        }
    }

    fn is_older(&self, lease: &Lease) -> bool {
        let version = |l: &Lease| l.resource_version().and_then(|v| v.parse::<u64>().ok());
        let known = self.object.as_ref().and_then(version);
        matches!((version(lease), known), (Some(new), Some(known)) if new < known)
    }

    /// Remembers a state of the Lease, and when it was first seen.
    fn take(&mut self, lease: Option<Lease>) {
        let same = self.seen.is_some()
            && self.object.as_ref().map(version_of) == lease.as_ref().map(version_of);
        self.object = lease;
        if same {
            return;
        }
        let record = self.object.as_ref().map(record);
        let highest = self.seen.as_ref().map_or(0, |s| s.highest);
        let seen = Seen {
            at: Instant::now(),
            highest: highest.max(record.as_ref().map_or(0, |r| r.transitions)),
            record,
        };
        let holder = |s: &Seen| s.record.as_ref().and_then(|r| r.holder.clone());
        let now_held_by = holder(&seen);
        if self.seen.as_ref().map(holder) != Some(now_held_by.clone())
            && now_held_by.as_deref() != Some(self.me.as_str())
        {
            let holder = now_held_by.as_deref().unwrap_or("nobody");
            tracing::info!(
                lease = self.name,
                holder,
                "the lease is held by another or free"
            );
        }
        self.seen = Some(seen);
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        record(lease).holder.as_deref() == Some(self.me.as_str())
    }

    fn report(&self, why: &str) {
        let verb = if self.held.is_some() {
            "renew"
        } else {
            "acquire"
        };
        tracing::warn!(lease = self.name, "could not {verb} the lease: {why}");
    }

    fn explain_watch(&self, error: &watcher::Error) -> String {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => self.explain(error),
            watcher::Error::WatchError(status) => status.message.clone(),
            watcher::Error::NoResourceVersion => error.to_string(),
        }
    }

    fn explain(&self, error: &kube::Error) -> String {
        match error {
            kube::Error::Api(status) if status.code == 403 => format!(
                "{}; the service account needs create, get, list, watch and update on leases.coordination.k8s.io",
                status.message
            ),
            other => other.to_string(),
        }
    }
}

/// Why a write did not happen, or may not have.
enum Refused {
    /// The Lease seems not to be what the write was decided on; what the API server said.
    Changed(String),
    /// Anything else, as a sentence.
    Other(String),
}

fn params() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// What tells two states of the Lease apart.
fn version_of(lease: &Lease) -> (Option<String>, Option<String>) {
    (lease.uid(), lease.resource_version())
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|s| s.lease_duration_seconds).unwrap_or(0);
    let transitions = spec.and_then(|s| s.lease_transitions).unwrap_or(0);
    Record {
        holder: spec
            .and_then(|s| s.holder_identity.clone())
            .filter(|h| !h.is_empty()),
        duration: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        transitions: u64::try_from(transitions).unwrap_or(0),
    }
}

/// The same pause after every failure of the watch: a hand-over is to be seen soon after the API server is back.
struct Always(Duration);

impl Iterator for Always {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0)
    }
}

impl Backoff for Always {
    fn reset(&mut self) {}
}
