//! The way of a delivery, at pingora's hand: [`Gateway`] delegates each of its phases to one file.
//!
//! `intake` takes the request in (with `routes` and `body`), `forward` takes the delivery from claim to answer (with
//! `inflight`, `lease`, `wait`, `exchange`, `request`, `upstream`, `settle`, `unsettled` and `conclude`), `respond` writes
//! the answer, and `journal` tells about it.

mod body;
mod conclude;
mod exchange;
mod forward;
mod inflight;
mod intake;
mod journal;
mod lease;
mod request;
mod respond;
mod routes;
mod running;
mod settle;
mod unsettled;
mod upstream;
mod wait;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use tokio::sync::Semaphore;

use self::body::Budget;
use self::inflight::InFlight;
use self::intake::{Incoming, Intake, Refusal};
use self::journal::Line;
use self::respond::{Own, Reply};
use self::routes::{Routes, ServedRoute};
pub use self::running::Stopping;
use self::running::{Running, Under};
use self::settle::Settler;
use self::upstream::Failure;
use crate::config::{self, Log};
use crate::metrics::{DeliveryResult, Metrics, RouteMetrics};
use crate::route::Route;
use crate::store::ClaimStore;

/// How many deliveries may wait for an event that is in flight elsewhere.
const MOST_WAITING: usize = 4_096;

/// The proxy service.
#[derive(Clone)]
pub struct Gateway {
    core: Arc<Core>,
}

/// What all deliveries share.
struct Core {
    routes: Routes,
    store: Arc<dyn ClaimStore>,
    metrics: Arc<Metrics>,
    settler: Settler,
    in_flight: Arc<InFlight>,
    budget: Budget,
    body_timeout: Duration,
    waiting: Semaphore,
    running: Arc<Running>,
    log: Log,
    unrouted: RouteMetrics,
}

/// What pingora carries along for one request.
pub struct Context {
    arrived: Instant,
    under: Option<Under>,
    /// A request that is streamed through.
    passed: Option<Arc<ServedRoute>>,
    /// Why it could not be.
    cause: Option<String>,
}

impl Gateway {
    /// A gateway that serves `routes`.
    #[must_use]
    pub fn new(server: &config::Server, routes: Vec<Route>, store: Arc<dyn ClaimStore>, metrics: Arc<Metrics>) -> Self {
        let core = Core {
            routes: Routes::new(routes, Arc::clone(&metrics)),
            settler: Settler::new(Arc::clone(&store), Arc::clone(&metrics), server.log.keys),
            in_flight: InFlight::new(),
            budget: Budget::new(server.body_budget),
            body_timeout: server.body_timeout,
            waiting: Semaphore::new(MOST_WAITING),
            running: Running::new(),
            log: server.log,
            // Requests that no route takes, and those that are no requests. No route can have this name.
            unrouted: metrics.route("-", "none", &[]),
            store,
            metrics,
        };
        Self { core: Arc::new(core) }
    }

    /// Serves `routes` from now on. Deliveries that are under way end by the routes they came in by.
    pub fn replace_routes(&self, routes: Vec<Route>) {
        self.core.routes.replace(routes);
    }

    /// The handle by which this gateway is stopped.
    #[must_use]
    pub fn stopping(&self) -> Stopping {
        Stopping::new(Arc::clone(&self.core))
    }
}

impl Core {
    fn is_stopping(&self) -> bool {
        self.running.is_stopping()
    }

    async fn stopping(&self) {
        self.running.stopping().await;
    }

    /// Takes a delivery all the way. A panic ends this delivery and nothing else: its claims, which may have been sent,
    /// end with their lease.
    ///
    /// This runs inside `request_filter`, which pingora does not drop when an HTTP/1 provider hangs up (tried with
    /// 0.9.1, and held by `tests/gateway/disconnects.rs`); a task of its own for each delivery would cost more. The
    /// listener speaks no HTTP/2, for which nobody tried.
    async fn deliver(self: &Arc<Self>, incoming: Incoming) -> (Reply, Line) {
        let way = forward::forward(Arc::clone(self), incoming);
        AssertUnwindSafe(way).catch_unwind().await.unwrap_or_else(|_| self.panicked())
    }

