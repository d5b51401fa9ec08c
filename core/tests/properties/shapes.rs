//! Observations of any shape: wholly arbitrary ones, and damaged ones of a cluster that was well.
//!
//! Identities come from small sets, so that equal ones meet; ages lie on both sides of every threshold.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wellcake_core::facts::*;
use wellcake_crds::v1beta1::{Profile, Topology};

/// The moment of every decision.
pub const NOW: Tick = Tick(1_000_000);

/// A spec with an observation and hints.
#[derive(Clone, Debug)]
pub struct Case {
    pub spec: SpecFacts,
    pub seen: Observation,
    pub hints: Hints,
}

/// A moment before (rarely after) the decision.
fn tick() -> impl Strategy<Value = Tick> + Clone {
    prop_oneof![
        6 => (0u64..1_500).prop_map(|age| Tick(NOW.0 - age)),
        3 => (1_500u64..70_000).prop_map(|age| Tick(NOW.0 - age)),
        1 => (0u64..5_000).prop_map(|ahead| Tick(NOW.0 + ahead)),
    ]
}

fn known<T: Copy + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Known<T>> {
    let seen = (tick(), value)
        .prop_map(|(at, value)| Stamped { at, value })
        .boxed();
    prop_oneof![
        1 => Just(Known::Absent),
        1 => (tick(), option::of(seen.clone())).prop_map(|(since, last)| Known::Maybe { since, last }),
        6 => seen.prop_map(Known::Seen),
    ]
}

fn replid() -> impl Strategy<Value = Replid> + Clone {
    prop_oneof![
        5 => Just(Replid(1)),
        3 => (2u16..5).prop_map(Replid),
        1 => Just(Replid(OVERFLOW)),
    ]
}

fn offset() -> impl Strategy<Value = Offset> + Clone {
    prop_oneof![
        1 => Just(Offset(0)),
        1 => Just(Offset(1)),
        6 => (990u64..1_010).prop_map(Offset),
        1 => any::<u64>().prop_map(Offset),
    ]
}

fn link() -> impl Strategy<Value = Link> + Clone {
    prop_oneof![
        Just(Link::Up),
        prop_oneof![Just(0u32), 1u32..40, any::<u32>()].prop_map(|seconds| Link::Down { seconds }),
        Just(Link::Never),
    ]
}

fn upstream() -> impl Strategy<Value = Upstream> + Clone {
    prop_oneof![
        1 => Just(Upstream::Nobody),
        5 => (0u8..5).prop_map(|n| Upstream::Pod(Ordinal(n))),
        1 => Just(Upstream::Other),
    ]
}

fn role() -> impl Strategy<Value = Role> + Clone {
    let replica =
        (upstream(), link(), prop::bool::weighted(0.2)).prop_map(|(upstream, link, syncing)| {
            Role::Replica {
                upstream,
                link,
                syncing,
            }
        });
    prop_oneof![1 => Just(Role::Primary), 5 => replica]
}

fn pod_uid(ordinal: u8) -> impl Strategy<Value = PodUid> + Clone {
    let own = u16::from(ordinal);
    prop_oneof![8 => Just(PodUid(own)), 2 => Just(PodUid(own + 40)), 1 => (0u16..5).prop_map(PodUid)]
}

fn server(ordinal: u8) -> impl Strategy<Value = ServerFacts> + Clone {
    let identity = (
        pod_uid(ordinal),
        (0u16..200, 0u64..3_000),
        prop_oneof![Just(Port::Fence), Just(Port::Client)],
        role(),
    );
    let data = (
        replid(),
        (option::of(replid()), 0u64..1_010),
        offset(),
        prop::bool::weighted(0.15),
        prop_oneof![2 => Just(0u32), 3 => 1u32..100, 1 => any::<u32>()],
        (
            prop_oneof![3 => 0u32..40, 1 => any::<u32>()],
            any::<bool>(),
            (any::<bool>(), directives()),
            (prop::bool::weighted(0.2), prop::bool::weighted(0.1)),
        ),
    );
    (identity, data).prop_map(
        |(
            (pod_uid, (run, age), port, role),
            (
                replid,
                (replid2, replid2_until),
                offset,
                loading,
                keys,
                (uptime, needs_replica, (has_replica, directives), (unfenced, other_users)),
            ),
        )| {
            ServerFacts {
                pod_uid,
                run: RunId(run),
                run_since: Tick(NOW.0 - age),
                port,
                role,
                replid,
                replid2,
                replid2_until: Offset(replid2_until),
                offset,
                loading,
                keys,
                uptime,
                needs_replica,
                has_replica,
                directives,
                rewriting: uptime % 7 == 3,
                major: 8 + u8::from(keys == 7),
                unfenced,
                other_users: unfenced && other_users,
            }
        },
    )
}

