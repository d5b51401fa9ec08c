//! A cluster that another operator of this API made.

use wellcake_core::effects::{Decision, Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::limits;
use wellcake_core::reasons::Reason;
use wellcake_core::status;

use crate::situation::*;

/// Long enough ago.
const LONG_AGO: Tick = Tick(NOW.0 - limits::TAKE_OVER_QUIET.0);

/// The primary of the other operator's cluster, as it is before it was admitted.
fn their_primary(ordinal: u8) -> ServerFacts {
    ServerFacts {
        port: Port::Fence,
        unfenced: true,
        ..primary(ordinal)
    }
}

/// A replica of it, which was told the primary by a name.
fn their_replica(ordinal: u8) -> ServerFacts {
    ServerFacts {
        role: Role::Replica {
            upstream: Upstream::Pod(Ordinal(0)),
            link: Link::Up,
            syncing: false,
        },
        ..their_primary(ordinal)
    }
}

/// Their objects and servers, with the first object taken and a person's word.
fn theirs(spec: SpecFacts) -> Situation {
    let mut s = healthy(SpecFacts {
        adopt: true,
        ..spec
    });
    s.seen.record = None;
    s.seen.kept_record = None;
    s.seen.primary_offset = None;
    s.seen.objects.client_route = None;
    s.seen.objects.primary_route = None;
    for object in Object::ALL {
        s.seen
            .objects
            .set(object, Known::seen(NOW, ObjectState::Theirs));
    }
    let ours = Known::seen(LONG_AGO, ObjectState::Matches);
    s.seen.objects.set(Object::Credentials, ours);
    s.seen.objects.set(Object::Config, Known::Absent);
    s.seen.objects.set(Object::HeadlessService, ours);
    s.serve(0, their_primary(0));
    s.serve(1, their_replica(1));
    s.serve(2, their_replica(2));
    s
}

/// The same before anything was done.
fn untouched(spec: SpecFacts) -> Situation {
    let mut s = theirs(spec);
    let state = Known::seen(LONG_AGO, ObjectState::Theirs);
    s.seen.objects.set(Object::HeadlessService, state);
    s.seen.objects.set(Object::Credentials, Known::Absent);
    for pod in &mut s.seen.pods {
        pod.server = Known::unknown(NOW);
    }
    s
}

/// After it was taken over, with their template kept.
fn taken() -> Situation {
    let mut s = healthy(SpecFacts {
        adopt: true,
        ..cache()
    });
    let kept = Known::seen(NOW, ObjectState::Kept);
    s.seen.objects.set(Object::StatefulSet, kept);
    for n in 0..3 {
        s.server(n, |server| server.unfenced = true);
    }
    s
}

fn verbs(decision: &Decision) -> Vec<Verb> {
    decision.effects.iter().map(|e| e.verb).collect()
}

#[test]
fn without_a_persons_word_nothing_is_done_and_the_way_is_named() {
    let mut s = untouched(cache());
    s.spec.adopt = false;
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::MadeByOtherOperator));
    // Nor if the servers could be seen.
    let mut s = theirs(cache());
    s.spec.adopt = false;
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
}

#[test]
fn what_is_not_served_is_not_taken_over() {
    let mut s = theirs(cache());
    s.spec.unserved = Some(Unserved::Metrics);
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::FieldNotServed));
}

#[test]
fn one_service_is_taken_first_and_watched_before_anything_else() {
    let mut s = untouched(cache());
    let decision = s.decide();
    let first = [
        Verb::CreateCredentials,
        Verb::Apply(Object::HeadlessService),
    ];
    assert_eq!(verbs(&decision), first);
    let mut s2 = theirs(cache());
    let young = Tick(LONG_AGO.0 + 1_000);
    let ours = Known::seen(young, ObjectState::Matches);
    s2.seen.objects.set(Object::HeadlessService, ours);
    let decision = s2.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(waits_for(&decision, Reason::TakingOver));
    assert_eq!(decision.wake, Some(Tick(NOW.0 + 1_000)));
    s.seen.objects.replicas_applied = 4;
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::AdoptionPodsDiffer));
}

