//! What the operator tells of itself and of a cluster: to probes and to who collects metrics, and no secret to anybody.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Pod, Secret};
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};
use wellcake_crds::v1beta1::ValkeyCluster;
use wellcake_e2e::apply::{Applied, replication};
use wellcake_e2e::faults::Process;
use wellcake_e2e::load::RECOVERY;
use wellcake_e2e::namespace::{Space, beside_others};
use wellcake_e2e::operator::{self, NUMBERS, OPERATOR, PROBES};

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_are_answered_by_the_leader_and_by_the_one_that_waits() {
    beside_others("answers", |space| async move {
        let leader = operator::leader(&space.client).await?.name_any();
        for pod in operator::pods(&space.client).await? {
            for path in ["/livez", "/readyz", "/healthz"] {
                let text = operator::page(&pod, PROBES, path)?;
                ensure!(text.starts_with("HTTP/1.0 200"), "{path}: {text}");
            }
            let leads = pod.name_any() == leader;
            let text = operator::page(&pod, NUMBERS, "/metrics")?;
            let line = text
                .lines()
                .find(|line| line.starts_with("leader_election_master_status{"))
                .context("no leader_election_master_status")?;
            ensure!(line.ends_with(if leads { " 1" } else { " 0" }), "{line}");
            let passes = text
                .lines()
                .any(|line| line.starts_with("controller_runtime_reconcile_total{"));
            ensure!(passes || !leads, "the leader counts no pass");
        }
        Ok(())
    })
    .await;
}

/// Every value of every Secret of a namespace that is a password, or its hash.
async fn secrets(space: &Space) -> Result<Vec<String>> {
    let all = space.api::<Secret>().list(&ListParams::default()).await?;
    let values = all.items.into_iter().flat_map(|secret| secret.data);
    let texts = values
        .flatten()
        .map(|(_, bytes)| String::from_utf8(bytes.0));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let secret = |word: &&str| {
        let hash = word.len() == 65 && word.starts_with('#');
        hash || (word.len() >= 32
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "-_".contains(c)))
    };
    let mut found: Vec<String> = words.filter(secret).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// Everything that is told of the clusters of a namespace, with where.
async fn told(space: &Space, cluster: &str) -> Result<Vec<(String, String)>> {
    let object = space.api::<ValkeyCluster>().get(cluster).await?;
    let events = space.api::<Event>().list(&ListParams::default()).await?;
    let pods = space.api::<Pod>().list(&ListParams::default()).await?;
    let mut told = vec![
        (
            "the ValkeyCluster".to_owned(),
            serde_json::to_string(&object)?,
        ),
        ("events".to_owned(), serde_json::to_string(&events.items)?),
        ("pods".to_owned(), serde_json::to_string(&pods.items)?),
        (
            "the trace".to_owned(),
            operator::trace(&space.client, &space.name, cluster).await?,
        ),
    ];
    let operators: Api<Pod> = Api::namespaced(space.client.clone(), OPERATOR);
    for pod in operator::pods(&space.client).await? {
        let name = pod.name_any();
        told.push((
            format!("the log of {name}"),
            operators.logs(&name, &LogParams::default()).await?,
        ));
        let metrics = operator::page(&pod, NUMBERS, "/metrics")?;
        told.push((format!("metrics of {name}"), metrics));
    }
    Ok(told)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_and_no_hash_of_one_is_told_anywhere() {
    beside_others("secrecy", |space| async move {
        let cluster = Applied::ready(&space, "quiet", replication()).await?;
        let epoch = cluster.look().await?.epoch();
        let (_, primary) = cluster.primary().await?;
        Process::of(&primary)?.kill()?;
        cluster
            .wait("a failover", RECOVERY, |look| look.epoch() > epoch)
            .await?;
        cluster.wait_ready(RECOVERY).await?;

        let secrets = secrets(&space).await?;
        let password = cluster.password().await?;
        ensure!(secrets.contains(&password), "the password is among them");
        ensure!(secrets.len() >= 6, "three users: {} secrets", secrets.len());
        for (place, text) in told(&space, cluster.name.as_str()).await? {
            ensure!(!text.is_empty(), "{place} is empty");
            let found = secrets
                .iter()
                .any(|secret| text.contains(secret.trim_start_matches('#')));
            ensure!(!found, "{place} tells a password or its hash");
        }
        Ok(())
    })
    .await;
}
