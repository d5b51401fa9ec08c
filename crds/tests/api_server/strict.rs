//! Unknown fields are refused when the client asks for strictness (kubectl's default), at every depth of our own types.

use serde_json::{Value, json};

use crate::objects::{acl, cluster, merged, s3};
use crate::server::{VERSIONS, in_namespace};

#[tokio::test]
async fn unknown_fields_are_refused_everywhere_in_both_versions() {
    in_namespace("strict", |server| async move {
        let specs = [
            ("spec", json!({})),
            ("spec.storage", json!({"storage": {}})),
            ("spec.auth", json!({"auth": {}})),
            ("spec.tls", json!({"tls": {}})),
            (
                "spec.tls.issuerRef",
                json!({"tls": {"issuerRef": {"name": "i"}}}),
            ),
            ("spec.metrics", json!({"metrics": {}})),
            ("spec.logging", json!({"logging": {}})),
            (
                "spec.sentinel",
                json!({"topology": "Sentinel", "sentinel": {}}),
            ),
            ("spec.resources", json!({"resources": {}})),
            ("spec.affinity", json!({"affinity": {}})),
            ("spec.podSecurityContext", json!({"podSecurityContext": {}})),
            (
                "spec.containerSecurityContext",
                json!({"containerSecurityContext": {}}),
            ),
            (
                "spec.podDisruptionBudget",
                json!({"podDisruptionBudget": {}}),
            ),
            ("spec.networkPolicy", json!({"networkPolicy": {}})),
            ("spec.backup", json!({"backup": {}})),
            ("spec.backup.s3", json!({"backup": {"s3": s3()}})),
            (
                "spec.restoreFrom",
                json!({"restoreFrom": {"s3": s3(), "sourceKey": "k"}}),
            ),
            (
                "spec.replicateFrom",
                json!({"replicateFrom": {"host": "h"}}),
            ),
            (
                "spec.replicateFrom.passwordSecret",
                json!({"replicateFrom": {"host": "h", "passwordSecret": {"name": "p"}}}),
            ),
        ];
        for version in VERSIONS {
            for (path, spec) in &specs {
                let known = server.offer(&cluster(version, spec.clone())).await;
                assert!(known.is_ok(), "{spec} has only known fields: {known:?}");
                let object = merged(cluster(version, spec.clone()), misspelt(path));
                let refusal = server
                    .offer(&object)
                    .await
                    .expect_err("an unknown field is refused");
                assert!(
                    refusal.contains(&format!("unknown field \"{path}.misspelt\"")),
                    "{refusal}"
                );
            }
            let user =
                json!({"clusterRef": {"name": "web"}, "users": [{"name": "a", "misspelt": 1}]});
            let refusal = server
                .offer(&acl(version, user))
                .await
                .expect_err("an unknown field is refused");
            assert!(
                refusal.contains("unknown field \"spec.users[0].misspelt\""),
                "{refusal}"
            );
        }
    })
    .await;
}

/// An object that has nothing but an unknown field at this path.
fn misspelt(path: &str) -> Value {
    path.rsplit('.')
        .fold(json!({"misspelt": 1}), |inner, name| json!({name: inner}))
}
