//! What happens to a request before any key is touched: route, method, framing, body, verification, events.
//!
//! The order is part of the promise: what is cheap and protects the gateway comes first, and nothing is known to the
//! store about a delivery whose authenticity is not proven.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use pingora::http::RequestHeader;

use super::Core;
use super::answer::Own;
use super::body::{self, Body, NoBody, Reserved};
use super::conclude::COME_BACK;
use super::routes::ServedRoute;
use crate::config::{Mode, OnAuthFailure};
use crate::event::{Event, Unkeyed};
use crate::metrics::DeliveryResult;
use crate::provider::{AuthFailure, Delivery, Extraction, Verified};

/// A delivery that may be deduplicated: whole, verified, its events found.
pub(super) struct Incoming<'a> {
    pub(super) route: Arc<ServedRoute>,
    pub(super) head: &'a RequestHeader,
    pub(super) body: Bytes,
    pub(super) extraction: Extraction,
    /// `None`: it is not authentic, and only forwarded because the route observes. It has no keys then.
    pub(super) verified: Option<Verified>,
    pub(super) arrived: Instant,
    /// Held until nobody needs the body any more.
    _budget: Reserved,
}

/// What is to be done with a request, by its head.
pub(super) enum ByHead {
    /// It is streamed through, without a claim.
    Pass(Arc<ServedRoute>),
    /// It is a delivery: its body is to be read.
    Read(Arc<ServedRoute>),
    /// It is answered by the gateway itself.
    Refuse(Refusal),
}

/// An answer before any key was touched.
pub(super) struct Refusal {
    pub(super) route: Option<Arc<ServedRoute>>,
    pub(super) answer: Own,
    pub(super) result: DeliveryResult,
    /// Why, for the operator.
    pub(super) cause: Option<String>,
}

/// Headers that ask a handler to take another method than the request's: behind them a deduplicated path could be
/// reached unseen.
static METHOD_OVERRIDES: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
];

/// Looks at everything that can be judged without the body. `raw` is the head as it came.
pub(super) fn by_head(core: &Core, head: &RequestHeader, raw: impl FnOnce() -> Bytes) -> ByHead {
    let refuse = |route: Option<&Arc<ServedRoute>>, answer: Own, result, cause: Option<&str>| {
        let (route, cause) = (route.cloned(), cause.map(str::to_owned));
        ByHead::Refuse(Refusal { route, answer, result, cause })
    };
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if !head.raw_path().starts_with(b"/") || !head.raw_path_is_utf8() {
        let answer = Own::new(400, "bad request").close();
        return refuse(None, answer, DeliveryResult::BadRequest, Some("the request target is not a path"));
    }
    let route = match core.routes.find(host, head.uri.path()) {
        Ok(Some(route)) => route,
        Ok(None) => return refuse(None, Own::new(404, "no route"), DeliveryResult::NoRoute, None),
        Err(error) => {
            let answer = Own::new(400, "bad request").close();
            return refuse(None, answer, DeliveryResult::BadRequest, Some(&error.to_string()));
        }
    };
    if core.is_stopping() {
        let answer = Own::new(503, "try again").retry_after(COME_BACK).close();
        return refuse(Some(&route), answer, DeliveryResult::Busy, Some("the gateway is stopping"));
    }
    if route.provider.is_none() {
        if let Some(keyed) = core.routes.spelled_otherwise(host, head.uri.path()) {
            let cause = format!("only another spelling of the path of `{keyed}`");
            return refuse(Some(&route), Own::new(404, "no route"), DeliveryResult::NoRoute, Some(&cause));
        }
        return ByHead::Pass(route);
    }
    if head.headers.contains_key(header::TRANSFER_ENCODING) && body::says_its_length(&raw()) {
        let cause = "both `Content-Length` and `Transfer-Encoding`";
        return refuse(Some(&route), Own::new(400, "bad request").close(), DeliveryResult::BadRequest, Some(cause));
    }
    match method(&route, head) {
        Taken::Passed => ByHead::Pass(route),
        Taken::Delivered => ByHead::Read(route),
        Taken::Refused(cause) => {
            let answer = Own::new(405, "method not allowed").allow(allowed(&route));
            refuse(Some(&route), answer, DeliveryResult::Refused, Some(&cause))
        }
    }
}

