//! What people do by hand.

use wellcake_core::facts::{
    Epoch, Object, ObjectState, Ordinal, PasswordSource, PodUid, PromoteOrder, Record, RunId,
};

use super::kind::Kind;
use crate::servers::Command;
use crate::world::World;

impl World {
    /// `kubectl drain`: an eviction, which the disruption budget (at most one pod away) allows only while all other pods are
    /// ready ("API-initiated eviction").
    pub(super) fn drain(&mut self, n: usize) {
        let others = self
            .pods
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != n);
        let ready = others
            .take(usize::from(self.replicas))
            .all(|(_, pod)| pod.is_in_sync());
        let Some(pod) = self.pods.get_mut(n).filter(|pod| pod.exists && ready) else {
            return;
        };
        if !pod.terminating {
            pod.terminating = true;
            self.fired(Kind::NodeDrained);
        }
    }

    /// `REPLICAOF` on a replica, to another pod. What that overwrites is the person's doing.
    pub(super) fn follow_by_hand(&mut self, n: usize, of: usize) {
        let Some(addr) = self
            .pods
            .get(of)
            .filter(|pod| pod.exists)
            .map(|pod| pod.addr)
        else {
            return;
        };
        let Some(uid) = self.pods.get(n).filter(|pod| pod.exists).map(|pod| pod.uid) else {
            return;
        };
        let Some(process) = self
            .process(n)
            .filter(|it| !it.primary && it.frozen.is_none())
        else {
            return;
        };
        if n == of || process.is_loading() {
            return;
        }
        process.ails_mut().by_hand = true;
        // A person gives nobody this operator's password.
        let password = process.unfenced.map(|it| it.with_our_password);
        self.send(uid, Command::Follow(addr));
        let unfenced = self.process(n).and_then(|it| it.unfenced.as_mut());
        if let (Some(unfenced), Some(password)) = (unfenced, password) {
            unfenced.with_our_password = password;
        }
        self.fired(Kind::ReplicaofByHand);
    }

    /// `FAILOVER TO` a replica: the primary pauses writes until the replica has everything, which then leads and is followed
    /// (`replication.c: failoverCommand`). Nothing is lost.
    pub(super) fn fail_over_by_hand(&mut self, n: usize) {
        let replica = self.pods.get(n).filter(|pod| pod.exists && !pod.cut);
        let Some((uid, addr)) = replica.map(|pod| (pod.uid, pod.addr)) else {
            return;
        };
        let Some(process) = self.process(n).map(|it| &*it).cloned() else {
            return;
        };
        let follows = process.linked && !process.syncing && process.frozen.is_none();
        let primary = self.pods.iter().find(|pod| {
            let runs = pod.process.as_ref();
            let leads = runs.is_some_and(|it| {
                it.primary && it.frozen.is_none() && Some(it.run) == process.fed_by
            });
            pod.exists && leads && process.upstream == Some(pod.addr)
        });
        let primary = primary.and_then(|pod| Some((pod.uid, pod.process.clone()?)));
        let Some((before, leader)) = primary.filter(|_| follows && !process.is_paused(self.now))
        else {
            return;
        };
        if self.is_pod(n, |it| it.stream_cut) || !leader.data.streams_to(&process.data) {
            return;
        }
        let mut data = process.data.clone();
        data.continue_from(&leader.data);
        if let Some(process) = self.process(n) {
            process.data = data;
        }
        self.promote(uid, leader.epoch);
        self.send(before, Command::Follow(addr));
        self.fired(Kind::FailoverByHand);
    }

    /// A server that leads already acknowledges under the epoch of the record that names it.
    pub(crate) fn acknowledges_under(&mut self, record: Record) {
        if self.faults.is_none() {
            return;
        }
        if let Some(process) = self.process_of(record.pod_uid).filter(|it| it.primary) {
            process.epoch = record.epoch.0;
        }
    }

    /// Whether a person ordered the promotion of an epoch. The order says that the primary before has ended, and that what the
    /// ordered pod lacks may be lost: where that is not so, it is the person's doing, and only the operator's own rules are judged.
    pub(crate) fn is_ordered(&self, epoch: Option<Epoch>) -> bool {
        let ordered = self.faults.as_deref().and_then(|faults| faults.ordered);
        ordered.is_some() && ordered == epoch
    }

    /// What other primaries acknowledge after a promotion by order is lost, and the person's doing.
    pub(crate) fn leave_others_behind(&mut self, winner: PodUid) {
        let others: Vec<RunId> = self
            .processes()
            .filter(|(uid, process)| *uid != winner && process.primary)
            .map(|(_, process)| process.run)
            .collect();
        for run in others {
            self.left_behind.insert(run, false);
        }
    }

    /// `kubectl scale statefulset`: its controller deletes the pods beyond, the last one first, whoever they are ("StatefulSets",
    /// section "Deployment and scaling guarantees").
    pub(super) fn scale_by_hand(&mut self, to: u8) {
        if to == self.replicas || self.made_elsewhere {
            return;
        }
        self.replicas = to;
        for n in usize::from(to)..self.pods.len() {
            if let Some(pod) = self.pods.get_mut(n).filter(|pod| pod.exists) {
                pod.terminating = true;
            }
        }
        // The operator asks for no fewer than the spec does; more are left until it takes them away in order.
        if to < self.spec.pods && !self.spec.hibernate {
            *self.faults_mut().object(Object::StatefulSet) = Some(ObjectState::Differs);
        }
        self.fired(Kind::ScaledByHand);
    }

    /// `kubectl delete` of an object that is made again: not of the StatefulSet, with which all pods would go, nor of the passwords.
    pub(super) fn delete_object(&mut self, object: Object) {
        if matches!(object, Object::StatefulSet | Object::Credentials) {
            return;
        }
        let faults = self.faults_mut();
        if !matches!(faults.object(object), Some(ObjectState::Matches)) {
            return;
        }
        *faults.object(object) = None;
        match object {
            Object::ClientService => self.api.routes[0] = None,
            Object::PrimaryService => self.api.routes[1] = None,
            _ => {}
        }
        self.fired(Kind::ObjectDeleted);
    }

    /// `kubectl edit` of an object; a disruption budget is switched off in the spec.
    pub(super) fn change_object(&mut self, object: Object) {
        if self.made_elsewhere {
            return;
        }
        let faults = self.faults_mut();
        if !matches!(faults.object(object), Some(ObjectState::Matches)) {
            return;
        }
        *faults.object(object) = Some(match object {
            Object::DisruptionBudget => ObjectState::Superfluous,
            _ => ObjectState::Differs,
        });
        self.fired(Kind::ObjectChanged);
    }

    /// An object under a name that the cluster needs is somebody else's.
    pub(super) fn take_name(&mut self, object: Object) {
        if matches!(object, Object::StatefulSet | Object::Credentials) || self.made_elsewhere {
            return;
        }
        self.delete_object(object);
        *self.faults_mut().object(object) = Some(ObjectState::Foreign);
        self.fired(Kind::ObjectForeign);
    }

    /// A person does something to the Secret with the password. Servers that run keep theirs.
    pub(super) fn touch_password(&mut self, state: PasswordSource) {
        self.faults_mut().password = state;
        if state != PasswordSource::Usable {
            self.fired(Kind::PasswordChanged);
        }
    }

    /// The annotation `valkey.wellcake.io/promote`. What the ordered pod lacks is the person's choice.
    pub(super) fn order(&mut self, pod: usize, late: bool) {
        let Ok(ordinal) = u8::try_from(pod) else {
            return;
        };
        let epoch = self.api.record.map_or(0, |record| record.epoch.0);
        let epoch = if late { epoch.saturating_sub(1) } else { epoch };
        self.spec.promote = Some(PromoteOrder {
            pod: Ordinal(ordinal),
            epoch: Epoch(epoch),
        });
        self.fired(Kind::PromotionOrdered);
    }
}
