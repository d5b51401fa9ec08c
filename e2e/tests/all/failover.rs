//! The primary is lost: a replica with all acknowledged writes leads, once, and clients find it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use wellcake_core::effects::Verb;
use wellcake_e2e::apply::{Applied, Look, MAKING, address, durable, replication};
use wellcake_e2e::faults::{self, BlackHole, Process};
use wellcake_e2e::hanging::HangingApply;
use wellcake_e2e::load::{Load, RECOVERY};
use wellcake_e2e::namespace::{Space, beside_others};
use wellcake_e2e::operator;
use wellcake_e2e::valkey::{Connection, LIMIT_OF_LOOKS};
use wellcake_model_tests::recorded;

#[tokio::test(flavor = "multi_thread")]
async fn when_the_server_of_the_primary_is_killed_a_replica_leads_and_nothing_is_lost() {
    beside_others("kill", |space| async move {
        let cluster = Applied::ready(&space, "kill", replication()).await?;
        for round in 1..=3 {
            let before = cluster.look().await?;
            let (old, pod) = cluster.primary().await?;
            let load = Load::start(&cluster).await?;
            let fault = Process::of(&pod)?.kill()?;
            let finished = load.finish(&cluster).await?;
            finished.nothing_lost()?;
            let recovery = finished
                .recovery(fault)
                .context("no writes after the kill")?;
            println!("round {round}: writes after {recovery:?} (pod level, Service)");
            let after = cluster.look().await?;
            ensure!(after.recorded() != Some(old), "pod {old} still leads");
            ensure!(
                after.epoch() == before.epoch() + 1,
                "{} promotions",
                after.epoch() - before.epoch()
            );
        }
        let events = cluster.events().await?;
        ensure!(
            events.iter().any(|(reason, _)| reason == "PrimaryDied"),
            "no event tells it: {events:?}"
        );
        recorded_is_decided_the_same_again(&space, &cluster).await
    })
    .await;
}

