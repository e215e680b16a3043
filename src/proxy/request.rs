//! The request as it goes to the upstream: the received head and body, but for what belongs to one hop.
//!
//! Names keep their spelling and headers their order. Nothing is added but what a changed body or the route asks for.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, header};
use pingora::http::RequestHeader;

use super::hop::{is_of_one_hop, nominated, put_header};
use super::intake::Incoming;
use crate::dedup::plan::Body;

/// What the gateway has answered itself, since the whole body is here, and what it writes anew.
const ITS_OWN: [&str; 2] = ["expect", "content-length"];

/// Digests of a body, which a changed one makes wrong.
const DIGESTS: [&str; 4] = ["content-digest", "content-md5", "digest", "repr-digest"];

/// Up to this size head and body are written in one call; above it, copying the body would cost more than a second one.
const ONE_WRITE: usize = 16 * 1024;

/// A request, ready to be written.
pub(super) struct Request {
    /// Request line and headers, with the empty line; and the body, if it is short.
    pub(super) first: Bytes,
    /// The body, if it is long.
    pub(super) rest: Bytes,
}

impl Request {
    /// The request for a delivery or a part of it; `None` if its target cannot stand in a request line.
    pub(super) fn new(incoming: &Incoming<'_>, body: &Body) -> Option<Self> {
        let (body, signatures) = match (body, &incoming.extraction.batch) {
            (Body::Only(events), Some(batch)) => {
                let part = batch.part(events);
                let signatures = incoming.sign(&part);
                (part, Some(signatures))
            }
            _ => (incoming.body.clone(), None),
        };
        let host = incoming.route.upstream.host_header();
        let mut first = write_head(incoming.head, host, body.len(), signatures.as_deref())?;
        if first.len() + body.len() > ONE_WRITE {
            return Some(Self { first: first.freeze(), rest: body });
        }
        first.put_slice(&body);
        Some(Self { first: first.freeze(), rest: Bytes::new() })
    }
}

/// `signatures` are the renewed signature headers of a changed body; `None` where the body is the received one.
fn write_head(
    head: &RequestHeader,
    (wanted_host, own_host): (Option<&str>, &str),
    length: usize,
    signatures: Option<&[(HeaderName, HeaderValue)]>,
) -> Option<BytesMut> {
    let target = head.raw_path();
    if target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return None;
    }
    let mut wire = BytesMut::with_capacity(1024);
    wire.put_slice(head.method.as_str().as_bytes());
    wire.put_u8(b' ');
    wire.put_slice(target);
    wire.put_slice(b" HTTP/1.1\r\n");
    let nominated = nominated(&head.headers);
    for (spelling, value) in head.case_header_iter() {
        let spelling = spelling.as_slice();
        let is = |name: &&str| spelling.eq_ignore_ascii_case(name.as_bytes());
        if ITS_OWN.iter().any(is) || is_of_one_hop(spelling, &nominated) {
            continue;
        }
        let mut value = value.as_bytes();
        if let Some(signatures) = signatures {
            if DIGESTS.iter().any(|name| spelling.eq_ignore_ascii_case(name.as_bytes())) {
                continue;
            }
            let renewed =
                |(name, _): &&(HeaderName, HeaderValue)| spelling.eq_ignore_ascii_case(name.as_str().as_bytes());
            if let Some((_, renewed)) = signatures.iter().find(renewed) {
                value = renewed.as_bytes();
            }
        }
        if let Some(host) = wanted_host
            && spelling.eq_ignore_ascii_case(b"host")
        {
            value = host.as_bytes();
        }
        put_header(&mut wire, spelling, value);
    }
    if !head.headers.contains_key(header::HOST) {
        put_header(&mut wire, b"Host", wanted_host.unwrap_or(own_host).as_bytes());
    }
    put_header(&mut wire, b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
    wire.put_slice(b"\r\n");
    Some(wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&str, &str)]) -> RequestHeader {
        let mut head = RequestHeader::build("POST", b"/a?b=%20c", None).expect("a head");
        for (name, value) in headers {
            head.append_header((*name).to_owned(), *value).expect("a header");
        }
        head
    }

    fn written(
        headers: &[(&str, &str)],
        host: Option<&str>,
        signatures: Option<&[(HeaderName, HeaderValue)]>,
    ) -> String {
        let wire = write_head(&head(headers), (host, "handler:3000"), 5, signatures).expect("a head");
        String::from_utf8(wire.to_vec()).expect("text")
    }

    #[test]
    fn names_keep_their_spelling_and_what_belongs_to_one_hop_stays_behind() {
        let received = [
            ("hOsT", "hooks.example.com"),
            ("X-Odd-CASE", "1"),
            ("x-odd-case", "2"),
            ("Connection", "close, X-Mine, Stripe-Signature"),
            ("X-Mine", "3"),
            ("Stripe-Signature", "t=1"),
            ("Expect", "100-continue"),
            ("Transfer-Encoding", "chunked"),
            ("TE", "trailers"),
        ];
        assert_eq!(
            written(&received, None, None),
            "POST /a?b=%20c HTTP/1.1\r\nhOsT: hooks.example.com\r\nX-Odd-CASE: 1\r\nx-odd-case: 2\r\n\
             Stripe-Signature: t=1\r\nContent-Length: 5\r\n\r\n"
        );
    }

    #[test]
    fn the_host_is_the_received_one_unless_the_route_sets_it_or_there_is_none() {
        let host = |headers: &[(&str, &str)], wanted| {
            let text = written(headers, wanted, None);
            text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned))
        };
        assert_eq!(host(&[("Host", "a")], None).as_deref(), Some("a"));
        assert_eq!(host(&[("Host", "a")], Some("b")).as_deref(), Some("b"));
        assert_eq!(host(&[], None).as_deref(), Some("handler:3000"));
        assert_eq!(host(&[], Some("b")).as_deref(), Some("b"));
    }

    #[test]
    fn a_changed_body_has_its_signatures_renewed_and_its_digests_dropped() {
        let signatures = [(HeaderName::from_static("x-hub-signature-256"), HeaderValue::from_static("sha256=new"))];
        let received = [("Host", "a"), ("X-Hub-Signature-256", "sha256=old"), ("Content-MD5", "x"), ("Digest", "y")];
        assert_eq!(
            written(&received, None, Some(&signatures)),
            "POST /a?b=%20c HTTP/1.1\r\nHost: a\r\nX-Hub-Signature-256: sha256=new\r\nContent-Length: 5\r\n\r\n"
        );
        assert!(written(&received, None, None).contains("Content-MD5: x\r\nDigest: y"));
    }
}
