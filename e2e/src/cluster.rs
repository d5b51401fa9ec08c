//! The Kubernetes under test: that of `KUBECONFIG`, else of `.local/kubeconfig` in the work tree.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Longest answer that is waited for; watches are ended by the server before.
const SILENCE: Duration = Duration::from_secs(120);

/// Root of the work tree.
pub fn repo() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// A file below `.local/`, where `cargo xtask up` keeps what runs.
pub fn local(path: &str) -> PathBuf {
    repo().join(".local").join(path)
}

/// A connection to the Kubernetes under test.
///
/// # Errors
/// When there is none; the message says how to start it.
pub async fn connect() -> Result<Client> {
    let given = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty());
    let path = given.map_or_else(|| local("kubeconfig"), PathBuf::from);
    let missing = || {
        format!(
            "no Kubernetes to test on answers at {}: run `cargo xtask up`",
            path.display()
        )
    };
    let file = Kubeconfig::read_from(&path).with_context(missing)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .with_context(missing)?;
    config.read_timeout = Some(SILENCE);
    let client = Client::try_from(config).with_context(missing)?;
    client.apiserver_version().await.with_context(missing)?;
    Ok(client)
}
