//! One look at a cluster: from the caches and the servers to the facts that the core decides from.

mod configuration;
mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use smallvec::SmallVec;
use tokio_util::sync::{CancellationToken, DropGuard};
use wellcake_core::facts::{
    ClaimFacts, ClaimUid, Epoch, Former, Fresh, Interner, Kept, Known, Login, Object, Observation,
    Offset, Ordinal, PodFacts, PodObject, PodUid, Port, Reachability, Record, Revision, Role,
    Served, ServerFacts, SpecFacts, Stamped, Tick, Upstream, Volume,
};
use wellcake_core::parse;
use wellcake_core::render::{Amount, CLIENT_PORT, Owner};
use wellcake_crds::defaults;
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{PrimaryRecord, Topology};

use crate::clock::Clock;
use crate::fetch::Fetcher;
use crate::valkey::{Server, Snapshot, Surroundings, serve};
use crate::watch::{Caches, Claim, Cluster, Kept as _, Key, Pod, Seen};

pub use configuration::Sent;

/// What a view is of.
pub struct Subject {
    /// Namespace and name.
    pub key: Key,
    /// Its name, checked.
    pub name: ClusterName,
    /// Uid of the ValkeyCluster.
    pub uid: String,
}

/// Everything that is known of one ValkeyCluster.
pub struct View {
    /// Of which.
    pub subject: Subject,
    caches: Arc<Caches>,
    clock: Clock,
    /// What is read by name.
    pub fetcher: Arc<Fetcher>,
    around: Surroundings,
    /// Numbers of the identities in the facts.
    pub interner: Interner,
    servers: BTreeMap<String, (Arc<Server>, DropGuard)>,
    rendered: objects::Rendered,
    compared: BTreeMap<Object, objects::Compared>,
    asked: configuration::Asked,
    /// The newest offset of the last primary that served, and which one that is.
    primary_offset: Option<(Epoch, Served, Offset)>,
    pods_seen: Vec<(String, bool)>,
    /// Whether its servers have roles.
    replicated: bool,
}

/// A look.
pub struct Look {
    /// The object.
    pub cluster: Arc<Cluster>,
    /// What it asks for.
    pub spec: SpecFacts,
    /// What is.
    pub seen: Observation,
}

impl View {
    /// A view that has not looked yet.
    pub fn new(
        subject: Subject,
        caches: Arc<Caches>,
        clock: Clock,
        fetcher: Arc<Fetcher>,
        around: Surroundings,
    ) -> Self {
        Self {
            subject,
            caches,
            clock,
            fetcher,
            around,
            interner: Interner::default(),
            servers: BTreeMap::new(),
            rendered: objects::Rendered::default(),
            compared: BTreeMap::new(),
            asked: configuration::Asked::default(),
            primary_offset: None,
            pods_seen: Vec::new(),
            replicated: true,
        }
    }

    /// The ValkeyCluster, if it is still the same one.
    pub fn cluster(&self) -> Option<Arc<Cluster>> {
        let seen = self.caches.clusters.get(&self.subject.key)?;
        (seen.value.uid() == self.subject.uid).then_some(seen.value)
    }

    /// Looks. `None` when there is nothing to decide for: the object is gone, or its record cannot be read.
    pub fn look(&mut self) -> Option<Look> {
        let now = self.clock.now();
        let cluster = self.cluster()?;
        let spec = parse::spec_facts(&cluster.object);
        self.replicated = spec.topology == Topology::Replication;
        let record = match self.record(&cluster) {
            Ok(record) => record,
            Err(why) => {
                tracing::error!(cluster = %self.subject.key, error = %why, "the primary record cannot be read; nothing is done");
                return None;
            }
        };
        let objects = self.objects(&cluster, record.as_ref(), now);
        self.ask_directives(&cluster);
        let taken = self
            .compared
            .get(&Object::StatefulSet)
            .is_some_and(|compared| compared.keeps_template);
        self.fetcher.expect_unfenced(spec.adopt || taken);
        let pods = self.present_pods(&spec, record.as_ref());
        self.keep_servers(&cluster, &pods, now);
        let addresses: Vec<_> = pods
            .iter()
            .map(|pod| pod.as_ref().and_then(|p| p.value.address))
            .collect();
        let facts: SmallVec<[PodFacts; 8]> = pods
            .iter()
            .zip(0u8..)
            .map(|(pod, n)| self.pod_facts(Ordinal(n), pod.as_ref(), &addresses, &cluster, now))
            .collect();
        let former = match &record {
            Some(record) => self.former(record, &facts, &addresses),
            None => SmallVec::new(),
        };
        let rival = self
            .servers
            .values()
            .any(|(server, _)| server.snapshot().rivalry.is_there(now));
        let kept_record = self.kept_record(record.as_ref(), facts.len());
        let primary_down_since = record.and_then(|record| self.down_since(&cluster, &record));
        let mut seen = Observation {
            record,
            kept_record,
            primary_down_since,
            primary_offset: None,
            objects,
            pods: facts,
            former,
            rival,
        };
        seen.primary_offset = self.note_offset(record.as_ref(), &seen);
        Some(Look {
            cluster,
            spec,
            seen,
        })
    }