    /// The end of a delivery in whose way hookonce panicked.
    fn panicked(&self) -> (Reply, Line) {
        self.metrics.panicked();
        let line = Line::unclaimed(DeliveryResult::InternalError, Some("a panic: a fault in hookonce".to_owned()));
        (Reply::Own(Own::new(500, "internal error").close()), line)
    }
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        Context { arrived: Instant::now(), under: None, passed: None, cause: None }
    }

    /// Everything that is deduplicated, or answered by the gateway itself, ends here.
    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        context.arrived = Instant::now();
        let core = &self.core;
        // Nothing is claimed yet, and what a panic leaves behind is this request's alone.
        let taken_in = AssertUnwindSafe(intake::take_in(core, session, context.arrived)).catch_unwind().await;
        let Ok(taken_in) = taken_in else {
            let (reply, line) = core.panicked();
            let sent = respond::write(session, reply, &line.label).await;
            journal::tell(core.log, None, &core.unrouted, &line, sent.as_ref().ok().copied(), context.arrived);
            return sent.map(|_| true);
        };
        let (route, reply, line) = match taken_in {
            Intake::Pass(route) => {
                context.under = Some(core.running.enter(Some(&route.metrics.in_flight)));
                context.passed = Some(route);
                return Ok(false);
            }
            Intake::Answer(Refusal { route, answer, result, cause }) => {
                (route, Reply::Own(answer), Line::unclaimed(result, cause))
            }
            Intake::Delivery(incoming) => {
                let route = Arc::clone(&incoming.route);
                context.under = Some(core.running.enter(Some(&route.metrics.in_flight)));
                let (reply, line) = core.deliver(*incoming).await;
                (Some(route), reply, line)
            }
        };
        let sent = respond::write(session, reply, &line.label).await;
        journal::tell(core.log, route.as_ref(), &core.unrouted, &line, sent.as_ref().ok().copied(), context.arrived);
        sent.map(|_| true)
    }

    async fn upstream_peer(&self, _session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
        let Some(route) = &context.passed else {
            return Error::e_explain(ErrorType::InternalError, "no route to stream to");
        };
        match route.upstream.peer().await {
            Ok(peer) => Ok(Box::new(peer)),
            Err(Failure::NotSent(cause) | Failure::Unknown(_, cause)) => {
                context.cause = Some(cause.clone());
                Error::e_explain(ErrorType::ConnectNoRoute, cause)
            }
        }
    }

    async fn upstream_request_filter(
        &self,
        _session: &mut Session,
        request: &mut RequestHeader,
        context: &mut Context,
    ) -> Result<()> {
        if let Some(host) = context.passed.as_ref().and_then(|route| route.config.upstream.host_header.as_deref()) {
            request.insert_header("Host", host)?;
        }
        Ok(())
    }

    /// An answer that could not be had or finished. Where nothing was written yet, the gateway answers in its own words.
    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, context: &mut Context) -> FailToProxy {
        let status = match error.etype() {
            ErrorType::HTTPStatus(status) => *status,
            ErrorType::ReadTimedout | ErrorType::WriteTimedout => 504,
            _ => 502,
        };
        context.cause.get_or_insert_with(|| error.etype().as_str().to_owned());
        if session.response_written().is_none() && context.passed.is_some() {
            let own = Own::new(status, "the handler gave no usable answer").close();
            // A write error means that the client has gone too.
            let _ = respond::write_own(session, &own, DeliveryResult::Passed.label()).await;
        }
        FailToProxy { error_code: status, can_reuse_downstream: false }
    }

    async fn logging(&self, session: &mut Session, _error: Option<&Error>, context: &mut Context) {
        if let Some(route) = context.passed.take() {
            let line = Line::unclaimed(DeliveryResult::Passed, context.cause.take());
            let sent = session.response_written().map(|head: &ResponseHeader| head.status.as_u16());
            journal::tell(self.core.log, Some(&route), &self.core.unrouted, &line, sent, context.arrived);
        }
        context.under = None;
    }

    /// Pingora's own lines would show the query, in which some providers carry tokens; ours say what matters.
    fn suppress_error_log(&self, _session: &Session, _context: &Context, _error: &Error) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
