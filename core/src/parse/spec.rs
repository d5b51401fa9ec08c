//! The ValkeyCluster as facts.

use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{Profile, StorageMedium, Topology, ValkeyCluster, ValkeyClusterSpec};
use wellcake_crds::{annotations, defaults};

use super::pod::ordinal;
use crate::facts::{Epoch, Ordinal, Persistence, PromoteOrder, SpecFacts, Target, Unserved};
use crate::limits;
use crate::render;

/// What a ValkeyCluster asks for.
pub fn spec_facts(cluster: &ValkeyCluster) -> SpecFacts {
    let spec = &cluster.spec;
    let storage = defaults::storage(spec);
    let status = cluster.status.as_ref();
    let asked = |key: &str, served: Option<&String>| {
        annotation(cluster, key).is_some_and(|token| served.map(String::as_str) != Some(token))
    };
    SpecFacts {
        generation: cluster.metadata.generation.unwrap_or(0),
        topology: spec.topology,
        profile: spec.profile,
        pods: u8::try_from(defaults::data_pods(spec))
            .unwrap_or(u8::MAX)
            .min(limits::MAX_PODS),
        persistence: Persistence {
            aof: storage.mode.has_aof(),
            rdb: storage.mode.has_rdb(),
            claims: storage.medium == StorageMedium::Disk,
            saves_at_end: storage.mode.has_aof()
                || (storage.mode.has_rdb() && has_save_points(spec)),
        },
        needs_replica: needs_replica(spec),
        replica_lag: replica_lag(spec),
        image_major: render::image_major(&spec.image),
        unserved: unserved(spec),
        promote: promote_order(cluster),
        failover: failover_token(cluster).map(|_| failover_target(cluster)),
        hibernate: is_to_hibernate(cluster),
        adopt: annotation(cluster, annotations::ADOPT) == Some("true"),
        foreign_finalizer: has_foreign_finalizer(cluster),
        rotation_asked: asked(
            annotations::ROTATE_PASSWORD,
            status.and_then(|status| status.last_password_rotation_token.as_ref()),
        ),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
    }
}

/// Whether the server makes snapshots by itself: `spec.config` may take its save points away.
fn has_save_points(spec: &ValkeyClusterSpec) -> bool {
    let given = spec.config.get("save").map(|points| points.trim());
    !matches!(given, Some("" | "\"\"" | "''"))
}

/// Whether a primary is to take writes only while a replica acknowledges. Who sets the directive decides for himself.
fn needs_replica(spec: &ValkeyClusterSpec) -> bool {
    spec.topology == Topology::Replication
        && spec.profile == Profile::Durable
        && directive(spec, ["min-replicas-to-write", "min-slaves-to-write"]).is_none()
}

/// `min-replicas-max-lag`. One that cannot be read is taken for the longest: nothing is promoted early because of it.
fn replica_lag(spec: &ValkeyClusterSpec) -> u32 {
    let lag = directive(spec, ["min-replicas-max-lag", "min-slaves-max-lag"]);
    lag.map_or(limits::REPLICA_LAG_SECONDS, |lag| {
        lag.trim().parse().unwrap_or(u32::MAX)
    })
}

/// What the user sets a directive to, by its name or its older one; the server takes them in any case.
fn directive<'a>(spec: &'a ValkeyClusterSpec, names: [&str; 2]) -> Option<&'a str> {
    let is_named = |key: &str| names.iter().any(|name| name.eq_ignore_ascii_case(key));
    spec.config
        .iter()
        .find_map(|(key, value)| is_named(key.trim()).then_some(value.as_str()))
}

