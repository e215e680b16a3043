//! What the gateway answers by itself: short and fixed, and silent about the cause, which stands in the log.
//!
//! About a keyed delivery it is never 3xx (some senders follow it as a GET), nor 400, 401, 403, 404 or 422 (Evolution
//! gives up on those), except where the route's own `on_auth_failure` says so.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;

use super::hop::put_header;
use super::respond::put_status_line;
use crate::config::DuplicateResponse;

/// The type of the gateway's own words.
pub(super) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// An answer of the gateway's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    status: u16,
    content_type: Cow<'static, str>,
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
            content_type: Cow::Borrowed(PLAIN_TEXT),
            body: Bytes::from_static(word.as_bytes()),
            retry_after: None,
            allow: None,
            close: false,
        }
    }

    /// The route's answer to a duplicate.
    pub(super) fn duplicate(response: &DuplicateResponse) -> Self {
        Self {
            content_type: Cow::Owned(response.content_type.clone()),
            body: Bytes::copy_from_slice(response.body.as_bytes()),
            ..Self::new(response.status, "")
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

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn closes(&self) -> bool {
        self.close
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Writes the status line and what the head says about this answer.
    pub(super) fn put_head(&self, wire: &mut BytesMut) {
        let reason = StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        put_status_line(wire, self.status, reason);
        put_header(wire, b"Content-Type", self.content_type.as_bytes());
        put_header(wire, b"Content-Length", itoa::Buffer::new().format(self.body.len()).as_bytes());
        if let Some(pause) = self.retry_after {
            let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
            put_header(wire, b"Retry-After", itoa::Buffer::new().format(seconds.max(1)).as_bytes());
        }
        if let Some(methods) = &self.allow {
            put_header(wire, b"Allow", methods.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_in_whole_seconds_and_at_least_one() {
        for (pause, expected) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (29_500, 30)] {
            let mut wire = BytesMut::new();
            Own::new(503, "try again").retry_after(Duration::from_millis(pause)).put_head(&mut wire);
            let expected = format!(
                "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {PLAIN_TEXT}\r\nContent-Length: 9\r\n\
                 Retry-After: {expected}\r\n"
            );
            assert_eq!(String::from_utf8_lossy(&wire), expected, "{pause} ms");
        }
    }
}
