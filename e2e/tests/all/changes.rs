//! The spec changes what pods are made from: they are replaced one at a time, and nothing is lost.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wellcake_e2e::apply::{Applied, Look, MAKING, durable, is_ready, replication};
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::beside_others;

/// How long it is watched that nothing happens.
const STILL: Duration = Duration::from_secs(3);

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn image(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    spec.containers.first()?.image.as_deref()
}

fn uids(look: &Look) -> BTreeMap<String, Option<String>> {
    let of = |pod: &Pod| (pod.name_any(), pod.uid());
    look.pods.iter().map(of).collect()
}

/// Rolls a change under load. Judges that every pod is another one, that no more than one was away at a time, that there was
/// one promotion, and that nothing was lost.
async fn rolls(cluster: &Applied, change: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let before = cluster.look().await?;
    let load = Load::start(cluster).await?;
    change().await?;
    let fewest = AtomicUsize::new(before.pods.len());
    cluster
        .wait(
            "every pod is another one and all is ready",
            MAKING,
            |look| {
                let ready = look.pods.iter().filter(|pod| is_ready(pod)).count();
                fewest.fetch_min(ready, Relaxed);
                let (old, new) = (uids(&before), uids(look));
                let other = |(name, uid): (&String, &Option<String>)| new.get(name) != Some(uid);
                look.is_ready() && old.iter().all(other)
            },
        )
        .await?;
    cluster.wait_ready(RECOVERY).await?;
    let finished = load.finish(cluster).await?;
    println!(
        "longest gap {:?} at pods, {:?} through the Service",
        finished.at_pods.longest_gap(),
        finished.through_service.longest_gap()
    );
    finished.nothing_lost()?;
    ensure!(
        fewest.load(Relaxed) + 1 >= before.pods.len(),
        "only {} pods were ready at a time",
        fewest.load(Relaxed)
    );
    let after = cluster.look().await?;
    ensure!(
        after.epoch() == before.epoch() + 1,
        "{} promotions",
        after.epoch() - before.epoch()
    );
    let last = after.recorded().context("a record")?;
    ensure!(
        Some(last) != before.recorded(),
        "the primary did not hand over"
    );
    Ok(())
}

