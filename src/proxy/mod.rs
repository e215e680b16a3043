//! The way of a delivery, from the connection it comes over to its answer.
//!
//! `workers` are the threads among which connections (each a `stream`) are shared out, and `door` serves one. `intake`
//! takes a request in (with `routes`, `received` and `body`), `forward` takes the delivery from claim to answer (with
//! `inflight`, `lease`, `wait`, `exchange`, `request`, `upstream`, `settle`, `unsettled` and `conclude`), `respond` writes
//! the answer (one of the gateway's own is an `answer`; `hop` knows what belongs to one connection only), and `journal`
//! tells about it. What is streamed through without a claim goes on to `passing`.

mod answer;
mod body;
mod conclude;
mod door;
mod exchange;
mod forward;
mod hop;
mod inflight;
mod intake;
mod journal;
mod lease;
mod passing;
mod received;
mod request;
mod respond;
mod routes;
mod running;
mod settle;
mod stream;
mod unsettled;
mod upstream;
mod wait;
mod workers;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use pingora::server::configuration::ServerConf;
use tokio::sync::Semaphore;

use self::answer::Own;
use self::body::Budget;
use self::door::Door;
use self::inflight::InFlight;
use self::intake::Incoming;
use self::journal::Line;
use self::passing::Passing;
use self::respond::Reply;
use self::routes::{Routes, ServedRoute};
use self::running::Running;
pub use self::running::Stopping;
use self::settle::Settler;
pub use self::workers::Workers;
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

    /// The service that serves the connections of `listener`, which does not block.
    ///
    /// # Errors
    ///
    /// What the system says where it gives no threads.
    pub fn service(&self, conf: &Arc<ServerConf>, listener: TcpListener) -> std::io::Result<Workers> {
        let passing = pingora_proxy::http_proxy(conf, Passing::new(Arc::clone(&self.core)));
        Workers::start(Door::new(Arc::clone(&self.core), passing), listener, conf.threads)
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

    /// The end of a delivery in whose way hookonce panicked.
    fn panicked(&self) -> (Reply, Line) {
        self.metrics.panicked();
        let line = Line::unclaimed(DeliveryResult::InternalError, Some("a panic: a fault in hookonce".to_owned()));
        (Reply::Own(Own::new(500, "internal error").close()), line)
    }
}

#[cfg(test)]
mod tests;