#[test]
fn where_the_first_object_is_missing_it_is_made_and_watched() {
    let mut s = theirs(cache());
    s.seen.objects.set(Object::HeadlessService, Known::Absent);
    let decision = s.decide();
    assert_eq!(verbs(&decision), [Verb::Apply(Object::HeadlessService)]);
    assert_eq!(decision.effects[0].reason, Reason::ObjectCreated);
    assert!(waits_for(&decision, Reason::TakingOver));
}

#[test]
fn an_operator_that_takes_the_first_object_back_is_named_and_nothing_else_is_taken() {
    for (since, again) in [(NOW, false), (LONG_AGO, true)] {
        let mut s = theirs(cache());
        let back = Known::seen(since, ObjectState::TakenBack);
        s.seen.objects.set(Object::HeadlessService, back);
        let decision = s.decide();
        assert!(refuses(&decision, Reason::AnotherOperatorActs));
        let wanted: &[Verb] = if again {
            &[Verb::Apply(Object::HeadlessService)]
        } else {
            &[]
        };
        assert_eq!(verbs(&decision), wanted, "{since:?}");
    }
}

#[test]
fn the_primary_that_all_follow_is_recorded_and_nothing_is_sent_to_a_server() {
    let mut s = theirs(cache());
    // A later volume than the ValkeyCluster's is no matter.
    s.seen.primary_down_since = None;
    let decision = s.decide();
    assert_eq!(kinds(&decision), [Kind::RecordPrimary], "{decision:?}");
    let record = recorded(&decision).expect("a record");
    assert_eq!((record.epoch, record.pod), (Epoch(1), Ordinal(0)));
    assert_eq!((record.replid, record.served), (Some(HISTORY), None));
    assert_eq!(decision.effects[0].reason, Reason::PrimaryTakenOver);
    // Epochs go on where the claims know of later ones.
    let kept = Record {
        epoch: Epoch(7),
        ..record
    };
    s.seen.kept_record = Some(kept);
    assert_eq!(recorded(&s.decide()).map(|r| r.epoch), Some(Epoch(8)));
}

#[test]
fn the_primary_need_not_be_pod_0() {
    let mut s = theirs(cache());
    s.serve(0, their_replica(0));
    s.serve(2, their_primary(2));
    assert_eq!(recorded(&s.decide()).map(|r| r.pod), Some(Ordinal(2)));
}

#[test]
fn nobody_is_recorded_while_it_is_not_clear_whose_data_counts() {
    type Damage = fn(&mut Situation);
    let table: [(&str, Damage, Option<Reason>, Option<Reason>); 8] = [
        (
            "two primaries",
            |s| s.serve(1, their_primary(1)),
            None,
            Some(Reason::AdoptionPrimaryUnclear),
        ),
        (
            "no primary",
            |s| s.serve(0, their_replica(0)),
            None,
            Some(Reason::AdoptionPrimaryUnclear),
        ),
        (
            "one is not seen",
            |s| s.silence(2, 100),
            Some(Reason::WaitingForPods),
            None,
        ),
        (
            "one is about to go",
            |s| s.object(1, |o| o.terminating = true),
            Some(Reason::WaitingForPods),
            None,
        ),
        (
            "one has no link",
            |s| s.unlink(1, 3),
            Some(Reason::WaitingForSync),
            None,
        ),
        (
            "one follows another history",
            |s| s.server(2, |server| server.replid = Replid(9)),
            Some(Reason::WaitingForSync),
            None,
        ),
        (
            "one loads",
            |s| s.server(0, |server| server.loading = true),
            Some(Reason::WaitingForLoad),
            None,
        ),
        (
            "one does not know the password",
            |s| s.seen.pods[1].login = Login::Denied,
            None,
            Some(Reason::AdoptionPasswordUnknown),
        ),
    ];
    for (what, damage, waits, refused) in table {
        let mut s = theirs(cache());
        damage(&mut s);
        let decision = s.decide();
        assert!(decision.effects.is_empty(), "{what}: {decision:?}");
        if let Some(reason) = waits {
            assert!(waits_for(&decision, reason), "{what}: {decision:?}");
        }
        if let Some(reason) = refused {
            assert!(refuses(&decision, reason), "{what}: {decision:?}");
        }
    }
}

