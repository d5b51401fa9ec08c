//! Faults that stand until they end.

use wellcake_core::facts::{
    ClaimUid, Directives, Epoch, Hints, Known, Object, ObjectState, PasswordSource, Replid, RunId,
    SpecFacts, Tick, Trouble, Volume,
};

use super::api::Answer;
use super::kind::Fired;
use super::lag::Caches;
use super::servers::Fate;
use super::wishes::Arranged;
use crate::history::Data;
use crate::world::{Process, World};

/// How a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Node {
    /// As it should be.
    #[default]
    Up,
    /// Nobody reaches it.
    Lost,
    /// It is switched off.
    Off,
    /// The same, and a person marked it as out of service.
    OutOfService,
}

/// What is wrong with a pod, whichever process it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OnPod {
    /// Its node.
    pub node: Node,
    /// Answers to operators are lost.
    pub answers_cut: bool,
    /// Clients do not reach it.
    pub clients_cut: bool,
    /// What a primary sends does not reach it.
    pub stream_cut: bool,
    /// Since when what it acknowledges does not reach a primary.
    pub acknowledgements_cut: Option<Tick>,
    /// Why it does not start.
    pub trouble: Option<Trouble>,
    /// Its next start takes long to load.
    pub loads_slowly: bool,
    /// What its volume held some time ago.
    pub backup: Option<Data>,
    /// How often its claim was made anew.
    pub claims: u8,
    /// How its volume stands to what is asked for; `None` stands for enough.
    pub volume: Option<Volume>,
}

/// What is wrong with a server process; it ends with that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ails {
    /// A script runs.
    pub busy: bool,
    /// Until when it loads, and the history id that it shows meanwhile.
    pub loads: Option<(Tick, Replid)>,
    /// Its disk is full.
    pub disk_full: bool,
    /// It has no user for the operator.
    pub denies_operator: bool,
    /// It has no user for replicas.
    pub denies_replicas: bool,
    /// A person told it whom to follow.
    pub by_hand: bool,
    /// How its directives stand to those that were asked for after it got some.
    pub directives: Option<Directives>,
}

/// What is wrong with an operator, and what it remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OnOperator {
    /// What the API server answers to so many of its next writes.
    pub answers: Option<(Answer, u8)>,
    /// What becomes of its next command.
    pub fate: Option<Fate>,
    /// Caches that lag.
    pub lags: Caches,
    /// The spec as it was when its cache began to lag.
    pub spec: Option<SpecFacts>,
    /// The password as it was when its cache began to lag.
    pub password: Option<PasswordSource>,
    /// What it remembers between decisions.
    pub hints: Hints,
    /// Whether its last decision was to hand over.
    pub hands_over: bool,
    /// Seconds by which its clock is ahead.
    pub ahead: i16,
    /// Whether none of its caches is complete yet.
    pub blind: bool,
}

/// All faults that stand, and what took effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Faults {
    /// By ordinal.
    pub pods: Vec<OnPod>,
    /// By operator.
    pub operators: Vec<OnOperator>,
    /// No pod can be made.
    pub quota: bool,
    /// The password.
    pub password: PasswordSource,
    /// Objects, in the order of [`Object::ALL`]; `None` stands for one that is not there.
    pub objects: [Option<ObjectState>; 8],
    /// Epoch of the last promotion that a person ordered.
    pub ordered: Option<Epoch>,
    /// When the newest of them became what it is.
    pub changed_at: Tick,
    /// What people arranged.
    pub arranged: Arranged,
    /// What took effect.
    pub fired: Fired,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            pods: Vec::new(),
            operators: Vec::new(),
            quota: false,
            password: PasswordSource::Usable,
            objects: [Some(ObjectState::Matches); 8],
            ordered: None,
            changed_at: Tick(0),
            arranged: Arranged::default(),
            fired: Fired::default(),
        }
    }
}

impl Faults {
    /// What is wrong with a pod.
    pub fn pod(&mut self, n: usize) -> &mut OnPod {
        at(&mut self.pods, n)
    }

    /// What is wrong with an operator.
    pub fn operator(&mut self, o: usize) -> &mut OnOperator {
        at(&mut self.operators, o)
    }

    /// How an object is.
    pub fn object(&mut self, object: Object) -> &mut Option<ObjectState> {
        &mut self.objects[object as usize]
    }
}

fn at<T: Default + Clone>(all: &mut Vec<T>, n: usize) -> &mut T {
    if all.len() <= n {
        all.resize(n + 1, T::default());
    }
    &mut all[n]
}

impl Process {
    /// What is wrong with it.
    pub(crate) fn ails_mut(&mut self) -> &mut Ails {
        self.ails.get_or_insert_with(Box::default)
    }

    /// Whether something is wrong with it.
    pub(crate) fn ails(&self, is: impl Fn(&Ails) -> bool) -> bool {
        self.ails.as_deref().is_some_and(is)
    }

    /// Whether it loads its data.
    pub fn is_loading(&self) -> bool {
        self.ails(|it| it.loads.is_some())
    }

    /// Whether what it writes reaches its append-only file: not while that is written anew, nor on a full disk.
    pub fn appends(&self) -> bool {
        self.rewrites.is_none() && !self.ails(|it| it.disk_full)
    }
}

