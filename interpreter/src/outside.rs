//! What the interpreter reaches the world through beside the Kubernetes client: the network and the wall clock. A test gives it
//! others.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How servers are reached.
pub trait Network: Send + Sync {
    /// Connects to a port of an address. It waits for as long as there is no answer: the caller gives up.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// The network of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Tcp;

impl Network for Tcp {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            // Commands are small and wait for nobody.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// Network and wall clock.
#[derive(Clone)]
pub struct Outside {
    /// How servers are reached.
    pub network: Arc<dyn Network>,
    /// What the wall clock shows.
    pub wall: fn() -> Timestamp,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            network: Arc::new(Tcp),
            wall: Timestamp::now,
        }
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}