    fn record(&mut self, cluster: &Cluster) -> Result<Option<Record>, parse::RecordError> {
        let status = cluster.object.status.as_ref();
        let Some(record) = status.and_then(|status| status.primary_record.as_ref()) else {
            return Ok(None);
        };
        parse::record(record, &self.subject.name, &mut self.interner).map(Some)
    }

    /// The newest record that a claim keeps; of equal epochs that on the claim of the recorded pod. One that cannot be read is
    /// none.
    fn kept_record(&mut self, present: Option<&Record>, pods: usize) -> Option<Record> {
        let name = &self.subject.name;
        let namespace = &self.subject.key.namespace;
        let own = present.map(|record| record.pod);
        let mut newest: Option<(Epoch, bool, Record)> = None;
        for n in (0u8..).take(pods) {
            let key = Key::new(namespace, &name.claim(u32::from(n)));
            let kept = self.caches.claims.get(&key).and_then(|claim| {
                let text = claim.value.record.as_deref()?;
                let status: PrimaryRecord = serde_json::from_str(text).ok()?;
                parse::record(&status, name, &mut self.interner).ok()
            });
            let Some(kept) = kept else { continue };
            let found = (kept.epoch, own == Some(Ordinal(n)), kept);
            if newest.is_none_or(|newest| (newest.0, newest.1) < (found.0, found.1)) {
                newest = Some(found);
            }
        }
        newest.map(|(_, _, record)| record)
    }

    /// The marker, if it speaks of the present record.
    fn down_since(&mut self, cluster: &Cluster, record: &Record) -> Option<Tick> {
        let status = cluster.object.status.as_ref()?;
        let since: &Time = status.primary_down_since.as_ref()?;
        let of = status.primary_down_for.as_ref()?;
        let same = of.epoch == i64::from(record.epoch.0)
            && PodUid(self.interner.number(&of.pod_uid)) == record.pod_uid;
        same.then(|| self.clock.of(since))
    }

    /// Pods by ordinal: as many as the spec or the StatefulSet asks for, up to those that the record names, and up to the last
    /// one that is still there.
    fn present_pods(&self, spec: &SpecFacts, record: Option<&Record>) -> Vec<Option<Seen<Pod>>> {
        let name = &self.subject.name;
        let there = self
            .caches
            .pods
            .named(&self.subject.key.namespace, &format!("{}-", name.as_str()));
        let mut found: BTreeMap<u8, Seen<Pod>> = there
            .into_iter()
            .filter_map(|pod| Some((parse::ordinal(&pod.value.key().name, name)?.0, pod)))
            .collect();
        let applied = self
            .compared
            .get(&Object::StatefulSet)
            .map_or(0, |compared| compared.replicas);
        let last = found.keys().next_back().map_or(0, |n| n.saturating_add(1));
        let recorded = record.map_or(0, Record::pods);
        let count = spec.pods.max(applied).max(recorded).max(last);
        (0..count).map(|n| found.remove(&n)).collect()
    }

    /// One task asks each server. Those of the recorded primary, and of one that hands over to it, go on when the pod is gone
    /// from Kubernetes: the process may live on.
    fn keep_servers(&mut self, cluster: &Cluster, pods: &[Option<Seen<Pod>>], now: Tick) {
        let record = cluster
            .object
            .status
            .as_ref()
            .and_then(|status| status.primary_record.as_ref());
        let before = record.and_then(|record| record.served.as_ref());
        let recorded = [
            record.map(|record| record.pod_uid.as_str()),
            before.map(|served| served.pod_uid.as_str()),
        ];
        let present: BTreeMap<&str, _> = pods
            .iter()
            .flatten()
            .filter_map(|pod| Some((pod.value.uid(), pod.value.address?)))
            .collect();
        let is_taken = |address| present.values().any(|other| *other == address);
        // An address that another pod has by now says nothing of the one that had it.
        self.servers.retain(|uid, (server, _)| {
            present
                .get(uid.as_str())
                .is_none_or(|address| *address == server.address)
                && (present.contains_key(uid.as_str())
                    || (recorded.contains(&Some(uid.as_str())) && !is_taken(server.address)))
        });
        for (uid, address) in present {
            if !self.servers.contains_key(uid) {
                let server = Arc::new(Server::new(uid, address, now));
                let stop = CancellationToken::new();
                let work = serve(Arc::clone(&server), self.around.clone());
                tokio::spawn(stop.clone().run_until_cancelled_owned(work));
                self.servers
                    .insert(uid.to_owned(), (server, stop.drop_guard()));
            }
        }
        self.notice_starts(pods);
    }

