//! The server of one pod: what it said last, and the task that asks it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use wellcake_core::facts::{Fresh, Kept, Login, Tick};
use wellcake_core::parse::{Info, InfoRole, file_lacks_copy};

use super::connection::{Connection, Failure, Fence, Reached, connect};
use super::pace::Pace;
use super::rivalry::Rivalry;
use super::unfenced;
use crate::clock::Clock;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::outside::Network;

/// Pause between attempts to connect to an address that refused: a server that restarts in place is to be seen early.
const RETRY_REFUSED: Duration = Duration::from_millis(50);
/// Pause after an attempt that the other side cut off: a process that ends may still accept for a moment, and its refusal,
/// which follows, is part of the proof of its end.
const RETRY_CLOSED: Duration = Duration::from_millis(5);
/// Pause between other attempts, which have taken time already.
const RETRY_OTHER: Duration = Duration::from_millis(200);
/// Pause after a refused password: each such attempt has the Secret read anew.
const RETRY_DENIED: Duration = Duration::from_secs(2);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// When it arrived.
    pub at: Tick,
    /// When this process answered first.
    pub run_since: Tick,
    /// Whether its append-only file lacks the copy that it was given, see [`file_lacks_copy`].
    pub lacks_copy: bool,
    /// What it says.
    pub info: Arc<Info>,
}

/// Directives that a process was sent.
#[derive(Clone, Debug)]
pub struct Configured {
    /// The process.
    pub run: String,
    /// What it was sent.
    pub directives: Arc<BTreeMap<String, String>>,
    /// What it said if it refused them.
    pub refused: Option<Arc<str>>,
}

/// What is known of a server.
#[derive(Clone)]
pub struct Snapshot {
    /// The newest answer.
    pub answer: Option<Answer>,
    /// Since when there has been none, if the newest attempt failed.
    pub failing_since: Option<Tick>,
    /// The kept connection.
    pub kept: Kept,
    /// The newest attempt to connect.
    pub fresh: Fresh,
    /// The connection from which the newest answer came, while it stands.
    pub connection: Option<Connection>,
    /// What is remembered of connections that another operator ended.
    pub rivalry: Rivalry,
    /// How many commands were sent that change it.
    pub commands: u64,
    /// The directives that it was sent last.
    pub configured: Option<Configured>,
    /// How the last attempt went to make the operator's user on a server that does not know it.
    pub login: Login,
}

/// The server of one pod.
pub struct Server {
    /// Uid of the pod.
    pub uid: String,
    /// Its address.
    pub address: IpAddr,
    /// When it began to be asked.
    pub since: Tick,
    state: Mutex<Snapshot>,
}

/// What the task of a server needs.
#[derive(Clone)]
pub struct Surroundings {
    /// The clock.
    pub clock: Clock,
    /// The pace of the cluster.
    pub pace: Arc<Pace>,
    /// Wakes the cluster's task.
    pub changed: Arc<Notify>,
    /// Password of the operator's user, once it is known.
    pub password: watch::Receiver<Option<Arc<str>>>,
    /// Woken when a server refuses the password.
    pub denied: Arc<Notify>,
    /// Only a leader connects.
    pub leadership: watch::Receiver<Leadership>,
    /// Counts failures.
    pub metrics: Arc<dyn Metrics>,
    /// What it takes to be let in by servers that another operator's template started.
    pub credentials: unfenced::Known,
    /// How the server is reached.
    pub network: Arc<dyn Network>,
}

impl Server {
    /// A server that was not asked yet.
    pub fn new(uid: &str, address: IpAddr, now: Tick) -> Self {
        let state = Snapshot {
            answer: None,
            failing_since: None,
            kept: Kept::Never,
            fresh: Fresh::NotTried,
            connection: None,
            rivalry: Rivalry::default(),
            commands: 0,
            configured: None,
            login: Login::Fine,
        };
        Self {
            uid: uid.to_owned(),
            address,
            since: now,
            state: Mutex::new(state),
        }
    }

    /// What is known.
    pub fn snapshot(&self) -> Snapshot {
        self.state().clone()
    }

