//! A provider's connection: its requests, one after the other, each taken to its answer.
//!
//! Deliveries do not pass pingora's proxy: its set-up for caches, modules, retries and subrequests would cost each of
//! them more than its claim does, and its exchange ends when the provider hangs up. Here pingora reads the request, and
//! everything after it is the gateway's own. Only what is streamed through goes on to that proxy (`passing`).

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use pingora::ErrorType;
use pingora::apps::HttpServerApp;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::server::HttpSession;
use pingora_proxy::HttpProxy;
use prometheus::IntGauge;

use super::answer::Own;
use super::intake::{self, ByHead, Refusal};
use super::journal::{self, Line};
use super::passing::{self, Passing};
use super::received::{Caller, Received};
use super::respond::{self, Reply, Written};
use super::routes::ServedRoute;
use super::{Core, body, forward};
use crate::metrics::DeliveryResult;

/// How long a provider that has just connected may take to send the head of its first request.
const FIRST_REQUEST: Duration = Duration::from_secs(60);

/// Serves the connections of the listener.
pub(super) struct Door {
    core: Arc<Core>,
    passing: Arc<HttpProxy<Passing>>,
}

/// What is answered to a request, and told about it.
struct Told {
    route: Option<Arc<ServedRoute>>,
    reply: Reply,
    line: Line,
}

impl Told {
    fn refused(Refusal { route, answer, result, cause }: Refusal) -> Self {
        Self { route, reply: Reply::Own(answer), line: Line::unclaimed(result, cause) }
    }

    fn panicked(core: &Core, route: Option<Arc<ServedRoute>>) -> Self {
        let (reply, line) = core.panicked();
        Self { route, reply, line }
    }
}

/// A request among those that its route has in flight, for as long as this lives.
struct Counted(IntGauge);

impl Counted {
    fn in_flight(route: &ServedRoute) -> Self {
        let gauge = route.metrics.in_flight.clone();
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Does what may panic, and holds the panic.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

struct Panicked;

impl Door {
    pub(super) fn new(core: Arc<Core>, passing: HttpProxy<Passing>) -> Self {
        Self { core, passing: Arc::new(passing) }
    }

    /// Serves a connection to its end.
    pub(super) async fn serve(&self, stream: Stream) {
        // Where a panic is not held closer to its cause, it ends the connection and nothing else.
        if AssertUnwindSafe(self.serve_each(stream)).catch_unwind().await.is_err() {
            self.core.metrics.panicked();
        }
    }

    async fn serve_each(&self, stream: Stream) {
        let mut stopping = pin!(self.core.stopping());
        let mut first = true;
        let mut next = Some(HttpSession::new(stream));
        while let Some(mut session) = next.take() {
            let reading = async {
                if !first {
                    // Whoever stands between a provider and the gateway keeps connections for as long as it likes.
                    return session.read_request().await;
                }
                pingora::time::timeout(FIRST_REQUEST, session.read_request()).await.unwrap_or(Ok(None))
            };
            let read = tokio::select! {
                // A request that is here is answered, if only that the gateway is stopping.
                biased;
                read = reading => read,
                () = &mut stopping => return,
            };
            first = false;
            match read {
                Ok(Some(_)) => next = self.take(session).await,
                Err(error) if *error.etype() == ErrorType::InvalidHTTPHeader => self.refuse(session).await,
                Ok(None) | Err(_) => {}
            }
        }
    }

    /// Has the store open what this thread needs, so that its first delivery does not wait for it.
    pub(super) async fn open_store(&self) {
        self.core.store.health().await;
    }

    /// Tells pingora's proxy that no connection comes any more.
    pub(super) async fn close(&self) {
        self.passing.http_cleanup().await;
    }

    /// Takes one request to its answer. Nothing comes back where the connection ends with it.
    async fn take(&self, session: HttpSession) -> Option<HttpSession> {
        let core = &self.core;
        let arrived = Instant::now();
        // From before it is asked whether the gateway is stopping until the answer is written: one that stops waits for it.
        let _under = core.running.enter();
        // Nothing is claimed yet, and what a panic leaves behind is this request's alone.
        match guarded(|| intake::by_head(core, session.req_header(), || session.get_headers_raw_bytes())) {
            Ok(ByHead::Pass(route)) => Box::pin(self.pass(session, route, arrived)).await,
            Ok(ByHead::Read(route)) => self.deliver(session, route, arrived).await,
            Ok(ByHead::Refuse(refusal)) => self.answer_unread(session, Told::refused(refusal), arrived).await,
            Err(Panicked) => self.answer_unread(session, Told::panicked(core, None), arrived).await,
        }
    }

    /// Answers without having looked at the body.
    async fn answer_unread(&self, session: HttpSession, told: Told, arrived: Instant) -> Option<HttpSession> {
        let caller = Received::from(session, false).await?.caller;
        self.answer(caller, told, arrived).await
    }

    /// Takes a delivery to its answer.
    async fn deliver(&self, session: HttpSession, route: Arc<ServedRoute>, arrived: Instant) -> Option<HttpSession> {
        let core = &self.core;
        let _in_flight = Counted::in_flight(&route);
        let (max_body, timeout) = (route.config.max_body, core.body_timeout);
        let (Received { head, caller }, body) = body::read(session, &core.budget, max_body, timeout).await?;
        let admitted = match body {
            Ok(body) => guarded(|| intake::admit(&route, &head, body, arrived)),
            Err(why) => Ok(Err(Box::new(intake::without_body(&route, why)))),
        };
        let told = match admitted {
            Ok(Ok(incoming)) => {
                // A panic ends this delivery and nothing else: its claims, which may have been sent, end with their
                // lease. This runs in the connection's own task, which nobody drops when the provider hangs up
                // (`tests/gateway/disconnects.rs` holds that); a task for each delivery would cost more.
                match AssertUnwindSafe(forward::forward(core, &incoming)).catch_unwind().await {
                    Ok((reply, line)) => Told { route: Some(route), reply, line },
                    Err(_) => Told::panicked(core, Some(route)),
                }
            }
            Ok(Err(refusal)) => Told::refused(*refusal),
            Err(Panicked) => Told::panicked(core, Some(route)),
        };
        self.answer(caller, told, arrived).await
    }

    async fn answer(&self, caller: Caller, told: Told, arrived: Instant) -> Option<HttpSession> {
        let core = &self.core;
        let Told { route, reply, line } = told;
        let Written { sent, next } = respond::write(caller, reply, &line.label, !core.is_stopping()).await;
        journal::tell(core.log, route.as_ref(), &core.unrouted, &line, sent, arrived);
        next
    }

    /// Answers what is no request. Whatever comes after it on this connection would be read at the wrong place.
    async fn refuse(&self, session: HttpSession) {
        let arrived = Instant::now();
        let _under = self.core.running.enter();
        let line = Line::unclaimed(DeliveryResult::BadRequest, Some("the head is not one of HTTP/1.1".to_owned()));
        let own = Own::new(400, "bad request");
        let sent = respond::write_last(session.into_inner(), &own, &line.label).await;
        journal::tell(self.core.log, None, &self.core.unrouted, &line, sent, arrived);
    }

    /// Hands a request to pingora's proxy, which reads its head once more.
    async fn pass(&self, session: HttpSession, route: Arc<ServedRoute>, arrived: Instant) -> Option<HttpSession> {
        let _in_flight = Counted::in_flight(&route);
        let again = passing::unread(session, route, arrived).await?;
        let shutdown = self.core.running.watch();
        let (stream, settings) = self.passing.process_new_http(again, &shutdown).await?.consume();
        passing::kept(stream, settings)
    }
}
