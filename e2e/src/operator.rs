//! The operator's own pods: who leads, what it logs, and what is done to it. Its namespace and labels are those that
//! `cargo xtask up` installs.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::apply::{is_ready, restarts};
use crate::cluster;
use crate::faults::Process;
use crate::load::RECOVERY;

/// Namespace of the operator, and the name of its Deployment and service account.
pub const OPERATOR: &str = "valkey-operator";
/// How the API server knows the operator.
pub const USER: &str = "system:serviceaccount:valkey-operator:valkey-operator";
const SELECTOR: &str = "app.kubernetes.io/name=valkey-operator";
/// Port of the chart at which the operator serves its metrics and traces.
pub const NUMBERS: u16 = 8080;
/// Port of the chart at which the operator answers probes.
pub const PROBES: u16 = 8081;
/// Lines of a failed test.
const LINES: usize = 60;

/// The operator's pods.
pub async fn pods(client: &Client) -> Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), OPERATOR);
    Ok(api
        .list(&ListParams::default().labels(SELECTOR))
        .await?
        .items)
}

/// The pod that holds the lease.
pub async fn leader(client: &Client) -> Result<Pod> {
    let holder = holder(client)
        .await?
        .context("no operator leads: is it installed? run `cargo xtask up`")?;
    let pods = pods(client).await?;
    let leader = pods
        .into_iter()
        .find(|pod| holder.starts_with(&pod.name_any()));
    leader
        .with_context(|| format!("the holder {holder} of the lease is none of the operator's pods"))
}

/// Replaces the operator's pods whose container was restarted, since the kubelet waits longer before each further restart,
/// and waits until all are ready.
///
/// # Errors
/// When they do not become ready in time.
pub async fn replace_restarted(client: &Client) -> Result<()> {
    let api: Api<Pod> = Api::namespaced(client.clone(), OPERATOR);
    for pod in pods(client).await?.iter().filter(|pod| restarts(pod) > 0) {
        api.delete(&pod.name_any(), &DeleteParams::default())
            .await?;
    }
    wait_ready(client, RECOVERY).await
}

/// What the operator that leads has recorded of a cluster, as JSON lines.
///
/// # Errors
/// When the operator does not lead, or its page cannot be read through the API server.
pub async fn trace(client: &Client, namespace: &str, name: &str) -> Result<String> {
    let pod = leader(client).await?.name_any();
    let path = format!(
        "/api/v1/namespaces/{OPERATOR}/pods/{pod}:{NUMBERS}/proxy/trace/{namespace}/{name}"
    );
    let request = http::Request::get(&path).body(Vec::new())?;
    client
        .request_text(request)
        .await
        .with_context(|| format!("cannot read {path}"))
}

/// What one of the operator's pods answers to a request, with the status line, asked of the pod itself.
///
/// # Errors
/// When the pod does not answer in time.
pub fn page(pod: &Pod, port: u16, path: &str) -> Result<String> {
    let limit = Duration::from_millis(200);
    let address = pod.status.as_ref().and_then(|it| it.pod_ip.as_deref());
    let address: IpAddr = address.context("the pod has no address")?.parse()?;
    let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, port), limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// A gauge of one of the operator's pods, asked of the pod itself.
///
/// # Errors
/// When the pod does not answer, or knows no such gauge.
pub fn gauge(pod: &Pod, name: &str) -> Result<f64> {
    let text = page(pod, NUMBERS, "/metrics")?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value.context("no such gauge")?.trim().parse()?)
}

/// Who holds the lease.
pub async fn holder(client: &Client) -> Result<Option<String>> {
    let api: Api<Lease> = Api::namespaced(client.clone(), OPERATOR);
    let leases = api.list(&ListParams::default()).await?.items;
    let mut holders = leases
        .into_iter()
        .filter_map(|lease| lease.spec?.holder_identity);
    Ok(holders.rfind(|holder| !holder.is_empty()))
}

/// Processes of all the operator's pods.
pub async fn processes(client: &Client) -> Result<Vec<Process>> {
    pods(client).await?.iter().map(Process::of).collect()
}

/// Waits until all of the operator's pods are ready and one of them leads.
pub async fn wait_ready(client: &Client, limit: Duration) -> Result<()> {
    let start = Instant::now();
    loop {
        let pods = pods(client).await?;
        if !pods.is_empty() && pods.iter().all(is_ready) && leader(client).await.is_ok() {
            return Ok(());
        }
        if start.elapsed() > limit {
            bail!("the operator is not ready after {limit:?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Scales the operator to nothing, until the guard goes.
pub async fn remove(client: &Client) -> Result<Absent> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), OPERATOR);
    let replicas = api
        .get(OPERATOR)
        .await?
        .spec
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    scale(client, 0).await?;
    let absent = Absent { replicas };
    let start = Instant::now();
    while !pods(client).await?.is_empty() {
        if start.elapsed() > Duration::from_secs(60) {
            bail!("the operator's pods do not go");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(absent)
}

async fn scale(client: &Client, replicas: i32) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), OPERATOR);
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    api.patch_scale(OPERATOR, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// The operator is not there; it comes back when this goes.
pub struct Absent {
    replicas: i32,
}

impl Drop for Absent {
    fn drop(&mut self) {
        let replicas = self.replicas;
        let back = std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async { scale(&cluster::connect().await?, replicas).await })
        });
        if !matches!(back.join(), Ok(Ok(()))) {
            eprintln!(
                "the operator was not scaled back: kubectl scale deployment/{OPERATOR} -n {OPERATOR} --replicas={replicas}"
            );
        }
    }
}

/// The last lines of the operator's log that speak of a namespace.
pub async fn log_about(client: &Client, namespace: &str) -> Vec<String> {
    let api: Api<Pod> = Api::namespaced(client.clone(), OPERATOR);
    let mut lines = Vec::new();
    for pod in pods(client).await.unwrap_or_default() {
        for previous in [true, false] {
            let params = LogParams {
                previous,
                tail_lines: Some(5000),
                ..LogParams::default()
            };
            let text = api.logs(&pod.name_any(), &params).await.unwrap_or_default();
            lines.extend(
                text.lines()
                    .filter(|line| line.contains(namespace))
                    .map(str::to_owned),
            );
        }
    }
    lines.sort();
    let surplus = lines.len().saturating_sub(LINES);
    lines.split_off(surplus)
}
