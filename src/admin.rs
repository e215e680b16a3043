//! The operator's listener: `/metrics`, `/healthz` and `/readyz`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use http::{Method, Response, header};
use pingora::apps::http_app::ServeHttp;
use pingora::protocols::http::ServerSession;

use crate::metrics::Metrics;
use crate::store::Health;

/// Asks how the store is.
pub type AskHealth = Box<dyn Fn() -> BoxFuture<'static, Health> + Send + Sync>;

/// What the admin listener serves.
pub struct Admin {
    metrics: Arc<Metrics>,
    health: AskHealth,
    ready: Arc<AtomicBool>,
    /// `server.readiness: store`: not ready while the store does not answer.
    needs_store: bool,
}

impl Admin {
    /// `ready` is true from the moment the process takes deliveries until it stops.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, health: AskHealth, ready: Arc<AtomicBool>, needs_store: bool) -> Self {
        Self { metrics, health, ready, needs_store }
    }

    /// The store's state stands in the body. It does not decide unless asked to: Kubernetes would take every pod out
    /// of service at once, and `store_down` could never act.
    async fn readiness(&self) -> (u16, String) {
        let Health { up, durable, fault } = (self.health)().await;
        let serving = self.ready.load(Ordering::Acquire);
        let ready = serving && (up || !self.needs_store);
        let durable = match durable {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        let fault = fault.map(|fault| format!("fault: {fault}\n")).unwrap_or_default();
        let body = format!(
            "{}\nstore: {}\ndurable: {durable}\n{fault}",
            if ready { "ready" } else { "not ready" },
            if up { "up" } else { "down" },
        );
        (if ready { 200 } else { 503 }, body)
    }
}

#[async_trait]
impl ServeHttp for Admin {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let head = session.req_header();
        let readable = head.method == Method::GET || head.method == Method::HEAD;
        let path = head.uri.path().to_owned();
        let bodiless = head.method == Method::HEAD;
        let (status, content_type, body) = match path.as_str() {
            _ if !readable => (405, "text/plain", "only GET and HEAD\n".to_owned()),
            "/metrics" => (200, "text/plain; version=0.0.4; charset=utf-8", self.metrics.render()),
            "/healthz" => (200, "text/plain", "ok\n".to_owned()),
            "/readyz" => {
                let (status, body) = self.readiness().await;
                (status, "text/plain", body)
            }
            _ => (404, "text/plain", "/metrics /healthz /readyz\n".to_owned()),
        };
        let answer = Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::CONTENT_LENGTH, body.len());
        let body = if bodiless { Vec::new() } else { body.into_bytes() };
        answer.body(body).unwrap_or_default()
    }
}