fn directives() -> impl Strategy<Value = Directives> + Clone {
    prop_oneof![
        6 => Just(Directives::Set),
        1 => Just(Directives::Unset),
        1 => Just(Directives::Due),
        1 => Just(Directives::Refused),
    ]
}

fn object(ordinal: u8) -> impl Strategy<Value = PodObject> + Clone {
    let container = prop_oneof![
        1 => Just(Container::Waiting),
        4 => any::<u16>().prop_map(|restarts| Container::Running { restarts }),
        1 => any::<u16>().prop_map(|restarts| Container::Terminated { restarts }),
    ];
    let label = prop_oneof![
        Just(RoleLabel::None),
        Just(RoleLabel::Primary),
        Just(RoleLabel::Replica)
    ];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.05));
    let revision = prop_oneof![
        6 => Just(Revision::Current),
        2 => Just(Revision::Outdated),
        1 => Just(Revision::RestartAsked),
        1 => Just(Revision::Unknown),
    ];
    let trouble = prop_oneof![
        8 => Just(None),
        1 => Just(Some(Trouble::NoNode)),
        1 => Just(Some(Trouble::Image)),
        1 => Just(Some(Trouble::Crashes)),
        1 => Just(Some(Trouble::Config)),
    ];
    let shape = (container, label, revision, trouble);
    (pod_uid(ordinal), shape, flags).prop_map(
        |(uid, (container, label, revision, trouble), (terminating, node_out_of_service))| {
            PodObject {
                uid,
                terminating,
                container,
                label,
                node_out_of_service,
                revision,
                trouble,
            }
        },
    )
}

fn claim(ordinal: u8) -> impl Strategy<Value = ClaimFacts> + Clone {
    let own = u16::from(ordinal);
    let uid = prop_oneof![5 => Just(ClaimUid(own)), 1 => Just(ClaimUid(own + 40))];
    let volume = prop_oneof![
        6 => Just(Volume::Enough),
        1 => Just(Volume::Growing),
        1 => Just(Volume::Smaller),
    ];
    (uid, any::<bool>(), volume).prop_map(|(uid, younger_than_cluster, volume)| ClaimFacts {
        uid,
        volume,
        younger_than_cluster,
    })
}

fn reach(ordinal: u8) -> impl Strategy<Value = Reachability> + Clone {
    let kept = prop_oneof![
        Just(Kept::Never),
        Just(Kept::Up),
        tick().prop_map(|at| Kept::Closed { at }).boxed(),
        tick().prop_map(|at| Kept::TimedOut { at }).boxed(),
    ];
    let fresh = prop_oneof![
        Just(Fresh::NotTried),
        tick().prop_map(|at| Fresh::Refused { at }).boxed(),
        tick().prop_map(|at| Fresh::TimedOut { at }).boxed(),
    ];
    (pod_uid(ordinal).boxed(), kept.boxed(), fresh.boxed())
        .prop_map(|(pod_uid, kept, fresh)| Reachability {
            pod_uid,
            kept,
            fresh,
        })
        .boxed()
}

fn pod(ordinal: u8) -> impl Strategy<Value = PodFacts> {
    (
        known(object(ordinal).boxed()),
        known(claim(ordinal).boxed()),
        known(server(ordinal).boxed()),
        option::of(reach(ordinal)),
        prop_oneof![20 => Just(Login::Fine), 1 => Just(Login::Denied), 1 => Just(Login::Open)],
    )
        .prop_map(|(object, claim, server, reach, login)| PodFacts {
            object,
            claim,
            server,
            reach,
            login,
        })
}

