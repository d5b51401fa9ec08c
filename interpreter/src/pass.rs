//! The task of one ValkeyCluster: looks, decides, carries out.
//!
//! Two lanes. Effects of the safety lane are done here, one after the other. The others, and the status, are done by a
//! task of their own, one batch at a time, so that an Apply that hangs delays no promotion.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use wellcake_core::discarded::{self, AllDiscarded, Discarded, Ledger};
use wellcake_core::effects::{self, Decision, Effect, Verb};
use wellcake_core::exec;
use wellcake_core::facts::{Hints, Observation, Tick};
use wellcake_core::reasons::Reason;
use wellcake_core::render;
use wellcake_core::status::{self, StatusFacts, Words};
use wellcake_core::step;
use wellcake_crds::v1beta1::{PrimaryDownFor, ValkeyClusterStatus};

use crate::clock::Clock;
use crate::execute::{Failure, Kubernetes, Request, StatusPatch, difference, request};
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::observe::{Look, View};
use crate::record::{Outcome, Pass, Recorder};
use crate::tell::Tales;
use crate::valkey::Pace;

/// A pass without a cause, against wake-ups that got lost. It asks nobody anything.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// First pause after the safety lane failed; it doubles up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a status must stand before it is written: what passes within milliseconds is nobody's news, and its write would
/// race with the record of a promotion.
const STATUS_AFTER: Duration = Duration::from_millis(100);
/// How long the record of a promotion waits for a status that is being written.
const STATUS_END: Duration = Duration::from_millis(250);
/// How long after it began to lead an operator tells nothing of a cluster while some server that runs has not answered it
/// yet: that it does not know something is nobody's news.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Pause after a status could not be written.
const STATUS_AGAIN: Duration = Duration::from_secs(1);

/// The task of one cluster.
pub struct Worker {
    /// What is known.
    pub view: View,
    /// How requests are carried out.
    pub kubernetes: Kubernetes,
    /// The clock.
    pub clock: Clock,
    /// Whether this process leads.
    pub leadership: watch::Receiver<Leadership>,
    /// Woken by every change.
    pub changed: Arc<Notify>,
    /// Pace of the polls.
    pub pace: Arc<Pace>,
    /// The trace.
    pub recorder: Recorder,
    /// Events.
    pub tales: Tales,
    /// Counts.
    pub metrics: Arc<dyn Metrics>,
    /// What the batch under way checks its guards against.
    pub newest: watch::Sender<Option<Arc<Observation>>>,
    /// Helpers that may vanish.
    pub state: State,
}

/// What a task remembers between passes; all of it may vanish.
#[derive(Default)]
pub struct State {
    hints: Hints,
    batch: Option<JoinHandle<Vec<Outcome>>>,
    status: Option<JoinHandle<Written>>,
    discarded: Ledger,
    status_facts: Option<(StatusFacts, Instant)>,
    status_not_before: Option<Instant>,
    leads_since: Option<Instant>,
    heard: Heard,
    failures: u32,
}