/// The field of a spec that is not served and whose neglect would harm most: what would lay data or passwords open comes
/// first, then what would make another server than was asked for, then what would be missing beside it.
pub fn unserved(spec: &ValkeyClusterSpec) -> Option<Unserved> {
    let table = [
        (defaults::tls_enabled(spec), Unserved::Tls),
        (
            defaults::allowed_peers(spec).is_some(),
            Unserved::NetworkPolicy,
        ),
        (spec.topology == Topology::Cluster, Unserved::Cluster),
        (spec.topology == Topology::Sentinel, Unserved::Sentinel),
        (spec.replicate_from.is_some(), Unserved::ReplicateFrom),
        (spec.restore_from.is_some(), Unserved::RestoreFrom),
        (defaults::backup_enabled(spec), Unserved::Backup),
        (defaults::metrics_enabled(spec), Unserved::Metrics),
    ];
    table
        .into_iter()
        .find_map(|(set, field)| set.then_some(field))
}

/// The value of the annotation `valkey.wellcake.io/promote` that has not been served, as it is remembered afterwards.
pub fn promote_token(cluster: &ValkeyCluster) -> Option<&str> {
    let token = annotation(cluster, annotations::PROMOTE)?;
    let served = cluster
        .status
        .as_ref()
        .and_then(|status| status.last_promote_token.as_deref());
    (served != Some(token)).then_some(token)
}

/// The value of the annotation `valkey.wellcake.io/failover` that has not been served.
pub fn failover_token(cluster: &ValkeyCluster) -> Option<&str> {
    let token = annotation(cluster, annotations::FAILOVER)?;
    let served = cluster
        .status
        .as_ref()
        .and_then(|status| status.last_failover_token.as_deref());
    (served != Some(token)).then_some(token)
}

/// The restart of the pods that is asked for, by the value of the annotation `valkey.wellcake.io/restart`.
pub fn restart_token(cluster: &ValkeyCluster) -> Option<&str> {
    annotation(cluster, annotations::RESTART)
}

fn failover_target(cluster: &ValkeyCluster) -> Target {
    let Some(target) = annotation(cluster, annotations::FAILOVER_TARGET) else {
        return Target::Any;
    };
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let pods = u8::try_from(defaults::data_pods(&cluster.spec)).unwrap_or(u8::MAX);
    ClusterName::parse(name)
        .ok()
        .and_then(|name| ordinal(target, &name))
        .filter(|pod| pod.0 < pods)
        .map_or(Target::Unknown, Target::Pod)
}

/// Whether the annotation `valkey.wellcake.io/hibernate` is exactly `true`.
pub fn is_to_hibernate(cluster: &ValkeyCluster) -> bool {
    annotation(cluster, annotations::HIBERNATE) == Some("true")
}

fn has_foreign_finalizer(cluster: &ValkeyCluster) -> bool {
    let all = cluster.metadata.finalizers.iter().flatten();
    all.into_iter()
        .any(|one| one == annotations::FOREIGN_FINALIZER)
}

/// An order that cannot be read names a pod that cannot exist, so that it is refused instead of overlooked.
fn promote_order(cluster: &ValkeyCluster) -> Option<PromoteOrder> {
    let token = promote_token(cluster)?;
    let unreadable = PromoteOrder {
        pod: Ordinal(u8::MAX),
        epoch: Epoch(u32::MAX),
    };
    Some(read_order(cluster, token).unwrap_or(unreadable))
}

/// Reads `<pod>/<epoch>/<token>`.
fn read_order(cluster: &ValkeyCluster, text: &str) -> Option<PromoteOrder> {
    let name = ClusterName::parse(cluster.metadata.name.as_deref()?).ok()?;
    let (pod, rest) = text.split_once('/')?;
    let (epoch, token) = rest.split_once('/')?;
    if token.is_empty() {
        return None;
    }
    Some(PromoteOrder {
        pod: ordinal(pod, &name)?,
        epoch: Epoch(epoch.parse().ok()?),
    })
}

/// The value of an annotation; an empty one counts as absent.
fn annotation<'a>(cluster: &'a ValkeyCluster, key: &str) -> Option<&'a str> {
    let value = cluster.metadata.annotations.as_ref()?.get(key)?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}
