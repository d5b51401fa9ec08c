//! Effects on servers. Each goes over the connection from which the facts came that its guard was checked against.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use wellcake_core::limits;
use wellcake_core::render::CLIENT_PORT;

use super::Failure;
use crate::clock::Clock;
use crate::observe::Sent;
use crate::valkey::{Connection, Server};

/// Pause between two looks at a replica that catches up.
const CATCH_UP_PAUSE: Duration = Duration::from_millis(1);

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `REPLICAOF NO ONE`.
    Promote,
    /// `REPLICAOF` this address.
    Follow(IpAddr),
    /// `REPLICAOF` the address of nobody.
    StepDown,
    /// `CONFIG SET port 6379`.
    Open,
    /// `CLIENT PAUSE`, writes.
    PauseWrites,
    /// `CLIENT UNPAUSE`.
    ResumeWrites,
    /// Nothing but a look, until it has come this far: [`CATCH_UP_PAUSE`] between two looks.
    Await(u64),
    /// `CONFIG SET min-replicas-to-write`, 1 or 0.
    NeedReplica(bool),
    /// `CLIENT KILL TYPE normal`.
    CloseClients,
    /// `CONFIG SET` of these directives.
    Configure(Sent),
}

/// Sends a command and reads the server again over the same connection, so that the next decision sees what became of it.
pub async fn send(
    server: &Arc<Server>,
    mut connection: Connection,
    command: Command,
    clock: &Clock,
) -> Result<(), Failure> {
    if let Command::Await(offset) = command {
        return await_offset(server, connection, offset, clock).await;
    }
    server.commands();
    let done = order(server, &mut connection, &command).await;
    // An error reply says that it was not done; anything else says nothing.
    if done.as_ref().is_err_and(|why| !why.is_proof_of_life()) {
        server.doubt(clock.now());
    }
    done?;
    if server.read(&mut connection, clock).await.is_err() {
        server.doubt(clock.now());
    }
    Ok(())
}

async fn order(
    server: &Server,
    connection: &mut Connection,
    command: &Command,
) -> Result<(), crate::valkey::Failure> {
    match command {
        Command::Promote => connection.promote().await,
        Command::Follow(primary) => connection.follow(*primary).await,
        Command::StepDown => connection.step_down().await,
        Command::Open => connection.open().await,
        Command::NeedReplica(needed) => connection.need_replica(*needed).await,
        Command::PauseWrites => {
            let time = Duration::from_millis(limits::HANDOVER_PAUSE.0);
            connection.pause_writes(time).await
        }
        Command::ResumeWrites => connection.resume_writes().await,
        Command::CloseClients => {
            let closed = connection.close_clients().await?;
            tracing::info!(
                pod_uid = server.uid,
                closed,
                port = CLIENT_PORT,
                "closed connections of clients"
            );
            Ok(())
        }
        Command::Configure(directives) => {
            let refused = connection.configure(directives).await?;
            let is_refused = refused.is_some();
            server.was_configured(directives, refused);
            if is_refused {
                return Err(crate::valkey::Failure::Refusal);
            }
            Ok(())
        }
        // A look and no command.
        Command::Await(_) => Ok(()),
    }
}

async fn await_offset(
    server: &Arc<Server>,
    mut connection: Connection,
    offset: u64,
    clock: &Clock,
) -> Result<(), Failure> {
    let until = clock.now().after(limits::HANDOVER_CATCH_UP);
    loop {
        server.read(&mut connection, clock).await?;
        let answer = server.snapshot().answer;
        if answer.is_some_and(|answer| answer.info.offset() >= offset) {
            return Ok(());
        }
        if clock.now() >= until {
            return Err(Failure::Vanished("the replica did not catch up in time"));
        }
        tokio::time::sleep(CATCH_UP_PAUSE).await;
    }
}
