//! Reading a delivery's body: whole, within its limits, or not at all.
//!
//! The limits come first: a request that declares more than `max_body` is answered before a byte of it is read, and
//! no body takes more of the process's byte budget than has arrived of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pingora::http::RequestHeader;
use pingora::protocols::http::v1::server::HttpSession;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The budget is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// The bytes of all bodies in memory together.
pub(super) struct Budget {
    pieces: Arc<Semaphore>,
}

/// A body, and its part of the budget, which it holds as long as it lives.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) budget: Reserved,
}

/// A part of the budget.
#[derive(Default)]
pub(super) struct Reserved(Option<OwnedSemaphorePermit>);

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoBody {
    /// It is longer than the route's `max_body`.
    TooLarge,
    /// The process's byte budget is used up.
    OverBudget,
    /// It was not whole within `body_timeout`.
    TooSlow,
    /// The chunks are broken, or the connection ended before the body did.
    Broken,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        let pieces = usize::try_from(bytes).unwrap_or(usize::MAX) / PIECE;
        Self { pieces: Arc::new(Semaphore::new(pieces.clamp(1, Semaphore::MAX_PERMITS))) }
    }

    fn reserve(&self, held: &mut Reserved, bytes: usize) -> Result<(), NoBody> {
        let wanted = bytes.div_ceil(PIECE);
        let have = held.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if wanted <= have {
            return Ok(());
        }
        let more = u32::try_from(wanted - have).map_err(|_| NoBody::OverBudget)?;
        let permit = Arc::clone(&self.pieces).try_acquire_many_owned(more).map_err(|_| NoBody::OverBudget)?;
        match &mut held.0 {
            Some(held) => held.merge(permit),
            None => held.0 = Some(permit),
        }
        Ok(())
    }
}

/// The length that the request declares, if it does.
pub(super) fn declared_length(head: &RequestHeader) -> Option<u64> {
    head.headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Reads the whole body. Answers `Expect: 100-continue` first: pingora leaves that to whoever reads the body, and curl
/// waits a second for it.
pub(super) async fn read(
    session: &mut HttpSession,
    budget: &Budget,
    max_body: u64,
    timeout: Duration,
) -> Result<Body, NoBody> {
    let declared = declared_length(session.req_header());
    if declared.is_some_and(|length| length > max_body) {
        return Err(NoBody::TooLarge);
    }
    let expects = session.req_header().headers.get(http::header::EXPECT);
    if expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        session.write_continue_response().await.map_err(|_| NoBody::Broken)?;
    }
    match tokio::time::timeout(timeout, read_pieces(session, budget, declared, max_body)).await {
        Ok(body) => body,
        Err(_) => Err(NoBody::TooSlow),
    }
}

async fn read_pieces(
    session: &mut HttpSession,
    budget: &Budget,
    declared: Option<u64>,
    max_body: u64,
) -> Result<Body, NoBody> {
    let declared = declared.and_then(|length| usize::try_from(length).ok());
    let mut held = Reserved::default();
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    let mut length = 0;
    while let Some(piece) = session.read_body_bytes().await.map_err(|_| NoBody::Broken)? {
        length += piece.len();
        if length as u64 > max_body {
            return Err(NoBody::TooLarge);
        }
        budget.reserve(&mut held, length)?;
        if first.is_empty() {
            first = piece;
        } else {
            // A body that came in one piece, as most do, is never copied.
            let whole = rest.get_or_insert_with(|| {
                // What is reserved and not yet written takes no memory, so the declared length may be taken at its word.
                let mut whole = BytesMut::with_capacity(declared.unwrap_or(first.len() * 2));
                whole.extend_from_slice(&first);
                whole
            });
            whole.extend_from_slice(&piece);
        }
    }
    if declared.is_some_and(|declared| declared != length) {
        return Err(NoBody::Broken);
    }
    Ok(Body { bytes: rest.map_or(first, BytesMut::freeze), budget: held })
}

/// Whether the received head has a `Content-Length`. pingora drops it where there is a `Transfer-Encoding` (RFC 9112,
/// section 6.3), but a request with both is either an attack on whoever stands behind (request smuggling) or from a
/// sender that cannot be trusted to frame.
pub(super) fn says_its_length(raw: &[u8]) -> bool {
    raw.split(|byte| *byte == b'\n').skip(1).any(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"content-length")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_reserved_as_a_body_grows_and_freed_with_it() {
        let budget = Budget::new(10 * 1024);
        let mut one = Reserved::default();
        assert_eq!(budget.reserve(&mut one, 1), Ok(()));
        assert_eq!(budget.reserve(&mut one, 6 * 1024), Ok(()));
        let mut other = Reserved::default();
        assert_eq!(budget.reserve(&mut other, 5 * 1024), Err(NoBody::OverBudget));
        assert_eq!(budget.reserve(&mut other, 4 * 1024), Ok(()));
        drop(one);
        assert_eq!(budget.reserve(&mut other, 10 * 1024), Ok(()));
    }

    #[test]
    fn a_length_is_seen_in_the_received_head_however_it_is_spelled() {
        for (head, expected) in [
            ("POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 5\r\n\r\n", true),
            ("POST / HTTP/1.1\r\nContent-Length : 5\n\n", true),
            ("POST /Content-Length: HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nX-Content-Length: 5\r\n\r\n", false),
        ] {
            assert_eq!(says_its_length(head.as_bytes()), expected, "{head}");
        }
    }
}
