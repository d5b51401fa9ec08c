//! Replicas, ports, routes and labels around a primary that serves.

use wellcake_core::effects::{Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;

use crate::situation::*;

#[test]
fn a_booted_pod_is_attached_behind_the_fence_and_opened_only_when_in_sync() {
    let mut s = healthy(cache());
    s.serve(2, booted(2));
    assert_eq!(kinds(&s.decide()), [Kind::Follow, Kind::SetLabel]);
    s.serve(
        2,
        ServerFacts {
            port: Port::Fence,
            role: Role::Replica {
                upstream: Upstream::Pod(Ordinal(0)),
                link: Link::Up,
                syncing: false,
            },
            offset: Offset(0),
            ..replica(2)
        },
    );
    assert!(
        !kinds(&s.decide()).contains(&Kind::Open),
        "link up with offset 0 is not in sync"
    );
    s.serve(
        2,
        ServerFacts {
            port: Port::Fence,
            ..replica(2)
        },
    );
    assert!(kinds(&s.decide()).contains(&Kind::Open));
}

#[test]
fn a_second_primary_is_demoted_on_sight_and_its_clients_are_closed() {
    let mut s = healthy(cache());
    s.serve(1, primary(1));
    let decision = s.decide();
    let kinds = kinds(&decision);
    assert_eq!(kinds[..2], [Kind::Follow, Kind::CloseClients]);
    assert!(
        decision
            .effects
            .iter()
            .any(|e| e.reason == Reason::SecondPrimaryDemoted)
    );
}

#[test]
fn of_two_replicas_with_copies_only_one_is_repointed_at_a_time() {
    let mut s = healthy(cache());
    for n in [1, 2] {
        s.server(n, |server| {
            server.role = Role::Replica {
                upstream: Upstream::Other,
                link: Link::Down { seconds: 1 },
                syncing: false,
            };
        });
    }
    let follows = s
        .decide()
        .effects
        .iter()
        .filter(|e| e.verb.kind() == Kind::Follow)
        .count();
    assert_eq!(follows, 1);
}

#[test]
fn services_that_name_another_pod_are_moved_in_one_write_each() {
    let mut s = healthy(cache());
    s.seen.objects.client_route = Some(Ordinal(2));
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::SetRoute]);
    assert!(matches!(
        decision.effects[0].verb,
        Verb::SetRoute {
            pod: Ordinal(0),
            ..
        }
    ));
}

#[test]
fn a_new_history_of_the_same_primary_is_recorded_in_the_same_epoch() {
    let mut s = healthy(cache());
    for n in 0..3 {
        s.server(n, |server| server.replid = Replid(5));
    }
    let record = recorded(&s.decide()).expect("recorded");
    assert_eq!((record.epoch, record.replid), (Epoch(1), Some(Replid(5))));
}

#[test]
fn a_copy_whose_file_lacks_it_is_neither_opened_nor_handed_over_to() {
    let mut s = healthy(durable());
    s.server(1, |server| {
        server.port = Port::Fence;
        server.rewriting = true;
    });
    let decision = s.decide();
    assert!(!kinds(&decision).contains(&Kind::Open), "{decision:?}");
    assert!(waits_for(&decision, Reason::WaitingForFile));
    s.server(1, |server| server.rewriting = false);
    assert!(kinds(&s.decide()).contains(&Kind::Open));
    // One that is open and was copied once more is no target either.
    let mut s = healthy(durable());
    s.spec.failover = Some(Target::Any);
    s.server(1, |server| server.rewriting = true);
    assert_eq!(promoted(&s.decide()), Some(Ordinal(2)));
    s.server(2, |server| server.rewriting = true);
    assert_eq!(promoted(&s.decide()), None);
}
