//! Directives that running servers are to be sent, what became of them, and what servers say of their configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wellcake_core::effects::Note;
use wellcake_core::facts::{Directives, Object, ObjectFacts, Ordinal};
use wellcake_core::reasons::Reason;
use wellcake_core::render::{self, CONFIG_KEY, directives};

use super::View;
use crate::valkey::Snapshot;
use crate::watch::{Cluster, Live};

/// Directives by name, with their values.
pub type Sent = Arc<BTreeMap<String, String>>;

/// What all servers of a cluster are to be sent.
#[derive(Default)]
pub(super) struct Asked {
    /// What the rest was made from: the generation of the spec and the file.
    of: Option<(i64, Option<Arc<Live>>)>,
    all: Sent,
    /// Names that this process ever sent, or that the file had.
    names: BTreeSet<String>,
}

impl View {
    /// Works out what servers are to be sent, if the spec or the file changed. Names stay known as long as this process: what
    /// was in force goes back to its default when it is not asked for any more.
    pub(super) fn ask_directives(&mut self, cluster: &Cluster) {
        let file = self.compared_live(Object::Config);
        let generation = cluster.object.metadata.generation.unwrap_or(0);
        let same = self.asked.of.as_ref().is_some_and(|(known, of)| {
            let unchanged = match (of, &file) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                _ => false,
            };
            *known == generation && unchanged
        });
        if same {
            return;
        }
        let text = file.as_ref().map(|live| live.value());
        let text = text
            .as_ref()
            .and_then(|value| value.get("data")?.get(CONFIG_KEY)?.as_str());
        self.asked
            .names
            .extend(directives::live_names(text.unwrap_or_default()));
        let all = directives::live(&cluster.object.spec, &self.asked.names);
        self.asked.names.extend(all.keys().cloned());
        if *self.asked.all != all {
            self.asked.all = Arc::new(all);
        }
        self.asked.of = Some((generation, file));
    }

    /// What servers are to be sent.
    pub fn directives(&self) -> Sent {
        Arc::clone(&self.asked.all)
    }

    /// How the directives of a server stand.
    pub(super) fn directives_of(&self, snapshot: &Snapshot) -> Directives {
        let run = snapshot.answer.as_ref().map(|answer| &answer.info.run_id);
        let sent = snapshot.configured.as_ref();
        match sent.filter(|sent| Some(&sent.run) == run) {
            None => Directives::Unset,
            Some(sent) if sent.directives != self.asked.all => Directives::Due,
            Some(sent) if sent.refused.is_some() => Directives::Refused,
            Some(_) => Directives::Set,
        }
    }

    /// How the configuration of new pods stands to what is asked for.
    pub(super) fn config_facts(&mut self, cluster: &Cluster, facts: &mut ObjectFacts) {
        let asked = render::config_digest(&cluster.object.spec);
        let live = self.compared_live(Object::StatefulSet);
        let value = live.map(|live| live.value());
        let refused = value.as_ref().and_then(render::refused_config);
        let desired = self.desired(Object::StatefulSet, cluster, Ordinal::default());
        facts.template_waits = match (&desired, &value) {
            (Some(desired), Some(live)) => render::template_waits(desired, live),
            _ => false,
        };
        facts.config_refused = refused.is_some_and(|(digest, _)| digest == asked);
        facts.config_before = self.good_config(cluster).is_some_and(|good| good != asked);
        let old = self.old_configs(cluster).count();
        facts.old_configs = u8::try_from(old).unwrap_or(u8::MAX);
    }

    /// ConfigMaps that are neither asked for, nor the last good one, nor that of a pod or of the StatefulSet: name, uid, version.
    pub fn old_configs(&self, cluster: &Cluster) -> impl Iterator<Item = (String, String, u64)> {
        let asked = render::config_digest(&cluster.object.spec);
        let set = self
            .compared_live(Object::StatefulSet)
            .map(|live| live.value());
        let applied = set.as_ref().and_then(render::config_of).map(str::to_owned);
        let good = self.good_config(cluster).map(str::to_owned);
        let pods = self.named_pods().filter_map(|pod| pod.config);
        let needed: BTreeSet<String> = pods
            .chain([asked])
            .chain(applied)
            .chain(good)
            .map(|digest| self.subject.name.config_revision(&digest))
            .collect();
        let revisions = self.subject.name.config_revision("");
        let all = self.fetcher.fetched().configs;
        let old: Vec<_> = all
            .iter()
            .filter(|(name, ..)| name.starts_with(&revisions) && !needed.contains(name))
            .cloned()
            .collect();
        old.into_iter()
    }

    /// Digest of the last configuration with which every server started.
    pub fn good_config<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        let status = cluster.object.status.as_ref()?;
        status.last_good_config_digest.as_deref()
    }

    /// What a server said that a note speaks of.
    pub fn said(&self, note: Note) -> Option<String> {
        match note.reason {
            Reason::DirectivesRefused => {
                let pod = self.pod_named(note)?;
                let (server, _) = self.servers.get(&pod.uid)?;
                let refused = server.snapshot().configured?.refused?;
                Some(refused.to_string())
            }
            Reason::ConfigNotUnderstood => self.pod_named(note)?.config_error,
            Reason::ConfigRefused => {
                let live = self.compared_live(Object::StatefulSet)?.value();
                let (_, said) = render::refused_config(&live)?;
                Some(said.to_owned())
            }
            _ => None,
        }
    }

    /// What some server that does not start says of its configuration.
    pub fn config_error(&self) -> Option<String> {
        self.named_pods().find_map(|pod| pod.config_error)
    }

    fn pod_named(&self, note: Note) -> Option<Named> {
        let name = self.subject.name.pod(u32::from(note.pod?.0));
        self.named_pods().find(|pod| pod.name == name)
    }

    fn named_pods(&self) -> impl Iterator<Item = Named> {
        let prefix = format!("{}-", self.subject.name.as_str());
        let found = self.caches.pods.named(&self.subject.key.namespace, &prefix);
        found.into_iter().map(|pod| {
            use crate::watch::Kept;
            Named {
                name: pod.value.key().name.clone(),
                uid: pod.value.uid().to_owned(),
                config: pod.value.config.clone(),
                config_error: pod.value.config_error.clone(),
            }
        })
    }
}

struct Named {
    name: String,
    uid: String,
    config: Option<String>,
    config_error: Option<String>,
}