impl World {
    /// Faults that stand.
    pub(crate) fn faults_mut(&mut self) -> &mut Faults {
        self.faults.get_or_insert_with(Box::default)
    }

    /// What is wrong with a pod, if anything.
    pub(crate) fn on_pod(&self, n: usize) -> Option<&OnPod> {
        self.faults.as_deref()?.pods.get(n)
    }

    /// Whether something is wrong with a pod.
    pub(crate) fn is_pod(&self, n: usize, is: impl Fn(&OnPod) -> bool) -> bool {
        self.on_pod(n).is_some_and(is)
    }

    /// What is wrong with an operator, if anything.
    pub(crate) fn on_operator(&self, o: usize) -> Option<&OnOperator> {
        self.faults.as_deref()?.operators.get(o)
    }

    /// Whether the node of a pod is there.
    pub(crate) fn is_node_up(&self, n: usize) -> bool {
        !self.is_pod(n, |it| it.node != Node::Up)
    }

    /// Why a pod does not start, or is not made, if it does not.
    pub(crate) fn obstructs(&self, n: usize) -> Option<Trouble> {
        self.on_pod(n)?.trouble
    }

    /// How an object is seen.
    pub(crate) fn seen_object(&self, object: Object, since: Tick) -> Option<Known<ObjectState>> {
        let faults = self.faults.as_deref()?;
        let state = faults.objects[object as usize];
        let elsewhere = self.made_elsewhere && self.template == 0;
        let state = match state {
            Some(ObjectState::Kept) if faults.arranged.roll => Some(ObjectState::RollAsked),
            Some(ObjectState::Kept) if !elsewhere => Some(ObjectState::Matches),
            other => other,
        };
        let since = match elsewhere {
            true => faults.changed_at,
            false => since,
        };
        Some(state.map_or(Known::Absent, |state| Known::seen(since, state)))
    }

    /// Uid of the claim of a pod.
    pub(crate) fn claim_uid(&self, n: usize) -> ClaimUid {
        let n16 = u16::try_from(n).unwrap_or(u16::MAX);
        let claims = self.on_pod(n).map_or(0, |it| it.claims);
        ClaimUid(n16.saturating_add(u16::from(claims) * 256))
    }

    /// A pod is made anew, on another node.
    pub(crate) fn leave_node(&mut self, n: usize) {
        if let Some(pod) = self
            .faults
            .as_deref_mut()
            .and_then(|faults| faults.pods.get_mut(n))
        {
            pod.node = Node::Up;
            pod.answers_cut = false;
            pod.clients_cut = false;
            pod.stream_cut = false;
            pod.acknowledgements_cut = None;
        }
    }

    /// Whether clients do not reach a process.
    pub(crate) fn is_cut_from_clients(&self, run: RunId) -> bool {
        let pods = self.pods.iter().enumerate();
        let mut of = pods.filter(|(_, pod)| pod.process.as_ref().is_some_and(|it| it.run == run));
        of.any(|(n, _)| self.is_pod(n, |it| it.clients_cut))
    }

    /// Everything ends that stands on a pod and on its process.
    pub(crate) fn mend_pod(&mut self, n: usize) {
        if self.process(n).is_some_and(|it| it.ails(|it| it.busy)) {
            self.thaw(n);
        }
        let Some(faults) = self.faults.as_deref_mut() else {
            return;
        };
        if let Some(pod) = faults.pods.get_mut(n) {
            let (backup, claims) = (pod.backup.take(), pod.claims);
            *pod = OnPod {
                backup,
                claims,
                ..OnPod::default()
            };
        }
        let Some(process) = self.process(n) else {
            return;
        };
        if let Some(ails) = process.ails.take() {
            let (by_hand, directives) = (ails.by_hand, ails.directives);
            *process.ails_mut() = Ails {
                by_hand,
                // A person corrects what was refused.
                directives: directives.map(|it| match it {
                    Directives::Refused => Directives::Due,
                    other => other,
                }),
                ..Ails::default()
            };
        }
    }

    /// Everything ends that stands. What operators remember stays.
    pub(crate) fn mend_all(&mut self) {
        if self.faults.is_none() {
            return;
        }
        for n in 0..self.pods.len() {
            self.mend_pod(n);
        }
        for o in 0..self.operators.len() {
            self.relist(o);
            let operator = self.faults_mut().operator(o);
            operator.answers = None;
            operator.fate = None;
        }
        let faults = self.faults_mut();
        faults.quota = false;
        faults.password = PasswordSource::Usable;
        faults.arranged = Arranged {
            old_configs: faults.arranged.old_configs,
            newer: faults.arranged.newer,
            roll: faults.arranged.roll,
            ..Arranged::default()
        };
        for object in &mut faults.objects {
            // A person takes away what was in the way; the operator makes its own.
            if *object == Some(ObjectState::Foreign) {
                *object = None;
            }
        }
        self.spec.promote = None;
        self.spec.unserved = None;
        self.spec.rotation_asked = false;
        self.spec.image_major = None;
        self.spec.adopt = self.made_elsewhere;
    }
}
