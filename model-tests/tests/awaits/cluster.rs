//! Everything that is not the operator: the world of the model, the objects of Kubernetes, and what is on its way between them and
//! the operator. It moves by a millisecond at a time, and by more while nothing is on its way.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use serde_json::Value;
use wellcake_core::facts::{Millis, Tick};
use wellcake_core::step;
use wellcake_crds::names::ClusterName;
use wellcake_interpreter::Traces;
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::invariants::Violation;
use wellcake_model_tests::operator::Operator;
use wellcake_model_tests::world::World;

use crate::kubernetes::Shown;
use crate::network::Connection;
use crate::objects::{Kind, Objects};
use crate::requests::{Fate, Flight};
use crate::wrong::Wrong;

/// How long a message is on its way, in milliseconds.
pub const LATENCY: u64 = 1;
/// How often, in milliseconds, replicas replicate. All other periods are multiples of it.
const REPLICATION: u64 = 10;
/// How often a client writes.
const WRITES: u64 = 100;
/// How often the controllers and the kubelet look at the pods.
const CONTROLLERS: u64 = 250;
/// How often primaries send a PING.
const PING: u64 = 1_000;

/// How long after the last write every millisecond counts.
const BUSY: Millis = Millis(300);

/// Shared by the operator's connections and the test.
pub type Shared = Arc<Mutex<Cluster>>;

/// Takes it.
pub fn lock(cluster: &Shared) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

/// The wall clock of the operator: the time of the world that its thread runs.
pub fn wall() -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(NOW.get()).expect("a time of this age")
}

/// Everything but the operator.
#[derive(Clone)]
pub struct Cluster {
    /// Name of the ValkeyCluster.
    pub name: ClusterName,
    /// Servers, volumes, clients.
    pub world: World,
    /// What the API server keeps.
    pub objects: Objects,
    /// Pod templates by revision.
    pub templates: Vec<Value>,
    /// What the pod objects were made from.
    pub shown: Vec<Option<Shown>>,
    /// For each pod, how often its container was seen not to run, and to be about to end.
    pub waited: Vec<(u32, u32)>,
    /// Connections of operators to servers.
    pub connections: Vec<Connection>,
    /// Requests on their way to the API server, and answers on their way back.
    pub flights: Vec<Flight>,
    /// Who waits for changes of objects.
    pub watchers: Vec<Waker>,
    /// How many of the changes watches have brought.
    brought: usize,
    /// What the operator that runs records.
    pub traces: Arc<Traces>,
    /// Operators that have ended.
    pub ended: u64,
    /// The first invariant that did not hold.
    pub broken: Option<Violation>,
    /// Writes that came to the API server, and commands that change servers.
    pub writes: u64,
    /// When the last of them came.
    pub written_at: Tick,
    /// How often the operator did something that anybody else can notice, now or later.
    pub touches: u64,
    /// Whether clients write.
    pub clients: bool,
    /// How the operator is wrong on purpose.
    pub wrong: Wrong,
    /// Writes that were sent to the API server.
    pub requests: u64,
    /// What becomes of one of them.
    pub misfortune: Option<(u64, Fate)>,
    /// What happened.
    pub story: Vec<String>,
}

impl Cluster {
    /// A cluster without any object, in which pods will have the volumes of the world.
    pub fn new(mut world: World) -> Self {
        world.replicas = 0;
        for pod in &mut world.pods {
            pod.exists = false;
            pod.process = None;
        }
        let pods = world.pods.len();
        let now = world.now;
        Self {
            name: ClusterName::parse("web").expect("a name"),
            world,
            objects: Objects::default(),
            templates: Vec::new(),
            shown: vec![None; pods],
            waited: vec![(0, 0); pods],
            connections: Vec::new(),
            flights: Vec::new(),
            watchers: Vec::new(),
            brought: 0,
            traces: Arc::default(),
            ended: 0,
            broken: None,
            writes: 0,
            written_at: now,
            touches: 0,
            clients: true,
            wrong: Wrong::Nothing,
            requests: 0,
            misfortune: None,
            story: Vec::new(),
        }
    }

