//! The connection to the Kubernetes API.

use std::time::Duration;

use anyhow::Context;
use kube::{Client, Config};

const CONNECT: Duration = Duration::from_secs(5);
const WRITE: Duration = Duration::from_secs(10);
/// A watch is ended by the server after 290 s at the latest; nothing else may be silent for longer either.
const SILENCE: Duration = Duration::from_secs(300);

/// Connects as the pod's service account, or as `KUBECONFIG` or `~/.kube/config` say when there is such a file.
///
/// Nothing is repeated inside the client: whether a request that failed is still wanted is a new decision.
///
/// # Errors
/// When neither is usable.
pub async fn connect() -> anyhow::Result<Client> {
    let mut config = Config::infer().await.context(
        "found no way to the Kubernetes API: run inside a pod with a service account, or set KUBECONFIG",
    )?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(WRITE);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    let server = config.cluster_url.clone();
    Client::try_from(config).with_context(|| format!("cannot use the Kubernetes API at {server}"))
}
