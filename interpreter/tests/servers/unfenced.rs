//! Servers as another operator's template starts them: with its users, and with their client port open.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use wellcake_core::facts::Login;
use wellcake_core::parse::{Info, InfoRole};
use wellcake_interpreter::outside::Tcp;
use wellcake_interpreter::valkey::unfenced::{Credentials, introduce};
use wellcake_interpreter::valkey::{Connection, Failure, Fence, connect};

use crate::process::{CLIENTS, PASSWORD, Process, REPLICAS};

fn credentials(clients: Option<&str>, resides: bool) -> Credentials {
    Credentials {
        clients: clients.map(Arc::from),
        replication: Some(Arc::from(REPLICAS)),
        resides: Arc::new(move |_: String, _: IpAddr| Box::pin(async move { resides })),
    }
}

async fn let_in(process: &Process) -> Connection {
    let whom = ("uid", process.address);
    let known = credentials(Some(CLIENTS), true);
    introduce(&Tcp, whom, PASSWORD, &known)
        .await
        .expect("let in");
    let reached = connect(&Tcp, process.address, PASSWORD, Fence::Others).await;
    let mut connection = reached.expect("the server answers").connection;
    connection.admits_with(watch::Sender::new(Some(known)).subscribe());
    // What is sent to a server is decided on what it said.
    info(&mut connection).await;
    connection
}

async fn info(connection: &mut Connection) -> Arc<Info> {
    connection.info().await.expect("INFO")
}

fn admitted(info: &Info) -> Option<bool> {
    info.unfenced.map(|state| state.admitted)
}

/// Waits until a server says this of itself.
async fn until(connection: &mut Connection, what: &str, wanted: impl Fn(&Info) -> bool) {
    let begun = Instant::now();
    while !wanted(&*info(connection).await) {
        assert!(begun.elapsed() < Duration::from_secs(10), "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_linked(info: &Info) -> bool {
    matches!(&info.role, InfoRole::Replica(upstream) if upstream.link_up)
}

#[tokio::test]
async fn the_operator_is_let_in_by_the_password_of_clients_and_told_from_its_own_kind() {
    let process = Process::of_another_operator("");
    let denied = connect(&Tcp, process.address, PASSWORD, Fence::Others).await;
    assert_eq!(denied.err(), Some(Failure::Denied));
    let mut connection = let_in(&process).await;
    let told = info(&mut connection).await;
    assert_eq!(admitted(&told), Some(false));
    assert_eq!(told.unfenced.map(|state| state.other_users), Some(false));
    let ours = Process::fenced();
    let reached = connect(&Tcp, ours.address, PASSWORD, Fence::Others).await;
    let mut ours = reached.expect("answers").connection;
    assert_eq!(info(&mut ours).await.unfenced, None);
}

#[tokio::test]
async fn who_cannot_be_let_in_is_told_why() {
    let process = Process::of_another_operator("");
    let whom = ("uid", process.address);
    let table = [
        (credentials(Some("wrong"), true), Login::Denied),
        (credentials(None, true), Login::Denied),
        // Its address may be another cluster's by now, with the same password.
        (credentials(Some(CLIENTS), false), Login::Fine),
    ];
    for (known, why) in table {
        assert_eq!(introduce(&Tcp, whom, PASSWORD, &known).await, Err(why));
        let denied = connect(&Tcp, process.address, PASSWORD, Fence::Others).await;
        assert_eq!(denied.err(), Some(Failure::Denied));
    }
    let open = Process::of_another_operator("user default on nopass ~* &* +@all\n");
    let whom = ("uid", open.address);
    let known = credentials(Some(CLIENTS), true);
    assert_eq!(
        introduce(&Tcp, whom, PASSWORD, &known).await,
        Err(Login::Open)
    );
    let known = credentials(None, true);
    assert_eq!(introduce(&Tcp, whom, PASSWORD, &known).await, Ok(()));
}

#[tokio::test]
async fn admitted_replicas_copy_nothing_from_a_server_that_began_by_itself_until_it_is_admitted() {
    let mut first = Process::of_another_operator("");
    let second = Process::of_another_operator("");
    let (mut primary, mut replica) = (let_in(&first).await, let_in(&second).await);
    let mut client = first.client().await;
    client.set("key", "value").await;
    // As the other operator has it.
    second.client().await.follow(first.address).await;
    until(&mut replica, "linked", is_linked).await;
    primary.open().await.expect("admitted");
    replica.follow(first.address).await.expect("re-pointed");
    until(&mut replica, "linked again", is_linked).await;
    replica.open().await.expect("admitted");
    for connection in [&mut primary, &mut replica] {
        assert_eq!(admitted(&*info(connection).await), Some(true));
    }
    let history = info(&mut primary).await.replid.clone();
    // It restarts empty, with an open port, in the same place: without a fence the replica would be wiped.
    first.kill();
    first.restart(wellcake_core::render::CLIENT_PORT);
    let mut primary = let_in(&first).await;
    let begun = info(&mut primary).await;
    assert_eq!(
        admitted(&begun),
        Some(false),
        "a process knows nothing of the one before"
    );
    assert_eq!((begun.keys, &begun.role), (0, &InfoRole::Primary));
    assert_ne!(begun.replid, history);
    let watched = Instant::now();
    while watched.elapsed() < Duration::from_secs(3) {
        let told = info(&mut replica).await;
        assert_eq!(told.keys, 1, "it was wiped");
        assert!(!is_linked(&told));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    replica.promote().await.expect("promoted");
    primary.follow(second.address).await.expect("follows");
    until(&mut primary, "a copy", |info| {
        is_linked(info) && info.keys == 1
    })
    .await;
    primary.open().await.expect("admitted");
    assert_eq!(
        second.client().await.get("key").await.as_deref(),
        Some("value")
    );
}

#[tokio::test]
async fn servers_of_both_templates_replicate_from_each_other() {
    let (theirs, ours) = (Process::of_another_operator(""), Process::fenced());
    let mut old = let_in(&theirs).await;
    theirs.client().await.set("key", "value").await;
    old.open().await.expect("admitted");
    let reached = connect(&Tcp, ours.address, PASSWORD, Fence::Others).await;
    let mut new = reached.expect("answers").connection;
    new.follow(theirs.address).await.expect("follows");
    until(&mut new, "a copy", |info| is_linked(info) && info.keys == 1).await;
    // The handover at the end of the roll.
    old.step_down().await.expect("steps down");
    new.promote().await.expect("promoted");
    new.open().await.expect("opened");
    old.follow(ours.address).await.expect("follows");
    until(&mut old, "a copy", |info| is_linked(info) && info.keys == 1).await;
}

#[tokio::test]
async fn users_that_were_made_on_it_are_seen() {
    let process = Process::of_another_operator("");
    let mut connection = let_in(&process).await;
    process.client().await.make_user("somebody").await;
    let told = info(&mut connection).await;
    assert_eq!(told.unfenced.map(|state| state.other_users), Some(true));
}
