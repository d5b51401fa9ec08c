//! The operator is replaced by one of another version.

use anyhow::ensure;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use wellcake_e2e::apply::{Applied, Look, MAKING, replication};
use wellcake_e2e::load::Load;
use wellcake_e2e::namespace::beside_others;

fn grace(pod: &Pod) -> Option<i64> {
    pod.spec.as_ref()?.termination_grace_period_seconds
}

fn all_have(look: &Look, seconds: i64) -> bool {
    look.pods.iter().all(|pod| grace(pod) == Some(seconds))
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_another_versions_template_are_left_alone_until_somebody_asks() {
    beside_others("version", |space| async move {
        let cluster = Applied::ready(&space, "version", replication()).await?;
        // What another version would have made: pods with another second to end, and its own digest of that.
        let sets = space.api::<StatefulSet>();
        let body = json!({
            "metadata": { "annotations": { "valkey.wellcake.io/applied-hash": "another" } },
            "spec": { "template": { "spec": { "terminationGracePeriodSeconds": 26 } } },
        });
        sets.patch("version", &PatchParams::default(), &Patch::Merge(&body))
            .await?;
        let look = cluster
            .wait("the pods are those of the other version", MAKING, |look| {
                all_have(look, 26) && look.is_ready()
            })
            .await?;
        ensure!(
            look.says("UpToDate", "False", "TemplateWaits"),
            "nobody is told"
        );
        let uids = |look: &Look| look.pods.iter().map(ResourceExt::uid).collect::<Vec<_>>();
        // An edit that asks for no other pods replaces none.
        let mut spec = replication();
        spec["config"] = json!({ "timeout": "77" });
        cluster.apply(spec).await?;
        let after = cluster.wait_ready(MAKING).await?;
        ensure!(uids(&after) == uids(&look), "a pod was replaced");
        let load = Load::start(&cluster).await?;
        cluster
            .annotate(json!({ "valkey.wellcake.io/restart": "newer" }))
            .await?;
        cluster
            .wait("the pods are those of this version", MAKING, |look| {
                all_have(look, 25)
                    && look.is_ready()
                    && look.says("UpToDate", "True", "TemplateIsNewest")
            })
            .await?;
        load.finish(&cluster).await?.nothing_lost()
    })
    .await;
}
