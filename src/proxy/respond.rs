//! Every answer that a provider gets, written in one place.
//!
//! What the gateway answers by itself is short and fixed, and says nothing about the cause: that stands in the log.
//! About a keyed delivery it is never 3xx (some senders follow it as a GET), nor 400, 401, 403, 404 or 422 (Evolution
//! gives up on those), except where the route's own `on_auth_failure` says so.

use std::time::Duration;

use bytes::Bytes;
use http::header;
use pingora::http::ResponseHeader;
use pingora_proxy::Session;

use super::upstream::Answer;
use crate::config::DuplicateResponse;

/// The header that says what became of a delivery.
pub(super) const RESULT: &str = "hookonce-result";

/// How long a sender whose body was refused is listened to.
const LINGER: Duration = Duration::from_secs(2);

/// How long a provider may take to read a piece of an answer.
const LONGEST_WRITE: Duration = Duration::from_secs(30);

/// What goes back to the provider.
pub(super) enum Reply {
    /// The upstream's own answer.
    Relay(Answer),
    /// The gateway's.
    Own(Own),
}

/// An answer of the gateway's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    status: u16,
    content_type: String,
    body: Bytes,
    retry_after: Option<Duration>,
    allow: Option<String>,
    close: bool,
}

impl Own {
    /// A status and a short word.
    pub(super) fn new(status: u16, word: &'static str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8".to_owned(),
            body: Bytes::from_static(word.as_bytes()),
            retry_after: None,
            allow: None,
            close: false,
        }
    }

    /// The route's answer to a duplicate.
    pub(super) fn duplicate(response: &DuplicateResponse) -> Self {
        Self {
            status: response.status,
            content_type: response.content_type.clone(),
            body: Bytes::copy_from_slice(response.body.as_bytes()),
            retry_after: None,
            allow: None,
            close: false,
        }
    }

    /// Tells the provider when to come back: whole seconds, at least one.
    pub(super) fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// The same, where `condition` holds.
    pub(super) fn retry_after_if(self, condition: bool, pause: Duration) -> Self {
        if condition { self.retry_after(pause) } else { self }
    }

    /// Names the methods that are taken (RFC 9110, section 15.5.6).
    pub(super) fn allow(mut self, methods: String) -> Self {
        self.allow = Some(methods);
        self
    }

    /// Closes the connection afterwards.
    pub(super) fn close(mut self) -> Self {
        self.close = true;
        self
    }

    fn head(&self, result: &str) -> pingora::Result<ResponseHeader> {
        let mut head = ResponseHeader::build(self.status, Some(8))?;
        head.insert_header(header::CONTENT_TYPE, self.content_type.as_str())?;
        head.insert_header(header::CONTENT_LENGTH, self.body.len())?;
        head.insert_header(RESULT, result)?;
        if let Some(pause) = self.retry_after {
            let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
            head.insert_header(header::RETRY_AFTER, seconds.max(1))?;
        }
        if let Some(methods) = &self.allow {
            head.insert_header(header::ALLOW, methods.as_str())?;
        }
        Ok(head)
    }
}

/// Writes the reply, and answers the status that was sent. An error means that the provider has gone; nothing depends
/// on it any more.
pub(super) async fn write(session: &mut Session, reply: Reply, result: &str) -> pingora::Result<u16> {
    match reply {
        Reply::Own(own) => write_own(session, &own, result).await,
        Reply::Relay(answer) => relay(session, answer, result).await,
    }
}

/// Writes an answer of the gateway's own.
pub(super) async fn write_own(session: &mut Session, own: &Own, result: &str) -> pingora::Result<u16> {
    if own.close {
        session.set_keepalive(None);
    }
    session.write_response_header(Box::new(own.head(result)?), own.body.is_empty()).await?;
    if !own.body.is_empty() {
        session.write_response_body(Some(own.body.clone()), true).await?;
    }
    if own.status != 408 && !session.is_body_done() {
        linger(session).await;
    }
    Ok(own.status)
}

/// Reads on for a moment where a body was not read, or not to its end. Closing a connection with unread data resets it, and the reset can
/// overtake the answer, which the sender would never see.
async fn linger(session: &mut Session) {
    let rest = async { while let Ok(Some(_)) = session.read_request_body().await {} };
    let _ = tokio::time::timeout(LINGER, rest).await;
}

async fn relay(session: &mut Session, mut answer: Answer, result: &str) -> pingora::Result<u16> {
    let mut head = answer.head.clone();
    let status = head.status.as_u16();
    frame(&mut head, session.req_header().version);
    head.insert_header(RESULT, result)?;
    let bodiless = status == 204 || status == 304;
    session.write_response_header(head, bodiless).await?;
    if bodiless {
        return Ok(status);
    }
    // A provider that stops reading must hold neither the handler's connection nor the end of this process.
    session.set_write_timeout(Some(LONGEST_WRITE));
    while let Some(piece) = answer.body().await? {
        session.write_response_body(Some(piece), false).await?;
    }
    session.write_response_body(None, true).await?;
    Ok(status)
}

/// Drops the hop-by-hop headers of an upstream's answer (RFC 9110, section 7.6.1) and settles how its body is framed
/// towards the provider: by its length where there is one, else in chunks, or to a sender of HTTP/1.0 until the
/// connection ends.
fn frame(head: &mut ResponseHeader, version: http::Version) {
    let nominated: Vec<String> = head
        .headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in nominated.iter().map(String::as_str).chain([
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]) {
        head.remove_header(name);
    }
    head.set_version(http::Version::HTTP_11);
    let has_length = head.headers.contains_key(header::CONTENT_LENGTH);
    let bodiless = head.status == 204 || head.status == 304;
    if !has_length && !bodiless && version >= http::Version::HTTP_11 {
        // The name and the value are fixed and valid, so this cannot fail.
        let _ = head.insert_header(header::TRANSFER_ENCODING, "chunked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, headers: &[(&'static str, &str)]) -> ResponseHeader {
        let mut head = ResponseHeader::build(status, None).expect("a head");
        for (name, value) in headers {
            head.append_header(*name, *value).expect("a header");
        }
        head
    }

    #[test]
    fn retry_after_is_in_whole_seconds_and_at_least_one() {
        for (pause, expected) in [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (29_500, "30")] {
            let own = Own::new(503, "try again").retry_after(Duration::from_millis(pause));
            let head = own.head("in-flight").expect("a head");
            assert_eq!(head.headers["retry-after"], expected, "{pause} ms");
        }
    }

    #[test]
    fn hop_by_hop_headers_of_the_upstream_stay_behind() {
        let mut head = head(
            200,
            &[
                ("Connection", "close, X-Internal"),
                ("X-Internal", "1"),
                ("Keep-Alive", "timeout=5"),
                ("Content-Length", "2"),
                ("X-Own", "2"),
            ],
        );
        frame(&mut head, http::Version::HTTP_11);
        let names: Vec<&str> = head.headers.keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["content-length", "x-own"]);
    }

    #[test]
    fn a_body_of_unknown_length_goes_in_chunks_to_whoever_knows_them() {
        for (status, version, chunked) in [
            (200, http::Version::HTTP_11, true),
            (200, http::Version::HTTP_10, false),
            (204, http::Version::HTTP_11, false),
        ] {
            let mut head = head(status, &[]);
            frame(&mut head, version);
            assert_eq!(head.headers.contains_key("transfer-encoding"), chunked, "{status} {version:?}");
        }
    }
}
