//! A cluster that another operator made is taken over as it is, and rolled when that is asked for.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use serde_json::{Value, json};
use wellcake_crds::labels;
use wellcake_e2e::apply::{Applied, Look, MAKING, address, is_ready, on_claims, restarts};
use wellcake_e2e::faults::Process;
use wellcake_e2e::ledger::{Address, Ledger};
use wellcake_e2e::load::{RECOVERY, SOME};
use wellcake_e2e::namespace::beside_others;
use wellcake_e2e::other;
use wellcake_e2e::valkey::Reply;

/// How long it is watched that nothing happens.
const STILL: Duration = Duration::from_secs(3);
/// Longest time that a takeover may need: for 30 seconds it is watched that nobody else acts.
const TAKING: Duration = Duration::from_secs(120);
/// Keys that are written before a fault.
const KEYS: usize = 1_000;

fn spec() -> Value {
    let mut spec = on_claims();
    spec["auth"] = json!({"enabled": true});
    spec
}

/// What must stay as it is when nothing restarts: each pod with the starts of its containers.
fn pods(look: &Look) -> BTreeMap<String, (Option<String>, i32)> {
    let of = |pod: &Pod| (pod.name_any(), (pod.uid(), restarts(pod)));
    look.pods.iter().map(of).collect()
}

async fn stateful_set(cluster: &Applied) -> Result<StatefulSet> {
    let sets = cluster.space.api::<StatefulSet>();
    Ok(sets.get(&cluster.name.stateful_set()).await?)
}

async fn template(cluster: &Applied) -> Result<Value> {
    let set = stateful_set(cluster).await?;
    Ok(serde_json::to_value(set.spec.map(|spec| spec.template))?)
}

async fn adopt(cluster: &Applied) -> Result<()> {
    let said = json!({ "valkey.wellcake.io/adopt": "true" });
    cluster.annotate(said).await
}

async fn roll(cluster: &Applied) -> Result<()> {
    let token = json!({ "valkey.wellcake.io/restart": "to-our-template" });
    cluster.annotate(token).await
}