impl Worker {
    /// Works until the ValkeyCluster is gone or `stop` is cancelled. An effect that has begun is finished.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let begun = Instant::now();
            let Some(wake) = self.pass().await else {
                return;
            };
            self.metrics
                .reconciled(begun.elapsed(), self.state.failures > 0);
            let changed = Arc::clone(&self.changed);
            tokio::select! {
                () = stop.cancelled() => {}
                () = changed.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
                outcomes = ended(&mut self.state.batch) => self.batch_ended(outcomes),
                written = ended(&mut self.state.status) => self.status_ended(written),
            }
        }
        // What is under way must not be cut off in the middle of a write.
        ended_or_none(self.state.batch.take()).await;
        ended_or_none(self.state.status.take()).await;
    }

    /// One pass; says when to come again, `None` when there is nothing left to do ever.
    async fn pass(&mut self) -> Option<Instant> {
        let heartbeat = Instant::now() + HEARTBEAT;
        self.view.cluster()?;
        let Some(look) = self.view.look() else {
            return Some(heartbeat);
        };
        let begun = std::time::Instant::now();
        let now = self.clock.now();
        let hints = self.state.hints;
        let decision = step(&look.spec, &look.seen, &hints, now);
        self.metrics.pass(begun.elapsed());
        let line = Pass {
            spec: &look.spec,
            seen: &look.seen,
            hints: &hints,
            now,
            decision: &decision,
        };
        self.recorder.pass(&line, &self.view.interner);
        self.tell_decision(&look, &decision);
        let heard = self.leadership.borrow().holds() && knows_all(&look.seen, &decision);
        self.state.heard.set(heard, &self.metrics);
        // What is done to objects of Kubernetes changes nothing that servers could tell.
        let moves = exec::lane(&decision, effects::Lane::Safety)
            .next()
            .is_some();
        self.pace.set_settled(!moves && decision.waits.is_empty());
        self.newest.send_replace(Some(Arc::new(look.seen.clone())));
        let discarded = discarded::by(&decision, &look.seen, now);
        let counted_at = self.count_discarded(&discarded);
        let safety = self.safety_lane(&decision, &discarded).await;
        self.start_batch(&decision, &look);
        // After effects of the safety lane the world is looked at anew at once, and that look tells the status.
        let status_at = if safety.is_some() && self.state.failures == 0 {
            None
        } else {
            self.tell_status(&look, &decision, now)
        };
        let wakes = [
            decision.wake.map(|at| self.clock.instant(at)),
            safety,
            status_at,
            counted_at,
        ];
        Some(wakes.into_iter().flatten().fold(heartbeat, Instant::min))
    }

    fn tell_decision(&mut self, look: &Look, decision: &Decision) {
        let said = |note| self.view.said(note);
        let words = Words {
            config: "",
            said: &said,
        };
        let unserved = look.spec.unserved;
        self.tales
            .decided(&self.view.subject, decision, unserved, &words);
    }

    /// Does the effects of the safety lane in order; stops at the first that fails and says when to decide anew.
    async fn safety_lane(
        &mut self,
        decision: &Decision,
        discarded: &AllDiscarded,
    ) -> Option<Instant> {
        let lane: Vec<Effect> = exec::lane(decision, effects::Lane::Safety)
            .filter(|effect| !is_marker(effect))
            .copied()
            .collect();
        if lane.is_empty() {
            self.state.failures = 0;
            return None;
        }
        let mut outcomes = Vec::new();
        let mut failed = false;
        let groups = lane.chunk_by(|one, other| is_route(one) && is_route(other));
        for group in groups {
            let done = self.group(group).await;
            failed = done.iter().any(|outcome| outcome.outcome != "done");
            outcomes.extend(done);
            if failed {
                break;
            }
        }
        self.report(&outcomes, discarded);
        let now = self.clock.now();
        self.state.hints = exec::after_safety(self.state.hints, decision, failed, now);
        if failed {
            let pause = PAUSE_FIRST
                .saturating_mul(1 << self.state.failures.min(6))
                .min(PAUSE_MAX);
            self.state.failures = self.state.failures.saturating_add(1);
            Some(Instant::now() + pause)
        } else {
            self.state.failures = 0;
            Some(Instant::now())
        }
    }

    /// Effects that may be done at the same time, after a fresh look at what their guards speak of.
    async fn group(&mut self, group: &[Effect]) -> Vec<Outcome> {
        if self.state.status.is_some() && group.iter().any(is_record) {
            self.let_status_end().await;
        }
        let Some(look) = self.view.look() else {
            return Vec::new();
        };
        let mut requests = Vec::new();
        for effect in group {
            let admitted = self.admit(effect, &look.seen);
            let prepared = admitted.and_then(|()| request(effect, &mut self.view, &look));
            requests.push((*effect, prepared));
        }
        let kubernetes = &self.kubernetes;
        let work = requests
            .into_iter()
            .map(|(effect, prepared)| async move { carry_out(kubernetes, effect, prepared).await });
        join_all(work).await
    }

    /// The record goes into the same object as the status: of two writes at the same time one would be refused as a
    /// conflict. A write that hangs is not waited for.
    async fn let_status_end(&mut self) {
        let ended = ended(&mut self.state.status);
        if let Ok(written) = timeout(STATUS_END, ended).await {
            self.status_ended(written);
        }
    }

    fn admit(&self, effect: &Effect, seen: &Observation) -> Result<(), Failure> {
        let authority = self.leadership.borrow().authority(&self.clock);
        exec::admit(effect, seen, authority, self.clock.now()).map_err(Failure::Guard)
    }

    /// Starts the provisioning lane unless its last batch is still under way; what is left out is decided again.
    fn start_batch(&mut self, decision: &Decision, look: &Look) {
        if self.state.batch.is_some() {
            return;
        }
        let lane: Vec<Effect> = exec::lane(decision, effects::Lane::Provisioning)
            .copied()
            .collect();
        if lane.is_empty() {
            return;
        }
        let requests = lane
            .into_iter()
            .map(|effect| (effect, request(&effect, &mut self.view, look)))
            .collect();
        let batch = Batch {
            kubernetes: self.kubernetes.clone(),
            clock: self.clock,
            leadership: self.leadership.clone(),
            newest: self.newest.subscribe(),
        };
        self.state.batch = Some(tokio::spawn(batch.run(requests)));
    }

    fn batch_ended(&mut self, outcomes: Option<Vec<Outcome>>) {
        let outcomes = outcomes.unwrap_or_default();
        let tried: Vec<_> = outcomes
            .iter()
            .map(|it| (it.effect.verb.kind(), it.outcome == "done"))
            .collect();
        self.report(&outcomes, &[]);
        self.state.hints = exec::after_batch(self.state.hints, &tried, self.clock.now());
    }

    fn report(&mut self, outcomes: &[Outcome], discarded: &[Discarded]) {
        for outcome in outcomes {
            self.metrics
                .effect(outcome.effect.verb.kind(), outcome.outcome);
            if outcome.outcome == "done" {
                self.tales
                    .done(&self.view.subject, &outcome.effect, discarded);
            }
            tracing::info!(
                cluster = %self.view.subject.key,
                effect = outcome.effect.verb.kind().as_str(),
                what = ?outcome.effect.verb,
                reason = outcome.effect.reason.as_str(),
                outcome = outcome.outcome,
                why = outcome.why,
                millis = outcome.millis,
                "effect"
            );
        }
        self.recorder.outcomes(outcomes);
    }

    /// Until when nothing is told, since this operator has just begun to lead and has not looked at everything or not heard of
    /// every server.
    fn begins(&mut self, seen: &Observation, decision: &Decision) -> Option<Instant> {
        if !self.leadership.borrow().holds() {
            self.state.leads_since = None;
            return None;
        }
        let since = *self.state.leads_since.get_or_insert_with(Instant::now);
        let until = since + FIRST_LOOK;
        (Instant::now() < until && !knows_all(seen, decision)).then_some(until)
    }

    /// Writes the status when it stands and differs from the one that is there. Says when to look at it again.
    fn tell_status(&mut self, look: &Look, decision: &Decision, now: Tick) -> Option<Instant> {
        if let Some(until) = self.begins(&look.seen, decision) {
            return Some(until);
        }
        let facts = status::facts(&look.spec, &look.seen, decision, now);
        let since = match &self.state.status_facts {
            Some((known, since)) if *known == facts => *since,
            _ => Instant::now(),
        };
        self.state.status_facts = Some((facts, since));
        // The newest version: the safety lane may just have written to it.
        let cluster = self.view.cluster()?;
        let previous = cluster.object.status.clone().unwrap_or_default();
        let subject = &self.view.subject;
        let config = render::config_digest(&look.cluster.object.spec);
        let said = |note| self.view.said(note);
        let words = Words {
            config: &config,
            said: &said,
        };
        let mut wanted = status::render(
            &facts,
            &subject.name,
            &subject.key.namespace,
            &previous,
            &words,
            self.clock.wall(),
        );
        // The marker of an outage goes with the status that tells of the outage: a write of its own before a promotion
        // would only delay that.
        let marker = decision
            .effects
            .iter()
            .find(|effect| is_marker(effect))
            .copied();
        let marker = marker.filter(|effect| self.admit(effect, &look.seen).is_ok());
        if let Some(Verb::MarkPrimaryDown { down }) = marker.map(|effect| effect.verb) {
            mark(&mut wanted, down, self.clock.wall());
        }
        let patch = difference(&value(&previous), &value(&wanted))?;
        let due = (since + STATUS_AFTER).max(self.state.status_not_before.unwrap_or(since));
        if self.state.status.is_some() {
            return None;
        }
        if Instant::now() < due {
            return Some(due);
        }
        if !self.leadership.borrow().holds() {
            return None;
        }
        let patch = StatusPatch {
            cluster,
            status: patch,
        };
        self.state.status = Some(tokio::spawn(write_status(
            self.kubernetes.clone(),
            patch,
            marker,
            None,
        )));
        None
    }

    /// Counts what demotions throw away, and begins to write it into the status. Waits for nothing, since they must not.
    /// Says when to try again.
    fn count_discarded(&mut self, found: &[Discarded]) -> Option<Instant> {
        if !self.leadership.borrow().holds() {
            return None;
        }
        let key = &self.view.subject.key;
        let more = self.state.discarded.note(found);
        if more > 0 {
            self.metrics.discarded(&key.namespace, &key.name, more);
            tracing::warn!(cluster = %key, bytes = more, ?found, "the demotion of a second primary loses writes");
        }
        let (lost, told) = self.state.discarded.untold()?;
        let not_before = self.state.status_not_before;
        if self.state.status.is_some() || not_before.is_some_and(|at| Instant::now() < at) {
            return not_before;
        }
        let cluster = self.view.cluster()?;
        let previous = cluster.object.status.clone().unwrap_or_default();
        let mut wanted = previous.clone();
        let pod = self.view.subject.name.pod(u32::from(lost.pod.0));
        let replid = self.view.interner.text(lost.replid.0).unwrap_or_default();
        discarded::add(&mut wanted, (lost, told), &pod, replid, self.clock.wall());
        let Some(status) = difference(&value(&previous), &value(&wanted)) else {
            // An operator that led before has written it.
            self.state.discarded.told(&lost);
            return None;
        };
        let patch = StatusPatch { cluster, status };
        let write = write_status(self.kubernetes.clone(), patch, None, Some(lost));
        self.state.status = Some(tokio::spawn(write));
        None
    }

    fn status_ended(&mut self, written: Option<Written>) {
        let written = written.unwrap_or_default();
        self.state.status_not_before = (!written.done).then(|| Instant::now() + STATUS_AGAIN);
        if let Some(lost) = written.discarded {
            self.state.discarded.told(&lost);
        }
        self.report(written.marker.as_slice(), &[]);
    }
}

