//! Drains of nodes, as `kubectl drain` does them: no new pods, and those that are there are evicted as disruption budgets allow.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::namespace::Space;
use crate::operator;

/// Pause between two attempts to evict a pod whose budget allows none now; `kubectl drain` waits 5 s.
const AGAIN: Duration = Duration::from_millis(200);

/// Names of the nodes.
pub async fn nodes(space: &Space) -> Result<Vec<String>> {
    let api: Api<Node> = Api::all(space.client.clone());
    let all = api.list(&ListParams::default()).await?;
    Ok(all.iter().map(ResourceExt::name_any).collect())
}

/// Drains a node of the pods of this namespace and of the operator, does `work`, and lets pods come back to it, whatever happened.
///
/// # Errors
/// When the node cannot be drained within `limit`, or `work` fails.
pub async fn while_drained(
    space: &Space,
    node: &str,
    limit: Duration,
    work: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    cordon(space, node, true).await?;
    let outcome = match evict_all(space, node, limit).await {
        Ok(()) => work().await,
        failed => failed,
    };
    cordon(space, node, false).await?;
    outcome
}

/// Keeps new pods from a node, or lets them come again.
///
/// # Errors
/// When Kubernetes refuses it.
pub async fn cordon(space: &Space, node: &str, closed: bool) -> Result<()> {
    let api: Api<Node> = Api::all(space.client.clone());
    let body = json!({ "spec": { "unschedulable": closed } });
    api.patch(node, &PatchParams::default(), &Patch::Merge(&body))
        .await
        .with_context(|| format!("cannot cordon {node}"))?;
    Ok(())
}

async fn evict_all(space: &Space, node: &str, limit: Duration) -> Result<()> {
    let until = Instant::now() + limit;
    let own: Api<Pod> = space.api();
    let operators: Api<Pod> = Api::namespaced(space.client.clone(), operator::OPERATOR);
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    for api in [&operators, &own] {
        for pod in api.list(&on_node).await? {
            evict(api, &pod.name_any(), until).await?;
        }
    }
    // As `kubectl drain` does, until they are gone.
    for api in [&operators, &own] {
        while !api.list(&on_node).await?.items.is_empty() {
            anyhow::ensure!(Instant::now() < until, "pods of {node} do not go");
            tokio::time::sleep(AGAIN).await;
        }
    }
    Ok(())
}

async fn evict(api: &Api<Pod>, pod: &str, until: Instant) -> Result<()> {
    loop {
        match api.evict(pod, &EvictParams::default()).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 429 && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(why) => return Err(why).with_context(|| format!("cannot evict {pod}")),
        }
    }
}