#[test]
fn servers_that_let_everybody_in_are_not_given_a_password() {
    let mut s = theirs(cache());
    s.seen.pods[0].login = Login::Open;
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::AdoptionPasswordMissing));
}

#[test]
fn a_person_says_whose_data_counts_where_nobody_can_tell() {
    let mut s = theirs(cache());
    s.serve(1, their_primary(1));
    s.spec.promote = Some(PromoteOrder {
        pod: Ordinal(1),
        epoch: Epoch(0),
    });
    assert_eq!(recorded(&s.decide()).map(|r| r.pod), Some(Ordinal(1)));
    // Not before it is known that nobody else acts.
    s.spec.adopt = false;
    assert!(s.decide().effects.is_empty());
}

#[test]
fn once_it_is_recorded_the_primary_is_admitted_and_gets_the_traffic_and_the_rest_is_taken() {
    let mut s = theirs(cache());
    s.seen.record = recorded(&s.decide());
    let decision = s.decide();
    let wanted = [
        Verb::Open { pod: Ordinal(0) },
        Verb::SetRoute {
            route: wellcake_core::effects::Route::Client,
            pod: Ordinal(0),
        },
    ];
    assert_eq!(verbs(&decision)[..2], wanted, "{decision:?}");
    let taken = verbs(&decision);
    for object in [
        Object::StatefulSet,
        Object::ReplicasService,
        Object::DisruptionBudget,
    ] {
        assert!(taken.contains(&Verb::Apply(object)), "{object:?}");
    }
    let is_harm = |e: &&wellcake_core::effects::Effect| {
        matches!(
            e.verb,
            Verb::Evict { .. } | Verb::Promote { .. } | Verb::Follow { .. }
        )
    };
    assert_eq!(decision.effects.iter().find(is_harm), None);
    assert_eq!(decision.effects[0].reason, Reason::ServerAdmitted);
}

#[test]
fn replicas_are_admitted_when_in_sync_and_else_re_pointed_first() {
    let mut s = taken();
    s.serve(1, their_replica(1));
    s.serve(2, their_replica(2));
    s.server(2, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Other,
            link: Link::Up,
            syncing: false,
        };
    });
    let wanted = [
        Verb::Follow {
            pod: Ordinal(2),
            primary: Ordinal(0),
        },
        Verb::Open { pod: Ordinal(1) },
    ];
    assert_eq!(verbs(&s.decide()), wanted);
}

#[test]
fn a_template_that_is_kept_rolls_nothing_and_is_told() {
    let mut s = taken();
    // Such as after a restart of the StatefulSet by somebody, or a roll that the other operator had begun.
    for n in 0..3 {
        s.object(n, |o| o.revision = Revision::Outdated);
    }
    let decision = s.decide();
    assert_eq!(decision, Decision::default());
    let told = status::facts(&s.spec, &s.seen, &decision, NOW);
    assert!(told.ready_condition.0 && told.available.0 && told.unfenced);
    s.seen.objects.set(
        Object::StatefulSet,
        Known::seen(NOW, ObjectState::RollAsked),
    );
    let decision = s.decide();
    assert_eq!(verbs(&decision), [Verb::Apply(Object::StatefulSet)]);
    assert_eq!(decision.effects[0].reason, Reason::TemplateReplaced);
}

#[test]
fn the_file_that_no_pod_of_a_kept_template_has_follows_at_once() {
    let mut s = taken();
    let differs = Known::seen(NOW, ObjectState::Differs);
    s.seen.objects.set(Object::Config, differs);
    for n in 0..3 {
        s.server(n, |server| server.directives = Directives::Unset);
    }
    assert_eq!(verbs(&s.decide()), [Verb::Apply(Object::Config)]);
}

