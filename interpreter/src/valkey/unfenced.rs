//! Servers that the pod template of another operator started: they do not know this operator's user, and begin with their client
//! port open.
//!
//! This operator makes its user there with the rights of the default user, whose password is in the Secret of clients. It does so
//! in memory only: a process that restarts knows neither that user nor the replicas' password, so that replicas which were
//! admitted copy nothing from it before it is admitted, too.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;
use wellcake_core::facts::Login;
use wellcake_core::parse::Unfenced;
use wellcake_core::render::{self, CLIENT_PORT};
use wellcake_crds::names::{OPERATOR_USER, REPLICATION_USER, RESERVED_USERS};

use super::connection::{Failure, log_in, send};
use crate::outside::Network;

/// Tells whether the pod of a uid has an address, by the word of the API server at this moment.
pub type Resides = Arc<dyn Fn(String, IpAddr) -> BoxFuture<'static, bool> + Send + Sync>;

/// What it takes to be let in.
#[derive(Clone)]
pub struct Credentials {
    /// Password of clients; none where the spec says that there is none.
    pub clients: Option<Arc<str>>,
    /// Password of the replicas' user; a single server has none.
    pub replication: Option<Arc<str>>,
    /// Where pods are. A password may be another cluster's too, whose server got the address since.
    pub resides: Resides,
}

impl Credentials {
    /// Whether the passwords are the same.
    pub fn is_like(&self, other: &Self) -> bool {
        self.clients == other.clients && self.replication == other.replication
    }
}

/// The credentials, while a cluster may have such servers.
pub type Known = watch::Receiver<Option<Credentials>>;

/// Makes the operator's user on a server that does not know it.
///
/// # Errors
/// What stands against it.
pub async fn introduce(
    network: &dyn Network,
    (uid, address): (&str, IpAddr),
    operator: &str,
    credentials: &Credentials,
) -> Result<(), Login> {
    let user = credentials
        .clients
        .as_deref()
        .map(|password| ("default", password));
    let mut connection = match log_in(network, address, user).await {
        Ok(reached) => reached.0,
        Err(Failure::Denied) => return Err(Login::Denied),
        Err(_) => return Err(Login::Fine),
    };
    if user.is_some() && takes_anybody(&mut connection).await {
        return Err(Login::Open);
    }
    if !(credentials.resides)(uid.to_owned(), address).await {
        return Err(Login::Fine);
    }
    let mut set = redis::cmd("ACL");
    set.arg("SETUSER")
        .arg(OPERATOR_USER)
        .arg(render::operator_rules_unfenced(operator));
    match send::<()>(&mut connection, &set).await {
        Ok(()) => Ok(()),
        Err(Failure::Denied | Failure::Refusal) => Err(Login::Denied),
        Err(_) => Err(Login::Fine),
    }
}

/// Whether the default user needs no password: it takes any then.
async fn takes_anybody(connection: &mut MultiplexedConnection) -> bool {
    let mut auth = redis::cmd("AUTH");
    auth.arg("default").arg("not the password of anybody");
    send::<()>(connection, &auth).await.is_ok()
}

/// What is asked of such a server beside `INFO`.
pub async fn state(connection: &mut MultiplexedConnection) -> Result<Unfenced, Failure> {
    let mut announced = redis::cmd("CONFIG");
    announced.arg("GET").arg("replica-announce-port");
    let announced = answer::<Vec<String>>(connection, &announced).await?;
    let mut users = redis::cmd("ACL");
    users.arg("USERS");
    let users = answer::<Vec<String>>(connection, &users).await?;
    let port = CLIENT_PORT.to_string();
    Ok(Unfenced {
        admitted: announced.unwrap_or_default().get(1) == Some(&port),
        other_users: users
            .unwrap_or_default()
            .iter()
            .any(|user| !RESERVED_USERS.contains(&user.as_str())),
    })
}

/// The answer, or none where the server refuses one: that of a server whose user is of another kind.
async fn answer<T: redis::FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &redis::Cmd,
) -> Result<Option<T>, Failure> {
    match send(connection, command).await {
        Ok(answer) => Ok(Some(answer)),
        Err(why) if why.is_proof_of_life() => Ok(None),
        Err(why) => Err(why),
    }
}

/// Lets replicas of this operator's template and such that were admitted copy from the server, has it replicate as they do, and
/// marks it as admitted.
pub async fn admit(
    connection: &mut MultiplexedConnection,
    credentials: &Credentials,
) -> Result<(), Failure> {
    let Some(password) = credentials.replication.as_deref() else {
        return Err(Failure::Refusal);
    };
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER")
        .arg(REPLICATION_USER)
        .arg(render::replication_rules_beside(password));
    send::<()>(connection, &user).await?;
    let mut set = replicate_as(password);
    set.arg("replica-announce-port").arg(CLIENT_PORT);
    send(connection, &set).await
}

/// Has the server log in as this operator's replicas do, when it connects to a primary next.
pub async fn prepare(
    connection: &mut MultiplexedConnection,
    credentials: &Credentials,
) -> Result<(), Failure> {
    let Some(password) = credentials.replication.as_deref() else {
        return Err(Failure::Refusal);
    };
    send(connection, &replicate_as(password)).await
}

fn replicate_as(password: &str) -> redis::Cmd {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET")
        .arg("masteruser")
        .arg(REPLICATION_USER)
        .arg("masterauth")
        .arg(password);
    set
}
