//! `/livez`, `/readyz` and `/metrics`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::flags::Listen;
use crate::metrics::{Format, Metrics};
use crate::readiness::Readiness;

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
pub fn probes(ready: Arc<Readiness>) -> Router {
    let live = || async { "ok\n" };
    let readyz = move || async move {
        if ready.get() {
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

/// `/metrics`.
pub fn metrics(metrics: Arc<Metrics>) -> Router {
    let answer = move |headers: HeaderMap| async move {
        let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
        let format = Format::accepted(accept.unwrap_or_default());
        let kind = [(header::CONTENT_TYPE, format.content_type())];
        (kind, metrics.encode(format)).into_response()
    };
    Router::new().route("/metrics", get(answer))
}
