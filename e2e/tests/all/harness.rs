//! The tools of the other tests can fail.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::json;
use wellcake_e2e::apply::{address, is_ready, restarts};
use wellcake_e2e::faults::{BlackHole, Process};
use wellcake_e2e::ledger::{Address, Ledger};
use wellcake_e2e::namespace::{Space, beside_others};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server that nobody looks after and that keeps nothing.
async fn bare_server(space: &Space) -> Result<Pod> {
    let pod = json!({"metadata": {"name": "bare"}, "spec": {"containers": [{
        "name": "valkey", "image": "valkey/valkey:8.0",
        "command": ["valkey-server", "--save", "", "--protected-mode", "no"],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
    }]}});
    let api = space.api::<Pod>();
    api.create(&PostParams::default(), &serde_json::from_value(pod)?)
        .await?;
    wait(space, is_ready).await
}

async fn wait(space: &Space, wanted: impl Fn(&Pod) -> bool) -> Result<Pod> {
    let start = std::time::Instant::now();
    loop {
        let pod = space.api::<Pod>().get("bare").await?;
        if wanted(&pod) {
            return Ok(pod);
        }
        ensure!(start.elapsed() < PATIENCE, "the bare server does not come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_notices_what_a_server_forgot() {
    beside_others("ledger", |space| async move {
        let pod = bare_server(&space).await?;
        let ledger = Ledger::start("run", &[Address::fixed(address(&pod)?)], None);
        ledger.progress(200, PATIENCE).await?;
        let fault = Process::of(&pod)?.kill()?;
        let pod = wait(&space, |pod| restarts(pod) == 1 && is_ready(pod)).await?;
        ledger.progress(200, PATIENCE).await?;
        let record = ledger.stop()?;
        let outcome = record.check(address(&pod)?, None)?;
        ensure!(outcome.lost >= 200, "{outcome:?}");
        ensure!(outcome.acknowledged - outcome.lost >= 200, "{outcome:?}");
        let recovery = record.recovery(fault).unwrap_or_default();
        ensure!(
            recovery > Duration::from_millis(100),
            "a restart in {recovery:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_or_cut_off_server_acknowledges_nothing_until_it_is_let_go() {
    beside_others("freeze", |space| async move {
        let pod = bare_server(&space).await?;
        let ledger = Ledger::start("run", &[Address::fixed(address(&pod)?)], None);
        ledger.progress(100, PATIENCE).await?;
        let frozen = Process::of(&pod)?.freeze()?;
        let stuck = ledger.progress(20, Duration::from_secs(1)).await;
        ensure!(stuck.is_err(), "a frozen server acknowledged writes");
        drop(frozen);
        ledger.progress(100, PATIENCE).await?;
        let hole = BlackHole::around(&pod)?;
        let stuck = ledger.progress(20, Duration::from_secs(1)).await;
        ensure!(
            stuck.is_err(),
            "a server that is cut off acknowledged writes"
        );
        drop(hole);
        ledger.progress(100, PATIENCE).await?;
        let outcome = ledger.stop()?.check(address(&pod)?, None)?;
        ensure!(
            outcome.lost == 0 && outcome.acknowledged >= 300,
            "{outcome:?}"
        );
        Ok(())
    })
    .await;
}
