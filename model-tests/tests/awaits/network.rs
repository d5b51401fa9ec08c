//! The network between operator and servers: connections that carry bytes with a delay, and end with the process behind them.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wellcake_core::facts::{Port, RunId};
use wellcake_core::render::{CLIENT_PORT, FENCE_PORT};
use wellcake_interpreter::outside::{Network, Stream};
use wellcake_model_tests::world::Pod;

use crate::cluster::{Cluster, LATENCY, Shared, lock};

/// A connection of an operator to a server.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Address of the server.
    pub addr: u16,
    /// The process that accepted it.
    pub run: RunId,
    /// How many operators had ended before that which made it.
    pub term: u64,
    /// Whether it is logged in.
    pub logged_in: bool,
    /// Whether the server was asked over it: it has ended those of earlier leaders then.
    pub asked: bool,
    /// Bytes on their way to the server, with the time when they arrive.
    sent: VecDeque<(u64, Vec<u8>)>,
    /// What arrived of a command that is not complete.
    partial: Vec<u8>,
    /// Bytes on their way to the operator.
    answers: VecDeque<(u64, Vec<u8>)>,
    /// Whether the server's side ended it.
    pub ended: bool,
    /// Whether the operator's side did.
    left: bool,
    waker: Option<Waker>,
}

impl Connection {
    /// Whether something is on its way.
    pub fn carries(&self) -> bool {
        let unread = !self.answers.is_empty() && !self.left;
        !self.ended && (unread || !self.sent.is_empty())
    }
}

/// The IP of an address of the world.
pub fn ip(addr: u16) -> IpAddr {
    let [high, low] = addr.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 0, high, low))
}

/// The address of the world behind an IP.
pub fn addr(ip: IpAddr) -> Option<u16> {
    match ip {
        IpAddr::V4(ip) => match ip.octets() {
            [10, 0, high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

/// The network of a cluster.
pub struct Wires(pub Shared);

impl Network for Wires {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let cluster = Shared::clone(&self.0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(2 * LATENCY)).await;
            let accepted = lock(&cluster).accept(to);
            match accepted {
                Some(Some(id)) => Ok(Box::new(Line { cluster, id }) as Box<dyn Stream>),
                Some(None) => Err(io::ErrorKind::ConnectionRefused.into()),
                None => std::future::pending().await,
            }
        })
    }
}

impl Cluster {
    /// A new connection; refused, or no answer at all.
    fn accept(&mut self, to: SocketAddr) -> Option<Option<usize>> {
        let at = addr(to.ip()).filter(|at| !self.is_hidden(*at))?;
        let listens = |port| match port {
            Port::Client => CLIENT_PORT,
            Port::Fence => FENCE_PORT,
        };
        let process = self.world.at(at);
        let process = process.filter(|process| listens(process.port) == to.port());
        let Some(run) = process.map(|process| process.run) else {
            return Some(None);
        };
        self.touches += 1;
        self.connections.push(Connection {
            addr: at,
            run,
            term: self.ended,
            logged_in: false,
            asked: false,
            sent: VecDeque::new(),
            partial: Vec::new(),
            answers: VecDeque::new(),
            ended: false,
            left: false,
            waker: None,
        });
        Some(Some(self.connections.len() - 1))
    }

    fn is_hidden(&self, at: u16) -> bool {
        let hidden = |pod: &Pod| pod.exists && pod.addr == at && pod.hidden;
        let zombies = &self.world.zombies;
        self.world.pods.iter().any(hidden) || zombies.iter().any(|it| it.addr == at && it.hidden)
    }

    /// Bytes that are due arrive at servers, which do what they are told. Connections end whose process has ended.
    pub fn commands_arrive(&mut self) {
        let now = self.now();
        for id in 0..self.connections.len() {
            let (at, run) = (self.connections[id].addr, self.connections[id].run);
            if self.is_hidden(at) {
                continue;
            }
            let process = self.world.at(at).filter(|process| process.run == run);
            match process.map(|process| process.frozen.is_some()) {
                None => self.end(id),
                Some(true) => continue,
                Some(false) => {}
            }
            while let Some(connection) = self.connections.get_mut(id)
                && !connection.ended
                && connection.sent.front().is_some_and(|(due, _)| *due <= now)
            {
                let (_, bytes) = connection.sent.pop_front().expect("just looked at");
                connection.partial.extend(bytes);
                while let Some(words) = next_command(&mut self.connections[id].partial) {
                    let reply = self.command(id, &words);
                    self.connections[id]
                        .answers
                        .push_back((now + LATENCY, reply));
                }
            }
            let connection = &mut self.connections[id];
            let comes = connection
                .answers
                .front()
                .is_some_and(|(due, _)| *due <= now);
            if (comes || connection.ended)
                && let Some(waker) = connection.waker.take()
            {
                waker.wake();
            }
        }
    }

    /// Ends a connection from the server's side.
    pub fn end(&mut self, id: usize) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.ended = true;
            connection.sent.clear();
        }
    }

    /// The operator ended: what it sent arrives later.
    pub fn connections_are_left(&mut self, late: u64) {
        for connection in &mut self.connections {
            connection.waker = None;
            for (due, _) in &mut connection.sent {
                *due += late;
            }
        }
    }

    /// Other connections to the same process that stand.
    pub fn others(&self, id: usize) -> Vec<usize> {
        let run = self.connections[id].run;
        let all = self.connections.iter().enumerate();
        all.filter(|(other, it)| {
            let stands = !it.left || !it.sent.is_empty();
            *other != id && it.run == run && it.logged_in && !it.ended && stands
        })
        .map(|(other, _)| other)
        .collect()
    }
}

