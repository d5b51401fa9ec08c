//! Values that the schema itself refuses: wrong words, too small, too large, too long, wrong form.

use serde_json::{Value, json};

use crate::objects::{acl, cluster, merged, s3};
use crate::server::{VERSIONS, in_namespace};

fn refused_specs() -> Vec<(&'static str, Value, &'static str)> {
    let backup = |over: Value| json!({"backup": over});
    let sentinel = |over: Value| json!({"topology": "Sentinel", "sentinel": over});
    let source = |over: Value| json!({"replicateFrom": merged(json!({"host": "h"}), over)});
    let many = |n: usize| {
        (0..n)
            .map(|i| (format!("k{i}"), json!("v")))
            .collect::<serde_json::Map<_, _>>()
    };
    vec![
        (
            "spec.topology",
            json!({"topology": "Ring"}),
            "Unsupported value",
        ),
        (
            "spec.profile",
            json!({"profile": "cache"}),
            "Unsupported value",
        ),
        (
            "spec.image",
            json!({"image": ""}),
            "should be at least 1 chars long",
        ),
        ("spec.image", json!({"image": "a b"}), "should match"),
        (
            "spec.imagePullPolicy",
            json!({"imagePullPolicy": "Sometimes"}),
            "Unsupported value",
        ),
        (
            "spec.replicas",
            json!({"replicas": 0}),
            "greater than or equal to 1",
        ),
        (
            "spec.replicas",
            json!({"replicas": 101}),
            "less than or equal to 100",
        ),
        (
            "spec.replicas",
            json!({"replicas": "3"}),
            "must be of type integer",
        ),
        (
            "spec.shards",
            json!({"topology": "Cluster", "shards": 2}),
            "greater than or equal to 3",
        ),
        (
            "spec.shards",
            json!({"topology": "Cluster", "shards": 1001}),
            "less than or equal to 1000",
        ),
        (
            "spec.replicasPerShard",
            json!({"topology": "Cluster", "shards": 3, "replicasPerShard": -1}),
            "greater than or equal to 0",
        ),
        (
            "spec.sentinel.replicas",
            sentinel(json!({"replicas": 2})),
            "greater than or equal to 3",
        ),
        (
            "spec.sentinel.quorum",
            sentinel(json!({"quorum": 0})),
            "greater than or equal to 1",
        ),
        (
            "spec.sentinel.image",
            sentinel(json!({"image": "; id"})),
            "should match",
        ),
        (
            "spec.storage.mode",
            json!({"storage": {"mode": "RDB"}}),
            "Unsupported value",
        ),
        (
            "spec.storage.mode",
            json!({"storage": {"mode": ""}}),
            "Unsupported value",
        ),
        (
            "spec.storage.medium",
            json!({"storage": {"medium": "Tape"}}),
            "Unsupported value",
        ),
        (
            "spec.storage.size",
            json!({"storage": {"size": "big"}}),
            "should match",
        ),
        (
            "spec.storage.storageClassName",
            json!({"storage": {"storageClassName": "A_b"}}),
            "should match",
        ),
        (
            "spec.resources.limits.memory",
            json!({"resources": {"limits": {"memory": "2 GB"}}}),
            "should match",
        ),
        (
            "spec.auth.existingSecret",
            json!({"auth": {"existingSecret": "a/b"}}),
            "should match",
        ),
        (
            "spec.tls.existingSecret",
            json!({"tls": {"existingSecret": "UPPER"}}),
            "should match",
        ),
        (
            "spec.tls.issuerRef.name",
            json!({"tls": {"issuerRef": {}}}),
            "Required value",
        ),
        (
            "spec.tls.issuerRef.kind",
            json!({"tls": {"issuerRef": {"name": "a", "kind": "CA"}}}),
            "Unsupported value",
        ),
        (
            "spec.metrics.image",
            json!({"metrics": {"image": "a\nb"}}),
            "should match",
        ),
        (
            "spec.config",
            json!({"config": many(257)}),
            "must have at most 256 items",
        ),
        (
            "spec.config.save",
            json!({"config": {"save": "1 1\nrequirepass x"}}),
            "should match",
        ),
        (
            "spec.config.save",
            json!({"config": {"save": "a\u{0}b"}}),
            "should match",
        ),
        (
            "spec.config.save",
            json!({"config": {"save": "x".repeat(4097)}}),
            "may not be more than 4096",
        ),
        (
            "spec.config.timeout",
            json!({"config": {"timeout": 0}}),
            "must be of type string",
        ),
        (
            "spec.logging.format",
            json!({"logging": {"format": "xml"}}),
            "Unsupported value",
        ),
        (
            "spec.nodeSelector",
            json!({"nodeSelector": many(65)}),
            "must have at most 64 items",
        ),
        (
            "spec.tolerations",
            json!({"tolerations": vec![json!({}); 65]}),
            "must have at most 64 items",
        ),
        (
            "spec.networkPolicy.allowFrom",
            json!({"networkPolicy": {"allowFrom": vec![json!({}); 65]}}),
            "must have at most 64 items",
        ),
        (
            "spec.backup.schedule",
            backup(json!({"schedule": "at night"})),
            "should match",
        ),
        (
            "spec.backup.schedule",
            backup(json!({"schedule": "0 3 * *"})),
            "should match",
        ),
        (
            "spec.backup.retention",
            backup(json!({"retention": -1})),
            "greater than or equal to 0",
        ),
        (
            "spec.backup.s3.bucket",
            backup(json!({"s3": {"credentialsSecret": "c"}})),
            "Required value",
        ),
        (
            "spec.backup.s3.credentialsSecret",
            backup(json!({"s3": {"bucket": "b"}})),
            "Required value",
        ),
        (
            "spec.backup.s3.encryption",
            backup(json!({"s3": merged(s3(), json!({"encryption": "aws:kms"}))})),
            "Unsupported value",
        ),
        (
            "spec.restoreFrom.sourceKey",
            json!({"restoreFrom": {"s3": s3()}}),
            "Required value",
        ),
        (
            "spec.restoreFrom.s3",
            json!({"restoreFrom": {"sourceKey": "k"}}),
            "Required value",
        ),
        (
            "spec.replicateFrom.host",
            json!({"replicateFrom": {}}),
            "Required value",
        ),
        (
            "spec.replicateFrom.host",
            source(json!({"host": "h;id"})),
            "should match",
        ),
        (
            "spec.replicateFrom.port",
            source(json!({"port": 0})),
            "greater than or equal to 1",
        ),
        (
            "spec.replicateFrom.port",
            source(json!({"port": 65536})),
            "less than or equal to 65535",
        ),
        (
            "spec.replicateFrom.passwordSecret.name",
            source(json!({"passwordSecret": {}})),
            "Required value",
        ),
        (
            "spec.replicateFrom.caSecret.name",
            source(json!({"caSecret": {"name": ""}})),
            "at least 1 chars long",
        ),
    ]
}

