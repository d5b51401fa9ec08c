//! What people change about the pods, and what operators take away for it.

use wellcake_core::effects::Effect;
use wellcake_core::facts::{Known, Object, ObjectState, Ordinal};

use crate::invariants::{self, Violation};
use crate::servers::Command;
use crate::world::{Disk, World};

/// Epochs of what leads by hand are beyond those of any record.
const BY_HAND: u32 = 1 << 30;

impl World {
    /// A person changes what pods are made from. The operator's Apply is taken for granted.
    pub fn change_template(&mut self) {
        if !self.is_not_taken_over() {
            self.template = self.template.saturating_add(1);
        }
    }

    /// Whether the StatefulSet is still another operator's: what a person asks for changes no template of it.
    fn is_not_taken_over(&self) -> bool {
        let faults = self.faults.as_deref();
        let state = faults.and_then(|faults| faults.objects[Object::StatefulSet as usize]);
        state == Some(ObjectState::Theirs)
    }

    /// Without any pod of it, the template of another operator is not kept.
    pub(crate) fn leave_template(&mut self) {
        if self.made_elsewhere && self.template == 0 && !self.is_not_taken_over() {
            self.template = 1;
        }
    }

    /// A person asks for so many pods. More are made at once, fewer when the operator says so.
    pub fn resize(&mut self, pods: usize) {
        let most = self.pods.len();
        let pods = u8::try_from(pods.clamp(1, most)).unwrap_or(u8::MAX);
        self.spec.pods = pods;
        self.spec.generation += 1;
        self.apply_replicas();
    }

    /// A person says `REPLICAOF` to a server: another pod, or `NO ONE`. What it acknowledges then counts for no epoch of the record.
    pub fn say_replicaof(&mut self, n: usize, of: Option<usize>) {
        let address = of.and_then(|of| self.pods.get(of)).map(|pod| pod.addr);
        let Some(uid) = self.pods.get(n).map(|pod| pod.uid) else {
            return;
        };
        match address {
            Some(address) => self.send(uid, Command::Follow(address)),
            None => self.promote(uid, BY_HAND + u32::from(uid.0)),
        }
    }

    /// A person sends the cluster to sleep, or wakes it.
    pub fn hibernate(&mut self, asleep: bool) {
        self.spec.hibernate = asleep;
        self.apply_replicas();
    }

    /// The operator's Apply asks for no fewer pods than there are, and for none while the cluster sleeps.
    pub(crate) fn apply_replicas(&mut self) {
        if !(self.spec.hibernate && self.replicas == 0) {
            self.replicas = self.replicas.max(self.spec.pods);
        }
    }

    /// The API server accepts an eviction and the pod begins to end; the operator looks at it once. There is no
    /// disruption budget: it can be switched off.
    pub fn evict(
        &mut self,
        o: usize,
        pod: Ordinal,
        effect: &Effect,
    ) -> Result<Result<(), String>, Violation> {
        let n = pod.index();
        let named = effect.guard.pod.map(|(_, uid)| uid);
        let found = self
            .pods
            .get(n)
            .is_some_and(|pod| pod.exists && Some(pod.uid) == named);
        if !found {
            return Ok(Err("the pod is gone".to_owned()));
        }
        invariants::one_pod_is_taken_at_a_time(self, n)?;
        invariants::what_is_taken_away_is_held_elsewhere(self, &[n])?;
        self.take(n);
        let seen = self
            .operators
            .get_mut(o)
            .and_then(|operator| operator.pods.get_mut(n));
        if let Some(Known::Seen(object)) = seen.map(|facts| &mut facts.object) {
            object.value.terminating = true;
        }
        Ok(Ok(()))
    }

    /// The StatefulSet asks for fewer pods; its controller deletes those beyond.
    pub fn scale_in(&mut self, o: usize, to: u8) -> Result<Result<(), String>, Violation> {
        let gone: Vec<usize> = (usize::from(to)..self.pods.len())
            .filter(|n| self.pods.get(*n).is_some_and(|pod| pod.exists))
            .collect();
        if to > 0 {
            invariants::what_is_taken_away_is_held_elsewhere(self, &gone)?;
        } else if self.disk == Disk::None {
            // Whoever sends to sleep what is in memory only gives it up.
            let owed: Vec<_> = self.owed().collect();
            self.forfeited.extend(owed);
        }
        for n in gone {
            self.take(n);
        }
        for pod in self.pods.iter_mut().skip(usize::from(to)) {
            pod.given_up |= to > 0;
        }
        self.replicas = to;
        if to == 0 {
            self.leave_template();
        }
        self.apply_replicas();
        if let Some(operator) = self.operators.get_mut(o) {
            operator.replicas = self.replicas;
        }
        Ok(Ok(()))
    }

    fn take(&mut self, n: usize) {
        if let Some(pod) = self.pods.get_mut(n) {
            pod.terminating = true;
            pod.taken = true;
        }
    }

    /// A pod that was taken away and is in sync again is no longer missed.
    pub fn notice_returns(&mut self) {
        for pod in &mut self.pods {
            pod.taken &= !pod.is_in_sync();
        }
    }
}