    /// Asks over this connection and keeps the answer, for whoever just sent a command over it. Whether anything but
    /// numbers that always move changed.
    pub async fn read(&self, connection: &mut Connection, clock: &Clock) -> Result<bool, Failure> {
        let commands = self.state().commands;
        let outcome = connection.info().await;
        let now = clock.now();
        let mut state = self.state();
        match outcome {
            // What was asked before a command says nothing of what that did.
            Ok(_) if state.commands != commands => Ok(false),
            Ok(info) => {
                state.rivalry.answered(&info.run_id);
                let same = state.failing_since.is_none()
                    && state.kept == Kept::Up
                    && state
                        .answer
                        .as_ref()
                        .is_some_and(|answer| is_alike(&answer.info, &info));
                let known = state.answer.as_ref();
                let known = known.filter(|answer| answer.info.run_id == info.run_id);
                let run_since = known.map_or(now, |answer| answer.run_since);
                let before = known.map(|answer| (answer.info.as_ref(), answer.lacks_copy));
                let lacks_copy = file_lacks_copy(&info, before);
                state.answer = Some(Answer {
                    at: now,
                    run_since,
                    lacks_copy,
                    info,
                });
                state.failing_since = None;
                state.kept = Kept::Up;
                state.fresh = Fresh::NotTried;
                state.connection = Some(connection.clone());
                Ok(!same)
            }
            // The same process still runs, and no command that would change its role gets through.
            Err(Failure::Busy) if state.connection.is_some() => {
                if let Some(answer) = &mut state.answer {
                    answer.at = now;
                }
                Ok(false)
            }
            Err(why) => Err(why),
        }
    }

    /// A command that changes the server is about to be sent: answers to what was asked before it do not count any more.
    pub fn commands(&self) {
        let mut state = self.state();
        state.commands = state.commands.wrapping_add(1);
    }

    /// The process that answered last was sent directives, and took or refused them.
    pub fn was_configured(
        &self,
        directives: &Arc<BTreeMap<String, String>>,
        refused: Option<String>,
    ) {
        let mut state = self.state();
        let run = state
            .answer
            .as_ref()
            .map(|answer| answer.info.run_id.clone());
        state.configured = run.map(|run| Configured {
            run,
            directives: Arc::clone(directives),
            refused: refused.map(Arc::from),
        });
    }

    /// Whether a command was done, or what it did, is not known: what was known before it is not known now.
    pub fn doubt(&self, now: Tick) {
        let mut state = self.state();
        state.failing_since = Some(state.failing_since.unwrap_or(now));
    }

    /// The connection is lost. Whether that is news.
    fn lost(&self, why: Failure, now: Tick) -> bool {
        let mut state = self.state();
        state.connection = None;
        state.failing_since = Some(state.failing_since.unwrap_or(now));
        if let (Failure::Closed, Some(answer)) = (why, state.answer.clone()) {
            state.rivalry.ended(&answer.info.run_id, now);
        }
        let kept = match why {
            Failure::Closed => Kept::Closed { at: now },
            Failure::TimedOut | Failure::Refused => Kept::TimedOut { at: now },
            _ => state.kept,
        };
        let news = std::mem::discriminant(&kept) != std::mem::discriminant(&state.kept);
        state.kept = kept;
        news
    }

    /// An attempt to connect failed. Whether that is news.
    fn unreached(&self, why: Failure, now: Tick) -> bool {
        let mut state = self.state();
        let first = state.failing_since.is_none();
        state.failing_since = Some(state.failing_since.unwrap_or(now));
        let fresh = match (why, state.kept, state.fresh) {
            (Failure::Refused, ..) => Fresh::Refused { at: now },
            // The process that ended its connection and then listened no more stays dead, also when its pod's address goes
            // away a moment later and answers nothing at all.
            (Failure::TimedOut, Kept::Closed { .. }, refused @ Fresh::Refused { .. }) => refused,
            (Failure::TimedOut, ..) => Fresh::TimedOut { at: now },
            // The address answers: whatever was refused before is not the state of now.
            _ => Fresh::NotTried,
        };
        let news = std::mem::discriminant(&fresh) != std::mem::discriminant(&state.fresh);
        state.fresh = fresh;
        news || first
    }

    /// How an attempt went to make the operator's user. Whether that is news.
    fn refused(&self, login: Login) -> bool {
        let mut state = self.state();
        let news = state.login != login;
        state.login = login;
        news
    }

    /// Nobody asks: a silence of the time before proves nothing of a later one.
    fn stand_by(&self, now: Tick) {
        let mut state = self.state();
        state.failing_since = state.failing_since.map(|_| now);
    }

