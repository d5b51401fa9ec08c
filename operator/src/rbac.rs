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
const WATCH: &[&str] = &["get", "list", "watch"];

/// What is seen of the whole cluster.
const WATCHED_CLUSTER_WIDE: &[Access] = &[(CORE, "nodes", WATCH)];

/// What is needed to tell: status, and events on transitions.
const TOLD: &[Access] = &[
    (OWN, "valkeyclusters/status", &["patch"]),
    ("events.k8s.io", "events", &["create", "patch"]),
];

/// An owner reference with `blockOwnerDeletion` needs this where the admission plugin OwnerReferencesPermissionEnforcement
/// is on, as in OpenShift.
const OWNING: &[Access] = &[(OWN, "valkeyclusters/finalizers", &["update"])];

/// What one kind of effect needs.
fn needs(kind: Kind) -> Vec<Access> {
    match kind {
        Kind::CreateCredentials => vec![(CORE, "secrets", &["create"])],
        Kind::Apply => Object::ALL.into_iter().flat_map(apply).collect(),
        Kind::Delete => vec![(POLICY, "poddisruptionbudgets", &["delete"])],
        Kind::SetRoute => vec![(CORE, "services", &["patch"])],
        Kind::RecordPrimary => vec![
            (OWN, "valkeyclusters/status", &["patch"]),
            (CORE, "persistentvolumeclaims", &["patch"]),
        ],
        Kind::MarkPrimaryDown => vec![(OWN, "valkeyclusters/status", &["patch"])],
        Kind::SetLabel => vec![(CORE, "pods", &["patch"])],
        // Spoken to the server itself.
        Kind::Promote | Kind::Follow | Kind::Open | Kind::CloseClients => vec![],
    }
}

/// What applying an object needs: server-side apply is a PATCH, and a CREATE where the object does not exist yet.
fn apply(object: Object) -> Option<Access> {
    const APPLY: &[&str] = &["create", "patch"];
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

/// Rules of the namespaces that are served.
pub fn namespaced() -> String {
    let effects: Vec<Access> = Kind::ALL.into_iter().flat_map(needs).collect();
    let all = [WATCHED, TOLD, OWNING, &effects];
    render(all.into_iter().flatten().copied(), None)
}

/// Rules of what has no namespace.
pub fn cluster() -> String {
    render(WATCHED_CLUSTER_WIDE.iter().copied(), None)
}

/// Rules of the leader election, in the operator's own namespace. A name cannot restrict `create`, and restricts `list` and
/// `watch` to requests that select it (Kubernetes documentation, "Referring to resources"). `LEASE` stands for the name.
pub fn leader() -> String {
    const LEASES: &str = "coordination.k8s.io";
    let named: Access = (LEASES, "leases", &["get", "list", "update", "watch"]);
    let create: Access = (LEASES, "leases", &["create"]);
    render([create], None) + &render([named], Some("LEASE"))
}

/// One rule per resource, everything in order.
fn render(accesses: impl IntoIterator<Item = Access>, name: Option<&str>) -> String {
    let mut rules: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (group, resource, verbs) in accesses {
        rules.entry((group, resource)).or_default().extend(verbs);
    }
    let mut out = String::new();
    for ((group, resource), verbs) in rules {
        let verbs: Vec<&str> = verbs.into_iter().collect();
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
        for resource in ["secrets", "configmaps"] {
            let verbs = verbs_of(&rules, resource);
            for verb in ["delete", "list", "watch", "update"] {
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

    /// The line of verbs of a resource.
    fn verbs_of<'r>(rules: &'r str, resource: &str) -> &'r str {
        let head = format!("  resources: [\"{resource}\"]\n");
        let (_, rest) = rules.split_once(&head).expect("the resource has a rule");
        rest.lines().next().expect("a rule has verbs")
    }
}
