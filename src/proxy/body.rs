//! Reading a delivery's body: whole, within its limits, or not at all.
//!
//! One of known length is read by itself, once, to where it stays; one in chunks is pingora's to read.
//!
//! The limits come first: a request that declares more than `max_body` is answered before a byte of it is read, and
//! no body takes more of the process's byte budget than has arrived of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{Version, header};
use pingora::http::RequestHeader;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::server::HttpSession;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::received::Received;

/// The one expectation there is (RFC 9110, section 10.1.1). HTTP/1.0 knows none.
const CONTINUE: &[u8] = b"100-continue";

/// How much room a body has before any of it has come.
const BEGINNING: usize = 64 * 1024;

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

/// The length that the request declares; without one, and without a coding, there is no body (RFC 9112, section 6.3).
/// One that is said several times counts if it is the same each time (RFC 9110, section 8.6). Nothing is guessed: what
/// is left of a body would be read as the next request.
fn declared_length(head: &RequestHeader) -> Result<u64, NoBody> {
    let mut declared = None;
    for value in head.headers.get_all(header::CONTENT_LENGTH) {
        for said in value.to_str().map_err(|_| NoBody::Broken)?.split(',') {
            let said = said.trim();
            // Rust would also read a sign.
            let length: u64 = match said.bytes().all(|byte| byte.is_ascii_digit()) {
                true => said.parse().map_err(|_| NoBody::Broken)?,
                false => return Err(NoBody::Broken),
            };
            if declared.replace(length).is_some_and(|before| before != length) {
                return Err(NoBody::Broken);
            }
        }
    }
    Ok(declared.unwrap_or(0))
}

/// Reads the whole body. Answers `Expect: 100-continue` first: pingora leaves that to whoever reads the body, and curl
/// waits a second for it. Nothing comes back where the connection is gone.
pub(super) async fn read(
    mut session: HttpSession,
    budget: &Budget,
    max_body: u64,
    timeout: Duration,
) -> Option<(Received, Result<Body, NoBody>)> {
    let head = session.req_header();
    let expects = head.version >= Version::HTTP_11
        && head.headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(CONTINUE));
    if !head.headers.contains_key(header::TRANSFER_ENCODING) {
        let mut received = Received::from(session, false).await?;
        let whole = read_length(&mut received, budget, max_body, expects);
        let body = tokio::time::timeout(timeout, whole).await.unwrap_or(Err(NoBody::TooSlow));
        return Some((received, body));
    }
    let whole = read_chunks(&mut session, budget, max_body, expects);
    let body = tokio::time::timeout(timeout, whole).await.unwrap_or(Err(NoBody::TooSlow));
    let received = if body.is_ok() { Received::from(session, true).await? } else { Received::broken(session) };
    Some((received, body))
}

async fn read_length(
    Received { head, caller }: &mut Received,
    budget: &Budget,
    max_body: u64,
    expects: bool,
) -> Result<Body, NoBody> {
    let length = declared_length(head)?;
    if length > max_body {
        return Err(NoBody::TooLarge);
    }
    let length = usize::try_from(length).map_err(|_| NoBody::TooLarge)?;
    let mut held = Reserved::default();
    if length <= caller.behind.len() {
        budget.reserve(&mut held, length)?;
        let bytes = caller.behind.split_to(length).freeze();
        caller.all_read = true;
        return Ok(Body { bytes, budget: held });
    }
    if expects {
        go_on(&mut caller.stream).await.map_err(|_| NoBody::Broken)?;
    }
    let mut bytes = BytesMut::with_capacity(length.min(BEGINNING));
    bytes.put(std::mem::take(&mut caller.behind));
    budget.reserve(&mut held, bytes.len())?;
    while bytes.len() < length {
        let missing = length - bytes.len();
        if bytes.len() == bytes.capacity() {
            // A length that is only declared gets no room: what is held in memory is in proportion to what has come.
            bytes.reserve(missing.min(3 * bytes.len()));
        }
        let read = caller.stream.read_buf(&mut (&mut bytes).limit(missing)).await;
        if !matches!(read, Ok(1..)) {
            return Err(NoBody::Broken);
        }
        budget.reserve(&mut held, bytes.len())?;
    }
    caller.all_read = true;
    Ok(Body { bytes: bytes.freeze(), budget: held })
}

async fn go_on(stream: &mut Stream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    stream.flush().await
}

async fn read_chunks(session: &mut HttpSession, budget: &Budget, max_body: u64, expects: bool) -> Result<Body, NoBody> {
    if expects {
        session.write_continue_response().await.map_err(|_| NoBody::Broken)?;
    }
    let mut held = Reserved::default();
    let mut bytes = BytesMut::new();
    while let Some(piece) = session.read_body_bytes().await.map_err(|_| NoBody::Broken)? {
        if (bytes.len() + piece.len()) as u64 > max_body {
            return Err(NoBody::TooLarge);
        }
        budget.reserve(&mut held, bytes.len() + piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    Ok(Body { bytes: bytes.freeze(), budget: held })
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
    fn a_length_is_what_all_say_or_nothing() {
        for (said, expected) in [
            (&[][..], Ok(0)),
            (&["0"], Ok(0)),
            (&["12"], Ok(12)),
            (&[" 12 "], Ok(12)),
            (&["12", "12"], Ok(12)),
            (&["12, 12"], Ok(12)),
            (&["12", "13"], Err(NoBody::Broken)),
            (&["12,"], Err(NoBody::Broken)),
            (&["+12"], Err(NoBody::Broken)),
            (&["1 2"], Err(NoBody::Broken)),
            (&["99999999999999999999"], Err(NoBody::Broken)),
        ] {
            let mut head = RequestHeader::build("POST", b"/", None).expect("a head");
            for value in said {
                head.append_header(header::CONTENT_LENGTH, *value).expect("a header");
            }
            assert_eq!(declared_length(&head), expected, "{said:?}");
        }
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
