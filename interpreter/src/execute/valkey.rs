//! Effects on servers. Each goes over the connection from which the facts came that its guard was checked against.

use std::net::IpAddr;
use std::sync::Arc;

use wellcake_core::render::CLIENT_PORT;

use super::Failure;
use crate::clock::Clock;
use crate::valkey::{Connection, Server};

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `REPLICAOF NO ONE`.
    Promote,
    /// `REPLICAOF` this address.
    Follow(IpAddr),
    /// `CONFIG SET port 6379`.
    Open,
    /// `CLIENT KILL TYPE normal`.
    CloseClients,
}

/// Sends a command and reads the server again over the same connection, so that the next decision sees what became of it.
pub async fn send(
    server: &Arc<Server>,
    mut connection: Connection,
    command: Command,
    clock: &Clock,
) -> Result<(), Failure> {
    match command {
        Command::Promote => connection.promote().await?,
        Command::Follow(primary) => connection.follow(primary).await?,
        Command::Open => connection.open().await?,
        Command::CloseClients => {
            let closed = connection.close_clients().await?;
            tracing::info!(
                pod_uid = server.uid,
                closed,
                port = CLIENT_PORT,
                "closed connections of clients"
            );
        }
    }
    // The command was done; that the look after it fails is seen by the task that asks this server.
    let _ = server.read(&mut connection, clock).await;
    Ok(())
}