    /// Now, in milliseconds.
    pub fn now(&self) -> u64 {
        self.world.now.0
    }

    /// Notes what happened.
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        let line = format!("{:>6} ms  {}", self.world.age(), what());
        self.story.push(line);
    }

    /// Keeps the first violation.
    pub fn judge(&mut self, outcome: Result<(), Violation>) {
        if let Err(violation) = outcome {
            self.tell(|| format!("VIOLATION {violation}"));
            self.broken.get_or_insert(violation);
        }
    }

    /// Something that changes the cluster came from the operator.
    pub fn note_write(&mut self, what: impl FnOnce() -> String) {
        self.writes += 1;
        self.written_at = self.world.now;
        self.tell(what);
    }

    /// An event of the world happens.
    pub fn act(&mut self, action: Action) {
        let outcome = self.world.act(action, step, None);
        self.judge(outcome);
    }

    /// An event that is worth telling.
    pub fn happen(&mut self, action: Action) {
        self.tell(|| format!("{action:?}"));
        self.act(action);
    }

    /// Milliseconds to the next moment at which anything but a timer of the operator may do something.
    pub fn pause(&self) -> u64 {
        let busy = self.world.now.since(self.written_at) < BUSY
            || !self.flights.is_empty()
            || self.brought < self.objects.log.len()
            || self.connections.iter().any(Connection::carries);
        if busy {
            1
        } else {
            REPLICATION - self.world.age() % REPLICATION
        }
    }

    /// So many milliseconds pass, as [`Self::pause`] says: everybody but the operator goes on, and what is due arrives.
    pub fn tick(&mut self, millis: u64) {
        self.world.now = self.world.now.after(Millis(millis));
        self.set_wall();
        let age = self.world.age();
        if age.is_multiple_of(PING) {
            self.world.ping();
        }
        if age.is_multiple_of(REPLICATION) {
            for n in 0..self.world.pods.len() {
                self.act(Action::Replicate(n));
            }
        }
        if age.is_multiple_of(WRITES) && self.clients {
            self.act(Action::Write);
        }
        if age.is_multiple_of(CONTROLLERS) {
            self.controllers();
        }
        self.show_pods();
        self.requests_arrive();
        self.commands_arrive();
        self.world.notice_returns();
        self.changes_arrive();
    }

    /// Watches bring what has changed.
    fn changes_arrive(&mut self) {
        let now = self.now();
        let rest = self.objects.log.iter().skip(self.brought);
        let due = rest.take_while(|change| change.at + LATENCY <= now).count();
        if due > 0 {
            self.brought += due;
            self.watchers.drain(..).for_each(Waker::wake);
        }
    }

    /// The wall clock of this thread is that of this world.
    pub fn set_wall(&self) {
        NOW.set(millis(self.world.now));
    }

    /// The operator process ended: nobody reads its connections any more. What it has sent arrives all the same, after `late`
    /// milliseconds more.
    pub fn operator_ended(&mut self, late: u64) {
        self.watchers.clear();
        self.flights_are_left(late);
        self.connections_are_left(late);
        self.ended += 1;
        self.world.operators[0] = Operator::new(&self.world, true);
        self.traces = Arc::default();
    }

    /// Whether the ValkeyCluster says that everything is as it should be.
    pub fn is_ready(&self) -> bool {
        let Some(object) = self.objects.get(Kind::ValkeyCluster, self.name.as_str()) else {
            return false;
        };
        let at = |pointer| object.pointer(pointer);
        at("/status/phase").and_then(Value::as_str) == Some("Ready")
            && at("/status/observedGeneration") == at("/metadata/generation")
    }

    /// Whether it is ready and nothing was sent for so long.
    pub fn rests(&self, quiet: Millis) -> bool {
        self.is_ready() && self.world.now.since(self.written_at) >= quiet
    }
}

fn millis(at: Tick) -> i64 {
    i64::try_from(at.0).expect("a time of this age")
}