#[test]
fn users_that_the_roll_would_take_away_stop_it() {
    let mut s = taken();
    let asked = Known::seen(NOW, ObjectState::RollAsked);
    s.seen.objects.set(Object::StatefulSet, asked);
    s.server(0, |server| server.other_users = true);
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::UsersWouldBeLost));
}

#[test]
fn after_the_roll_was_asked_for_one_pod_at_a_time_goes_and_the_primary_hands_over() {
    let mut s = taken();
    s.seen
        .objects
        .set(Object::StatefulSet, Known::seen(NOW, ObjectState::Matches));
    for n in 0..3 {
        s.object(n, |o| o.revision = Revision::RestartAsked);
    }
    assert_eq!(verbs(&s.decide()), [Verb::Evict { pod: Ordinal(2) }]);
    // Pod 2 is back behind the fence.
    s.serve(2, booted(2));
    s.object(2, |o| o.revision = Revision::Current);
    assert!(!kinds(&s.decide()).contains(&Kind::Evict));
    for n in [1, 2] {
        s.serve(n, replica(n));
        s.object(n, |o| o.revision = Revision::Current);
    }
    let decision = s.decide();
    let begins = [Kind::RecordPrimary, Kind::PauseWrites];
    assert_eq!(kinds(&decision)[..2], begins, "{decision:?}");
    assert!(promoted(&decision).is_some());
}

/// What their template makes of pod 0 when it restarts: a primary with an open port, and nothing of what was acknowledged.
fn began_by_itself() -> ServerFacts {
    ServerFacts {
        run: RunId(77),
        replid: Replid(77),
        keys: 0,
        offset: Offset(0),
        uptime: 0,
        has_replica: false,
        ..their_primary(0)
    }
}

#[test]
fn a_primary_that_began_by_itself_takes_no_writes_and_a_copy_leads() {
    let mut s = taken();
    s.serve(0, began_by_itself());
    s.unlink(1, 0);
    s.unlink(2, 0);
    let decision = s.decide();
    let first = [Kind::Fence, Kind::MarkPrimaryDown];
    assert_eq!(kinds(&decision), first, "{decision:?}");
    // Then it is what a server is that boots behind the fence.
    s.server(0, |server| {
        server.role = Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            syncing: false,
        };
    });
    let decision = s.decide();
    assert_eq!(promoted(&decision), Some(Ordinal(1)), "{decision:?}");
    assert!(!verbs(&decision).contains(&Verb::Open { pod: Ordinal(0) }));
}

#[test]
fn a_replica_that_began_by_itself_as_a_primary_is_made_a_replica_and_its_clients_go() {
    let mut s = taken();
    let record = s.seen.record.as_mut().expect("a record");
    (record.pod, record.pod_uid, record.claim_uid) = (Ordinal(1), PodUid(1), Some(ClaimUid(1)));
    s.seen.objects.client_route = Some(Ordinal(1));
    s.seen.objects.primary_route = Some(Ordinal(1));
    s.serve(
        1,
        ServerFacts {
            unfenced: true,
            ..primary(1)
        },
    );
    s.serve(0, began_by_itself());
    let decision = s.decide();
    let wanted = [
        Verb::Follow {
            pod: Ordinal(0),
            primary: Ordinal(1),
        },
        Verb::CloseClients { pod: Ordinal(0) },
    ];
    assert_eq!(verbs(&decision)[..2], wanted, "{decision:?}");
}