fn refused_users() -> Vec<(&'static str, Value, &'static str)> {
    let of = |user: Value| json!({"clusterRef": {"name": "web"}, "users": [user]});
    let twice = json!([{"name": "a"}, {"name": "a"}]);
    let many: Vec<_> = (0..129).map(|i| json!({"name": format!("u{i}")})).collect();
    vec![
        ("spec.clusterRef", json!({}), "Required value"),
        (
            "spec.clusterRef.name",
            json!({"clusterRef": {}}),
            "Required value",
        ),
        (
            "spec.clusterRef.name",
            json!({"clusterRef": {"name": ""}}),
            "at least 1 chars long",
        ),
        ("spec.users[0].name", of(json!({})), "Required value"),
        (
            "spec.users[0].name",
            of(json!({"name": "a b"})),
            "should match",
        ),
        (
            "spec.users[0].name",
            of(json!({"name": "a\"b"})),
            "should match",
        ),
        (
            "spec.users[0].rules",
            of(json!({"name": "a", "rules": "on\nuser x"})),
            "should match",
        ),
        (
            "spec.users[0].passwordSecret.key",
            of(json!({"name": "a", "passwordSecret": {"name": "p", "key": "/"}})),
            "should match",
        ),
        (
            "spec.users[1]",
            json!({"clusterRef": {"name": "web"}, "users": twice}),
            "Duplicate value",
        ),
        (
            "spec.users",
            json!({"clusterRef": {"name": "web"}, "users": many}),
            "must have at most 128 items",
        ),
    ]
}