/// Verifies a whole delivery and finds its events.
pub(super) fn admit<'a>(
    route: &Arc<ServedRoute>,
    head: &'a RequestHeader,
    body: Body,
    arrived: Instant,
) -> Result<Incoming<'a>, Box<Refusal>> {
    let delivery = Delivery {
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
        body: &body.bytes,
    };
    let (verified, extraction) = match &route.provider {
        Some(provider) => match provider.verify(&delivery, SystemTime::now()) {
            Ok(verified) => (Some(verified), provider.extract(&delivery)),
            Err(failure) => {
                route.metrics.unauthorized(failure.label());
                if route.config.mode == Mode::Enforce {
                    return Err(Box::new(unauthorized(route, failure)));
                }
                (None, unauthentic())
            }
        },
        None => (None, unauthentic()),
    };
    Ok(Incoming {
        route: Arc::clone(route),
        extraction,
        verified,
        arrived,
        _budget: body.budget,
        body: body.bytes,
        head,
    })
}

/// A delivery that is not authentic has no keys: none may be read or written for it.
fn unauthentic() -> Extraction {
    let event = Event { kind: "delivery".into(), key: Err(Unkeyed::NotAuthentic), conversation: None };
    Extraction { events: vec![event], batch: None }
}

impl Incoming<'_> {
    /// The signature headers that a changed body needs.
    pub(super) fn sign(&self, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        let (Some(provider), Some(verified)) = (&self.route.provider, self.verified) else { return Vec::new() };
        let delivery = Delivery {
            path: self.head.uri.path(),
            query: self.head.uri.query().unwrap_or_default(),
            headers: &self.head.headers,
            body: &self.body,
        };
        provider.sign(&delivery, verified, body)
    }
}

fn unauthorized(route: &Arc<ServedRoute>, failure: AuthFailure) -> Refusal {
    let answer = match route.config.on_auth_failure {
        OnAuthFailure::Reject => Own::new(401, "not authentic"),
        OnAuthFailure::Discard => Own::new(200, "discarded"),
        OnAuthFailure::RetryLater => Own::new(503, "try again").retry_after(COME_BACK),
    };
    let cause = Some(failure.to_string());
    Refusal { route: Some(Arc::clone(route)), answer, result: DeliveryResult::Unauthorized, cause }
}

enum Taken {
    /// POST: a delivery.
    Delivered,
    /// A handshake or a probe, or a method that the route passes.
    Passed,
    Refused(String),
}

fn method(route: &ServedRoute, head: &RequestHeader) -> Taken {
    let method = &head.method;
    if route.config.pass_methods.iter().any(|passed| passed == method.as_str()) {
        return Taken::Passed;
    }
    if let Some(name) = METHOD_OVERRIDES.iter().find(|name| head.headers.contains_key(*name)) {
        return Taken::Refused(format!("the header `{name}`"));
    }
    match *method {
        Method::POST => Taken::Delivered,
        Method::GET | Method::HEAD | Method::OPTIONS => {
            // A length that is written in an odd way is a length.
            let has_body = head.headers.contains_key(header::TRANSFER_ENCODING)
                || head.headers.get_all(header::CONTENT_LENGTH).iter().any(|length| length != "0");
            if has_body { Taken::Refused(format!("`{method}` with a body")) } else { Taken::Passed }
        }
        _ => Taken::Refused(format!("`{method}`")),
    }
}

fn allowed(route: &ServedRoute) -> String {
    let mut methods = "GET, HEAD, OPTIONS, POST".to_owned();
    for method in &route.config.pass_methods {
        methods.push_str(", ");
        methods.push_str(method);
    }
    methods
}

/// The answer to a delivery whose body could not be had.
pub(super) fn without_body(route: &Arc<ServedRoute>, why: NoBody) -> Refusal {
    let (answer, result, cause) = match why {
        NoBody::TooLarge => {
            (Own::new(413, "body too large"), DeliveryResult::TooLarge, "the body is longer than `max_body`")
        }
        NoBody::OverBudget => (
            Own::new(503, "try again").retry_after(COME_BACK),
            DeliveryResult::Busy,
            "the bodies in memory have used up `server.body_budget`",
        ),
        NoBody::TooSlow => (
            Own::new(408, "body too slow"),
            DeliveryResult::BadRequest,
            "the body was not whole within `server.body_timeout`",
        ),
        NoBody::Broken => {
            (Own::new(400, "bad request"), DeliveryResult::BadRequest, "the body is broken or was cut off")
        }
    };
    Refusal { route: Some(Arc::clone(route)), answer: answer.close(), result, cause: Some(cause.to_owned()) }
}