    /// New pods, and containers that do not start, may miss something that is read by name.
    fn notice_starts(&mut self, pods: &[Option<Seen<Pod>>]) {
        let waits = |pod: &Pod| pod.container == wellcake_core::facts::Container::Waiting;
        let present: Vec<(String, bool)> = pods
            .iter()
            .flatten()
            .map(|pod| (pod.value.uid().to_owned(), waits(&pod.value)))
            .collect();
        if present != self.pods_seen {
            let first = self.pods_seen.is_empty();
            self.pods_seen = present;
            if !first {
                self.fetcher.again().notify_one();
            }
        }
    }

    fn pod_facts(
        &mut self,
        ordinal: Ordinal,
        pod: Option<&Seen<Pod>>,
        addresses: &[Option<std::net::IpAddr>],
        cluster: &Cluster,
        now: Tick,
    ) -> PodFacts {
        let claim = self.claim(ordinal, cluster, now);
        let Some(pod) = pod else {
            let absent = self.caches.pods.is_complete();
            return PodFacts {
                object: if absent {
                    Known::Absent
                } else {
                    Known::unknown(now)
                },
                claim,
                server: Known::Absent,
                reach: None,
                login: Login::Fine,
            };
        };
        let node = pod
            .value
            .node
            .as_deref()
            .and_then(|name| self.caches.nodes.get(&Key::new("", name)));
        let object = PodObject {
            uid: PodUid(self.interner.number(pod.value.uid())),
            terminating: pod.value.terminating,
            container: pod.value.container,
            label: pod.value.label,
            node_out_of_service: node.is_some_and(|node| node.value.out_of_service),
            revision: self.revision(&pod.value, cluster),
            trouble: pod.value.trouble,
        };
        let server = self
            .servers
            .get(pod.value.uid())
            .map(|(server, _)| Arc::clone(server));
        let snapshot = server.as_ref().map(|server| server.snapshot());
        PodFacts {
            object: Known::seen(pod.at, object),
            claim,
            server: match (&server, &snapshot) {
                (Some(server), Some(snapshot)) => {
                    self.server_facts(server.since, snapshot, object.uid, addresses)
                }
                _ => Known::unknown(pod.at),
            },
            login: snapshot
                .as_ref()
                .map_or(Login::Fine, |snapshot| snapshot.login),
            reach: snapshot.map(|snapshot| reach(object.uid, &snapshot)),
        }
    }

    fn server_facts(
        &mut self,
        since: Tick,
        snapshot: &Snapshot,
        uid: PodUid,
        addresses: &[Option<std::net::IpAddr>],
    ) -> Known<ServerFacts> {
        let Some(answer) = &snapshot.answer else {
            return Known::unknown(snapshot.failing_since.unwrap_or(since));
        };
        // One that began with its client port open counts as behind the fence until it was admitted.
        let unfenced = answer.info.unfenced.filter(|_| self.replicated);
        let port = match answer.info.tcp_port {
            Some(CLIENT_PORT) if unfenced.is_none_or(|state| state.admitted) => Port::Client,
            _ => Port::Fence,
        };
        let upstream = |host: &str, port: u16| {
            let address: Option<std::net::IpAddr> = host.parse().ok();
            let at = addresses
                .iter()
                .position(|known| known.is_some() && *known == address);
            let by_address = at.and_then(|at| u8::try_from(at).ok()).map(Ordinal);
            let by_name = || parse::ordinal_of_host(host, &self.subject.name);
            match by_address.or_else(by_name) {
                Some(pod) if port == CLIENT_PORT => Upstream::Pod(pod),
                _ => Upstream::Other,
            }
        };
        let mut value = parse::server_facts(
            &answer.info,
            answer.run_since,
            uid,
            port,
            upstream,
            &mut self.interner,
        );
        value.rewriting = answer.lacks_copy;
        value.directives = self.directives_of(snapshot);
        let stamped = Stamped {
            at: answer.at,
            value,
        };
        match snapshot.failing_since {
            None => Known::Seen(stamped),
            Some(since) => Known::Maybe {
                since,
                last: Some(stamped),
            },
        }
    }

    /// How a pod stands to the newest template.
    fn revision(&self, pod: &Pod, cluster: &Cluster) -> Revision {
        let newest = self
            .compared
            .get(&Object::StatefulSet)
            .and_then(|compared| compared.revision.as_deref());
        match (newest, pod.revision.as_deref()) {
            (Some(newest), Some(own)) if newest == own => Revision::Current,
            (Some(_), Some(_)) => {
                let asked = parse::restart_token(&cluster.object);
                if asked.is_some() && asked != pod.restarted_at.as_deref() {
                    Revision::RestartAsked
                } else {
                    Revision::Outdated
                }
            }
            _ => Revision::Unknown,
        }
    }

