//! Observations of a cluster that was well: as it was, damaged, or with a primary that went silent.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wellcake_core::facts::*;
use wellcake_crds::v1beta1::{Profile, Topology};

use crate::shapes::{
    Case, NOW, arbitrary, claim, hints, known, object, objects, offset, reach, record, server,
    spec, tick,
};

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
