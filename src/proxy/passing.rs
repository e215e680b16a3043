//! What is streamed through without a claim: handshakes, probes, passed methods, and routes that deduplicate nothing.
//!
//! Here pingora's proxy does everything: it streams both ways, and gives up when either side cannot be written to.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header;
use pingora::apps::HttpPersistentSettings;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v1::server::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};

use super::Core;
use super::answer::PLAIN_TEXT;
use super::journal::{self, Line};
use super::received::{Caller, Received};
use super::respond;
use super::routes::ServedRoute;
use super::upstream::Failure;
use crate::metrics::DeliveryResult;

/// The part of the gateway that pingora's proxy asks.
pub struct Passing {
    core: Arc<Core>,
}

/// What pingora carries along for one request.
pub struct Context {
    request: Option<Request>,
    /// Why it could not be streamed through.
    cause: Option<String>,
}

struct Request {
    route: Arc<ServedRoute>,
    arrived: Instant,
}

/// The session of a request whose head was read and whose body was not, as if nothing had been read of it.
pub(super) async fn unread(session: HttpSession, route: Arc<ServedRoute>, arrived: Instant) -> Option<ServerSession> {
    let mut read = BytesMut::from(session.get_headers_raw_bytes());
    let Caller { stream, behind, .. } = Received::from(session, false).await?.caller;
    read.unsplit(behind);
    let mut again = ServerSession::new_http1(stream);
    again.set_pipelined_prefix(read);
    again.set_connection_user_context(Some(Box::new(Request { route, arrived })));
    // What comes behind it is the next request, and a client that has sent all may close its half and wait.
    again.set_pipelining_enabled(true);
    if let ServerSession::H1(session) = &mut again {
        session.set_abort_on_close(false);
    }
    Some(again)
}

/// The connection after a request that was streamed through.
pub(super) fn kept(stream: Stream, settings: Option<HttpPersistentSettings>) -> Option<HttpSession> {
    let mut session = ServerSession::new_http1(stream);
    settings?.apply_to_session(&mut session);
    match session {
        ServerSession::H1(session) => Some(session),
        _ => None,
    }
}

impl Passing {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

#[async_trait]
impl ProxyHttp for Passing {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        Context { request: None, cause: None }
    }

    /// This is how [`unread`] says by which route the request came in.
    fn on_connection_reuse(&self, _: &mut Session, context: &mut Context, request: Box<dyn Any + Send + Sync>) {
        context.request = request.downcast().ok().map(|request| *request);
    }

    async fn upstream_peer(&self, _session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
        let Some(Request { route, .. }) = &context.request else {
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
        let host = context.request.as_ref().and_then(|passed| passed.route.config.upstream.host_header.as_deref());
        if let Some(host) = host {
            request.insert_header("Host", host)?;
        }
        Ok(())
    }

    /// Only the gateway says what became of a delivery, and this was none.
    async fn response_filter(&self, _: &mut Session, head: &mut ResponseHeader, _: &mut Context) -> Result<()> {
        head.remove_header(respond::RESULT);
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
        if session.response_written().is_none() {
            // A write error means that the client has gone too.
            let _ = answer_failure(session, status).await;
        }
        FailToProxy { error_code: status, can_reuse_downstream: false }
    }

    async fn logging(&self, session: &mut Session, _error: Option<&Error>, context: &mut Context) {
        if let Some(Request { route, arrived }) = context.request.take() {
            let line = Line::unclaimed(DeliveryResult::Passed, context.cause.take());
            let sent = session.response_written().map(|head: &ResponseHeader| head.status.as_u16());
            journal::tell(self.core.log, Some(&route), &self.core.unrouted, &line, sent, arrived);
        }
    }

    /// Pingora's own lines would show the query, in which some providers carry tokens; ours say what matters.
    fn suppress_error_log(&self, _session: &Session, _context: &Context, _error: &Error) -> bool {
        true
    }
}

async fn answer_failure(session: &mut Session, status: u16) -> Result<()> {
    let word = Bytes::from_static(b"the handler gave no usable answer");
    let mut head = ResponseHeader::build(status, Some(4))?;
    head.insert_header(header::CONTENT_TYPE, PLAIN_TEXT)?;
    head.insert_header(header::CONTENT_LENGTH, word.len())?;
    head.insert_header(respond::RESULT, DeliveryResult::Passed.label())?;
    session.set_keepalive(None);
    session.write_response_header(Box::new(head), false).await?;
    session.write_response_body(Some(word), true).await
}