/// Every server is of this version.
async fn all_run(cluster: &Applied, version: &str) -> Result<()> {
    let wanted = format!("valkey/valkey:{version}");
    for pod in cluster.pods().await? {
        ensure!(image(&pod) == Some(&wanted), "{:?}", image(&pod));
        let mut server = cluster.connect(&pod).await?;
        let found = server.info("server", "valkey_version")?;
        ensure!(found.starts_with(version), "{found}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_upgraded_under_load_and_one_that_cannot_read_the_data_is_refused() {
    beside_others("image", |space| async move {
        let cluster = Applied::ready(&space, "image", durable()).await?;
        let of = |version: &str| {
            with(
                durable(),
                "image",
                json!(format!("valkey/valkey:{version}")),
            )
        };
        for version in ["8.1", "9.1"] {
            rolls(&cluster, async || cluster.apply(of(version)).await).await?;
            all_run(&cluster, version).await?;
        }
        let events = cluster.events().await?;
        for reason in ["PodReplaced", "PrimaryIsReplaced"] {
            ensure!(
                events.iter().any(|(told, _)| told == reason),
                "no event tells {reason}: {events:?}"
            );
        }
        let before = uids(&cluster.look().await?);
        cluster.apply(of("8.1")).await?;
        cluster
            .wait("the downgrade is refused", RECOVERY, |look| {
                look.says("Ready", "False", "DowngradeNotServed")
                    && look.says("Available", "True", "PrimaryServes")
            })
            .await?;
        tokio::time::sleep(STILL).await;
        ensure!(uids(&cluster.look().await?) == before, "a pod was replaced");
        cluster.apply(of("9.1")).await?;
        cluster.wait_ready(RECOVERY).await?;
        ensure!(uids(&cluster.look().await?) == before, "a pod was replaced");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_rolls_once_for_each_token_and_so_does_one_of_the_stateful_set() {
    beside_others("restart", |space| async move {
        let cluster = Applied::ready(&space, "restart", durable()).await?;
        let token = |value: Value| json!({ "valkey.wellcake.io/restart": value });
        rolls(&cluster, async || {
            cluster.annotate(token(json!("one"))).await
        })
        .await?;
        let before = uids(&cluster.look().await?);
        cluster.annotate(token(Value::Null)).await?;
        tokio::time::sleep(STILL).await;
        ensure!(
            uids(&cluster.look().await?) == before,
            "a request that was taken back replaced pods"
        );
        // As `kubectl rollout restart statefulset` does it.
        let sets = space.api::<StatefulSet>();
        let at = json!({ "kubectl.kubernetes.io/restartedAt": "now" });
        let body = json!({ "spec": { "template": { "metadata": { "annotations": at } } } });
        rolls(&cluster, async || {
            sets.patch("restart", &PatchParams::default(), &Patch::Merge(&body))
                .await?;
            Ok(())
        })
        .await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_does_not_start_stops_at_one_replica_and_is_mended_by_the_next() {
    beside_others("broken", |space| async move {
        let cluster = Applied::ready(&space, "broken", replication()).await?;
        let before = cluster.look().await?;
        let load = Load::start(&cluster).await?;
        let wrong = with(replication(), "image", json!("localhost/none:0"));
        cluster.apply(wrong).await?;
        let reason = "ImageNotPulled";
        let look = cluster
            .wait("the pod that does not start is named", MAKING, |look| {
                look.says("Ready", "False", reason) && look.says("Degraded", "True", reason)
            })
            .await?;
        ensure!(
            look.says("Available", "True", "PrimaryServes"),
            "nobody serves"
        );
        tokio::time::sleep(STILL).await;
        let (old, new) = (uids(&before), uids(&cluster.look().await?));
        let replaced = old.iter().filter(|(name, uid)| new.get(*name) != Some(uid));
        ensure!(replaced.count() == 1, "more than one pod was replaced");
        load.progress().await?;
        cluster.apply(replication()).await?;
        cluster.wait_ready(MAKING).await?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        let after = cluster.look().await?;
        ensure!(after.epoch() == before.epoch(), "somebody was promoted");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_server_is_replaced_when_its_data_survives_or_a_person_says_so() {
    beside_others("single", |space| async move {
        let kept = with(durable(), "topology", json!("Standalone"));
        let kept = with(kept, "replicas", json!(1));
        let lost = with(replication(), "topology", json!("Standalone"));
        let lost = with(lost, "replicas", json!(1));
        let durable = Applied::ready(&space, "kept", kept.clone()).await?;
        let pod = durable.pod(0).await?;
        let mut server = durable.connect(&pod).await?;
        server.ok(&["SET", "key", "value"])?;
        let newer = |spec: Value| with(spec, "image", json!("valkey/valkey:8.1"));
        durable.apply(newer(kept)).await?;
        durable
            .wait("the pod is another one", MAKING, |look| {
                look.is_ready() && look.pods.iter().all(|it| it.uid() != pod.uid())
            })
            .await?;
        let mut server = durable.connect(&durable.pod(0).await?).await?;
        let value = server.text(&["GET", "key"])?;
        ensure!(value == "value", "{value}");

        let cache = Applied::ready(&space, "lost", lost.clone()).await?;
        let pod = cache.pod(0).await?;
        cache.apply(newer(lost)).await?;
        cache
            .wait("Ready is False for ChangeLosesData", RECOVERY, |look| {
                look.says("Ready", "False", "ChangeLosesData")
            })
            .await?;
        tokio::time::sleep(STILL).await;
        ensure!(
            cache.pod(0).await?.uid() == pod.uid(),
            "it was replaced unasked"
        );
        cache
            .annotate(json!({ "valkey.wellcake.io/restart": "yes" }))
            .await?;
        cache
            .wait("the pod is another one", MAKING, |look| {
                look.is_ready() && look.pods.iter().all(|it| it.uid() != pod.uid())
            })
            .await?;
        Ok(())
    })
    .await;
}
