//! The life of one operator process: the interpreter in a runtime of its own, one poll of one of its tasks after the other.
//!
//! The runtime has one thread, no I/O and a clock that stands (`start_paused`). With an event interval of 1 it lets the future that
//! drives it go on between any two polls of tasks. So all awaits are counted, and dropping the runtime after the n-th ends the
//! process there: nothing of it runs any further, not even what it had spawned.

use std::cell::Cell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use kube::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wellcake_core::effects::Kind;
use wellcake_core::reasons::Reason;
use wellcake_interpreter::outside::Outside;
use wellcake_interpreter::{Leadership, Metrics, Options};
use wellcake_model_tests::invariants::Violation;
use wellcake_model_tests::recorded;

use crate::cluster::{self, Cluster, Shared, lock};
use crate::network::Wires;
use crate::objects::NAMESPACE;
use crate::requests::Http;

/// A year: the lease is no matter of these tests.
const LEASE: Duration = Duration::from_secs(365 * 86_400);

/// Why it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was polled so often.
    Polls,
    /// What was waited for is so.
    Reached,
    /// It was not in time.
    Late,
    /// An invariant broke.
    Broken,
}

/// An await: the state of the outside after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Await {
    /// Number of the poll, from 1.
    pub poll: u64,
    /// The time.
    pub at: u64,
    /// What anybody could notice of the operator by then.
    pub touches: u64,
}

/// An operator process.
pub struct Life {
    runtime: Runtime,
    gate: Arc<Gate>,
    queued: Cell<bool>,
    /// How often its tasks were polled.
    pub polls: u64,
    /// The awaits at which the outside differs, of all since it was asked for.
    pub awaits: Vec<Await>,
}

impl Life {
    /// A process that leads from its start.
    pub fn start(cluster: &Shared, term: u64) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .event_interval(1)
            .build()
            .expect("a runtime");
        let gate = Arc::<Gate>::default();
        lock(cluster).set_wall();
        let traces = Arc::clone(&lock(cluster).traces);
        runtime.block_on(async {
            let leader = Leadership::Leader {
                epoch: term,
                valid_until: Instant::now() + LEASE,
            };
            let (publish, leadership) = watch::channel(leader);
            let client = Client::new(Http(Arc::clone(cluster)), NAMESPACE);
            let options = Options {
                traces,
                instance: "simulated".to_owned(),
                outside: Outside {
                    network: Arc::new(Wires(Arc::clone(cluster))),
                    wall: cluster::wall,
                },
                ..Options::default()
            };
            tokio::spawn(async move {
                let _led = publish;
                let (ready, _) = watch::channel(false);
                let (metrics, stop) = (Arc::new(Uncounted), CancellationToken::new());
                wellcake_interpreter::run(client, options, leadership, metrics, ready, stop).await
            });
            let stands = Arc::clone(&gate);
            tokio::spawn(poll_fn(move |context| stands.pass(context.waker())));
        });
        Self {
            runtime,
            gate,
            queued: Cell::new(true),
            polls: 0,
            awaits: Vec::new(),
        }
    }

    /// Goes on until it was polled `polls` times, or `until` is so at a moment when it waits, or for `time` milliseconds.
    pub fn go_on(
        &mut self,
        cluster: &Shared,
        polls: Option<u64>,
        time: u64,
        mut until: impl FnMut(&Cluster) -> bool,
    ) -> Stop {
        let end = lock(cluster).now() + time;
        let Self {
            runtime,
            gate,
            queued,
            polls: polled,
            awaits,
        } = self;
        runtime.block_on(async {
            loop {
                match step(gate, queued).await {
                    Step::Turn => {}
                    Step::Poll => {
                        *polled += 1;
                        let cluster = lock(cluster);
                        let (at, touches) = (cluster.now(), cluster.touches);
                        let same = awaits.last().is_some_and(|it| it.touches == touches);
                        if !same {
                            awaits.push(Await {
                                poll: *polled,
                                at,
                                touches,
                            });
                        }
                        if Some(*polled) == polls {
                            return Stop::Polls;
                        }
                    }
                    Step::Idle => {
                        {
                            let cluster = lock(cluster);
                            if cluster.broken.is_some() {
                                return Stop::Broken;
                            }
                            if until(&cluster) {
                                return Stop::Reached;
                            }
                            if cluster.now() >= end {
                                return Stop::Late;
                            }
                        }
                        let pause = lock(cluster).pause();
                        tokio::time::advance(Duration::from_millis(pause)).await;
                        lock(cluster).tick(pause);
                    }
                }
            }
        })
    }

    /// The process ends here. What it recorded must be decided the same again. Answers how many decisions that were.
    pub fn end(self, cluster: &Shared, late: u64) -> Result<usize, Violation> {
        let text = lock(cluster)
            .traces
            .of(NAMESPACE, "web")
            .unwrap_or_default();
        drop(self.runtime);
        lock(cluster).operator_ended(late);
        let trace = recorded::read::read(text.as_bytes()).map_err(|why| broken(why.to_string()))?;
        let other = trace
            .moments
            .iter()
            .find(|moment| moment.decided_otherwise().is_some());
        match other {
            Some(moment) => Err(broken(format!("line {} is decided otherwise", moment.line))),
            None => Ok(trace.moments.len()),
        }
    }
}

fn broken(seen: String) -> Violation {
    Violation {
        invariant: "what was recorded is decided the same again",
        seen,
    }
}

enum Step {
    /// A task was polled.
    Poll,
    /// Every task that could go on did.
    Turn,
    /// All tasks wait.
    Idle,
}

/// Lets the runtime poll one task. A gate stands in the queue of those that can go on: the queue is first in, first out, so that a
/// gate that is passed at once stood in an empty one.
async fn step(gate: &Gate, queued: &Cell<bool>) -> Step {
    let alone = !queued.replace(true);
    if alone {
        gate.queue();
    }
    let mut polled = false;
    poll_fn(|context| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    if !gate.passed.load(Ordering::Relaxed) {
        return Step::Poll;
    }
    queued.set(false);
    if alone { Step::Idle } else { Step::Turn }
}

/// A task that does nothing.
#[derive(Default)]
struct Gate {
    passed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Gate {
    fn pass(&self, waker: &Waker) -> Poll<()> {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.passed.store(true, Ordering::Relaxed);
        Poll::Pending
    }

    fn queue(&self) {
        self.passed.store(false, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake_by_ref();
        }
    }
}

struct Uncounted;

impl Metrics for Uncounted {
    fn decision(&self, _: Reason) {}
    fn effect(&self, _: Kind, _: &'static str) {}
    fn poll_failure(&self, _: &'static str) {}
    fn pass(&self, _: Duration) {}
    fn reconciled(&self, _: Duration, _: bool) {}
    fn failover(&self, _: &str, _: &str, _: &'static str) {}
    fn discarded(&self, _: &str, _: &str, _: u64) {}
    fn clusters(&self, _: usize) {}
    fn heard(&self, _: bool) {}
}
