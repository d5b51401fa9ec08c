//! One connection to one server.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError, ServerErrorKind};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wellcake_core::parse::Info;
use wellcake_core::render::{CLIENT_PORT, FENCE_PORT, NOBODY};
use wellcake_crds::names::OPERATOR_USER;

use super::unfenced;
use crate::outside::{Network, Stream};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_millis(500);
/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_millis(1_000);

/// Characters of an error reply that are told.
const LONGEST_REFUSAL: usize = 300;

/// Why a server gave no answer that can be used. No text of a reply is kept: it could quote a command with a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// Both ports refused, or there is no way to the address.
    #[error("the address refuses connections")]
    Refused,
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The other side ended the connection.
    #[error("the server ended the connection")]
    Closed,
    /// The password is not (or no more) the server's.
    #[error("the server does not know the operator's user, or has another password for it")]
    Denied,
    /// A script or a function blocks the server.
    #[error("a script blocks the server")]
    Busy,
    /// The server loads its data and does not take this command meanwhile.
    #[error("the server is loading its data")]
    Loading,
    /// Some other error reply: the server lives.
    #[error("the server refused the command")]
    Refusal,
    /// The reply makes no sense.
    #[error("the server's reply cannot be read")]
    Unreadable,
}

impl Failure {
    /// Name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Closed => "closed",
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Loading => "loading",
            Self::Refusal => "error_reply",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether a living server said so.
    pub const fn is_proof_of_life(self) -> bool {
        !matches!(self, Self::Refused | Self::TimedOut | Self::Closed)
    }

    fn of(error: &RedisError) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Self::Denied;
        }
        if error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error() {
            return Self::Closed;
        }
        match (error.kind(), error.code()) {
            (_, Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => Self::Denied,
            (_, Some("BUSY")) => Self::Busy,
            (ErrorKind::Server(ServerErrorKind::BusyLoading), _) | (_, Some("LOADING")) => {
                Self::Loading
            }
            (ErrorKind::Server(_) | ErrorKind::Extension, _) => Self::Refusal,
            _ => Self::Unreadable,
        }
    }
}

/// An authenticated connection.
#[derive(Clone)]
pub struct Connection {
    inner: MultiplexedConnection,
    ended: CancellationToken,
    credentials: Option<unfenced::Known>,
    unfenced: bool,
}

/// A connection that was just made.
pub struct Reached {
    /// It.
    pub connection: Connection,
    /// How many connections of the operator's user the server ended before, as the fence against an older leader.
    pub fenced: u64,
}

/// What a new connection does to the others of the operator's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Ends them: an older leader that does not know yet that it is none must not be heard after this.
    Others,
    /// Leaves them.
    None,
}

/// Connects to a server on its client port and on its fence port at once and takes what answers first, logs in, and does to
/// other connections of the operator's user on that server what `fence` says.
pub async fn connect(
    network: &dyn Network,
    address: IpAddr,
    password: &str,
    fence: Fence,
) -> Result<Reached, Failure> {
    let (inner, ended) = log_in(network, address, Some((OPERATOR_USER, password))).await?;
    let mut connection = Connection {
        inner,
        ended,
        credentials: None,
        unfenced: false,
    };
    let fenced = match fence {
        Fence::Others => {
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL")
                .arg("USER")
                .arg(OPERATOR_USER)
                .arg("SKIPME")
                .arg("yes");
            connection.send(&kill).await?
        }
        Fence::None => 0,
    };
    Ok(Reached { connection, fenced })
}

/// Connects, and logs in as a user, if one is given.
pub async fn log_in(
    network: &dyn Network,
    address: IpAddr,
    user: Option<(&str, &str)>,
) -> Result<(MultiplexedConnection, CancellationToken), Failure> {
    let stream = timeout(CONNECT, reach(network, address))
        .await
        .map_err(|_| Failure::TimedOut)??;
    let ended = CancellationToken::new();
    let watched = Watched {
        stream,
        ended: ended.clone(),
    };
    let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some((name, password)) = user {
        info = info.set_username(name).set_password(password);
    }
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None);
    let logged_in = MultiplexedConnection::new_with_config(&info, watched, config);
    let (inner, driver) = timeout(ANSWER, logged_in)
        .await
        .map_err(|_| Failure::TimedOut)?
        .map_err(|why| Failure::of(&why))?;
    let over = ended.clone();
    tokio::spawn(async move {
        driver.await;
        over.cancel();
    });
    Ok((inner, ended))
}

/// Connects to either port.
async fn reach(network: &dyn Network, address: IpAddr) -> Result<Box<dyn Stream>, Failure> {
    let client = open(network, SocketAddr::new(address, CLIENT_PORT));
    let fence = open(network, SocketAddr::new(address, FENCE_PORT));
    let (mut client, mut fence) = (std::pin::pin!(client), std::pin::pin!(fence));
    tokio::select! {
        first = &mut client => match first {
            Ok(stream) => Ok(stream),
            Err(first) => fence.await.map_err(|second| first.or(second)),
        },
        first = &mut fence => match first {
            Ok(stream) => Ok(stream),
            Err(first) => client.await.map_err(|second| first.or(second)),
        },
    }
}

impl Failure {
    /// Of two ports: refused only if both are.
    const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Refused, Self::Refused) => Self::Refused,
            _ => Self::TimedOut,
        }
    }
}