/// Waits until the cluster is taken over and ready, and judges that nothing restarted for that and no template changed.
async fn is_taken_as_it_is(
    cluster: &Applied,
    before: &Look,
    template_before: &Value,
) -> Result<()> {
    cluster
        .wait("Fenced is False for TemplateKept", TAKING, |look| {
            look.says("Fenced", "False", "TemplateKept") && look.epoch() > 0
        })
        .await?;
    let look = cluster.wait_ready(RECOVERY).await?;
    ensure!(pods(&look) == pods(before), "a pod restarted");
    let after = template(cluster).await?;
    ensure!(after == *template_before, "the template changed: {after}");
    let set = stateful_set(cluster).await?;
    let strategy = set.spec.and_then(|spec| spec.update_strategy);
    let strategy = strategy.and_then(|strategy| strategy.type_);
    ensure!(strategy.as_deref() == Some("OnDelete"), "{strategy:?}");
    ensure!(look.recorded() == Some(0) && look.epoch() == 1);
    let finalizers = look.cluster.metadata.finalizers.unwrap_or_default();
    ensure!(finalizers.is_empty(), "the finalizer is still there");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_another_operator_is_taken_over_and_rolled_under_load_and_nothing_is_lost() {
    beside_others("adopt", |space| async move {
        let cluster = other::make(&space, "adopt", &spec()).await?;
        let look = cluster
            .wait("Ready is False for MadeByOtherOperator", RECOVERY, |look| {
                look.says("Ready", "False", "MadeByOtherOperator")
            })
            .await?;
        let before = template(&cluster).await?;
        // Clients of the other operator write through its Service of the primary.
        let primary = cluster.service(&cluster.name.primary_service()).await?;
        let ledger = Ledger::start("adopt", &[Address::fixed(primary)], Some(other::PASSWORD));
        ledger.progress(SOME, RECOVERY).await?;
        tokio::time::sleep(STILL).await;
        ensure!(
            pods(&cluster.look().await?) == pods(&look),
            "unasked, a pod restarted"
        );

        adopt(&cluster).await?;
        is_taken_as_it_is(&cluster, &look, &before).await?;
        ledger.progress(SOME, RECOVERY).await?;

        let taken = cluster.look().await?;
        roll(&cluster).await?;
        let fewest = AtomicUsize::new(taken.pods.len());
        cluster
            .wait(
                "every pod is another one and all is ready",
                MAKING,
                |look| {
                    let ready = look.pods.iter().filter(|pod| is_ready(pod)).count();
                    fewest.fetch_min(ready, Relaxed);
                    let (old, new) = (pods(&taken), pods(look));
                    let other = |(name, pod): (&String, &(Option<String>, i32))| {
                        new.get(name).is_some_and(|now| now.0 != pod.0)
                    };
                    look.is_ready() && old.iter().all(other)
                },
            )
            .await?;
        let look = cluster.wait_ready(RECOVERY).await?;
        ledger.progress(SOME, RECOVERY).await?;
        let record = ledger.stop()?;
        let leader = look.recorded().context("a record")?;
        let at = address(&cluster.pod(leader).await?)?;
        let outcome = record.check(at, Some(other::PASSWORD))?;
        println!("{outcome:?}, longest gap {:?}", record.longest_gap());
        ensure!(outcome.acknowledged > 0);
        ensure!(
            outcome.lost == 0 && outcome.altered == 0,
            "{outcome:?}\n{}",
            record.failures()
        );
        ensure!(
            fewest.load(Relaxed) + 1 >= taken.pods.len(),
            "only {} pods were ready at a time",
            fewest.load(Relaxed)
        );
        ensure!(look.epoch() == 2, "{} promotions", look.epoch());
        is_ours(&cluster).await
    })
    .await;
}

/// The template, and with it every pod, is this operator's, and nothing of the other one is left in it.
async fn is_ours(cluster: &Applied) -> Result<()> {
    let template = template(cluster).await?;
    let pod = &template["spec"];
    ensure!(pod["initContainers"].is_null(), "{pod}");
    let container = &pod["containers"][0];
    ensure!(
        container["args"] == json!(["/etc/valkey/valkey.conf"]),
        "{container}"
    );
    ensure!(container["livenessProbe"].is_null(), "{container}");
    cluster
        .wait("Fenced is True", RECOVERY, |look| {
            look.says("Fenced", "True", "AllFenced")
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_still_acts_is_named_and_nothing_else_is_taken_until_it_is_gone() {
    beside_others("rival", |space| async move {
        let cluster = other::make(&space, "rival", &spec()).await?;
        let look = cluster.look().await?;
        let before = template(&cluster).await?;
        let acting = cluster.clone();
        let acts = tokio::spawn(async move {
            loop {
                // A conflict is tried again.
                let _ = other::take_back(&acting).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        adopt(&cluster).await?;
        cluster
            .wait("Ready is False for AnotherOperatorActs", RECOVERY, |look| {
                look.says("Ready", "False", "AnotherOperatorActs")
            })
            .await?;
        tokio::time::sleep(STILL).await;
        let now = cluster.look().await?;
        ensure!(now.epoch() == 0, "a primary was recorded");
        let services = space.api::<Service>();
        let client = services.get(&cluster.name.client_service()).await?;
        let selector = client.spec.and_then(|spec| spec.selector);
        ensure!(
            selector.is_some_and(|all| all.contains_key(labels::PART_OF)),
            "the client Service was taken"
        );
        acts.abort();
        is_taken_as_it_is(&cluster, &look, &before).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_restarts_before_the_roll_wipes_nobody() {
    beside_others("unfenced", |space| async move {
        let cluster = other::make(&space, "unfenced", &spec()).await?;
        adopt(&cluster).await?;
        let look = cluster
            .wait("it is taken over", TAKING, |look| {
                look.is_ready() && look.says("Fenced", "False", "TemplateKept")
            })
            .await?;
        let leader = look.recorded().context("a record")?;
        let pod = cluster.pod(leader).await?;
        let mut server = cluster.connect(&pod).await?;
        for n in 0..KEYS {
            server.ok(&["SET", &format!("key:{n}"), "value"])?;
        }
        let acknowledged = server.ok(&["WAIT", "2", "5000"])?;
        ensure!(acknowledged == Reply::Number(2), "{acknowledged:?}");
        // It keeps nothing on its volume, and its template starts it as a primary again.
        let killed = Process::of(&pod)?.kill()?;
        let after = cluster
            .wait("another pod leads and all is ready", MAKING, |look| {
                look.recorded() != Some(leader) && look.is_ready()
            })
            .await?;
        println!("ready {:?} after the kill", Instant::now() - killed);
        cluster.wait_ready(RECOVERY).await?;
        let restarted = cluster.pod(leader).await?;
        ensure!(restarted.uid() == pod.uid() && restarts(&restarted) == 1);
        for pod in &after.pods {
            let keys = cluster.connect(pod).await?.ok(&["DBSIZE"])?;
            ensure!(
                keys == Reply::Number(i64::try_from(KEYS)?),
                "{} holds {keys:?}",
                pod.name_any()
            );
        }
        Ok(())
    })
    .await;
}
