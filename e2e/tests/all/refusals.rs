//! What cannot be done is said, and nothing is done instead.

use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{ListParams, PostParams};
use serde_json::json;
use wellcake_e2e::apply::{Applied, MAKING, replication};
use wellcake_e2e::load::RECOVERY;
use wellcake_e2e::namespace::beside_others;

/// How long it is watched that nothing happens.
const STILL: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_is_named_and_once_it_is_there_the_cluster_is_made_with_it() {
    beside_others("secret", |space| async move {
        let mut spec = replication();
        spec["auth"] = json!({"existingSecret": "mine"});
        let cluster = Applied::create(&space, "secret", spec).await?;
        let look = cluster
            .wait("Ready is False for SecretMissing", RECOVERY, |look| {
                look.says("Ready", "False", "SecretMissing")
            })
            .await?;
        ensure!(look.pods.is_empty(), "pods were made");
        let secrets = space.api::<Secret>();
        let secret = json!({"metadata": {"name": "mine"}, "stringData": {"wrong": "x"}});
        secrets
            .create(&PostParams::default(), &serde_json::from_value(secret)?)
            .await?;
        cluster
            .wait("Ready is False for SecretKeyMissing", RECOVERY, |look| {
                look.says("Ready", "False", "SecretKeyMissing")
            })
            .await?;
        let patch = json!({"stringData": {"password": "chosen by the user"}});
        secrets
            .patch("mine", &Default::default(), &kube::api::Patch::Merge(patch))
            .await?;
        let look = cluster.wait_ready(MAKING).await?;
        ensure!(cluster.password().await? == "chosen by the user");
        ensure!(
            secrets.get_opt("secret-auth").await?.is_none(),
            "a password was made as well"
        );
        for pod in &look.pods {
            cluster.connect(pod).await?.ok(&["PING"])?;
        }
        let events = cluster.events().await?;
        ensure!(
            events.iter().any(|(reason, _)| reason == "SecretMissing"),
            "{events:?}"
        );
        let told = format!("{events:?} {:?}", look.status());
        ensure!(
            !told.contains("chosen by the user"),
            "the password is in events or status"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_that_is_not_served_yet_makes_no_pod_and_is_named() {
    beside_others("tls", |space| async move {
        let mut spec = replication();
        spec["tls"] = json!({"enabled": true});
        let cluster = Applied::create(&space, "tls", spec).await?;
        let look = cluster
            .wait("Ready is False for FieldNotServed", RECOVERY, |look| {
                look.says("Ready", "False", "FieldNotServed")
            })
            .await?;
        let message = look
            .condition("Ready")
            .map(|it| it.message.clone())
            .unwrap_or_default();
        ensure!(
            message.contains("tls"),
            "the message does not name the field: {message}"
        );
        tokio::time::sleep(STILL).await;
        ensure!(cluster.pods().await?.is_empty(), "pods were made");
        let services = space
            .api::<Service>()
            .list(&ListParams::default())
            .await?
            .items;
        let sets = space
            .api::<StatefulSet>()
            .list(&ListParams::default())
            .await?
            .items;
        ensure!(services.is_empty() && sets.is_empty(), "objects were made");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_somebody_else_is_left_alone_and_named() {
    beside_others("foreign", |space| async move {
        let services = space.api::<Service>();
        let foreign = json!({"metadata": {"name": "taken"}, "spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]}});
        services.create(&PostParams::default(), &serde_json::from_value(foreign)?).await?;
        let before = services.get("taken").await?;
        let cluster = Applied::create(&space, "taken", replication()).await?;
        cluster
            .wait("Ready is False for ForeignObject", RECOVERY, |look| {
                look.says("Ready", "False", "ForeignObject")
            })
            .await?;
        tokio::time::sleep(STILL).await;
        ensure!(services.get("taken").await? == before, "the Service was changed");
        ensure!(cluster.pods().await?.is_empty(), "pods were made");
        services.delete("taken", &Default::default()).await?;
        cluster.wait_ready(MAKING).await?;
        Ok(())
    })
    .await;
}
