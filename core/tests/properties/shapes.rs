//! Observations of any shape.
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
pub fn tick() -> impl Strategy<Value = Tick> + Clone {
    prop_oneof![
        6 => (0u64..1_500).prop_map(|age| Tick(NOW.0 - age)),
        3 => (1_500u64..70_000).prop_map(|age| Tick(NOW.0 - age)),
        1 => (0u64..5_000).prop_map(|ahead| Tick(NOW.0 + ahead)),
    ]
}

pub fn known<T: Copy + std::fmt::Debug + 'static>(
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

pub fn offset() -> impl Strategy<Value = Offset> + Clone {
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

pub fn server(ordinal: u8) -> impl Strategy<Value = ServerFacts> + Clone {
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

pub fn object(ordinal: u8) -> impl Strategy<Value = PodObject> + Clone {
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

pub fn claim(ordinal: u8) -> impl Strategy<Value = ClaimFacts> + Clone {
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

pub fn reach(ordinal: u8) -> impl Strategy<Value = Reachability> + Clone {
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

pub fn spec() -> impl Strategy<Value = SpecFacts> {
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

pub fn record() -> impl Strategy<Value = Record> {
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

pub fn objects() -> impl Strategy<Value = ObjectFacts> {
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

pub fn hints() -> impl Strategy<Value = Hints> {
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