fn spec() -> impl Strategy<Value = SpecFacts> {
    let shape = (
        prop_oneof![12 => Just(Topology::Replication), 1 => Just(Topology::Standalone), 1 => Just(Topology::Cluster)],
        prop_oneof![Just(Profile::Cache), Just(Profile::Durable)],
        prop_oneof![1 => Just(1u8), 1 => Just(2u8), 4 => Just(3u8), 1 => 0u8..7],
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    );
    let asked = (
        option::weighted(0.05, Just(Unserved::Tls)),
        option::weighted(
            0.1,
            (0u8..4, 0u32..4).prop_map(|(pod, epoch)| PromoteOrder {
                pod: Ordinal(pod),
                epoch: Epoch(epoch),
            }),
        ),
        (
            prop::bool::weighted(0.1),
            prop_oneof![
                Just(Some(Target::Any)),
                (0u8..4).prop_map(|pod| Some(Target::Pod(Ordinal(pod)))),
                Just(Some(Target::Unknown)),
                Just(None),
            ],
        ),
        (
            prop::bool::weighted(0.05),
            prop::bool::weighted(0.3),
            prop::bool::weighted(0.1),
        ),
    );
    (shape, asked).prop_map(
        |(
            (topology, profile, pods, (aof, rdb, claims, needs_replica)),
            (unserved, promote, (requests, failover), (deleting, adopt, foreign_finalizer)),
        )| {
            SpecFacts {
                generation: 1,
                topology,
                profile,
                pods,
                persistence: Persistence {
                    aof,
                    rdb,
                    claims,
                    saves_at_end: aof || rdb,
                },
                needs_replica: needs_replica && profile == Profile::Durable,
                image_major: Some(8),
                replica_lag: 10,
                unserved,
                promote,
                failover: failover.filter(|_| requests),
                hibernate: requests && !deleting,
                adopt,
                foreign_finalizer,
                rotation_asked: requests,
                deleting,
            }
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    (
        prop_oneof![1u32..4, any::<u32>()],
        0u8..4,
        option::of(0u16..4),
        (option::of(replid()), option::of(replid())),
        option::weighted(0.3, (served(), any::<bool>())),
    )
        .prop_flat_map(|(epoch, pod, claim, (replid, continues), served)| {
            pod_uid(pod).prop_map(move |pod_uid| Record {
                epoch: Epoch(epoch),
                pod: Ordinal(pod),
                pod_uid,
                claim_uid: claim.map(ClaimUid),
                replid,
                continues,
                served: served.map(|(served, _)| served),
                planned: served.is_some_and(|(_, planned)| planned),
            })
        })
}

fn served() -> impl Strategy<Value = Served> + Clone {
    (0u8..4, option::of(0u16..4), option::of(replid())).prop_flat_map(|(pod, claim, replid)| {
        pod_uid(pod).prop_map(move |pod_uid| Served {
            pod: Ordinal(pod),
            pod_uid,
            claim_uid: claim.map(ClaimUid),
            replid,
        })
    })
}

fn objects() -> impl Strategy<Value = ObjectFacts> {
    let state = prop_oneof![
        12 => Just(ObjectState::Matches),
        1 => Just(ObjectState::Differs),
        1 => Just(ObjectState::Foreign),
        1 => Just(ObjectState::Superfluous),
        1 => Just(ObjectState::NotWanted),
        1 => Just(ObjectState::Theirs),
        1 => Just(ObjectState::TakenBack),
        1 => Just(ObjectState::Kept),
        1 => Just(ObjectState::RollAsked),
    ];
    let password = prop_oneof![
        8 => Just(PasswordSource::Usable),
        1 => Just(PasswordSource::SecretMissing),
        1 => Just(PasswordSource::KeyMissing),
        1 => Just(PasswordSource::Changed),
    ];
    let routes = (
        option::of((0u8..4).prop_map(Ordinal)),
        option::of((0u8..4).prop_map(Ordinal)),
    );
    (
        vec(known(state.boxed()), 8),
        routes,
        0u8..8,
        known(password.boxed()),
    )
        .prop_map(|(states, (client, primary), applied, password)| {
            let mut facts = ObjectFacts::unknown(NOW);
            for (object, state) in Object::ALL.into_iter().zip(states) {
                facts.set(object, state);
            }
            facts.client_route = client;
            facts.primary_route = primary;
            facts.replicas_applied = applied;
            facts.config_before = applied % 2 == 0;
            facts.password = password;
            facts
        })
}

fn hints() -> impl Strategy<Value = Hints> {
    let backoff =
        || (option::of(tick()), any::<u8>()).prop_map(|(at, failures)| Backoff { at, failures });
    let handover = option::of(tick());
    (backoff(), backoff(), backoff(), handover).prop_map(
        |(objects, pods, volumes, handover_failed_at)| Hints {
            objects,
            pods,
            volumes,
            handover_failed_at,
        },
    )
}

/// Any observation at all.
pub fn arbitrary() -> impl Strategy<Value = Case> {
    let pods = (0usize..6).prop_flat_map(|n| {
        (0..u8::try_from(n).unwrap_or(0))
            .map(pod)
            .collect::<Vec<_>>()
    });
    let markers = (
        option::of(tick()),
        option::of(offset()),
        option::of((reach(0), known(server(0)))),
    );
    (
        spec(),
        (option::of(record()), option::weighted(0.3, record())),
        markers,
        objects(),
        pods,
        hints(),
    )
        .prop_map(|(spec, records, markers, objects, pods, hints)| Case {
            spec,
            hints,
            seen: Observation {
                record: records.0,
                kept_record: records.1,
                primary_down_since: markers.0,
                primary_offset: markers.1,
                objects,
                pods: pods.into_iter().collect(),
                former: markers
                    .2
                    .into_iter()
                    .map(|(reach, server)| Former { reach, server })
                    .collect(),
                rival: false,
            },
        })
}

/// A cluster in which all is as the spec asks, whoever leads.
pub fn converged() -> impl Strategy<Value = Case> {
    (
        1u8..7,
        any::<prop::sample::Index>(),
        any::<bool>(),
        1_000u64..10_000,
        vec(0u64..1_500, 6),
    )
        .prop_map(|(pods, leader, durable, offset, ages)| {
            let leader = u8::try_from(leader.index(usize::from(pods))).unwrap_or(0);
            steady(pods, Ordinal(leader), durable, Offset(offset), &ages)
        })
}

fn steady(pods: u8, leader: Ordinal, durable: bool, offset: Offset, ages: &[u64]) -> Case {
    let spec = SpecFacts {
        generation: 1,
        topology: Topology::Replication,
        profile: if durable {
            Profile::Durable
        } else {
            Profile::Cache
        },
        pods,
        persistence: Persistence {
            aof: durable,
            rdb: durable,
            claims: true,
            saves_at_end: durable,
        },
        needs_replica: durable,
        replica_lag: 10,
        image_major: Some(8),
        unserved: None,
        promote: None,
        failover: None,
        hibernate: false,
        adopt: false,
        foreign_finalizer: false,
        rotation_asked: false,
        deleting: false,
    };
    let mut objects = ObjectFacts::unknown(NOW);
    for object in Object::ALL {
        objects.set(object, Known::seen(NOW, ObjectState::Matches));
    }
    objects.client_route = Some(leader);
    objects.primary_route = Some(leader);
    objects.replicas_applied = pods;
    objects.password = Known::seen(NOW, PasswordSource::Usable);
    let record = Record {
        epoch: Epoch(1),
        pod: leader,
        pod_uid: PodUid(u16::from(leader.0)),
        claim_uid: Some(ClaimUid(u16::from(leader.0))),
        replid: Some(Replid(1)),
        continues: None,
        served: None,
        planned: false,
    };
    let at = |n: u8| Tick(NOW.0 - ages.get(usize::from(n)).copied().unwrap_or(0));
    Case {
        spec,
        hints: Hints::default(),
        seen: Observation {
            record: Some(record),
            kept_record: Some(record),
            primary_down_since: None,
            primary_offset: Some(offset),
            objects,
            pods: (0..pods)
                .map(|n| steady_pod(n, leader, offset, at(n), durable && pods > 1))
                .collect(),
            former: Default::default(),
            rival: false,
        },
    }
}

fn steady_pod(n: u8, leader: Ordinal, offset: Offset, at: Tick, needs_replica: bool) -> PodFacts {
    let leads = n == leader.0;
    let uid = PodUid(u16::from(n));
    PodFacts {
        object: Known::seen(
            at,
            PodObject {
                uid,
                terminating: false,
                container: Container::Running { restarts: 0 },
                label: if leads {
                    RoleLabel::Primary
                } else {
                    RoleLabel::Replica
                },
                node_out_of_service: false,
                revision: Revision::Current,
                trouble: None,
            },
        ),
        claim: Known::seen(
            at,
            ClaimFacts {
                uid: ClaimUid(u16::from(n)),
                volume: Volume::Enough,
                younger_than_cluster: true,
            },
        ),
        server: Known::seen(
            at,
            ServerFacts {
                pod_uid: uid,
                run: RunId(u16::from(n)),
                run_since: Tick(NOW.0 - 1_000_000),
                port: Port::Client,
                role: if leads {
                    Role::Primary
                } else {
                    Role::Replica {
                        upstream: Upstream::Pod(leader),
                        link: Link::Up,
                        syncing: false,
                    }
                },
                replid: Replid(1),
                replid2: None,
                replid2_until: Offset(0),
                offset,
                loading: false,
                keys: 10,
                uptime: 1_000,
                needs_replica: leads && needs_replica,
                has_replica: leads && needs_replica,
                directives: Directives::Set,
                rewriting: false,
                major: 8,
                unfenced: false,
                other_users: false,
            },
        ),
        reach: Some(Reachability {
            pod_uid: uid,
            kept: Kept::Up,
            fresh: Fresh::NotTried,
        }),
        login: Login::Fine,
    }
}

/// A cluster that was well, with parts of it replaced by arbitrary ones.
pub fn damaged() -> impl Strategy<Value = Case> {
    let damage = |n: u8| {
        (
            option::weighted(0.3, known(object(n).boxed())),
            option::weighted(0.1, known(claim(n).boxed())),
            option::weighted(0.6, known(server(n).boxed())),
            option::weighted(0.3, option::of(reach(n))),
        )
    };
    let damages = (0..6).map(damage).collect::<Vec<_>>();
    let around = (
        option::weighted(0.3, spec()),
        option::weighted(0.3, option::of(record())),
        option::of(tick()),
        option::of(offset()),
        option::weighted(0.1, objects()),
        hints(),
    );
    (converged(), damages, around).prop_map(|(mut case, damages, around)| {
        for (pod, (object, claim, server, reach)) in case.seen.pods.iter_mut().zip(damages) {
            pod.object = object.unwrap_or(pod.object);
            pod.claim = claim.unwrap_or(pod.claim);
            pod.server = server.unwrap_or(pod.server);
            pod.reach = reach.unwrap_or(pod.reach);
        }
        let (spec, record, down, offset, objects, hints) = around;
        case.spec = spec.unwrap_or(case.spec);
        case.seen.record = record.unwrap_or(case.seen.record);
        case.seen.primary_down_since = down;
        case.seen.primary_offset = offset;
        case.seen.objects = objects.unwrap_or(case.seen.objects);
        case.hints = hints;
        case
    })
}

/// A cluster that was well and whose primary is silent, with at most one other pod replaced by an arbitrary one.
pub fn silent() -> impl Strategy<Value = Case> {
    let asked = (
        2_500u64..40_000,
        0u64..6_000,
        15_000u64..70_000,
        any::<bool>(),
    );
    let links = vec(prop_oneof![0u32..20, 10u32..40], 6);
    let damage = (0u8..6)
        .prop_flat_map(|n| (Just(n), known(object(n).boxed()), known(server(n).boxed())).boxed());
    (converged(), asked, links, option::weighted(0.5, damage)).prop_map(
        |(mut case, (since, tried, down, refused), links, damage)| {
            for (pod, seconds) in case.seen.pods.iter_mut().zip(links) {
                silence(pod, Tick(NOW.0 - since), Tick(NOW.0 - tried), refused);
                unlink(pod, seconds);
            }
            case.seen.primary_down_since = Some(Tick(NOW.0 - down));
            let damaged = damage.and_then(|(n, object, server)| {
                let pod = case.seen.pods.get_mut(usize::from(n))?;
                Some((pod, object, server))
            });
            if let Some((pod, object, server)) = damaged {
                (pod.object, pod.server) = (object, server);
            }
            case
        },
    )
}

fn silence(pod: &mut PodFacts, since: Tick, at: Tick, refused: bool) {
    let Known::Seen(mut last) = pod.server else {
        return;
    };
    if last.value.role != Role::Primary {
        return;
    }
    last.at = Tick(since.0.min(last.at.0));
    pod.server = Known::Maybe {
        since,
        last: Some(last),
    };
    if let Some(reach) = &mut pod.reach {
        reach.kept = Kept::TimedOut { at: since };
        reach.fresh = if refused {
            Fresh::Refused { at }
        } else {
            Fresh::TimedOut { at }
        };
    }
}

fn unlink(pod: &mut PodFacts, seconds: u32) {
    if let Known::Seen(answer) = &mut pod.server
        && let Role::Replica { link, .. } = &mut answer.value.role
    {
        *link = Link::Down { seconds };
    }
}

/// All kinds.
pub fn any_case() -> impl Strategy<Value = Case> {
    prop_oneof![1 => arbitrary().boxed(), 3 => damaged().boxed(), 1 => silent().boxed()]
}
