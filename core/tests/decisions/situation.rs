//! Hand-made observations: a healthy cluster of three that tests then damage.

use wellcake_core::effects::{Decision, Kind, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::step;
use wellcake_crds::v1beta1::{Profile, Topology};

/// The moment at which tests decide.
pub const NOW: Tick = Tick(1_000_000);
/// The history that the healthy cluster writes.
pub const HISTORY: Replid = Replid(1);

/// Spec and observation.
#[derive(Clone)]
pub struct Situation {
    pub spec: SpecFacts,
    pub seen: Observation,
    pub hints: Hints,
}

pub fn cache() -> SpecFacts {
    SpecFacts {
        generation: 1,
        topology: Topology::Replication,
        profile: Profile::Cache,
        pods: 3,
        persistence: Persistence {
            aof: false,
            rdb: false,
            claims: true,
            saves_at_end: false,
        },
        needs_replica: false,
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
    }
}

pub fn durable() -> SpecFacts {
    SpecFacts {
        profile: Profile::Durable,
        persistence: Persistence {
            aof: true,
            rdb: true,
            claims: true,
            saves_at_end: true,
        },
        ..cache()
    }
}

fn object(ordinal: u8) -> PodObject {
    PodObject {
        uid: PodUid(u16::from(ordinal)),
        terminating: false,
        container: Container::Running { restarts: 0 },
        label: if ordinal == 0 {
            RoleLabel::Primary
        } else {
            RoleLabel::Replica
        },
        node_out_of_service: false,
        revision: Revision::Current,
        trouble: None,
    }
}

/// A server that just booted behind the fence with nothing.
pub fn booted(ordinal: u8) -> ServerFacts {
    ServerFacts {
        pod_uid: PodUid(u16::from(ordinal)),
        run: RunId(100 + u16::from(ordinal)),
        run_since: Tick(NOW.0 - 10),
        port: Port::Fence,
        role: Role::Replica {
            upstream: Upstream::Nobody,
            link: Link::Never,
            syncing: false,
        },
        replid: Replid(50 + u16::from(ordinal)),
        replid2: None,
        replid2_until: Offset(0),
        offset: Offset(1),
        loading: false,
        keys: 0,
        uptime: 1,
        needs_replica: false,
        has_replica: false,
        directives: Directives::Set,
        rewriting: false,
        major: 8,
        unfenced: false,
        other_users: false,
    }
}

/// The primary of the healthy cluster.
pub fn primary(ordinal: u8) -> ServerFacts {
    ServerFacts {
        run: RunId(u16::from(ordinal)),
        port: Port::Client,
        role: Role::Primary,
        has_replica: true,
        replid: HISTORY,
        offset: Offset(1000),
        keys: 10,
        uptime: 1000,
        ..booted(ordinal)
    }
}

/// A synced replica of pod 0.
pub fn replica(ordinal: u8) -> ServerFacts {
    ServerFacts {
        role: Role::Replica {
            upstream: Upstream::Pod(Ordinal(0)),
            link: Link::Up,
            syncing: false,
        },
        ..primary(ordinal)
    }
}

fn pod(ordinal: u8, server: ServerFacts) -> PodFacts {
    PodFacts {
        object: Known::seen(NOW, object(ordinal)),
        claim: Known::seen(
            NOW,
            ClaimFacts {
                uid: ClaimUid(u16::from(ordinal)),
                volume: Volume::Enough,
                younger_than_cluster: true,
            },
        ),
        server: Known::seen(NOW, server),
        reach: Some(Reachability {
            pod_uid: PodUid(u16::from(ordinal)),
            kept: Kept::Up,
            fresh: Fresh::NotTried,
        }),
        login: Login::Fine,
    }
}

fn objects() -> ObjectFacts {
    let mut objects = ObjectFacts::unknown(NOW);
    for object in Object::ALL {
        objects.set(object, Known::seen(NOW, ObjectState::Matches));
    }
    objects.client_route = Some(Ordinal(0));
    objects.primary_route = Some(Ordinal(0));
    objects.replicas_applied = 3;
    objects.password = Known::seen(NOW, PasswordSource::Usable);
    objects
}

/// A cluster of three in which all is well.
pub fn healthy(spec: SpecFacts) -> Situation {
    let record = Record {
        epoch: Epoch(1),
        pod: Ordinal(0),
        pod_uid: PodUid(0),
        claim_uid: Some(ClaimUid(0)),
        replid: Some(HISTORY),
        continues: None,
        served: None,
        planned: false,
    };
    Situation {
        spec,
        seen: Observation {
            record: Some(record),
            kept_record: Some(record),
            primary_down_since: None,
            primary_offset: Some(Offset(1000)),
            objects: objects(),
            pods: [pod(0, primary(0)), pod(1, replica(1)), pod(2, replica(2))]
                .into_iter()
                .collect(),
            former: Default::default(),
            rival: false,
        },
        hints: Hints::default(),
    }
}

/// A new cluster whose three pods just booted.
pub fn fresh(spec: SpecFacts) -> Situation {
    let mut situation = healthy(spec);
    situation.seen.record = None;
    situation.seen.kept_record = None;
    situation.seen.primary_offset = None;
    for n in 0..3 {
        situation.serve(n, booted(n));
        situation.object(n, |o| o.label = RoleLabel::None);
    }
    situation
}

impl Situation {
    /// What the network says of a pod that is gone, whose server does not answer.
    pub fn former(&mut self, reach: Reachability) {
        self.seen.former.push(Former {
            reach,
            server: Known::unknown(NOW),
        });
    }

    pub fn decide(&self) -> Decision {
        step(&self.spec, &self.seen, &self.hints, NOW)
    }

    pub fn serve(&mut self, ordinal: u8, server: ServerFacts) {
        self.seen.pods[usize::from(ordinal)].server = Known::seen(NOW, server);
    }

    pub fn server(&mut self, ordinal: u8, change: impl FnOnce(&mut ServerFacts)) {
        match &mut self.seen.pods[usize::from(ordinal)].server {
            Known::Seen(stamped) => change(&mut stamped.value),
            other => panic!("server {ordinal} is {other:?}"),
        }
    }

    pub fn object(&mut self, ordinal: u8, change: impl FnOnce(&mut PodObject)) {
        match &mut self.seen.pods[usize::from(ordinal)].object {
            Known::Seen(stamped) => change(&mut stamped.value),
            other => panic!("pod {ordinal} is {other:?}"),
        }
    }

    /// The server does not answer since `ago` milliseconds.
    pub fn silence(&mut self, ordinal: u8, ago: u64) {
        let pod = &mut self.seen.pods[usize::from(ordinal)];
        pod.server = pod.server.failed(Tick(NOW.0 - ago));
        if let Some(reach) = &mut pod.reach {
            reach.kept = Kept::TimedOut {
                at: Tick(NOW.0 - ago),
            };
            reach.fresh = Fresh::TimedOut {
                at: Tick(NOW.0 - ago),
            };
        }
    }

    /// The process of a server was killed: its sockets were reset, its port refuses.
    pub fn kill(&mut self, ordinal: u8) {
        self.silence(ordinal, 20);
        if let Some(reach) = &mut self.seen.pods[usize::from(ordinal)].reach {
            reach.kept = Kept::Closed {
                at: Tick(NOW.0 - 20),
            };
            reach.fresh = Fresh::Refused {
                at: Tick(NOW.0 - 15),
            };
        }
    }

    /// Replicas report their link to the primary down.
    pub fn unlink(&mut self, ordinal: u8, seconds: u32) {
        self.server(ordinal, |s| {
            if let Role::Replica { link, .. } = &mut s.role {
                *link = Link::Down { seconds };
            }
        });
    }
}

/// A cluster that was well until its primary's pod, 0, became another one with uid 40, whose server waits behind the fence.
pub fn primary_pod_replaced(spec: SpecFacts) -> Situation {
    let mut s = healthy(spec);
    s.object(0, |o| o.uid = PodUid(40));
    s.serve(
        0,
        ServerFacts {
            pod_uid: PodUid(40),
            ..booted(0)
        },
    );
    s
}

/// A pod whose connection was closed and then refused, so many milliseconds ago.
pub const fn closed(pod_uid: PodUid, closed: u64, refused: u64) -> Reachability {
    Reachability {
        pod_uid,
        kept: Kept::Closed {
            at: Tick(NOW.0 - closed),
        },
        fresh: Fresh::Refused {
            at: Tick(NOW.0 - refused),
        },
    }
}

/// The pod that a decision promotes, if it promotes one.
pub fn promoted(decision: &Decision) -> Option<Ordinal> {
    decision.effects.iter().find_map(|e| match e.verb {
        Verb::Promote { pod } => Some(pod),
        _ => None,
    })
}

/// The record that a decision writes.
pub fn recorded(decision: &Decision) -> Option<Record> {
    decision.effects.iter().find_map(|e| match e.verb {
        Verb::RecordPrimary { record, .. } => Some(record),
        _ => None,
    })
}

/// The kinds of a decision's effects, in order.
pub fn kinds(decision: &Decision) -> Vec<Kind> {
    decision.effects.iter().map(|e| e.verb.kind()).collect()
}

pub fn waits_for(decision: &Decision, reason: Reason) -> bool {
    decision.waits.iter().any(|n| n.reason == reason)
}

pub fn refuses(decision: &Decision, reason: Reason) -> bool {
    decision.refusals.iter().any(|n| n.reason == reason)
}
