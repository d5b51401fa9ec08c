//! One namespace for each test, and the order in which tests may run.

use std::future::Future;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::cluster;

/// Tests beside each other. Their servers share two processors with Kubernetes itself.
const BESIDE: u32 = 2;
static TURNS: Semaphore = Semaphore::const_new(BESIDE as usize);

/// A namespace of the Kubernetes under test.
#[derive(Clone)]
pub struct Space {
    /// The connection.
    pub client: Client,
    /// The namespace.
    pub name: String,
}

/// Runs a test in a namespace of its own, which is deleted afterwards, also when the test fails. Up to two such tests
/// run beside each other.
pub async fn beside_others<F>(name: &str, test: impl FnOnce(Space) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    run(name, 1, test).await;
}

/// The same for a test that does something to the operator, or counts what the operator does: none runs beside it.
pub async fn alone<F>(name: &str, test: impl FnOnce(Space) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    run(name, BESIDE, test).await;
}

async fn run<F>(name: &str, turns: u32, test: impl FnOnce(Space) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let _turn = TURNS
        .acquire_many(turns)
        .await
        .expect("the turns are never closed");
    let client = cluster::connect()
        .await
        .unwrap_or_else(|why| panic!("{why:#}"));
    let space = Space::create(client, name)
        .await
        .unwrap_or_else(|why| panic!("{why:#}"));
    let outcome = tokio::spawn(test(space.clone())).await;
    let deleted = space.delete().await;
    match outcome {
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
        Ok(Err(why)) => panic!("{why:#}"),
        Ok(Ok(())) => deleted.unwrap_or_else(|why| panic!("{why:#}")),
    }
}

impl Space {
    /// Creates a namespace `e2e-<name>-<number>`. `E2E_RUN` takes the number's place, so that an operator under a
    /// debugger can be told the namespace with `--watch-namespaces`.
    pub async fn create(client: Client, name: &str) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() % 10_000_000;
        let run = std::env::var("E2E_RUN").unwrap_or_else(|_| now.to_string());
        let name = format!("e2e-{name}-{run}");
        let object = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let api: Api<Namespace> = Api::all(client.clone());
        api.create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("cannot create the namespace {name}"))?;
        Ok(Self { client, name })
    }

    /// Deletes the namespace with all that is in it. `E2E_KEEP=1` leaves it for a look.
    pub async fn delete(&self) -> Result<()> {
        if std::env::var_os("E2E_KEEP").is_some() {
            return Ok(());
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.delete(&self.name, &DeleteParams::default())
            .await
            .with_context(|| format!("cannot delete the namespace {}", self.name))?;
        Ok(())
    }

    /// Objects of a kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }
}
