//! Every answer that a provider gets to a delivery, written in one place.
//!
//! Head and body leave in one call where they are short. The names of relayed headers keep their spelling.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use http::{Version, header};
use pingora::http::ResponseHeader;
use pingora::protocols::Stream;
use pingora::protocols::http::date::get_cached_date;
use pingora::protocols::http::v1::server::HttpSession;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::answer::Own;
use super::hop::{is_of_one_hop, nominated, put_header};
use super::received::Caller;
use super::upstream::Answer;

/// The header that says what became of a delivery.
pub(super) const RESULT: &str = "hookonce-result";

/// How long a sender whose body was refused is listened to.
const LINGER: Duration = Duration::from_secs(2);

/// How long a provider may take to read a piece of an answer: one that stops reading must hold neither the handler's
/// connection nor the end of this process.
const LONGEST_WRITE: Duration = Duration::from_secs(30);

/// What goes back to the provider.
pub(super) enum Reply {
    /// The upstream's own answer.
    Relay(Answer),
    /// The gateway's.
    Own(Own),
}

/// What became of a reply.
pub(super) struct Written {
    /// The status that was sent. `None`: the provider has gone; nothing depends on it any more.
    pub(super) sent: Option<u16>,
    /// The session of the next request, if the connection can take one.
    pub(super) next: Option<HttpSession>,
}

/// How the end of a body is seen (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// There is none.
    NoBody,
    /// By the `Content-Length` that stands in the head.
    Length,
    Chunks,
    /// By the end of the connection: for a sender of HTTP/1.0, which knows no chunks.
    Close,
}

/// Writes the reply. `keep`: the connection may be used on, as far as the gateway is concerned.
pub(super) async fn write(caller: Caller, reply: Reply, result: &str, keep: bool) -> Written {
    let Caller { mut stream, behind, all_read, keepalive, version, wants_head } = caller;
    let framing = match &reply {
        Reply::Relay(answer) => answer.head().map_or(Framing::NoBody, |head| framing(head, version)),
        Reply::Own(_) => Framing::Length,
    };
    let closes = matches!(&reply, Reply::Own(own) if own.closes()) || framing == Framing::Close;
    let keeps = keep && !closes && all_read && keepalive.is_some();
    let connection = match (keeps, version) {
        (false, _) => Some("close"),
        (true, Version::HTTP_10) => Some("keep-alive"),
        (true, _) => None,
    };
    let sent = match reply {
        Reply::Own(own) => write_own(&mut stream, &own, result, connection, wants_head).await,
        Reply::Relay(answer) => relay(&mut stream, answer, result, connection, framing).await,
    };
    if keeps && sent.is_some() {
        let mut next = HttpSession::new(stream);
        next.set_server_keepalive(keepalive);
        // What has come of a next request is kept with the connection (RFC 9112, section 9.3.2).
        if !behind.is_empty() {
            next.set_pipelined_prefix(behind);
        }
        return Written { sent, next: Some(next) };
    }
    // Whoever did not send in time is not waited for again.
    end(stream, all_read || sent == Some(408)).await;
    Written { sent, next: None }
}

/// Writes an answer to what was no request, and ends the connection.
pub(super) async fn write_last(mut stream: Stream, own: &Own, result: &str) -> Option<u16> {
    let sent = write_own(&mut stream, own, result, Some("close"), false).await;
    end(stream, false).await;
    sent
}

