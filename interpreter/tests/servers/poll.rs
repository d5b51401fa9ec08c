//! The task that asks one server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use wellcake_core::effects::Kind;
use wellcake_core::facts::{Fresh, Kept};
use wellcake_core::reasons::Reason;
use wellcake_core::render::{CLIENT_PORT, FENCE_PORT};
use wellcake_interpreter::clock::Clock;
use wellcake_interpreter::outside::Tcp;
use wellcake_interpreter::valkey::{Pace, Server, Snapshot, Surroundings, serve};
use wellcake_interpreter::{Leadership, Metrics};

use crate::process::{PASSWORD, Process};

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

struct Polled {
    clock: Clock,
    server: Arc<Server>,
    changed: Arc<Notify>,
    leadership: watch::Sender<Leadership>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn poll(process: &Process, leads: bool) -> Polled {
    let clock = Clock::start();
    let valid_until = tokio::time::Instant::now() + Duration::from_secs(60);
    let leader = Leadership::Leader {
        epoch: 1,
        valid_until,
    };
    let leadership = watch::Sender::new(if leads { leader } else { Leadership::Follower });
    let changed = Arc::new(Notify::new());
    let around = Surroundings {
        clock,
        pace: Arc::new(Pace::default()),
        changed: Arc::clone(&changed),
        password: watch::Sender::new(Some(Arc::from(PASSWORD))).subscribe(),
        denied: Arc::new(Notify::new()),
        leadership: leadership.subscribe(),
        metrics: Arc::new(Uncounted),
        credentials: watch::Sender::new(None).subscribe(),
        network: Arc::new(Tcp),
    };
    let server = Arc::new(Server::new("uid", process.address, clock.now()));
    let task = tokio::spawn(serve(Arc::clone(&server), around));
    Polled {
        clock,
        server,
        changed,
        leadership,
        task,
    }
}

impl Polled {
    /// Waits for a change that shows this; says how long it took.
    async fn shows(&self, what: &str, wanted: impl Fn(&Snapshot) -> bool) -> Duration {
        let begun = Instant::now();
        while !wanted(&self.server.snapshot()) {
            let left = Duration::from_secs(5).saturating_sub(begun.elapsed());
            let woken = tokio::time::timeout(left, self.changed.notified()).await;
            assert!(woken.is_ok(), "no change shows: {what}");
        }
        begun.elapsed()
    }
}

fn run_id(seen: &Snapshot) -> Option<String> {
    seen.answer
        .as_ref()
        .map(|answer| answer.info.run_id.clone())
}

#[tokio::test]
async fn a_kill_is_told_with_its_refusal_and_a_restart_with_its_new_process() {
    let mut process = Process::start(FENCE_PORT, "");
    let polled = poll(&process, true);
    polled
        .shows("an answer", |seen| {
            seen.answer.is_some() && seen.kept == Kept::Up
        })
        .await;
    let before = run_id(&polled.server.snapshot());
    process.kill();
    let took = polled
        .shows("closed, then refused", |seen| {
            match (seen.kept, seen.fresh) {
                (Kept::Closed { at: closed }, Fresh::Refused { at: refused }) => refused >= closed,
                _ => false,
            }
        })
        .await;
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert!(polled.server.snapshot().failing_since.is_some());
    assert!(polled.server.snapshot().connection.is_none());
    process.restart(FENCE_PORT);
    let took = polled
        .shows("another process", |seen| {
            seen.failing_since.is_none() && run_id(seen) != before
        })
        .await;
    assert!(took < Duration::from_millis(500), "{took:?}");
    assert_eq!(polled.server.snapshot().fresh, Fresh::NotTried);
}

#[tokio::test]
async fn an_unchanged_server_wakes_nobody() {
    let process = Process::start(CLIENT_PORT, "");
    let polled = poll(&process, true);
    polled
        .shows("an answer", |seen| seen.answer.is_some())
        .await;
    let first = polled.server.snapshot().answer.map(|answer| answer.at);
    // The uptime counts its first ten seconds, which the core waits for; after that nothing moves.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let _ = tokio::time::timeout(Duration::from_millis(1), polled.changed.notified()).await;
    let woken = tokio::time::timeout(Duration::from_secs(2), polled.changed.notified()).await;
    assert!(woken.is_err(), "a change was told");
    let last = polled.server.snapshot().answer.map(|answer| answer.at);
    assert!(last > first, "it was asked all the time");
}

/// Connections that the server has got so far, this one included.
fn connections(process: &Process) -> u64 {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect((process.address, CLIENT_PORT)).expect("open");
    let user = wellcake_crds::names::OPERATOR_USER;
    write!(stream, "AUTH {user} {PASSWORD}\r\nINFO stats\r\n").expect("it takes commands");
    let mut text = String::new();
    let mut some = [0; 4096];
    loop {
        let count = text
            .split_once("total_connections_received:")
            .and_then(|(_, rest)| rest.split_once('\r'))
            .and_then(|(digits, _)| digits.parse().ok());
        if let Some(count) = count {
            return count;
        }
        let read = stream.read(&mut some).expect("it answers");
        assert!(read > 0, "the server closed the connection: {text}");
        text.push_str(&String::from_utf8_lossy(&some[..read]));
    }
}

#[tokio::test]
async fn a_server_is_asked_again_and_again_over_one_connection() {
    let process = Process::start(CLIENT_PORT, "");
    let polled = poll(&process, true);
    polled
        .shows("an answer", |seen| seen.answer.is_some())
        .await;
    let at = |polled: &Polled| polled.server.snapshot().answer.map(|answer| answer.at);
    let (first, before) = (at(&polled), connections(&process));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(at(&polled) > first, "it was asked");
    assert_eq!(
        connections(&process),
        before + 1,
        "only the one that asks this"
    );
}

#[tokio::test]
async fn only_a_leader_connects() {
    let process = Process::start(CLIENT_PORT, "");
    let polled = poll(&process, false);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(polled.server.snapshot().answer.is_none());
    let valid_until = tokio::time::Instant::now() + Duration::from_secs(60);
    polled.leadership.send_replace(Leadership::Leader {
        epoch: 2,
        valid_until,
    });
    polled
        .shows("an answer", |seen| seen.answer.is_some())
        .await;
}

#[tokio::test]
async fn the_silence_of_an_earlier_term_does_not_count_in_a_later_one() {
    let mut process = Process::start(CLIENT_PORT, "");
    let polled = poll(&process, true);
    polled
        .shows("an answer", |seen| seen.answer.is_some())
        .await;
    process.kill();
    let refused_since = |from| {
        let seen = polled.server.snapshot();
        matches!(seen.fresh, Fresh::Refused { at } if at >= from)
    };
    let begun = polled.clock.now();
    while !refused_since(begun) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let leader = *polled.leadership.borrow();
    polled.leadership.send_replace(Leadership::Follower);
    tokio::time::sleep(Duration::from_secs(2)).await;
    polled.leadership.send_replace(leader);
    let again = polled.clock.now();
    while !refused_since(again) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let since = polled.server.snapshot().failing_since;
    let before = since.map(|since| again.since(since));
    assert!(
        before.is_some_and(|before| before.0 < 1_000),
        "asked in vain since {before:?} ms before it led again"
    );
}

#[tokio::test]
async fn two_operators_that_both_lead_stop_ending_each_others_connections_and_say_so() {
    let process = Process::start(CLIENT_PORT, "");
    let both = [poll(&process, true), poll(&process, true)];
    let is_told = |polled: &Polled| {
        let now = polled.clock.now();
        polled.server.snapshot().rivalry.is_there(now)
    };
    let begun = Instant::now();
    while !both.iter().any(is_told) {
        assert!(begun.elapsed() < Duration::from_secs(5), "nobody says so");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let connected = |polled: &Polled| polled.server.snapshot().connection.is_some();
    while !both.iter().all(connected) {
        assert!(begun.elapsed() < Duration::from_secs(5), "they go on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(both.iter().all(connected), "a connection was ended again");
    }
}
