//! Kubernetes around the world of the model: the StatefulSet controller, the kubelet, and how objects and the world follow each
//! other.

use serde_json::{Value, json};
use wellcake_core::facts::{
    ClaimUid, Container, Epoch, Ordinal, PodUid, Record, Replid, RoleLabel, Served,
};
use wellcake_core::parse;
use wellcake_core::render::{self, SERVER};
use wellcake_crds::v1beta1::{PrimaryRecord, ValkeyCluster};
use wellcake_crds::{annotations, labels};
use wellcake_model_tests::actions::Action;
use wellcake_model_tests::invariants;
use wellcake_model_tests::world::Disk;

use crate::cluster::Cluster;
use crate::network::ip;
use crate::objects::{Kind, merge, set, time};
use crate::servers::{replid_number, require};

/// Looks of the kubelet after which it starts a container again.
const RESTART: u32 = 4;
/// Looks that a pod takes to end.
const GRACE: u32 = 8;

/// What the object of a pod says that the world knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    uid: PodUid,
    addr: u16,
    terminating: bool,
    reported: Container,
    restarts: u16,
    label: RoleLabel,
    made_from: u8,
}

/// Uid of a pod as text.
fn pod_text(uid: PodUid) -> String {
    format!("pod-{}", uid.0)
}

/// The uid of a pod.
pub fn pod_uid(text: &str) -> Option<PodUid> {
    Some(PodUid(text.strip_prefix("pod-")?.parse().ok()?))
}

impl Cluster {
    /// Somebody writes an object; the world follows.
    pub fn put(&mut self, kind: Kind, name: &str, object: Value) -> Value {
        let now = self.now();
        let version = self.objects.version;
        let object = self.objects.put(kind, name, object, now);
        if self.objects.version != version {
            self.follow(kind, name, &object);
        }
        object
    }

    fn follow(&mut self, kind: Kind, name: &str, object: &Value) {
        match kind {
            Kind::ValkeyCluster => self.follow_cluster(object),
            Kind::Service => self.follow_service(name, object),
            Kind::StatefulSet => self.follow_stateful_set(object),
            Kind::Pod => {
                let label = object
                    .pointer("/metadata/labels")
                    .and_then(|all| all.get(labels::ROLE));
                let label = match label.and_then(Value::as_str) {
                    Some(labels::ROLE_PRIMARY) => RoleLabel::Primary,
                    Some(labels::ROLE_REPLICA) => RoleLabel::Replica,
                    _ => RoleLabel::None,
                };
                let n = parse::ordinal(name, &self.name).map(Ordinal::index);
                if let Some(pod) = n.and_then(|n| self.world.pods.get_mut(n)) {
                    pod.label = label;
                }
            }
            _ => {}
        }
    }

    fn follow_cluster(&mut self, object: &Value) {
        let object: ValkeyCluster =
            serde_json::from_value(object.clone()).expect("a ValkeyCluster");
        self.world.spec = parse::spec_facts(&object);
        let status = object.status.unwrap_or_default();
        let record = status.primary_record.map(|record| self.record(&record));
        if let Some(record) = record
            && self.world.api.record != Some(record)
        {
            let outcome = self.judge_record(&record);
            self.judge(outcome);
            self.world.leads_again(record.pod_uid);
            self.tell(|| format!("record: epoch {}, {:?}", record.epoch.0, record.pod_uid));
        }
        self.world.api.record = record;
    }

    /// An epoch never goes back, speaks of one pod, and does not forget the history that its promotion began.
    fn judge_record(&self, record: &Record) -> Result<(), invariants::Violation> {
        let before = self.world.api.record;
        let grows = before.is_none_or(|before| {
            let same = before.epoch == record.epoch && before.pod_uid == record.pod_uid;
            same || before.epoch < record.epoch
        });
        require(grows, "epochs only grow", || {
            format!("{before:?} is replaced by {record:?}")
        })?;
        let forgets = before.is_some_and(|before| {
            before.epoch == record.epoch && before.replid.is_some() && record.replid.is_none()
        });
        require(
            !forgets,
            "a history that was recorded stays recorded",
            || format!("{before:?} is replaced by {record:?}"),
        )
    }

    fn record(&self, status: &PrimaryRecord) -> Record {
        let pod = |name: &str| parse::ordinal(name, &self.name).expect("a pod");
        let uid = |text: &str| pod_uid(text).expect("the uid of a pod");
        let claim = |text: &Option<String>| {
            let number = text.as_ref()?.strip_prefix("claim-")?.parse().ok()?;
            Some(ClaimUid(number))
        };
        let replid = |text: &Option<String>| replid_number(text.as_ref()?).map(Replid);
        Record {
            epoch: Epoch(u32::try_from(status.epoch).expect("an epoch")),
            pod: pod(&status.pod),
            pod_uid: uid(&status.pod_uid),
            claim_uid: claim(&status.claim_uid),
            replid: replid(&status.replid),
            continues: replid(&status.continues),
            served: status.served.as_ref().map(|served| Served {
                pod: pod(&served.pod),
                pod_uid: uid(&served.pod_uid),
                claim_uid: claim(&served.claim_uid),
                replid: replid(&served.replid),
            }),
            planned: status.planned.unwrap_or(false),
        }
    }

