//! Clients that are told the address of a new primary at once: the part of an outage that Services have no share in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::TryStreamExt;
use futures::future::{Either, select};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};
use tokio::task::JoinHandle;
use wellcake_crds::labels;
use wellcake_crds::v1beta1::ValkeyCluster;

use crate::apply::{Applied, address};
use crate::ledger::Address;

/// Watches the primary record and the pods, and keeps an address up to date.
pub struct Told {
    /// The address.
    pub address: Arc<Address>,
    task: JoinHandle<()>,
}

impl Told {
    /// Starts to watch; the address is known soon after.
    pub fn start(cluster: &Applied) -> Self {
        let address = Arc::<Address>::default();
        let (cluster, target) = (cluster.clone(), Arc::clone(&address));
        let task = tokio::spawn(async move {
            loop {
                // A watch that ended or failed is simply started again.
                let _ = follow(&cluster, &target).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { address, task }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(cluster: &Applied, target: &Address) -> Result<()> {
    let one = WatchParams::default().fields(&format!("metadata.name={}", cluster.name.as_str()));
    let mine =
        WatchParams::default().labels(&format!("{}={}", labels::INSTANCE, cluster.name.as_str()));
    let (clusters, pods) = (
        cluster.space.api::<ValkeyCluster>(),
        cluster.space.api::<Pod>(),
    );
    let mut records = Box::pin(clusters.watch(&one, "0").await?);
    let mut members = Box::pin(pods.watch(&mine, "0").await?);
    let mut primary = None;
    let mut addresses = BTreeMap::new();
    loop {
        match select(records.try_next(), members.try_next()).await {
            Either::Left((event, _)) => {
                let Some(event) = event? else { return Ok(()) };
                if let WatchEvent::Added(it) | WatchEvent::Modified(it) = event {
                    primary = it
                        .status
                        .and_then(|status| status.primary_record)
                        .map(|it| it.pod);
                }
            }
            Either::Right((event, _)) => {
                let Some(event) = event? else { return Ok(()) };
                if let WatchEvent::Added(it) | WatchEvent::Modified(it) = event
                    && let Ok(address) = address(&it)
                {
                    addresses.insert(it.name_any(), address);
                }
            }
        }
        if let Some(address) = primary.as_ref().and_then(|primary| addresses.get(primary)) {
            target.tell(*address);
        }
    }
}
