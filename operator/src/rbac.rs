//! What the operator may do in Kubernetes: what it watches, what its effects need, and nothing else.
//!
//! The chart's roles are made from [`namespaced`], [`cluster`] and [`leader`]. There is no right to delete a Secret, a pod or
//! a claim, none to run programs in pods, and none to list Secrets or ConfigMaps: they are read by name.

use std::collections::{BTreeMap, BTreeSet};

use wellcake_core::effects::Kind;
use wellcake_core::facts::Object;

/// API group, resource and verbs.
type Access = (&'static str, &'static str, &'static [&'static str]);

const CORE: &str = "";
const APPS: &str = "apps";
const POLICY: &str = "policy";
const OWN: &str = "cache.wellcake.io";

/// What is needed to see.
const WATCHED: &[Access] = &[
    (OWN, "valkeyclusters", WATCH),
    (CORE, "pods", WATCH),
    (CORE, "services", WATCH),
    (CORE, "persistentvolumeclaims", WATCH),
    (APPS, "statefulsets", WATCH),
    (POLICY, "poddisruptionbudgets", WATCH),
    (CORE, "configmaps", &["get"]),
    (CORE, "secrets", &["get"]),
];
const WATCH: &[&str] = &["list", "watch"];

/// What is seen of the whole cluster.
const WATCHED_CLUSTER_WIDE: &[Access] = &[(CORE, "nodes", WATCH)];

/// What is needed to tell: status, and events on transitions.
const TOLD: &[Access] = &[
    (OWN, "valkeyclusters/status", &["patch"]),
    ("events.k8s.io", "events", &["create"]),
];

/// An owner reference with `blockOwnerDeletion` needs this where the admission plugin OwnerReferencesPermissionEnforcement
/// is on, as in OpenShift.
const OWNING: &[Access] = &[(OWN, "valkeyclusters/finalizers", &["update"])];

/// What one kind of effect needs.
fn needs_of(kind: Kind) -> Vec<Access> {
    match kind {
        Kind::CreateCredentials => vec![(CORE, "secrets", &["create"])],
        Kind::Apply => Object::ALL.into_iter().filter_map(apply).collect(),
        Kind::Delete => Object::ALL.into_iter().filter_map(delete).collect(),
        Kind::SetRoute => vec![(CORE, "services", &["patch"])],
        Kind::RecordPrimary => vec![(OWN, "valkeyclusters/status", &["patch"])],
        Kind::KeepRecord | Kind::GrowVolume => {
            vec![(CORE, "persistentvolumeclaims", &["patch"])]
        }
        Kind::ReleaseFinalizer => vec![(OWN, "valkeyclusters", &["patch"])],
        Kind::MarkPrimaryDown => vec![(OWN, "valkeyclusters/status", &["patch"])],
        Kind::SetLabel => vec![(CORE, "pods", &["patch"])],
        // The pod is looked at afterwards.
        Kind::Evict => vec![
            (CORE, "pods/eviction", &["create"]),
            (CORE, "pods", &["get"]),
        ],
        Kind::DeleteOldConfig => vec![(CORE, "configmaps", &["list", "delete"])],
        Kind::ScaleIn | Kind::GoBackToConfig => apply(Object::StatefulSet).into_iter().collect(),
        // Spoken to the server itself.
        Kind::Promote
        | Kind::Follow
        | Kind::StepDown
        | Kind::Open
        | Kind::PauseWrites
        | Kind::ResumeWrites
        | Kind::AwaitCopy
        | Kind::CloseClients
        | Kind::Detach
        | Kind::NeedReplica
        | Kind::Configure => vec![],
        Kind::Fence => vec![],
    }
}

/// What applying an object needs: server-side apply is a PATCH, and a CREATE where the object does not exist yet; what no cache
/// holds is looked for first.
fn apply(object: Object) -> Option<Access> {
    const APPLY: &[&str] = &["create", "get", "patch"];
    Some(match object {
        // Never applied, only created.
        Object::Credentials => return None,
        Object::Config => (CORE, "configmaps", APPLY),
        Object::HeadlessService
        | Object::ReplicasService
        | Object::ClientService
        | Object::PrimaryService => (CORE, "services", APPLY),
        Object::StatefulSet => (APPS, "statefulsets", APPLY),
        Object::DisruptionBudget => (POLICY, "poddisruptionbudgets", APPLY),
    })
}

/// What deleting an object needs that a spec can stop to ask for. The others are always asked for, and go with the
/// ValkeyCluster by garbage collection.
fn delete(object: Object) -> Option<Access> {
    const DELETE: &[&str] = &["delete"];
    match object {
        Object::ReplicasService | Object::PrimaryService => Some((CORE, "services", DELETE)),
        Object::DisruptionBudget => Some((POLICY, "poddisruptionbudgets", DELETE)),
        Object::Credentials
        | Object::Config
        | Object::HeadlessService
        | Object::ClientService
        | Object::StatefulSet => None,
    }
}

/// Rules of the namespaces that are served.
pub fn namespaced() -> String {
    yaml(in_namespaces(), None)
}

fn in_namespaces() -> impl Iterator<Item = Need> {
    let fixed = [
        ("to see", WATCHED),
        ("to tell", TOLD),
        ("to own objects", OWNING),
    ];
    let fixed = fixed.into_iter().flat_map(|(why, all)| {
        let need = move |access: &Access| (why.to_owned(), *access);
        all.iter().map(need)
    });
    let effects = Kind::ALL.into_iter().flat_map(|kind| {
        let need = move |access| (format!("effect `{}`", kind.as_str()), access);
        needs_of(kind).into_iter().map(need)
    });
    fixed.chain(effects)
}