    fn follow_service(&mut self, name: &str, object: &Value) {
        let services = [self.name.client_service(), self.name.primary_service()];
        let Some(at) = services.iter().position(|service| service == name) else {
            return;
        };
        let route = render::routed_pod(object, &self.name);
        let before = self.world.api.routes[at];
        if route == before {
            return;
        }
        let record = self.world.api.record;
        let follows =
            record.is_none_or(|record| Some(record.pod) == route && record.replid.is_some());
        self.judge(require(
            follows,
            "traffic goes to a primary whose history is recorded",
            || format!("{name} leads to {route:?}, and the record is {record:?}"),
        ));
        self.world.api.routes[at] = route;
    }

    fn follow_stateful_set(&mut self, object: &Value) {
        let template = object
            .pointer("/spec/template")
            .cloned()
            .unwrap_or_default();
        let known = self.templates.iter().position(|known| *known == template);
        let revision = known.unwrap_or_else(|| {
            self.templates.push(template);
            self.templates.len() - 1
        });
        self.world.template = u8::try_from(revision).expect("few revisions");
        let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64);
        let replicas = replicas
            .and_then(|n| u8::try_from(n).ok())
            .expect("few replicas");
        if replicas < self.world.replicas {
            let outcome = self.world.scale_in(0, replicas).map(|_| ());
            self.judge(outcome);
        }
        self.world.replicas = replicas;
    }

    /// An operator takes pods away.
    pub fn take_pods(&mut self, pods: &[usize]) {
        for n in pods {
            self.judge(invariants::one_pod_is_taken_at_a_time(&self.world, *n));
        }
        self.judge(invariants::what_is_taken_away_is_held_elsewhere(
            &self.world,
            pods,
        ));
        for n in pods {
            if let Some(pod) = self.world.pods.get_mut(*n) {
                pod.terminating = true;
                pod.taken = true;
            }
        }
        self.show_pods();
    }

    /// The StatefulSet controller and the kubelet see to everything.
    pub fn controllers(&mut self) {
        let set = self
            .objects
            .get(Kind::StatefulSet, &self.name.stateful_set())
            .cloned();
        let Some(set) = set else { return };
        self.observe_template(&set);
        for n in 0..self.world.pods.len() {
            self.see_to_pod(n, &set);
        }
    }

    /// `status.observedGeneration` and `status.updateRevision` (`stateful_set_control.go: updateStatefulSet`).
    fn observe_template(&mut self, set: &Value) {
        let generation = set
            .pointer("/metadata/generation")
            .cloned()
            .unwrap_or_default();
        let status = json!({ "status": {
            "observedGeneration": generation,
            "updateRevision": revision(self.world.template),
        } });
        let mut seen = set.clone();
        merge(&mut seen, &status);
        self.put(Kind::StatefulSet, &self.name.stateful_set(), seen);
    }

    fn see_to_pod(&mut self, n: usize, set: &Value) {
        let pod = &self.world.pods[n];
        let (runs, leaves, exists) = (pod.process.is_some(), pod.terminating, pod.exists);
        let (down, ends) = &mut self.waited[n];
        *down = if exists && !runs { *down + 1 } else { 0 };
        *ends = if exists && leaves { *ends + 1 } else { 0 };
        if *ends >= GRACE {
            self.happen(Action::Delete(n));
        } else if !exists {
            if n < usize::from(self.world.replicas) && self.can_start(set) {
                self.make_claim(n, set);
                self.happen(Action::Recreate(n));
            }
        } else if *down >= RESTART {
            self.happen(Action::Start(n));
        }
        self.act(Action::Report(n));
    }

    /// Whether what the template mounts is there. The kubelet starts no container before; here the pod is not made.
    fn can_start(&self, set: &Value) -> bool {
        let volumes = set
            .pointer("/spec/template/spec/volumes")
            .and_then(Value::as_array);
        volumes.into_iter().flatten().all(|volume| {
            let name = |pointer| volume.pointer(pointer).and_then(Value::as_str);
            let secret = name("/secret/secretName").map(|name| (Kind::Secret, name));
            let config = name("/configMap/name").map(|name| (Kind::ConfigMap, name));
            let mut named = secret.into_iter().chain(config);
            named.all(|(kind, name)| self.objects.get(kind, name).is_some())
        })
    }

    fn make_claim(&mut self, n: usize, set: &Value) {
        let name = self.name.claim(u32::try_from(n).expect("few pods"));
        let template = set.pointer("/spec/volumeClaimTemplates/0");
        let Some(template) = template.filter(|_| self.objects.get(Kind::Claim, &name).is_none())
        else {
            return;
        };
        let mut claim = template.clone();
        set_uid(&mut claim, &format!("claim-{n}"));
        let size = claim.pointer("/spec/resources/requests").cloned();
        let status = json!({ "status": { "phase": "Bound", "capacity": size } });
        merge(&mut claim, &status);
        self.put(Kind::Claim, &name, claim);
    }

    /// Pod objects follow the world.
    pub fn show_pods(&mut self) {
        for n in 0..self.world.pods.len() {
            let pod = &self.world.pods[n];
            let shown = pod.exists.then_some(Shown {
                uid: pod.uid,
                addr: pod.addr,
                terminating: pod.terminating,
                reported: pod.reported,
                restarts: pod.restarts,
                label: pod.label,
                made_from: pod.made_from,
            });
            if shown == self.shown[n] {
                continue;
            }
            let name = self.name.pod(u32::try_from(n).expect("few pods"));
            let before = self.shown[n].take();
            let now = self.now();
            if before.map(|before| before.uid) != shown.as_ref().map(|shown| shown.uid) {
                self.objects.delete(Kind::Pod, &name, now);
            }
            if let Some(shown) = &shown {
                let object = self.pod_object(&name, shown);
                self.objects.put(Kind::Pod, &name, object, now);
            }
            self.shown[n] = shown;
        }
    }

    fn pod_object(&self, name: &str, shown: &Shown) -> Value {
        let template = &self.templates[usize::from(shown.made_from)];
        let mut object = json!({
            "metadata": template.get("metadata").cloned().unwrap_or(json!({})),
            "spec": { "nodeName": "node" },
        });
        set_uid(&mut object, &pod_text(shown.uid));
        if shown.terminating {
            let before = self.objects.get(Kind::Pod, name);
            let since = before.and_then(|it| it.pointer("/metadata/deletionTimestamp").cloned());
            set(
                &mut object,
                "deletionTimestamp",
                since.unwrap_or_else(|| json!(time(self.now()))),
            );
        }
        let role = match shown.label {
            RoleLabel::Primary => json!(labels::ROLE_PRIMARY),
            RoleLabel::Replica => json!(labels::ROLE_REPLICA),
            RoleLabel::None => Value::Null,
        };
        let (state, restarts) = match shown.reported {
            Container::Running { restarts } => ("running", restarts),
            Container::Terminated { restarts } => ("terminated", restarts),
            Container::Waiting => ("waiting", shown.restarts),
        };
        let mut all = json!({});
        all[labels::ROLE] = role;
        all["statefulset.kubernetes.io/pod-name"] = json!(name);
        all["controller-revision-hash"] = json!(revision(shown.made_from));
        let mut of_state = json!({});
        of_state[state] = json!({});
        merge(
            &mut object,
            &json!({
                "metadata": { "labels": all },
                "status": {
                    "podIP": ip(shown.addr).to_string(),
                    "containerStatuses": [{
                        "name": SERVER, "restartCount": restarts, "state": of_state, "lastState": {},
                    }],
                },
            }),
        );
        object
    }

    /// A person makes the ValkeyCluster of the world.
    pub fn make(&mut self) {
        let spec = &self.world.spec;
        let storage = match self.world.disk {
            Disk::None => json!({ "medium": "Memory" }),
            Disk::Rdb => json!({ "mode": "rdb" }),
            Disk::Aof => json!({ "mode": "aof" }),
        };
        let spec = json!({
            "topology": "Replication",
            "profile": spec.profile.as_str(),
            "replicas": spec.pods,
            "storage": storage,
        });
        let object = json!({ "metadata": { "uid": "cluster" }, "spec": spec, "status": { "observedGeneration": -1 } });
        self.put(Kind::ValkeyCluster, "web", object);
    }

    /// A person sets annotations of the ValkeyCluster.
    pub fn annotate(&mut self, pairs: &[(&str, &str)]) {
        let mut object = self
            .objects
            .get(Kind::ValkeyCluster, "web")
            .expect("made")
            .clone();
        for (key, value) in pairs {
            let mut all = json!({});
            all[key] = json!(value);
            merge(&mut object, &json!({ "metadata": { "annotations": all } }));
        }
        self.tell(|| format!("annotations {pairs:?}"));
        self.put(Kind::ValkeyCluster, "web", object);
    }

    /// A person asks for another primary.
    pub fn ask_for_handover(&mut self) {
        self.annotate(&[(annotations::FAILOVER, "one")]);
    }

    /// A person asks for new pods.
    pub fn ask_for_restart(&mut self) {
        self.annotate(&[(annotations::RESTART, "one")]);
    }
}

fn revision(template: u8) -> String {
    format!("web-{template}")
}

fn set_uid(object: &mut Value, uid: &str) {
    set(object, "uid", json!(uid));
}
