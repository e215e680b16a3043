//! A request whose head pingora has read, taken apart into what the gateway works with: the head, and the connection with
//! what has come behind it.
//!
//! Pingora's session keeps a buffer of 64 KiB for the body until it ends, and copies what it reads. Taken out of it, a
//! body of known length is read once, to where it stays.

use bytes::BytesMut;
use http::{Method, Request, Version, header};
use pingora::http::RequestHeader;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::server::HttpSession;

/// A request; its body may be read or not.
pub(super) struct Received {
    pub(super) head: RequestHeader,
    pub(super) caller: Caller,
}

/// Whoever has sent the request and waits for its answer.
pub(super) struct Caller {
    pub(super) stream: Stream,
    /// What has come behind the head: the body's beginning, or the next request's if the body is read.
    pub(super) behind: BytesMut,
    /// Whether the body is read to its end.
    pub(super) all_read: bool,
    /// For how long the sender wants to keep the connection, as pingora counts it; `None`: it does not.
    pub(super) keepalive: Option<u64>,
    pub(super) version: Version,
    /// Whether it asked for the head of the answer only.
    pub(super) wants_head: bool,
}

/// A head that says nothing: with it, a session has no body, and takes what comes for the next request.
fn no_request() -> RequestHeader {
    Request::new(()).into_parts().0.into()
}

impl Received {
    /// Takes a session apart whose body was read to its end (`all_read`) or not touched. `None`: the connection is gone.
    pub(super) async fn from(mut session: HttpSession, all_read: bool) -> Option<Self> {
        let keepalive = session.get_keepalive_timeout();
        let head = std::mem::replace(session.req_header_mut(), no_request());
        // Pingora hands out what it has read too much only where it belongs to the next request on the connection.
        session.set_server_keepalive(Some(0));
        session.set_pipelining_enabled(true);
        let (stream, behind) = session.reuse().await.ok().flatten()?.into_parts();
        let (version, wants_head) = (head.version, head.method == Method::HEAD);
        let all_read = all_read || has_no_body(&head);
        let behind = behind.unwrap_or_default();
        Some(Self { head, caller: Caller { stream, behind, all_read, keepalive, version, wants_head } })
    }

    /// The same for a session in the middle of a body that cannot be read to its end.
    pub(super) fn broken(mut session: HttpSession) -> Self {
        let head = std::mem::replace(session.req_header_mut(), no_request());
        let (version, stream) = (head.version, session.into_inner());
        let behind = BytesMut::new();
        let caller = Caller { stream, behind, all_read: false, keepalive: None, version, wants_head: false };
        Self { head, caller }
    }
}

/// RFC 9112, section 6.3.
fn has_no_body(head: &RequestHeader) -> bool {
    let length = head.headers.get(header::CONTENT_LENGTH);
    length.is_none_or(|length| length == "0") && !head.headers.contains_key(header::TRANSFER_ENCODING)
}