    fn state(&self) -> MutexGuard<'_, Snapshot> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two answers say the same but for numbers that always move.
fn is_alike(one: &Info, other: &Info) -> bool {
    let role = |info: &Info| match &info.role {
        InfoRole::Primary => None,
        InfoRole::Replica(up) => Some((
            up.host.clone(),
            up.port,
            up.link_up,
            up.link_down_seconds.is_some(),
            up.sync_in_progress,
            up.offset > 0,
        )),
    };
    let rest = |info: &Info| {
        (
            info.tcp_port,
            info.loading || info.async_loading,
            info.keys > 0,
            info.good_replicas.is_some(),
            info.has_replica(),
            info.unfenced,
            info.rewriting,
            // What the core waits for in whole seconds of uptime is short.
            info.uptime_seconds.min(10),
        )
    };
    one.run_id == other.run_id
        && one.replid == other.replid
        && one.replid2 == other.replid2
        && role(one) == role(other)
        && rest(one) == rest(other)
}

/// Keeps a connection to a server and asks it at the cluster's pace, for ever.
pub async fn serve(server: Arc<Server>, mut around: Surroundings) {
    loop {
        let Some(password) = password(&mut around.password).await else {
            return;
        };
        if !around.leadership.borrow().holds() {
            server.stand_by(around.clock.now());
            tokio::time::sleep(RETRY_OTHER).await;
            continue;
        }
        let rival = server.state().rivalry.is_there(around.clock.now());
        let fence = if rival { Fence::None } else { Fence::Others };
        match reach(&server, &password, fence, &around).await {
            Ok(reached) => {
                if reached.fenced > 0 {
                    tracing::info!(
                        pod_uid = server.uid,
                        connections = reached.fenced,
                        "ended connections of an earlier leader"
                    );
                }
                let why = ask(&server, reached.connection, &around).await;
                around.metrics.poll_failure(why.as_str());
                let now = around.clock.now();
                server.lost(why, now);
                around.pace.burst(now);
                around.changed.notify_one();
            }
            Err(why) => {
                around.metrics.poll_failure(why.as_str());
                if server.unreached(why, around.clock.now()) {
                    around.changed.notify_one();
                }
                if why == Failure::Denied {
                    around.denied.notify_one();
                }
                let pause = match why {
                    Failure::Refused => RETRY_REFUSED,
                    Failure::Closed => RETRY_CLOSED,
                    Failure::Denied => RETRY_DENIED,
                    _ => RETRY_OTHER,
                };
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Connects. On a server that another operator's template started the user is made first.
async fn reach(
    server: &Server,
    password: &str,
    fence: Fence,
    around: &Surroundings,
) -> Result<Reached, Failure> {
    let credentials = around.credentials.borrow().clone();
    let network = around.network.as_ref();
    let mut reached = connect(network, server.address, password, fence).await;
    if let (Err(Failure::Denied), Some(credentials)) = (&reached, credentials) {
        let whom = (server.uid.as_str(), server.address);
        match unfenced::introduce(network, whom, password, &credentials).await {
            Ok(()) => reached = connect(network, server.address, password, fence).await,
            Err(why) => {
                if server.refused(why) {
                    around.changed.notify_one();
                }
            }
        }
    }
    let mut reached = reached?;
    if server.refused(Login::Fine) {
        around.changed.notify_one();
    }
    reached.connection.admits_with(around.credentials.clone());
    Ok(reached)
}

/// Asks over one connection until it ends; says how.
async fn ask(server: &Server, mut connection: Connection, around: &Surroundings) -> Failure {
    loop {
        let quickened = around.pace.quickened();
        let ended = connection.clone();
        let read = tokio::select! {
            biased;
            () = ended.ended() => return Failure::Closed,
            read = server.read(&mut connection, &around.clock) => read,
        };
        match read {
            Ok(true) => around.changed.notify_one(),
            Ok(false) => {}
            Err(why) if why.is_proof_of_life() => around.metrics.poll_failure(why.as_str()),
            Err(why) => return why,
        }
        tokio::select! {
            biased;
            () = ended.ended() => return Failure::Closed,
            () = quickened => {}
            () = tokio::time::sleep(around.pace.pause(around.clock.now())) => {}
        }
    }
}

async fn password(known: &mut watch::Receiver<Option<Arc<str>>>) -> Option<Arc<str>> {
    known.wait_for(Option::is_some).await.ok()?.clone()
}
