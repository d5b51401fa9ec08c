//! The connection to the Kubernetes API.

use std::pin::Pin;
use std::sync::Arc;
use std::task;
use std::time::Duration;

use anyhow::Context;
use http::{Request, Response};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::{Layer, Service};

use crate::metrics::Metrics;

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
pub async fn connect(metrics: Arc<Metrics>) -> anyhow::Result<Client> {
    let mut config = Config::infer().await.context(
        "found no way to the Kubernetes API: run inside a pod with a service account, or set KUBECONFIG",
    )?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(WRITE);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    let server = config.cluster_url.clone();
    let host = server.authority().map_or("", |a| a.as_str());
    let count = Count {
        metrics,
        host: host.into(),
    };
    let builder = ClientBuilder::try_from(config)
        .with_context(|| format!("cannot use the Kubernetes API at {server}"))?;
    Ok(builder.with_layer(&count).build())
}

/// Counts requests by method and status code.
struct Count {
    metrics: Arc<Metrics>,
    host: Arc<str>,
}

impl<S> Layer<S> for Count {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            metrics: Arc::clone(&self.metrics),
            host: Arc::clone(&self.host),
        }
    }
}

/// A service whose requests are counted.
struct Counted<S> {
    inner: S,
    metrics: Arc<Metrics>,
    host: Arc<str>,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().clone();
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&self.host));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().ok().map(|a| a.status().as_u16());
            metrics.request(method.as_str(), &host, code);
            answer
        })
    }
}