/// Whether everything was looked at, and every server that runs was heard.
fn knows_all(seen: &Observation, decision: &Decision) -> bool {
    let unobserved = decision
        .waits
        .iter()
        .any(|note| note.reason == Reason::NotObservedYet);
    !unobserved && !seen.awaits_first_answer()
}

/// Whether this cluster is counted as heard; not any more when its task ends.
#[derive(Default)]
struct Heard(Option<Arc<dyn Metrics>>);

impl Heard {
    fn set(&mut self, heard: bool, metrics: &Arc<dyn Metrics>) {
        if heard != self.0.is_some() {
            metrics.heard(heard);
            self.0 = heard.then(|| Arc::clone(metrics));
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if let Some(metrics) = &self.0 {
            metrics.heard(false);
        }
    }
}

fn value(status: &ValkeyClusterStatus) -> serde_json::Value {
    serde_json::to_value(status).unwrap_or_default()
}

const fn is_route(effect: &Effect) -> bool {
    matches!(effect.verb, Verb::SetRoute { .. })
}

const fn is_record(effect: &Effect) -> bool {
    matches!(effect.verb, Verb::RecordPrimary { .. })
}

const fn is_marker(effect: &Effect) -> bool {
    matches!(effect.verb, Verb::MarkPrimaryDown { .. })
}

/// Writes the marker that the recorded primary does not serve, or takes it away.
fn mark(status: &mut ValkeyClusterStatus, down: bool, now: Time) {
    let record = status.primary_record.as_ref().filter(|_| down);
    status.primary_down_for = record.map(|record| PrimaryDownFor {
        pod_uid: record.pod_uid.clone(),
        epoch: record.epoch,
    });
    status.primary_down_since = record.map(|_| now);
}

/// What became of a write of the status.
#[derive(Default)]
struct Written {
    /// Whether it is written, or the object has changed and is looked at anew.
    done: bool,
    /// The outcome of the effect that went with it.
    marker: Option<Outcome>,
    /// What the status counts now.
    discarded: Option<Discarded>,
}

/// Writes a status.
async fn write_status(
    kubernetes: Kubernetes,
    patch: StatusPatch,
    marker: Option<Effect>,
    discarded: Option<Discarded>,
) -> Written {
    let begun = Instant::now();
    let written = kubernetes.carry_out(Request::Status(patch)).await;
    if let Err(why) = &written {
        tracing::info!(cluster = %kubernetes.name, error = %why, "cannot write the status now");
    }
    // After a conflict the newer object is on its way, and the next look is at that.
    let done = written
        .as_ref()
        .map_or_else(Failure::is_conflict, |()| true);
    Written {
        done,
        discarded: discarded.filter(|_| written.is_ok()),
        marker: marker.map(|effect| outcome(effect, begun, written)),
    }
}

async fn carry_out(
    kubernetes: &Kubernetes,
    effect: Effect,
    prepared: Result<Request, Failure>,
) -> Outcome {
    let begun = Instant::now();
    let done = match prepared {
        Ok(request) => kubernetes.carry_out(request).await,
        Err(why) => Err(why),
    };
    outcome(effect, begun, done)
}

fn outcome(effect: Effect, begun: Instant, done: Result<(), Failure>) -> Outcome {
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (outcome, why) = match done {
        Ok(()) => ("done", None),
        Err(why) => (why.outcome(), Some(why.to_string())),
    };
    Outcome {
        effect,
        outcome,
        why,
        millis,
    }
}

/// A batch of the provisioning lane.
struct Batch {
    kubernetes: Kubernetes,
    clock: Clock,
    leadership: watch::Receiver<Leadership>,
    newest: watch::Receiver<Option<Arc<Observation>>>,
}

impl Batch {
    async fn run(self, requests: Vec<(Effect, Result<Request, Failure>)>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for (effect, prepared) in requests {
            let prepared = prepared.and_then(|request| self.admit(&effect).map(|()| request));
            let outcome = carry_out(&self.kubernetes, effect, prepared).await;
            let failed = outcome.outcome != "done";
            outcomes.push(outcome);
            if failed {
                break;
            }
        }
        outcomes
    }

    fn admit(&self, effect: &Effect) -> Result<(), Failure> {
        let authority = self.leadership.borrow().authority(&self.clock);
        let newest = self.newest.borrow().clone();
        let seen = newest.ok_or(Failure::Vanished("nothing was observed yet"))?;
        exec::admit(effect, &seen, authority, self.clock.now()).map_err(Failure::Guard)
    }
}

/// Comes when a task ends, never without one.
async fn ended<T>(task: &mut Option<JoinHandle<T>>) -> Option<T> {
    match task {
        Some(running) => {
            let outcome = running.await.ok();
            *task = None;
            outcome
        }
        None => std::future::pending().await,
    }
}

async fn ended_or_none<T>(task: Option<JoinHandle<T>>) {
    if let Some(task) = task {
        let _ = task.await;
    }
}
