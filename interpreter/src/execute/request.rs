//! From an effect, which speaks in numbers, to a request with everything that it takes.

use std::sync::Arc;

use serde_json::{Value, json};
use wellcake_core::effects::{Effect, Order, Route, Verb};
use wellcake_core::facts::{Object, Ordinal, PodUid, Record, RoleLabel};
use wellcake_core::parse;
use wellcake_core::render;
use wellcake_crds::{defaults, labels};

use super::Failure;
use super::kubernetes::StatusPatch;
use super::valkey::Command;
use crate::observe::{Look, View};
use crate::valkey::{Connection, Server};
use crate::watch::{Cluster, Kept};

/// A request.
pub enum Request {
    /// Create the Secrets that are missing.
    CreateCredentials(Arc<Cluster>),
    /// Apply an object.
    Apply {
        /// Which.
        object: Object,
        /// As the spec asks for it.
        desired: Arc<Value>,
        /// Uid of the live one, if there is one.
        uid: Option<String>,
        /// Whether fields that another operator set become this one's first.
        theirs: bool,
    },
    /// Delete an object.
    Delete {
        /// Which.
        object: Object,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// Its version.
        version: u64,
    },
    /// Take the finalizer of the operator before away.
    Release(Arc<Cluster>),
    /// Patch the status.
    Status(StatusPatch),
    /// Copy the record to a claim.
    Keep {
        /// The claim.
        name: String,
        /// Its uid.
        uid: String,
        /// The copy.
        record: String,
    },
    /// Set a pod's role label.
    Label {
        /// The pod.
        name: String,
        /// Its uid.
        uid: String,
        /// The value, or null.
        value: Value,
    },
    /// Ask for a larger volume.
    Grow {
        /// The claim.
        name: String,
        /// Its uid.
        uid: String,
        /// The size, as the spec gives it.
        size: Value,
    },
    /// Evict a pod.
    Evict {
        /// The pod.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// Send a command to a server.
    Valkey {
        /// The server.
        server: Arc<Server>,
        /// The connection that its facts came from.
        connection: Connection,
        /// The command.
        command: Command,
    },
}

/// The request of an effect on what was just looked at.
pub fn request(effect: &Effect, view: &mut View, look: &Look) -> Result<Request, Failure> {
    match effect.verb {
        Verb::CreateCredentials => Ok(Request::CreateCredentials(Arc::clone(&look.cluster))),
        Verb::Apply(object) => {
            let otherwise = look
                .seen
                .record
                .map(|record| record.pod)
                .unwrap_or_default();
            let route = view.route_of(object, otherwise);
            apply(object, route, None, view, look)
        }
        Verb::SetRoute {
            route: Route::Client,
            pod,
        } => apply(Object::ClientService, pod, None, view, look),
        Verb::SetRoute {
            route: Route::Primary,
            pod,
        } => apply(Object::PrimaryService, pod, None, view, look),
        Verb::ScaleIn { to } => apply(
            Object::StatefulSet,
            Ordinal::default(),
            Some(to),
            view,
            look,
        ),
        Verb::GrowVolume { pod, claim } => {
            let uid = view.interner.text(claim.0);
            let size = defaults::storage(&look.cluster.object.spec).size;
            Ok(Request::Grow {
                name: view.subject.name.claim(u32::from(pod.0)),
                uid: uid
                    .ok_or(Failure::Vanished("the claim is gone"))?
                    .to_owned(),
                size: json!(size),
            })
        }
        Verb::Evict { pod } => evict(effect, pod, view),
        Verb::Delete(object) => {
            let live = view
                .compared_live(object)
                .ok_or(Failure::Vanished("the object is gone"))?;
            Ok(Request::Delete {
                object,
                name: live.key().name.clone(),
                uid: live.uid().to_owned(),
                version: live.version(),
            })
        }
        Verb::RecordPrimary { record, serves } => record_primary(&record, serves, view, look),
        Verb::KeepRecord { record } => keep_record(&record, view),
        Verb::MarkPrimaryDown { .. } => {
            Err(Failure::Vanished("the marker is written with the status"))
        }
        Verb::SetLabel { pod, label } => set_label(pod, label, view, look),
        Verb::Promote { pod } => valkey(effect, pod, Command::Promote, view, look),
        Verb::StepDown { pod } => valkey(effect, pod, Command::StepDown, view, look),
        Verb::Detach { pod } => valkey(effect, pod, Command::StepDown, view, look),
        Verb::Fence { pod } => valkey(effect, pod, Command::StepDown, view, look),
        Verb::ReleaseFinalizer => Ok(Request::Release(Arc::clone(&look.cluster))),
        Verb::NeedReplica { pod, needed } => {
            valkey(effect, pod, Command::NeedReplica(needed), view, look)
        }
        Verb::Configure { pod } => valkey(
            effect,
            pod,
            Command::Configure(view.directives()),
            view,
            look,
        ),
        Verb::GoBackToConfig => go_back(view, look),
        Verb::DeleteOldConfig => {
            let gone = Failure::Vanished("there is no old configuration any more");
            let (name, uid, version) = view.old_configs(&look.cluster).next().ok_or(gone)?;
            Ok(Request::Delete {
                object: Object::Config,
                name,
                uid,
                version,
            })
        }
        Verb::Open { pod } => valkey(effect, pod, Command::Open, view, look),
        Verb::CloseClients { pod } => valkey(effect, pod, Command::CloseClients, view, look),
        Verb::PauseWrites { pod } => valkey(effect, pod, Command::PauseWrites, view, look),
        Verb::ResumeWrites { pod } => valkey(effect, pod, Command::ResumeWrites, view, look),
        Verb::AwaitCopy { pod, primary } => {
            let offset = offset_of(primary, view, look).ok_or(Failure::Vanished(
                "how far the primary has come is not known any more",
            ))?;
            valkey(effect, pod, Command::Await(offset), view, look)
        }
        Verb::Follow { pod, primary } => {
            let uid =
                uid_of(primary, look).ok_or(Failure::Vanished("the primary's pod is gone"))?;
            let server = view
                .server(uid)
                .ok_or(Failure::Vanished("the primary has no address"))?;
            valkey(effect, pod, Command::Follow(server.address), view, look)
        }
    }
}

fn uid_of(pod: Ordinal, look: &Look) -> Option<PodUid> {
    look.seen.pod(pod)?.object.value().map(|object| object.uid)
}

fn apply(
    object: Object,
    route: Ordinal,
    replicas: Option<u8>,
    view: &mut View,
    look: &Look,
) -> Result<Request, Failure> {
    let live = view.compared_live(object);
    let uid = live.as_ref().map(|live| live.uid().to_owned());
    let desired = view.desired(object, &look.cluster, route);
    let mut desired = desired.ok_or(Failure::Vanished(
        "the spec does not ask for this object any more",
    ))?;
    if object == Object::StatefulSet {
        let live = live.map(|live| live.value());
        desired = Arc::new(render::over_live(&desired, live.as_ref(), replicas));
    }
    Ok(Request::Apply {
        object,
        desired,
        uid,
        theirs: view.is_theirs(object),
    })
}

/// The StatefulSet with the last configuration that every server accepted.
fn go_back(view: &mut View, look: &Look) -> Result<Request, Failure> {
    let gone = || Failure::Vanished("there is no earlier configuration to go back to any more");
    let good = view.good_config(&look.cluster).ok_or_else(gone)?;
    let said = view.config_error().unwrap_or_default();
    let Request::Apply {
        object,
        desired,
        uid,
        theirs,
    } = apply(Object::StatefulSet, Ordinal::default(), None, view, look)?
    else {
        return Err(gone());
    };
    let desired = Arc::new(render::go_back(&desired, &view.subject.name, good, &said));
    Ok(Request::Apply {
        object,
        desired,
        uid,
        theirs,
    })
}

/// An eviction of exactly the pod that the guard names.
fn evict(effect: &Effect, pod: Ordinal, view: &View) -> Result<Request, Failure> {
    let guarded = effect.guard.pod.filter(|(of, _)| *of == pod);
    let uid = guarded.and_then(|(_, uid)| view.interner.text(uid.0));
    Ok(Request::Evict {
        name: view.subject.name.pod(u32::from(pod.0)),
        uid: uid.ok_or(Failure::Vanished("the pod is gone"))?.to_owned(),
    })
}

/// How far the server of the last primary that served has come, in a pod that is there or not any more.
fn offset_of(primary: Ordinal, view: &View, look: &Look) -> Option<u64> {
    let served = look.seen.record?.truth();
    if served.pod != primary {
        return None;
    }
    let answer = view.server(served.pod_uid)?.snapshot().answer?;
    Some(answer.info.offset())
}

/// A command for the server of the pod that the guard names, which may be one whose object is gone.
fn valkey(
    effect: &Effect,
    pod: Ordinal,
    command: Command,
    view: &View,
    look: &Look,
) -> Result<Request, Failure> {
    let gone = Failure::Vanished("the pod is gone");
    let guarded = effect.guard.pod.filter(|(of, _)| *of == pod);
    let server = guarded
        .map(|(_, uid)| uid)
        .or_else(|| uid_of(pod, look))
        .and_then(|uid| view.server(uid))
        .ok_or(gone)?;
    let connection = server.snapshot().connection;
    let connection = connection.filter(|connection| !connection.has_ended());
    let connection = connection.ok_or(Failure::Valkey(crate::valkey::Failure::Closed))?;
    Ok(Request::Valkey {
        server,
        connection,
        command,
    })
}

fn set_label(pod: Ordinal, label: RoleLabel, view: &View, look: &Look) -> Result<Request, Failure> {
    let uid = uid_of(pod, look).and_then(|uid| view.interner.text(uid.0));
    let value = match label {
        RoleLabel::None => Value::Null,
        RoleLabel::Primary => json!(labels::ROLE_PRIMARY),
        RoleLabel::Replica => json!(labels::ROLE_REPLICA),
    };
    Ok(Request::Label {
        name: view.subject.name.pod(u32::from(pod.0)),
        uid: uid.ok_or(Failure::Vanished("the pod is gone"))?.to_owned(),
        value,
    })
}

/// Writes the record; a new epoch makes the marker of the old one void.
fn record_primary(
    record: &Record,
    serves: Option<Order>,
    view: &View,
    look: &Look,
) -> Result<Request, Failure> {
    let unknown = Failure::Vanished("an identity in the record is not known any more");
    let mut written =
        parse::record_status(record, &view.subject.name, &view.interner).ok_or(unknown)?;
    written.recorded_at = Some(view.wall());
    let mut fields = serde_json::to_value(&written).unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        for optional in ["claimUid", "replid", "continues", "served", "planned"] {
            fields.entry(optional).or_insert(Value::Null);
        }
    }
    // A merge patch keeps what it does not name.
    if let Some(served) = fields.pointer_mut("/served").and_then(Value::as_object_mut) {
        for optional in ["claimUid", "replid"] {
            served.entry(optional).or_insert(Value::Null);
        }
    }
    let mut status = json!({ "primaryRecord": fields });
    let new = look
        .seen
        .record
        .is_none_or(|before| before.epoch != record.epoch);
    if let (true, Some(status)) = (new, status.as_object_mut()) {
        status.insert("primaryDownSince".to_owned(), Value::Null);
        status.insert("primaryDownFor".to_owned(), Value::Null);
    }
    if let (Some(order), Some(status)) = (serves, status.as_object_mut()) {
        let object = &look.cluster.object;
        let (field, token) = match order {
            Order::Promote => ("lastPromoteToken", parse::promote_token(object)),
            Order::Failover => ("lastFailoverToken", parse::failover_token(object)),
        };
        let token = token.ok_or(Failure::Vanished("the order was withdrawn"))?;
        status.insert(field.to_owned(), json!(token));
    }
    Ok(Request::Status(StatusPatch {
        cluster: Arc::clone(&look.cluster),
        status,
    }))
}

fn keep_record(record: &Record, view: &View) -> Result<Request, Failure> {
    let unknown = || Failure::Vanished("an identity in the record is not known any more");
    let written = parse::record_status(record, &view.subject.name, &view.interner);
    let written = written.ok_or_else(unknown)?;
    let uid = written.claim_uid.clone().ok_or_else(unknown)?;
    let record_text = serde_json::to_string(&written).map_err(|_| unknown())?;
    Ok(Request::Keep {
        name: view.subject.name.claim(u32::from(record.pod.0)),
        uid,
        record: record_text,
    })
}