    fn claim(&mut self, ordinal: Ordinal, cluster: &Cluster, now: Tick) -> Known<ClaimFacts> {
        let name = self.subject.name.claim(u32::from(ordinal.0));
        let Some(claim) = self
            .caches
            .claims
            .get(&Key::new(&self.subject.key.namespace, &name))
        else {
            return if self.caches.claims.is_complete() {
                Known::Absent
            } else {
                Known::unknown(now)
            };
        };
        let made = cluster
            .object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        let facts = ClaimFacts {
            uid: ClaimUid(self.interner.number(claim.value.uid())),
            volume: volume(&claim.value, cluster),
            younger_than_cluster: claim.value.created.is_some() && claim.value.created >= made,
        };
        Known::seen(claim.at, facts)
    }

    /// Servers of the recorded primary, and of one that hands over to it, whose pods were replaced or are gone.
    fn former(
        &mut self,
        record: &Record,
        pods: &[PodFacts],
        addresses: &[Option<std::net::IpAddr>],
    ) -> SmallVec<[Former; 2]> {
        let before = record.served.map(|served| served.pod_uid);
        let mut former = SmallVec::new();
        for pod_uid in [Some(record.pod_uid), before].into_iter().flatten() {
            let present = pods.iter().any(|pod| {
                let object = pod.object.value();
                object.is_some_and(|object| object.uid == pod_uid)
            });
            let server = self
                .interner
                .text(pod_uid.0)
                .and_then(|uid| self.servers.get(uid))
                .filter(|_| !present)
                .map(|(server, _)| Arc::clone(server));
            if let Some(server) = server {
                let snapshot = server.snapshot();
                former.push(Former {
                    reach: reach(pod_uid, &snapshot),
                    server: self.server_facts(server.since, &snapshot, pod_uid, addresses),
                });
            }
        }
        former
    }

    /// Remembers how far the last primary that served had come: only of the process that did.
    fn note_offset(&mut self, record: Option<&Record>, seen: &Observation) -> Option<Offset> {
        let (epoch, truth) = record.map(|record| (record.epoch, record.truth()))?;
        let known = seen.known_of(truth.pod, truth.pod_uid);
        let leads = known.and_then(Known::value).filter(|server| {
            server.pod_uid == truth.pod_uid
                && server.role == Role::Primary
                && server.port == Port::Client
                && truth.replid.is_none_or(|replid| replid == server.replid)
        });
        if let Some(server) = leads {
            self.primary_offset = Some((epoch, truth, server.offset));
        }
        let same = |noted: Epoch, of: Served| {
            let history = of.replid == truth.replid && (truth.replid.is_some() || noted == epoch);
            of.pod_uid == truth.pod_uid && history
        };
        self.primary_offset
            .filter(|(noted, of, _)| same(*noted, *of))
            .map(|(_, _, offset)| offset)
    }

    /// Owner of the objects.
    pub fn owner(&self) -> Owner<'_> {
        Owner {
            name: &self.subject.name,
            namespace: &self.subject.key.namespace,
            uid: &self.subject.uid,
            restart: None,
            asleep: false,
        }
    }

    /// What the wall clock shows.
    pub fn wall(&self) -> Time {
        self.clock.wall()
    }

    /// The server of a pod.
    pub fn server(&self, uid: PodUid) -> Option<Arc<Server>> {
        let (server, _) = self.servers.get(self.interner.text(uid.0)?)?;
        Some(Arc::clone(server))
    }

    /// Whether the cluster has a password for clients that is generated here.
    pub fn generates_password(cluster: &Cluster) -> bool {
        let spec = &cluster.object.spec;
        defaults::auth_enabled(spec) && defaults::existing_auth_secret(spec).is_none()
    }
}

/// How a claim stands to the size that the spec asks for.
fn volume(claim: &Claim, cluster: &Cluster) -> Volume {
    let size = defaults::storage(&cluster.object.spec).size;
    let asked = Amount::parse(&size.0).map_or(0, Amount::units);
    match (claim.requested, claim.capacity) {
        // Kubernetes grows no claim that is not bound.
        (Some(requested), Some(_)) if requested < asked => Volume::Smaller,
        (_, Some(capacity)) if capacity < asked => Volume::Growing,
        _ => Volume::Enough,
    }
}

fn reach(pod_uid: PodUid, snapshot: &Snapshot) -> Reachability {
    let (kept, fresh): (Kept, Fresh) = (snapshot.kept, snapshot.fresh);
    Reachability {
        pod_uid,
        kept,
        fresh,
    }
}