/// Rules of what has no namespace.
pub fn cluster() -> String {
    yaml(in_cluster(), None)
}

fn in_cluster() -> impl Iterator<Item = Need> {
    let need = |access: &Access| ("to see".to_owned(), *access);
    WATCHED_CLUSTER_WIDE.iter().map(need)
}

/// Rules of the leader election, in the operator's own namespace. A name cannot restrict `create`, and restricts `list` and
/// `watch` to requests that select it (Kubernetes documentation, "Referring to resources"). `LEASE` stands for the name.
pub fn leader() -> String {
    let [create, rest] = elections();
    yaml([create], None) + &yaml([rest], Some("LEASE"))
}

fn elections() -> [Need; 2] {
    const LEASES: &str = "coordination.k8s.io";
    let rest: &[&str] = &["get", "list", "update", "watch"];
    [&["create"], rest].map(|verbs| ("leader election".to_owned(), (LEASES, "leases", verbs)))
}

/// `docs/reference/permissions.md`.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Permissions of the operator\n\n\
         What the chart's roles allow, and what for. There is no right to delete a Secret, a pod, a claim or a StatefulSet, \
         none to run programs in pods, and none to list Secrets or ConfigMaps: they are read by name.\n\n\
         ## In the namespaces that are served\n\n\
         All, or those that the chart's value `watchNamespaces` names.\n",
    );
    out.push_str(&table(in_namespaces()));
    out.push_str("\n## In the whole cluster\n");
    out.push_str(&table(in_cluster()));
    out.push_str("\n## In the operator's own namespace\n");
    out.push_str(&table(elections()));
    out.push_str("\nAll but `create` for the operator's own Lease only.\n");
    out
}

fn table(needs: impl IntoIterator<Item = Need>) -> String {
    let mut out = String::from("\n| API group | resource | verb | what for |\n|---|---|---|---|\n");
    for ((group, resource), verbs) in by_resource(needs) {
        let group = if group.is_empty() { "core" } else { group };
        for (verb, why) in verbs {
            let why: Vec<String> = why.into_iter().collect();
            let why = why.join(", ");
            out.push_str(&format!("| {group} | {resource} | {verb} | {why} |\n"));
        }
    }
    out
}

/// What something is needed for, and what.
type Need = (String, Access);
/// For each group and resource its verbs, and for each verb what for.
type ByResource = BTreeMap<(&'static str, &'static str), BTreeMap<&'static str, BTreeSet<String>>>;

fn by_resource(needs: impl IntoIterator<Item = Need>) -> ByResource {
    let mut rules = ByResource::new();
    for (why, (group, resource, verbs)) in needs {
        let rule = rules.entry((group, resource)).or_default();
        for verb in verbs {
            rule.entry(verb).or_default().insert(why.clone());
        }
    }
    rules
}

/// One rule per resource, everything in order.
fn yaml(needs: impl IntoIterator<Item = Need>, name: Option<&str>) -> String {
    let mut out = String::new();
    for ((group, resource), verbs) in by_resource(needs) {
        let verbs: Vec<&str> = verbs.into_keys().collect();
        out.push_str(&format!(
            "- apiGroups: [\"{group}\"]\n  resources: [\"{resource}\"]\n"
        ));
        if let Some(name) = name {
            out.push_str(&format!("  resourceNames: [\"{name}\"]\n"));
        }
        out.push_str(&format!("  verbs: [\"{}\"]\n", verbs.join("\", \"")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_dangerous_is_allowed() {
        let rules = namespaced() + &cluster() + &leader();
        for word in [
            "*",
            "pods/exec",
            "pods/attach",
            "deletecollection",
            "escalate",
            "bind",
            "impersonate",
        ] {
            assert!(!rules.contains(word), "{word} in\n{rules}");
        }
        let rules = namespaced();
        // Files of earlier configurations are found and deleted.
        for (resource, never) in [
            ("secrets", ["delete", "list", "watch", "update"].as_slice()),
            ("configmaps", &["deletecollection", "watch", "update"]),
        ] {
            let verbs = verbs_of(&rules, resource);
            for verb in never {
                assert!(
                    !verbs.contains(&format!("\"{verb}\"")),
                    "{resource}: {verbs}"
                );
            }
        }
        for resource in [
            "pods",
            "persistentvolumeclaims",
            "statefulsets",
            "valkeyclusters",
        ] {
            assert!(!verbs_of(&rules, resource).contains("delete"), "{resource}");
        }
    }

    /// A ValkeyCluster gets no finalizer: nothing is left to do that garbage collection does not. What is patched beside the status is
    /// the finalizer of another operator, which is taken away.
    #[test]
    fn a_valkey_cluster_is_only_patched_and_owned_objects_may_block_their_owner() {
        let rules = namespaced();
        assert_eq!(
            verbs_of(&rules, "valkeyclusters").trim(),
            "verbs: [\"list\", \"patch\", \"watch\"]"
        );
        assert_eq!(
            verbs_of(&rules, "valkeyclusters/status").trim(),
            "verbs: [\"patch\"]"
        );
        let finalizers = verbs_of(&rules, "valkeyclusters/finalizers");
        assert!(finalizers.contains("\"update\""), "{finalizers}");
    }

    /// The line of verbs of a resource.
    fn verbs_of<'r>(rules: &'r str, resource: &str) -> &'r str {
        let head = format!("  resources: [\"{resource}\"]\n");
        let (_, rest) = rules.split_once(&head).expect("the resource has a rule");
        rest.lines().next().expect("a rule has verbs")
    }
}