#[test]
fn a_single_server_is_taken_over_as_it_is() {
    use wellcake_crds::v1beta1::Topology;
    let mut s = theirs(SpecFacts {
        topology: Topology::Standalone,
        pods: 1,
        ..durable()
    });
    s.seen.objects.replicas_applied = 1;
    s.seen.pods.truncate(1);
    s.server(0, |server| server.port = Port::Client);
    let nothing = Known::seen(NOW, ObjectState::NotWanted);
    s.seen.objects.set(Object::ReplicasService, nothing);
    s.seen.objects.set(Object::PrimaryService, nothing);
    let decision = s.decide();
    let verbs = verbs(&decision);
    assert!(
        verbs.contains(&Verb::Apply(Object::StatefulSet)),
        "{verbs:?}"
    );
    let applied = verbs.iter().all(|verb| matches!(verb, Verb::Apply(_)));
    assert!(applied, "{verbs:?}");
    s.silence(0, 100);
    assert!(s.decide().effects.is_empty());
}

#[test]
fn a_single_server_that_is_not_ours_is_not_sent_to_sleep() {
    use wellcake_crds::v1beta1::Topology;
    let mut s = theirs(SpecFacts {
        topology: Topology::Standalone,
        pods: 1,
        hibernate: true,
        ..durable()
    });
    s.spec.adopt = false;
    s.seen.pods.truncate(1);
    s.server(0, |server| server.port = Port::Client);
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(refuses(&decision, Reason::MadeByOtherOperator));
}

#[test]
fn what_began_by_itself_counts_by_the_snapshot_that_it_loaded() {
    // All restarted. Pod 0 had loaded the recorded history up to 900 and took writes of its own since; pod 1 holds it up to 800.
    let rdb = Persistence {
        aof: false,
        rdb: true,
        claims: true,
        saves_at_end: true,
    };
    let mut s = taken();
    s.spec.persistence = rdb;
    let loaded = |ordinal: u8| ServerFacts {
        unfenced: true,
        uptime: 60,
        keys: 10,
        ..booted(ordinal)
    };
    let own = ServerFacts {
        replid2: Some(HISTORY),
        replid2_until: Offset(900),
        offset: Offset(5_000),
        ..loaded(0)
    };
    let other = |offset| ServerFacts {
        replid: HISTORY,
        offset: Offset(offset),
        ..loaded(1)
    };
    for (offset, leads) in [(800, 0), (950, 1)] {
        s.serve(0, own);
        s.serve(1, other(offset));
        s.serve(
            2,
            ServerFacts {
                keys: 0,
                ..loaded(2)
            },
        );
        let decision = s.decide();
        assert_eq!(promoted(&decision), Some(Ordinal(leads)), "{decision:?}");
    }
}

#[test]
fn who_is_promoted_on_their_template_is_admitted_at_once() {
    let mut s = taken();
    s.serve(
        0,
        ServerFacts {
            unfenced: true,
            ..booted(0)
        },
    );
    for n in [1, 2] {
        s.server(n, |server| server.port = Port::Fence);
        s.unlink(n, 0);
    }
    let decision = s.decide();
    // Those that were not admitted stand still first.
    assert_eq!(
        kinds(&decision)[..2],
        [Kind::Fence, Kind::Fence],
        "{decision:?}"
    );
    for n in [1, 2] {
        s.server(n, |server| {
            server.role = Role::Replica {
                upstream: Upstream::Nobody,
                link: Link::Down { seconds: 0 },
                syncing: false,
            };
        });
    }
    let decision = s.decide();
    let wanted = [Kind::RecordPrimary, Kind::Promote, Kind::Open];
    assert_eq!(kinds(&decision)[..3], wanted, "{decision:?}");
}

#[test]
fn their_finalizer_goes_when_all_is_taken_over_and_not_before() {
    let mut s = theirs(cache());
    s.spec.foreign_finalizer = true;
    assert!(!verbs(&s.decide()).contains(&Verb::ReleaseFinalizer));
    let mut s = taken();
    s.spec.foreign_finalizer = true;
    assert_eq!(verbs(&s.decide()), [Verb::ReleaseFinalizer]);
    s.spec.deleting = true;
    assert_eq!(verbs(&s.decide()), [Verb::ReleaseFinalizer]);
    s.spec.adopt = false;
    assert!(s.decide().effects.is_empty());
}
