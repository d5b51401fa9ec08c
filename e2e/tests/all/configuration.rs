//! Directives: what a running server takes is set without a restart, and what no server starts with is taken back.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};
use wellcake_e2e::apply::{Applied, Look, MAKING, replication, restarts};
use wellcake_e2e::faults::Process;
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::{Space, beside_others};
use wellcake_e2e::valkey::Reply;

fn with(mut spec: Value, config: Value) -> Value {
    spec["config"] = config;
    spec
}

async fn directive(cluster: &Applied, pod: &Pod, name: &str) -> Result<String> {
    let mut server = cluster.connect(pod).await?;
    match server.ok(&["CONFIG", "GET", name])? {
        Reply::List(pair) => pair
            .get(1)
            .and_then(Reply::text)
            .with_context(|| format!("{name} has no value")),
        other => anyhow::bail!("{other:?}"),
    }
}

/// Every server has this value.
async fn all_have(cluster: &Applied, name: &str, value: &str) -> Result<()> {
    for pod in cluster.pods().await? {
        let found = directive(cluster, &pod, name).await?;
        ensure!(found == value, "{}: {name} {found}", pod.name_any());
    }
    Ok(())
}

async fn file(space: &Space, cluster: &Applied) -> Result<String> {
    let pod = cluster.pod(0).await?;
    let volumes = pod.spec.context("a spec")?.volumes.unwrap_or_default();
    let name = volumes.into_iter().find_map(|it| Some(it.config_map?.name));
    let map: ConfigMap = space
        .api()
        .get(&name.context("no file is mounted")?)
        .await?;
    let text = map.data.unwrap_or_default().remove("valkey.conf");
    text.context("the map has no valkey.conf")
}

async fn maps(space: &Space) -> Result<Vec<String>> {
    let all = space
        .api::<ConfigMap>()
        .list(&ListParams::default())
        .await?;
    let names = all.iter().map(ResourceExt::name_any);
    Ok(names.filter(|name| name.contains("-config-")).collect())
}

fn identities(look: &Look) -> Vec<(String, Option<String>, i32)> {
    let of = |pod: &Pod| (pod.name_any(), pod.uid(), restarts(pod));
    look.pods.iter().map(of).collect()
}

fn message(look: &Look) -> String {
    let ready = look.condition("Ready");
    ready.map_or_else(String::new, |it| it.message.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn directives_that_a_running_server_takes_are_set_under_load_without_a_restart() {
    beside_others("live", |space| async move {
        let cluster = Applied::ready(&space, "live", replication()).await?;
        let before = cluster.look().await?;
        let load = Load::start(&cluster).await?;
        let tuned = json!({ "timeout": "77", "maxmemory-policy": "noeviction" });
        cluster.apply(with(replication(), tuned)).await?;
        cluster.wait_ready(RECOVERY).await?;
        all_have(&cluster, "timeout", "77").await?;
        all_have(&cluster, "maxmemory-policy", "noeviction").await?;
        let text = file(&space, &cluster).await?;
        ensure!(text.contains("\ntimeout 77\n"), "the file lags: {text}");

        // One wrong value: nothing is changed anywhere, and it is named.
        let wrong = json!({ "timeout": "88", "hz": "often" });
        cluster.apply(with(replication(), wrong)).await?;
        let look = cluster
            .wait("the refused directive is named", RECOVERY, |look| {
                look.says("Ready", "False", "DirectivesRefused")
                    && look.says("Available", "True", "PrimaryServes")
            })
            .await?;
        ensure!(message(&look).contains("'hz'"), "{}", message(&look));
        all_have(&cluster, "timeout", "77").await?;
        ensure!(
            file(&space, &cluster).await? == text,
            "a file that nobody accepted"
        );

        // What is not asked for any more has its default again.
        cluster.apply(replication()).await?;
        cluster.wait_ready(RECOVERY).await?;
        all_have(&cluster, "timeout", "0").await?;
        all_have(&cluster, "maxmemory-policy", "allkeys-lru").await?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        let after = cluster.look().await?;
        ensure!(
            identities(&after) == identities(&before),
            "a server was restarted"
        );
        ensure!(after.epoch() == before.epoch(), "somebody was promoted");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_before_its_file_followed_has_the_directives_of_the_spec() {
    beside_others("again", |space| async move {
        let mut alone = replication();
        alone["topology"] = json!("Standalone");
        alone["replicas"] = json!(1);
        let cluster = Applied::ready(&space, "again", alone.clone()).await?;
        cluster
            .apply(with(alone, json!({ "timeout": "77" })))
            .await?;
        cluster.wait_ready(RECOVERY).await?;
        // The kubelet takes up to a minute and a half to bring the new file.
        let pod = cluster.pod(0).await?;
        Process::of(&pod)?.kill()?;
        cluster
            .wait("the server restarted", RECOVERY, |look| {
                look.is_ready() && look.pods.iter().all(|it| restarts(it) > restarts(&pod))
            })
            .await?;
        let until = std::time::Instant::now() + RECOVERY;
        loop {
            let found = directive(&cluster, &cluster.pod(0).await?, "timeout").await;
            match found {
                Ok(value) if value == "77" => return Ok(()),
                other => ensure!(std::time::Instant::now() < until, "{other:?}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_no_server_starts_with_is_taken_back_by_itself_and_the_line_is_named() {
    beside_others("back", |space| async move {
        let good = with(replication(), json!({ "tcp-backlog": "600" }));
        let cluster = Applied::ready(&space, "back", good).await?;
        let before = cluster.look().await?;
        let load = Load::start(&cluster).await?;
        let wrong = json!({ "tcp-backlog": "600", "io-threads": "many" });
        cluster.apply(with(replication(), wrong)).await?;
        let look = cluster
            .wait("all pods run with the last good file", MAKING, |look| {
                look.says("Ready", "False", "ConfigRefused")
                    && look.status().ready_replicas == Some(3)
            })
            .await?;
        ensure!(
            message(&look).contains("io-threads many"),
            "{}",
            message(&look)
        );
        ensure!(
            look.says("Available", "True", "PrimaryServes"),
            "nobody serves"
        );
        let (old, new) = (identities(&before), identities(&look));
        let replaced = old.iter().zip(&new).filter(|(old, new)| old.1 != new.1);
        ensure!(replaced.count() == 1, "more than one pod was replaced");
        all_have(&cluster, "tcp-backlog", "600").await?;
        let events = cluster.events().await?;
        ensure!(
            events.iter().any(|(told, _)| told == "ConfigTakenBack"),
            "{events:?}"
        );
        // The next one is tried again.
        let right = json!({ "tcp-backlog": "700", "io-threads": "2" });
        cluster.apply(with(replication(), right)).await?;
        cluster.wait_ready(MAKING).await?;
        all_have(&cluster, "io-threads", "2").await?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        // What no pod can go back to is deleted.
        let until = std::time::Instant::now() + RECOVERY;
        loop {
            let left = maps(&space).await?;
            if left.len() == 1 {
                return Ok(());
            }
            ensure!(std::time::Instant::now() < until, "{left:?} are left");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    })
    .await;
}