async fn open(network: &dyn Network, address: SocketAddr) -> Result<Box<dyn Stream>, Failure> {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    let stream = network.connect(address).await;
    stream.map_err(|why| match why.kind() {
        ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable => {
            Failure::Refused
        }
        _ => Failure::TimedOut,
    })
}

impl Connection {
    /// Comes when the connection has ended, at once when the other side ends it.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Where it is found what it takes to admit a server that another operator's template started.
    pub fn admits_with(&mut self, credentials: unfenced::Known) {
        self.credentials = Some(credentials);
    }

    /// What it takes to admit this server, if that is needed.
    fn credentials(&self) -> Result<Option<unfenced::Credentials>, Failure> {
        if !self.unfenced {
            return Ok(None);
        }
        let known = self.credentials.as_ref();
        let found = known.and_then(|known| known.borrow().clone());
        found.map(Some).ok_or(Failure::Refusal)
    }

    /// What the server says of itself, in one round trip; one that another operator's template started is asked twice more.
    pub async fn info(&mut self) -> Result<Arc<Info>, Failure> {
        let mut ask = redis::cmd("INFO");
        ask.arg("server")
            .arg("replication")
            .arg("persistence")
            .arg("keyspace");
        let text: String = self.send(&ask).await?;
        let mut info = Info::parse(&text).map_err(|_| Failure::Unreadable)?;
        self.unfenced = info.unfenced.is_some();
        if self.unfenced {
            info.unfenced = Some(unfenced::state(&mut self.inner).await?);
        }
        Ok(Arc::new(info))
    }

    /// `REPLICAOF NO ONE`.
    pub async fn promote(&mut self) -> Result<(), Failure> {
        self.send(redis::cmd("REPLICAOF").arg("NO").arg("ONE"))
            .await
    }

    /// `REPLICAOF` an address, client port.
    pub async fn follow(&mut self, primary: IpAddr) -> Result<(), Failure> {
        if let Some(credentials) = self.credentials()? {
            unfenced::prepare(&mut self.inner, &credentials).await?;
        }
        self.send(
            redis::cmd("REPLICAOF")
                .arg(primary.to_string())
                .arg(CLIENT_PORT),
        )
        .await
    }

    /// `REPLICAOF` the address of nobody, as at its start.
    pub async fn step_down(&mut self) -> Result<(), Failure> {
        let (host, port) = NOBODY;
        self.send(redis::cmd("REPLICAOF").arg(host).arg(port)).await
    }

    /// Opens the client port and closes the fence port; this connection stays (measured: 0.3 ms). A server that began with it
    /// open is admitted.
    pub async fn open(&mut self) -> Result<(), Failure> {
        if let Some(credentials) = self.credentials()? {
            return unfenced::admit(&mut self.inner, &credentials).await;
        }
        self.send(redis::cmd("CONFIG").arg("SET").arg("port").arg(CLIENT_PORT))
            .await
    }

    /// Has the server take writes, as a primary, only while a replica acknowledges, or always.
    pub async fn need_replica(&mut self, needed: bool) -> Result<(), Failure> {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET")
            .arg("min-replicas-to-write")
            .arg(u8::from(needed));
        self.send(&set).await
    }

    /// Sets directives, all or none (`config.c: configSetCommand`). What the server says if it refuses them: it names one of them,
    /// and no value.
    pub async fn configure(
        &mut self,
        directives: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Failure> {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET");
        for (name, value) in directives {
            set.arg(name).arg(value);
        }
        let answer = timeout(ANSWER, set.query_async::<()>(&mut self.inner));
        match answer.await.map_err(|_| Failure::TimedOut)? {
            Ok(()) => Ok(None),
            Err(why) if Failure::of(&why) == Failure::Refusal => {
                let said = why.detail().unwrap_or("the values are not accepted");
                Ok(Some(said.chars().take(LONGEST_REFUSAL).collect()))
            }
            Err(why) => Err(Failure::of(&why)),
        }
    }

    /// Has the server take no writes for a time, and hold them back meanwhile.
    pub async fn pause_writes(&mut self, time: Duration) -> Result<(), Failure> {
        let mut pause = redis::cmd("CLIENT");
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        pause.arg("PAUSE").arg(millis).arg("WRITE");
        self.send(&pause).await
    }

    /// Ends such a pause.
    pub async fn resume_writes(&mut self) -> Result<(), Failure> {
        self.send(redis::cmd("CLIENT").arg("UNPAUSE")).await
    }

    /// Ends the connections of clients.
    pub async fn close_clients(&mut self) -> Result<u64, Failure> {
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL")
            .arg("TYPE")
            .arg("normal")
            .arg("SKIPME")
            .arg("yes");
        self.send(&kill).await
    }

    async fn send<T: redis::FromRedisValue>(&mut self, command: &redis::Cmd) -> Result<T, Failure> {
        send(&mut self.inner, command).await
    }
}

/// Sends a command.
pub async fn send<T: redis::FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &redis::Cmd,
) -> Result<T, Failure> {
    let answer = timeout(ANSWER, command.query_async(connection));
    let answered = answer.await.map_err(|_| Failure::TimedOut)?;
    answered.map_err(|why| Failure::of(&why))
}

/// A stream that tells when the other side ends it. The client library reads all the time, also when nothing is asked, so
/// that the end is noticed within the time of a wake-up.
struct Watched {
    stream: Box<dyn Stream>,
    ended: CancellationToken,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buf.filled().len(), buf.remaining());
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let over = match &polled {
            Poll::Ready(Ok(())) => room > 0 && buf.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if over {
            self.ended.cancel();
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
