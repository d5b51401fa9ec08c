//! One connection to one server.

use std::time::{Duration, Instant};

use wellcake_core::parse::InfoRole;
use wellcake_core::render::CLIENT_PORT;
use wellcake_interpreter::outside::Tcp;
use wellcake_interpreter::valkey::{Connection, Failure, Fence, connect};

use crate::process::{PASSWORD, Process};

async fn reach(process: &Process) -> Connection {
    connect(&Tcp, process.address, PASSWORD, Fence::Others)
        .await
        .map(|reached| reached.connection)
        .expect("the server answers")
}

async fn role(connection: &mut Connection) -> InfoRole {
    connection.info().await.expect("INFO").role.clone()
}

#[tokio::test]
async fn the_end_of_a_killed_server_is_seen_within_50_ms() {
    let mut process = Process::start(CLIENT_PORT, "");
    let connection = reach(&process).await;
    assert!(!connection.has_ended());
    process.kill();
    let begun = Instant::now();
    tokio::time::timeout(Duration::from_millis(50), connection.ended())
        .await
        .expect("seen in time");
    println!("seen after {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_killed_server_refuses_at_once() {
    let mut process = Process::start(CLIENT_PORT, "");
    process.kill();
    let begun = Instant::now();
    let failure = connect(&Tcp, process.address, PASSWORD, Fence::Others)
        .await
        .err();
    assert_eq!(failure, Some(Failure::Refused));
    assert!(
        begun.elapsed() < Duration::from_millis(50),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_fenced_server_is_found_and_its_connection_outlives_the_opening() {
    let process = Process::fenced();
    let mut connection = reach(&process).await;
    assert_eq!(connection.info().await.expect("INFO").tcp_port, Some(6399));
    connection.open().await.expect("opens");
    assert_eq!(
        connection.info().await.expect("INFO").tcp_port,
        Some(CLIENT_PORT)
    );
    let mut other = reach(&process).await;
    assert_eq!(
        other.info().await.expect("INFO").tcp_port,
        Some(CLIENT_PORT)
    );
}

#[tokio::test]
async fn roles_are_given_with_the_rights_of_the_rendered_user() {
    let (first, second) = (Process::fenced(), Process::fenced());
    let (mut primary, mut replica) = (reach(&first).await, reach(&second).await);
    primary.promote().await.expect("promoted");
    primary.open().await.expect("opened");
    assert_eq!(role(&mut primary).await, InfoRole::Primary);
    replica.follow(first.address).await.expect("follows");
    let begun = Instant::now();
    loop {
        if let InfoRole::Replica(upstream) = role(&mut replica).await
            && upstream.link_up
        {
            assert_eq!(upstream.host, first.address.to_string());
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the link does not come up"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let good = async |primary: &mut Connection| {
        let info = primary.info().await.expect("answers");
        info.good_replicas
    };
    // Its first acknowledgement comes within a second.
    while !primary.info().await.expect("answers").has_replica() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "no acknowledgement"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(good(&mut primary).await, None);
    primary.need_replica(true).await.expect("set");
    assert_eq!(good(&mut primary).await, Some(1));
    primary.need_replica(false).await.expect("set");
    assert_eq!(good(&mut primary).await, None);
    primary.close_clients().await.expect("closes clients");
    assert!(!primary.has_ended(), "the operator's own connection stays");
}

#[tokio::test]
async fn a_new_leader_is_the_only_one_that_is_heard() {
    let process = Process::fenced();
    let mut older = reach(&process).await;
    let newer = connect(&Tcp, process.address, PASSWORD, Fence::Others)
        .await
        .expect("the server answers");
    assert_eq!(newer.fenced, 1);
    tokio::time::timeout(Duration::from_millis(100), older.ended())
        .await
        .expect("ended");
    assert_eq!(older.promote().await, Err(Failure::Closed));
    let mut newer = newer.connection;
    assert!(matches!(role(&mut newer).await, InfoRole::Replica(_)));
}

#[tokio::test]
async fn a_wrong_password_is_a_sign_of_life() {
    let process = Process::start(CLIENT_PORT, "");
    let failure = connect(&Tcp, process.address, "wrong", Fence::Others)
        .await
        .err();
    assert_eq!(failure, Some(Failure::Denied));
    assert!(Failure::Denied.is_proof_of_life());
}

#[tokio::test]
async fn a_server_that_hangs_is_silent_and_not_refused() {
    let listener =
        std::net::TcpListener::bind("127.78.0.1:6379").expect("an address of the test's own");
    let address = listener.local_addr().expect("bound").ip();
    let failure = connect(&Tcp, address, PASSWORD, Fence::Others).await.err();
    assert_eq!(failure, Some(Failure::TimedOut));
}