/// Takes a complete command out: an array of bulk strings (<https://valkey.io/topics/protocol/>).
fn next_command(buffer: &mut Vec<u8>) -> Option<Vec<String>> {
    let (count, mut at) = number(buffer, 0, b'*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, begins) = number(buffer, at, b'$')?;
        let word = buffer.get(begins..begins + length)?;
        words.push(String::from_utf8_lossy(word).into_owned());
        at = begins + length + 2;
    }
    if at > buffer.len() {
        return None;
    }
    buffer.drain(..at);
    Some(words)
}

/// The number of a line, such as `$3`, and where the next one begins.
fn number(buffer: &[u8], at: usize, sign: u8) -> Option<(usize, usize)> {
    let rest = buffer.get(at..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    assert_eq!(rest.first(), Some(&sign), "the client speaks RESP");
    let digits = std::str::from_utf8(&rest[1..end]).expect("digits");
    Some((digits.parse().expect("a number"), at + end + 2))
}

/// The operator's side of a connection.
struct Line {
    cluster: Shared,
    id: usize,
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut cluster = lock(&self.cluster);
        cluster.touches += 1;
        if let Some(connection) = cluster.connections.get_mut(self.id) {
            connection.left = true;
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut cluster = lock(&self.cluster);
        let now = cluster.now();
        let connection = &mut cluster.connections[self.id];
        if let Some((due, bytes)) = connection.answers.front_mut()
            && *due <= now
        {
            let some = bytes.len().min(buffer.remaining());
            buffer.put_slice(&bytes[..some]);
            bytes.drain(..some);
            if bytes.is_empty() {
                connection.answers.pop_front();
            }
            return Poll::Ready(Ok(()));
        }
        if connection.ended && connection.answers.is_empty() {
            return Poll::Ready(Ok(()));
        }
        connection.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut cluster = lock(&self.cluster);
        let due = cluster.now() + LATENCY;
        cluster.touches += 1;
        let connection = &mut cluster.connections[self.id];
        if connection.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        connection.sent.push_back((due, bytes.to_vec()));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
