//! `/livez` and `/readyz`; `/metrics` and `/trace`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use wellcake_interpreter::Traces;

use crate::flags::Listen;
use crate::metrics::{Format, Metrics};

/// A server that listens already, but does not answer yet.
pub struct Server {
    listener: TcpListener,
    router: Router,
}

impl Server {
    /// Opens the port, when there is to be one. `flag` is named in the error.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub async fn bind(listen: Listen, router: Router, flag: &str) -> anyhow::Result<Option<Self>> {
        let addresses: Vec<SocketAddr> = match listen {
            Listen::Off => return Ok(None),
            Listen::At(address) => vec![address],
            // The first serves both families; it fails where IPv6 is off.
            Listen::Everywhere(port) => vec![
                (Ipv6Addr::UNSPECIFIED, port).into(),
                (Ipv4Addr::UNSPECIFIED, port).into(),
            ],
        };
        let listener = TcpListener::bind(addresses.as_slice())
            .await
            .with_context(|| {
                format!("cannot listen on {addresses:?}; choose another address with {flag}")
            })?;
        Ok(Some(Self { listener, router }))
    }

    /// Answers until the process ends.
    pub async fn serve(self) {
        if let Err(why) = axum::serve(self.listener, self.router).await {
            tracing::error!(error = %why, "the HTTP server ended");
        }
    }
}

/// `/livez`: the process answers. `/readyz`: the caches are filled. `/healthz` is another name of `/livez`.
pub fn probes(ready: watch::Receiver<bool>) -> Router {
    let live = || async { "ok\n" };
    let readyz = move || async move {
        if *ready.borrow() {
            (StatusCode::OK, "ok\n")
        } else {
            let why = "not ready: the caches are not filled yet; if it stays so, see the log, and whether the \
                       CustomResourceDefinitions are installed\n";
            (StatusCode::SERVICE_UNAVAILABLE, why)
        }
    };
    Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(readyz))
}

/// `/metrics`, and `/trace/NAMESPACE/NAME`: the newest part of the trace of a ValkeyCluster, which holds no secrets.
pub fn numbers(metrics: Arc<Metrics>, traces: Arc<Traces>) -> Router {
    let answer = move |headers: HeaderMap| async move {
        let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
        let format = Format::accepted(accept.unwrap_or_default());
        let kind = [(header::CONTENT_TYPE, format.content_type())];
        (kind, metrics.encode(format)).into_response()
    };
    let trace = move |Path((namespace, name)): Path<(String, String)>| async move {
        match traces.of(&namespace, &name) {
            Some(lines) => ([(header::CONTENT_TYPE, "application/jsonl")], lines).into_response(),
            None => {
                let why = format!(
                    "no trace of {namespace}/{name} here: only the operator that leads has traces, of ValkeyClusters \
                     that exist\n"
                );
                (StatusCode::NOT_FOUND, why).into_response()
            }
        }
    };
    Router::new()
        .route("/metrics", get(answer))
        .route("/trace/{namespace}/{name}", get(trace))
}