/// Ends a connection. Where something was not read, it is read on for a moment: closing a connection with unread data
/// resets it, and the reset can overtake the answer, which the sender would never see.
async fn end(mut stream: Stream, all_read: bool) {
    if stream.shutdown().await.is_err() || all_read {
        return;
    }
    let mut unread = vec![0; 16 * 1024];
    let rest = async { while matches!(stream.read(&mut unread).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(LINGER, rest).await;
}

async fn send(stream: &mut Stream, wire: &[u8]) -> Option<()> {
    let written = async {
        stream.write_all(wire).await?;
        stream.flush().await
    };
    pingora::time::timeout(LONGEST_WRITE, written).await.ok()?.ok()
}

async fn write_own(
    stream: &mut Stream,
    own: &Own,
    result: &str,
    connection: Option<&str>,
    wants_head: bool,
) -> Option<u16> {
    let mut wire = BytesMut::with_capacity(512);
    own.put_head(&mut wire);
    put_end_of_head(&mut wire, result, connection, true);
    if !wants_head {
        wire.put_slice(own.body());
    }
    send(stream, &wire).await?;
    Some(own.status())
}

async fn relay(
    stream: &mut Stream,
    mut answer: Answer,
    result: &str,
    connection: Option<&str>,
    framing: Framing,
) -> Option<u16> {
    let head = answer.head()?;
    let status = answer.status();
    let mut wire = BytesMut::with_capacity(1024);
    put_relayed_head(&mut wire, head);
    if framing == Framing::Chunks {
        put_header(&mut wire, b"Transfer-Encoding", b"chunked");
    }
    put_end_of_head(&mut wire, result, connection, !head.headers.contains_key(header::DATE));
    if framing == Framing::NoBody {
        send(stream, &wire).await?;
        return Some(status);
    }
    loop {
        let piece = answer.piece(|piece| put_piece(&mut wire, piece, framing)).await;
        let Ok(more) = piece else {
            // The handler broke off: so does the gateway, behind what there is.
            send(stream, &wire).await?;
            return None;
        };
        if !more {
            break;
        }
        if !answer.is_whole() {
            send(stream, &wire).await?;
            wire.clear();
        }
    }
    if framing == Framing::Chunks {
        wire.put_slice(b"0\r\n\r\n");
    }
    send(stream, &wire).await?;
    Some(status)
}

fn put_piece(wire: &mut BytesMut, piece: &[u8], framing: Framing) {
    // An empty chunk would end the body.
    if framing != Framing::Chunks || piece.is_empty() {
        wire.put_slice(piece);
        return;
    }
    wire.put_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    wire.put_slice(piece);
    wire.put_slice(b"\r\n");
}

/// The upstream's status line and headers, without what belongs to its connection (RFC 9110, section 7.6.1).
fn put_relayed_head(wire: &mut BytesMut, head: &ResponseHeader) {
    put_status_line(wire, head.status.as_u16(), head.get_reason_phrase());
    let nominated = nominated(&head.headers);
    for (spelling, value) in head.case_header_iter() {
        let name = spelling.as_slice();
        if !is_of_one_hop(name, &nominated) && !name.eq_ignore_ascii_case(RESULT.as_bytes()) {
            put_header(wire, name, value.as_bytes());
        }
    }
}

pub(super) fn put_status_line(wire: &mut BytesMut, status: u16, reason: Option<&str>) {
    wire.put_slice(b"HTTP/1.1 ");
    wire.put_slice(itoa::Buffer::new().format(status).as_bytes());
    wire.put_u8(b' ');
    wire.put_slice(reason.unwrap_or_default().as_bytes());
    wire.put_slice(b"\r\n");
}

fn put_end_of_head(wire: &mut BytesMut, result: &str, connection: Option<&str>, date: bool) {
    put_header(wire, RESULT.as_bytes(), result.as_bytes());
    if date {
        put_header(wire, b"Date", get_cached_date().as_bytes());
    }
    if let Some(connection) = connection {
        put_header(wire, b"Connection", connection.as_bytes());
    }
    wire.put_slice(b"\r\n");
}

fn framing(head: &ResponseHeader, version: Version) -> Framing {
    match head.status.as_u16() {
        204 | 304 => Framing::NoBody,
        _ if head.headers.contains_key(header::CONTENT_LENGTH) => Framing::Length,
        _ if version >= Version::HTTP_11 => Framing::Chunks,
        _ => Framing::Close,
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
    fn hop_by_hop_headers_of_the_upstream_stay_behind_and_names_keep_their_spelling() {
        let received = [
            ("Connection", "close, X-Internal"),
            ("X-Internal", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Content-Length", "2"),
            ("X-OWN", "2"),
            ("Hookonce-Result", "first"),
        ];
        let mut wire = BytesMut::new();
        put_relayed_head(&mut wire, &head(201, &received));
        assert_eq!(&wire[..], b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-OWN: 2\r\n");
    }

    #[test]
    fn a_body_of_unknown_length_goes_in_chunks_to_whoever_knows_them() {
        let length: &[(&'static str, &str)] = &[("Content-Length", "2")];
        for (status, version, headers, expected) in [
            (200, Version::HTTP_11, &[][..], Framing::Chunks),
            (200, Version::HTTP_10, &[], Framing::Close),
            (200, Version::HTTP_10, length, Framing::Length),
            (204, Version::HTTP_11, &[], Framing::NoBody),
            (304, Version::HTTP_11, length, Framing::NoBody),
        ] {
            assert_eq!(framing(&head(status, headers), version), expected, "{status} {version:?}");
        }
    }
}
