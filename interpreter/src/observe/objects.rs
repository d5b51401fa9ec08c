//! Objects of Kubernetes: as they are, as they should be, and how the two compare.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wellcake_core::facts::{Known, Object, ObjectFacts, ObjectState, Ordinal, Record, Tick};
use wellcake_core::parse;
use wellcake_core::render::{self, Owner};

use super::View;
use crate::fetch::Fetched;
use crate::watch::{Cluster, Key, Live};

/// What rendered objects depend on.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Rendering {
    generation: i64,
    /// The pod that the Services name.
    route: Ordinal,
    /// The restart that is asked for.
    restart: Option<String>,
    /// Whether the cluster is to hibernate.
    asleep: bool,
}

impl Rendering {
    fn of(cluster: &Cluster, route: Ordinal) -> Self {
        Self {
            generation: cluster.object.metadata.generation.unwrap_or(0),
            route,
            restart: parse::restart_token(&cluster.object).map(str::to_owned),
            asleep: parse::is_to_hibernate(&cluster.object),
        }
    }
}

/// Objects as the spec asks for them.
#[derive(Default)]
pub(super) struct Rendered {
    of: Option<Rendering>,
    objects: BTreeMap<Object, Arc<Value>>,
}

/// The outcome of a comparison, which holds as long as its inputs.
#[derive(Clone)]
pub(super) struct Compared {
    rendered: Rendering,
    pub(super) live: Option<Arc<Live>>,
    state: Known<ObjectState>,
    route: Option<Ordinal>,
    pub(super) replicas: u8,
    /// Whether it was taken over from another operator with the template that it had.
    pub(super) keeps_template: bool,
    /// The revision of the newest template, if the controller has seen that.
    pub(super) revision: Option<String>,
}

impl View {
    pub(super) fn objects(
        &mut self,
        cluster: &Arc<Cluster>,
        record: Option<&Record>,
        now: Tick,
    ) -> ObjectFacts {
        let fetched = self.fetcher.fetched();
        let mut facts = ObjectFacts::unknown(now);
        for object in Object::ALL {
            if object == Object::Credentials {
                continue;
            }
            let compared = self.compare(object, cluster, record, &fetched, now);
            facts.set(object, compared.state);
            match object {
                Object::ClientService => facts.client_route = compared.route,
                Object::PrimaryService => facts.primary_route = compared.route,
                Object::StatefulSet => facts.replicas_applied = compared.replicas,
                _ => {}
            }
            self.compared.insert(object, compared);
        }
        self.config_facts(cluster, &mut facts);
        facts.set(Object::Credentials, fetched.credentials);
        facts.password = fetched.password;
        facts
    }

    fn compare(
        &mut self,
        object: Object,
        cluster: &Arc<Cluster>,
        record: Option<&Record>,
        fetched: &Fetched,
        now: Tick,
    ) -> Compared {
        let before = self.compared.get(&object);
        let looked = self.live(object, cluster, fetched);
        let unknown = Compared {
            rendered: Rendering::of(cluster, Ordinal(0)),
            live: None,
            state: before.map_or(Known::unknown(now), |before| before.state.failed(now)),
            route: None,
            replicas: before.map_or(0, |before| before.replicas),
            keeps_template: before.is_some_and(|before| before.keeps_template),
            revision: None,
        };
        let Some(live) = looked else { return unknown };
        let value = live.as_ref().map(|live| live.value());
        let route = value
            .as_ref()
            .and_then(|value| render::routed_pod(value, &self.subject.name));
        let recorded = record.map(|record| record.pod);
        let rendered = Rendering::of(cluster, route.or(recorded).unwrap_or_default());
        if let Some(before) = before
            && before.rendered == rendered
            && same(before.live.as_ref(), live.as_ref())
            && !matches!(before.state, Known::Maybe { .. })
        {
            return before.clone();
        }
        let desired = self.desired(object, cluster, rendered.route);
        let state = render::compare(desired.as_deref(), value.as_ref(), &self.subject.uid);
        let revision = live.as_ref().and_then(|live| live.revision.clone());
        Compared {
            rendered,
            revision,
            live,
            state: state.map_or(Known::Absent, |state| Known::seen(now, state)),
            route,
            replicas: value.as_ref().map_or(0, replicas),
            keeps_template: value
                .as_ref()
                .is_some_and(|value| render::is_taken(value) && render::has_other_template(value)),
        }
    }

    /// The live object; `None` when it could not be looked at.
    fn live(
        &self,
        object: Object,
        cluster: &Cluster,
        fetched: &Fetched,
    ) -> Option<Option<Arc<Live>>> {
        let owner = self.owner();
        let name = render::name_of(object, &owner, &cluster.object.spec);
        if let Some(store) = self.caches.of(object) {
            let found = store
                .get(&Key::new(&self.subject.key.namespace, &name))
                .map(|seen| seen.value);
            let found = found.or_else(|| fetched.others.get(&object).cloned());
            return store.is_complete().then_some(found);
        }
        let (looked_for, _, found) = fetched.config.as_ref()?;
        if *looked_for == name {
            return Some(found.clone());
        }
        self.fetcher.again().notify_one();
        None
    }

    /// An object as the spec asks for it, with the Services pointed at `route`.
    pub fn desired(
        &mut self,
        object: Object,
        cluster: &Cluster,
        route: Ordinal,
    ) -> Option<Arc<Value>> {
        let of = Rendering::of(cluster, route);
        if self.rendered.of.as_ref() != Some(&of) {
            let owner = Owner {
                restart: of.restart.as_deref(),
                asleep: of.asleep,
                ..self.owner()
            };
            let render = |object| {
                Some((
                    object,
                    Arc::new(render::object(object, &owner, &cluster.object.spec, route)?),
                ))
            };
            let objects = Object::ALL.into_iter().filter_map(render).collect();
            self.rendered.objects = objects;
            self.rendered.of = Some(of);
        }
        self.rendered.objects.get(&object).cloned()
    }

    /// The live object that was last compared.
    pub fn compared_live(&self, object: Object) -> Option<Arc<Live>> {
        self.compared
            .get(&object)
            .and_then(|compared| compared.live.clone())
    }

    /// Whether an object was made, or made again what it was, by another operator.
    pub fn is_theirs(&self, object: Object) -> bool {
        let state = self
            .compared
            .get(&object)
            .and_then(|compared| compared.state.last().copied());
        matches!(
            state,
            Some(ObjectState::Theirs | ObjectState::TakenBack | ObjectState::RollAsked)
        )
    }

    /// The pod that a Service names now, else the given one.
    pub fn route_of(&self, object: Object, otherwise: Ordinal) -> Ordinal {
        self.compared
            .get(&object)
            .and_then(|compared| compared.route)
            .unwrap_or(otherwise)
    }
}

fn same(one: Option<&Arc<Live>>, other: Option<&Arc<Live>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

fn replicas(stateful_set: &Value) -> u8 {
    let replicas = stateful_set
        .pointer("/spec/replicas")
        .and_then(Value::as_u64);
    replicas.map_or(0, |replicas| u8::try_from(replicas).unwrap_or(u8::MAX))
}
