//! The network between servers: every ordered pair has an address of its own, behind which a forwarder can be told to end
//! connections or to let nothing through.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use wellcake_core::render::CLIENT_PORT;

/// What becomes of what a server sends to the others, and of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Goes through.
    Open,
    /// Waits, and nobody is told.
    Hole,
    /// Is ended.
    Ended,
}

/// The way out of one server.
#[derive(Debug)]
struct Gate {
    state: Mutex<(Passage, Vec<TcpStream>)>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, (Passage, Vec<TcpStream>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something goes through, or is to end.
    fn pass(&self) -> bool {
        let mut state = self.lock();
        while state.0 == Passage::Hole {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.0 == Passage::Open
    }

    fn keep(&self, streams: [&TcpStream; 2]) {
        let clones = streams.into_iter().filter_map(|it| it.try_clone().ok());
        self.lock().1.extend(clones);
    }
}

/// All forwarders of a few servers; they end when it is dropped.
#[derive(Debug)]
pub struct Links {
    gates: Vec<Arc<Gate>>,
    over: Arc<AtomicBool>,
    listeners: Vec<SocketAddr>,
}

impl Links {
    /// Forwarders for every pair of these servers; `pair` gives the address under which the first reaches the second.
    pub fn new(servers: &[IpAddr], pair: impl Fn(usize, usize) -> IpAddr) -> Result<Self> {
        let mut links = Self {
            gates: Vec::new(),
            over: Arc::default(),
            listeners: Vec::new(),
        };
        for from in 0..servers.len() {
            let gate = Arc::new(Gate {
                state: Mutex::new((Passage::Open, Vec::new())),
                changed: Condvar::new(),
            });
            for (to, target) in servers.iter().enumerate().filter(|(to, _)| *to != from) {
                let address = SocketAddr::new(pair(from, to), CLIENT_PORT);
                let listener = TcpListener::bind(address)
                    .with_context(|| format!("cannot listen on {address}"))?;
                links.listeners.push(address);
                let (gate, target) = (Arc::clone(&gate), SocketAddr::new(*target, CLIENT_PORT));
                let over = Arc::clone(&links.over);
                thread::spawn(move || accept(&listener, &gate, target, &over));
            }
            links.gates.push(gate);
        }
        Ok(links)
    }

    /// Lets the connections that server `from` makes to others go through, wait or end.
    pub fn set(&self, from: usize, passage: Passage) {
        let Some(gate) = self.gates.get(from) else {
            return;
        };
        let mut state = gate.lock();
        state.0 = passage;
        if passage == Passage::Ended {
            for stream in state.1.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        drop(state);
        gate.changed.notify_all();
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for from in 0..self.gates.len() {
            self.set(from, Passage::Ended);
        }
        self.over.store(true, Ordering::Release);
        // A forwarder that waits for the next connection sees it with one more.
        for address in &self.listeners {
            let _ = TcpStream::connect(address);
        }
    }
}

fn accept(listener: &TcpListener, gate: &Arc<Gate>, target: SocketAddr, over: &AtomicBool) {
    for stream in listener.incoming() {
        if over.load(Ordering::Acquire) {
            return;
        }
        let Ok(near) = stream else { continue };
        let gate = Arc::clone(gate);
        thread::spawn(move || forward(&near, &gate, target));
    }
}

fn forward(near: &TcpStream, gate: &Arc<Gate>, target: SocketAddr) {
    if !gate.pass() {
        return;
    }
    let Ok(far) = TcpStream::connect(target) else {
        return;
    };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    gate.keep([near, &far]);
    thread::scope(|scope| {
        scope.spawn(|| pump(near, &far, gate));
        pump(&far, near, gate);
    });
}

fn pump(mut from: &TcpStream, mut to: &TcpStream, gate: &Gate) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let bytes = buffer.get(..read).unwrap_or_default();
        if !gate.pass() || bytes.is_empty() || to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
