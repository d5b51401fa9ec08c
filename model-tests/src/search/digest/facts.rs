//! The part of a digest that is of the core's own types.

use wellcake_core::effects::{Effect, Guard, InSync, Verb};
use wellcake_core::facts::{
    ClaimFacts, Fresh, Kept, Known, Link, Offset, Ordinal, PodFacts, PodObject, PodUid,
    Reachability, Record, Role, Served, ServerFacts, SpecFacts, Stamped, Target, Upstream,
};

use super::{Digest, container};

impl Digest<'_> {
    pub(super) fn spec(&mut self, spec: &SpecFacts) {
        let SpecFacts {
            generation,
            topology: _,
            profile,
            pods,
            persistence: _,
            needs_replica,
            replica_lag: _,
            unserved: _,
            promote: _,
            failover,
            hibernate,
            rotation_asked: _,
            deleting: _,
            image_major: _,
            adopt,
            foreign_finalizer,
        } = spec;
        let failover = match failover {
            None => 0,
            Some(Target::Any) => 1,
            Some(Target::Unknown) => 2,
            Some(Target::Pod(Ordinal(pod))) => 3 + u64::from(*pod),
        };
        let flags = u64::from(*profile as u8)
            | u64::from(*needs_replica) << 2
            | u64::from(*hibernate) << 3
            | u64::from(*adopt) << 4
            | u64::from(*foreign_finalizer) << 5
            | u64::from(*pods) << 8
            | failover << 16;
        self.put(flags | (*generation as u64) << 32);
    }

    pub(super) fn record(&mut self, record: Option<&Record>) {
        let Some(record) = record else {
            return self.put(0);
        };
        let Record {
            epoch,
            pod,
            pod_uid,
            claim_uid,
            replid,
            continues,
            served,
            planned,
        } = record;
        let uid = self.name(pod_uid.0);
        let replid = self.maybe(replid.map(|id| id.0));
        let continues = self.maybe(continues.map(|id| id.0));
        let claim = claim_uid.map_or(0, |claim| u64::from(claim.0) + 1);
        let flags = 1
            | u64::from(*planned) << 1
            | u64::from(served.is_some()) << 2
            | u64::from(pod.0) << 8
            | claim << 16;
        self.pair(u64::from(epoch.0), flags);
        self.put(uid | replid << 20 | continues << 40);
        if let Some(Served {
            pod,
            pod_uid,
            claim_uid,
            replid,
        }) = served
        {
            let uid = self.name(pod_uid.0);
            let replid = self.maybe(replid.map(|id| id.0));
            let claim = claim_uid.map_or(0, |claim| u64::from(claim.0) + 1);
            self.pair(u64::from(pod.0) | claim << 8, 0);
            self.pair(uid, replid);
        }
    }

    pub(super) fn facts(&mut self, facts: &PodFacts) {
        let PodFacts {
            object,
            claim,
            server,
            reach,
            login,
        } = facts;
        self.put(*login as u64);
        self.known(object, |it, object| {
            let PodObject {
                uid,
                terminating,
                container: state,
                label,
                node_out_of_service,
                revision,
                trouble: _,
            } = object;
            let uid = it.name(uid.0);
            let flags = u64::from(*terminating)
                | u64::from(*node_out_of_service) << 1
                | (*label as u64) << 2
                | (*revision as u64) << 4;
            it.put(uid | flags << 20 | container(*state) << 32);
        });
        self.known(claim, |it, claim| {
            let ClaimFacts {
                uid,
                younger_than_cluster,
                volume,
            } = claim;
            it.put(
                u64::from(uid.0) | u64::from(*younger_than_cluster) << 16 | (*volume as u64) << 17,
            );
        });
        self.known(server, |it, server| it.server(server));
        self.reach(reach.as_ref());
    }

    pub(super) fn known<T>(&mut self, known: &Known<T>, value: impl FnOnce(&mut Self, &T)) {
        let last = match known {
            Known::Absent => return self.put(1),
            Known::Maybe { since, last } => {
                self.put(self.age(*since) << 3 | 2 | u64::from(last.is_some()));
                last.as_ref()
            }
            Known::Seen(stamped) => {
                self.put(4);
                Some(stamped)
            }
        };
        if let Some(Stamped { at, value: seen }) = last {
            self.put(self.age(*at));
            value(self, seen);
        }
    }

    pub(super) fn server(&mut self, server: &ServerFacts) {
        let ServerFacts {
            pod_uid,
            run,
            run_since,
            port,
            role,
            replid,
            replid2,
            replid2_until,
            offset,
            loading,
            keys,
            uptime,
            needs_replica,
            has_replica,
            directives,
            rewriting,
            major,
            unfenced,
            other_users,
        } = server;
        let (uid, run) = (self.name(pod_uid.0), self.name(run.0));
        let (replid, replid2) = (self.name(replid.0), self.maybe(replid2.map(|id| id.0)));
        let role = match role {
            Role::Primary => 0,
            Role::Replica {
                upstream,
                link,
                syncing,
            } => {
                let upstream = match upstream {
                    Upstream::Nobody => 1,
                    Upstream::Other => 2,
                    Upstream::Pod(Ordinal(pod)) => 3 + u64::from(*pod),
                };
                let link = match link {
                    Link::Up => 1,
                    Link::Never => 2,
                    Link::Down { seconds } => 3 + u64::from(*seconds),
                };
                1 | u64::from(*syncing) << 1 | upstream << 2 | link << 12
            }
        };
        let flags = u64::from(*port as u8)
            | u64::from(*loading) << 1
            | u64::from(*needs_replica) << 2
            | u64::from(*has_replica) << 3
            | (*directives as u64) << 4
            | u64::from(*major) << 6
            | u64::from(*unfenced) << 14
            | u64::from(*other_users) << 15
            | u64::from(*rewriting) << 16;
        self.put(uid | run << 20 | flags << 40);
        self.put(replid | replid2 << 20);
        self.put(u64::from(*keys));
        self.put(role);
        self.put(self.age(*run_since));
        self.put(replid2_until.0);
        self.put(offset.0);
        self.put(u64::from(*uptime));
    }

    pub(super) fn reach(&mut self, reach: Option<&Reachability>) {
        let Some(Reachability {
            pod_uid,
            kept,
            fresh,
        }) = reach
        else {
            return self.put(0);
        };
        let uid = self.name(pod_uid.0);
        let (kept, closed) = match kept {
            Kept::Never => (1, None),
            Kept::Up => (2, None),
            Kept::Closed { at } => (3, Some(*at)),
            Kept::TimedOut { at } => (4, Some(*at)),
        };
        let (fresh, failed) = match fresh {
            Fresh::NotTried => (0, None),
            Fresh::Refused { at } => (1, Some(*at)),
            Fresh::TimedOut { at } => (2, Some(*at)),
        };
        self.put(uid | kept << 20 | fresh << 24);
        if closed.is_some() || failed.is_some() {
            self.put(self.maybe_age(closed));
            self.put(self.maybe_age(failed));
        }
    }

    pub(super) fn effect(&mut self, effect: &Effect) {
        let Effect {
            verb,
            guard,
            reason,
        } = effect;
        let (pod, more) = match verb {
            Verb::SetRoute { route, pod } => (pod.0, *route as u64),
            Verb::RecordPrimary { record, serves } => {
                self.record(Some(record));
                (0, serves.map_or(0, |order| order as u64 + 1))
            }
            Verb::KeepRecord { record } => {
                self.record(Some(record));
                (0, 0)
            }
            Verb::MarkPrimaryDown { down } => (0, u64::from(*down)),
            Verb::SetLabel { pod, label } => (pod.0, *label as u64),
            Verb::Follow { pod, primary } | Verb::AwaitCopy { pod, primary } => {
                (pod.0, u64::from(primary.0))
            }
            Verb::ScaleIn { to } => (*to, 0),
            Verb::GrowVolume { pod, claim } => (pod.0, u64::from(claim.0)),
            Verb::NeedReplica { pod, needed } => (pod.0, u64::from(*needed)),
            Verb::Promote { pod }
            | Verb::StepDown { pod }
            | Verb::Open { pod }
            | Verb::PauseWrites { pod }
            | Verb::ResumeWrites { pod }
            | Verb::Evict { pod }
            | Verb::CloseClients { pod }
            | Verb::Configure { pod }
            | Verb::Fence { pod }
            | Verb::Detach { pod } => (pod.0, 0),
            Verb::Apply(object) | Verb::Delete(object) => (0, *object as u64),
            Verb::CreateCredentials
            | Verb::ReleaseFinalizer
            | Verb::GoBackToConfig
            | Verb::DeleteOldConfig => (0, 0),
        };
        let kind = verb.kind() as u64;
        self.put(kind | u64::from(pod) << 8 | more << 16 | (*reason as u64) << 40);
        self.guard(guard);
    }

    fn guard(&mut self, guard: &Guard) {
        let Guard {
            epoch,
            pod,
            run,
            replica,
            unfed,
            offset_floor,
            primary,
            copied,
            before,
            absent,
            in_sync,
            silent,
            gone,
            foremost,
        } = guard;
        let sync = match in_sync {
            InSync::NotAsked => 0,
            InSync::Others => 1,
            InSync::NotThisOne => 2,
            InSync::NotRunning => 3,
            InSync::Staying(count) => 4 + u64::from(*count),
        };
        let run = self.maybe(run.map(|run| run.0));
        let flags = replica.map_or(0, |replica| 1 + u64::from(replica))
            | u64::from(*unfed) << 2
            | u64::from(*copied) << 3
            | u64::from(*foremost) << 4
            | (*absent as u64) << 5
            | sync << 8;
        self.pair(
            flags | run << 16,
            epoch.map_or(0, |epoch| u64::from(epoch.0) + 1),
        );
        if let Some(Offset(floor)) = offset_floor {
            self.put(*floor);
        }
        for (place, named) in [pod, primary, before, silent, gone].into_iter().enumerate() {
            if let Some((Ordinal(pod), PodUid(uid))) = named {
                let uid = self.name(*uid);
                self.put(uid | u64::from(*pod) << 20 | (place as u64 + 1) << 40);
            }
        }
    }
}