/// The operator's own recording holds the promotions, and the core decides the same on what it recorded.
async fn recorded_is_decided_the_same_again(space: &Space, cluster: &Applied) -> Result<()> {
    let text = operator::trace(&space.client, &space.name, cluster.name.as_str()).await?;
    let trace = recorded::read::read(text.as_bytes())?;
    for moment in &trace.moments {
        let again = moment.decided_otherwise();
        ensure!(again.is_none(), "line {}: {again:?}", moment.line);
    }
    let promotions = trace
        .moments
        .iter()
        .flat_map(|moment| &moment.decision.effects)
        .filter(|effect| matches!(effect.verb, Verb::Promote { .. }));
    let (promotions, passes) = (promotions.count(), trace.moments.len());
    println!("{passes} recorded passes with {promotions} promotions are decided the same again");
    ensure!(
        promotions >= 3,
        "{promotions} promotions in {passes} passes"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_kills_in_a_row_cost_two_failovers_and_nothing() {
    beside_others("twice", |space| async move {
        let cluster = Applied::ready(&space, "twice", replication()).await?;
        let before = cluster.look().await?;
        let load = Load::start(&cluster).await?;
        let (first, pod) = cluster.primary().await?;
        Process::of(&pod)?.kill()?;
        let look = cluster
            .wait("another primary is recorded and serves", RECOVERY, |look| {
                look.recorded() != Some(first) && look.status().primary.is_some()
            })
            .await?;
        // The copy that is left takes part as soon as it follows; until then a second kill is another case.
        load.progress().await?;
        let second = look.recorded().context("a record")?;
        Process::of(&cluster.pod(second).await?)?.kill()?;
        load.finish(&cluster).await?.nothing_lost()?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = cluster.wait_ready(RECOVERY).await?;
        ensure!(
            after.epoch() <= before.epoch() + 2,
            "{} promotions",
            after.epoch() - before.epoch()
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_pod_of_the_primary_is_deleted_or_force_deleted_nothing_is_lost() {
    beside_others("delete", |space| async move {
        let cluster = Applied::ready(&space, "delete", replication()).await?;
        for force in [true, false] {
            let before = cluster.look().await?;
            let (_, pod) = cluster.primary().await?;
            let load = Load::start(&cluster).await?;
            let name = pod.name_any();
            let fault = if force {
                faults::force_delete(&space, &name).await?
            } else {
                faults::delete(&space, &name).await?
            };
            cluster
                .wait("the pod is another one", RECOVERY, |look| {
                    look.pods
                        .iter()
                        .any(|it| it.name_any() == name && it.uid() != pod.uid())
                })
                .await?;
            let finished = load.finish(&cluster).await?;
            println!(
                "force {force}: writes after {:?} (pod level, Service)",
                finished.recovery(fault)
            );
            finished.nothing_lost()?;
            let after = cluster.look().await?;
            ensure!(
                after.epoch() == before.epoch() + 1,
                "{} promotions",
                after.epoch() - before.epoch()
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_cluster_loses_nothing_when_its_primary_is_killed() {
    beside_others("durable", |space| async move {
        let cluster = Applied::ready(&space, "durable", durable()).await?;
        let (_, pod) = cluster.primary().await?;
        let load = Load::start(&cluster).await?;
        Process::of(&pod)?.kill()?;
        load.finish(&cluster).await?.nothing_lost()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_hangs_delays_no_failover() {
    beside_others("hang", |space| async move {
        let cluster = Applied::ready(&space, "hang", replication()).await?;
        let (_, pod) = cluster.primary().await?;
        let load = Load::start(&cluster).await?;
        let hanging = HangingApply::start(&space).await?;
        let fault = Process::of(&pod)?.kill()?;
        let progress = load.progress().await;
        hanging.end().await?;
        progress?;
        let finished = load.finish(&cluster).await?;
        finished.nothing_lost()?;
        let (at_pods, service) = finished
            .recovery(fault)
            .context("no writes after the kill")?;
        println!("writes after {at_pods:?} at pod level, {service:?} through the Service");
        ensure!(
            service < Duration::from_secs(3),
            "the failover waited for the Apply: {service:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_replica_is_not_promoted() {
    beside_others("frozen", |space| async move {
        let cluster = Applied::ready(&space, "frozen", replication()).await?;
        let (old, pod) = cluster.primary().await?;
        let replicas: Vec<u32> = (0..3).filter(|ordinal| *ordinal != old).collect();
        let [asleep, awake] = replicas[..] else {
            anyhow::bail!("two replicas")
        };
        let load = Load::start(&cluster).await?;
        let frozen = Process::of(&cluster.pod(asleep).await?)?.freeze()?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        Process::of(&pod)?.kill()?;
        cluster
            .wait("the replica that is awake leads", RECOVERY, |look| {
                look.recorded() == Some(awake)
                    && look.status().primary == Some(cluster.name.pod(awake))
            })
            .await?;
        drop(frozen);
        load.finish(&cluster).await?.nothing_lost()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_is_cut_off_is_succeeded_and_made_a_replica_when_it_is_back() {
    beside_others("silent", |space| async move {
        let cluster = Applied::ready(&space, "silent", replication()).await?;
        let before = cluster.look().await?;
        let (old, pod) = cluster.primary().await?;
        let hole = BlackHole::around(&pod)?;
        let cut = std::time::Instant::now();
        let after = cluster
            .wait("another pod leads", RECOVERY, |look| {
                look.recorded() != Some(old) && look.says("Available", "True", "PrimaryServes")
            })
            .await?;
        let took = cut.elapsed();
        println!("another pod leads after {took:?}");
        ensure!(
            took >= Duration::from_secs(20),
            "nobody is promoted before that"
        );
        ensure!(
            after.epoch() == before.epoch() + 1,
            "{} promotions",
            after.epoch() - before.epoch()
        );
        let written = write_inside(&hole, &cluster.password().await?)?;
        drop(hole);
        let healed = cluster.wait_ready(RECOVERY).await?;
        ensure!(healed.epoch() == after.epoch(), "somebody was promoted");
        let counted = cluster
            .wait("the status counts what was discarded", RECOVERY, |look| {
                look.status().discarded_bytes.is_some()
            })
            .await?;
        discarded_is_told(&counted, &pod.name_any(), written)?;
        let role = cluster.connect(&pod).await?.info("replication", "role")?;
        ensure!(role == "slave", "the old primary is a {role}");
        let events = cluster.events().await?;
        for told in ["SilentPrimarySucceeded", "SecondPrimaryDemoted"] {
            ensure!(
                events.iter().any(|(reason, _)| reason == told),
                "no event tells {told}: {events:?}"
            );
        }
        let bytes = counted.status().discarded_bytes.unwrap_or_default();
        let number = format!("{bytes} bytes");
        ensure!(
            events.iter().any(|(_, note)| note.contains(&number)),
            "no event tells {number}: {events:?}"
        );
        Ok(()) as Result<()>
    })
    .await;
}

/// A client on the side of the primary that is cut off writes to it. Gives the bytes of the keys and values that it acknowledged.
fn write_inside(hole: &BlackHole, password: &str) -> Result<i64> {
    let mut client = hole.connect_inside(password)?;
    let value = "x".repeat(100);
    let mut bytes = 0;
    for n in 0..1_000 {
        let key = format!("cut-off-{n}");
        client.ok(&["SET", &key, &value])?;
        bytes += key.len() + value.len();
    }
    Ok(i64::try_from(bytes)?)
}

/// What the old primary acknowledged is in the count: with the words of the protocol around it, and little else.
fn discarded_is_told(look: &Look, pod: &str, written: i64) -> Result<()> {
    let status = look.status();
    let bytes = status.discarded_bytes.context("no discardedBytes")?;
    let last = status.last_discarded.context("no lastDiscarded")?;
    println!("{bytes} bytes of the stream are counted, {written} bytes were written: {last:?}");
    ensure!(
        (written..written * 2).contains(&bytes),
        "{bytes} bytes for {written} that were written"
    );
    ensure!(
        last.pod == pod && last.bytes == bytes && last.epoch == look.epoch(),
        "{last:?} of {pod}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_primary_that_is_stopped_is_succeeded_without_loss() {
    beside_others("stopped", |space| async move {
        let cluster = Applied::ready(&space, "stopped", durable()).await?;
        let (old, pod) = cluster.primary().await?;
        let mut server = cluster.connect(&pod).await?;
        server.ok(&["SET", "marker", "set"])?;
        let good = server.info("replication", "min_slaves_good_slaves")?;
        ensure!(good != "0", "nobody acknowledges");
        let frozen = Process::of(&pod)?.freeze()?;
        let after = cluster
            .wait("another pod leads", RECOVERY, |look| {
                look.recorded() != Some(old) && look.says("Available", "True", "PrimaryServes")
            })
            .await?;
        let (_, leader) = cluster.primary().await?;
        let found = cluster.connect(&leader).await?.text(&["GET", "marker"])?;
        ensure!(found == "set", "the new primary holds {found:?}");
        drop(frozen);
        let healed = cluster.wait_ready(RECOVERY).await?;
        ensure!(healed.epoch() == after.epoch(), "somebody was promoted");
        Ok(()) as Result<()>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_primary_stays_while_a_replica_may_be_on_its_side_and_the_status_says_so() {
    beside_others("unseen", |space| async move {
        let cluster = Applied::ready(&space, "unseen", replication()).await?;
        let before = cluster.look().await?;
        let (primary, pod) = cluster.primary().await?;
        let replica = cluster.pod((primary + 1) % 3).await?;
        let around_replica = BlackHole::around(&replica)?;
        let around_primary = BlackHole::around(&pod)?;
        let look = cluster
            .wait("Ready is False for SilentPrimary", RECOVERY, |look| {
                look.says("Ready", "False", "SilentPrimary")
            })
            .await?;
        ensure!(look.epoch() == before.epoch(), "somebody was promoted");
        ensure!(
            look.status().primary.is_none(),
            "the status names a primary that nobody reaches"
        );
        ensure!(
            look.status().primary_down_since.is_some(),
            "no primaryDownSince"
        );
        // The other way round the evidence would be complete before the primary has answered.
        drop(around_primary);
        cluster
            .wait("the primary serves", RECOVERY, |look| {
                look.says("Available", "True", "PrimaryServes")
            })
            .await?;
        drop(around_replica);
        let after = cluster.wait_ready(RECOVERY).await?;
        ensure!(after.epoch() == before.epoch(), "somebody was promoted");
        ensure!(
            after.status().primary_down_since.is_none(),
            "primaryDownSince is still there"
        );
        Ok(()) as Result<()>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_restarts_empty_lets_nobody_in_before_it_holds_the_data_again() {
    beside_others("fence", |space| async move {
        let cluster = Applied::ready(&space, "fence", replication()).await?;
        let (_, pod) = cluster.primary().await?;
        let password = cluster.password().await?;
        let address = address(&pod)?;
        let mut before = cluster.connect(&pod).await?;
        before.ok(&["SET", "marker", "set"])?;
        before.ok(&["WAIT", "2", "2000"])?;
        let run = before.info("server", "run_id")?;
        Process::of(&pod)?.kill()?;
        // From its restart on, whoever gets in finds the data: the old primary opens again only as a replica in sync.
        let start = std::time::Instant::now();
        let mut opened = false;
        while start.elapsed() < MAKING && !opened {
            if let Ok(mut server) = Connection::open(address, Some(&password), LIMIT_OF_LOOKS) {
                let found = server.text(&["GET", "marker"]);
                ensure!(
                    found.as_deref().is_ok_and(|it| it == "set"),
                    "the first read found {found:?}"
                );
                opened = server.info("server", "run_id")? != run;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        ensure!(opened, "the old primary did not come back");
        cluster.wait_ready(RECOVERY).await?;
        Ok(()) as Result<()>
    })
    .await;
}