#[tokio::test]
async fn the_schema_refuses_values_out_of_bounds_in_both_versions() {
    in_namespace("bounds", |server| async move {
        for version in VERSIONS {
            let clusters = refused_specs()
                .into_iter()
                .map(|(path, spec, why)| (path, cluster(version, spec), why));
            let users = refused_users()
                .into_iter()
                .map(|(path, spec, why)| (path, acl(version, spec), why));
            for (path, object, why) in clusters.chain(users) {
                let refusal = server
                    .offer(&object)
                    .await
                    .expect_err(&format!("{path} should be refused: {object}"));
                assert!(
                    refusal.contains(path) && refusal.contains(why),
                    "{path}: {why}; but the server says {refusal}"
                );
            }
        }
    })
    .await;
}

#[tokio::test]
async fn usual_values_are_within_bounds() {
    in_namespace("usual", |server| async move {
        let images = ["valkey", "valkey/valkey:8.1", "reg.local:5000/a/b@sha256:00aa", "[fd00::1]:5000/valkey:9"];
        let schedules = ["@daily", "*/5 * * * *", "0 3 1,15 * MON-FRI", "@every 1h30m"];
        let hosts = ["db", "db.prod.svc.cluster.local", "10.0.0.1", "fd00::1", "::1"];
        let specs = images
            .map(|image| json!({"image": image}))
            .into_iter()
            .chain(schedules.map(|schedule| json!({"backup": {"schedule": schedule}})))
            .chain(hosts.map(|host| json!({"replicateFrom": {"host": host}})))
            .chain(["1", "500m", "2Gi", "1e3", "1.5Gi"].map(|q| json!({"resources": {"limits": {"memory": q}}})))
            .chain([json!({"resources": {"limits": {"cpu": 1, "memory": 1024}}})]);
        for spec in specs {
            let answer = server.offer(&cluster("v1beta1", spec.clone())).await;
            assert!(answer.is_ok(), "{spec} should be accepted: {answer:?}");
        }
        let name = "svc:reader@corp";
        let user = acl("v1beta1", json!({"clusterRef": {"name": "web"}, "users": [{"name": name, "rules": "on %R~a:* +@read"}]}));
        assert!(server.offer(&user).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn the_largest_objects_stay_within_the_cost_of_rules() {
    in_namespace("largest", |server| async move {
        let config: serde_json::Map<_, _> = (0..256)
            .map(|i| (format!("{:a<45}{i:03}", ""), json!("v".repeat(64))))
            .collect();
        let answer = server
            .offer(&cluster("v1beta1", json!({ "config": config })))
            .await;
        assert!(
            answer.is_ok(),
            "256 directives with names of 48 characters: {answer:?}"
        );
        let rules = "+get ".repeat(819);
        let users: Vec<_> = (0..128)
            .map(|i| json!({"name": format!("user{i}"), "rules": rules}))
            .collect();
        let answer = server
            .offer(&acl(
                "v1beta1",
                json!({"clusterRef": {"name": "web"}, "users": users}),
            ))
            .await;
        assert!(
            answer.is_ok(),
            "128 users with rules of 4095 characters: {:?}",
            answer.err()
        );
    })
    .await;
}
