//! What nobody sends by accident, and what was decided about it. Whatever it is: the gateway lives on, nothing unique is
//! dropped, and no two readers of a delivery can be made to see two identities.
//!
//! | input | decision |
//! | --- | --- |
//! | JSON nested deeper than 128 | not understood: forwarded as it came, without a key |
//! | a name that occurs twice on the key's path | no usable value: forwarded without a key; elsewhere it does no harm |
//! | text that is not UTF-8, in the body | not JSON: forwarded as it came, without a key |
//! | the same in a header that is a part of the key | the part is missing: forwarded without a key |
//! | a compressed body | not JSON, and never decompressed (a small body could fill the memory): forwarded, without a key |
//! | headers beyond what fits into a head | 4xx or an end of the connection, nothing is forwarded |
//! | path tricks, both framing headers, slow senders | 400 and 408: `methods_and_routes`, `bodies` |

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line, Request, SECRET, hmac_sha256_hex};
use crate::support::route::Route;
use crate::support::store::Store;
use crate::support::upstream::Upstream;

fn gateway(upstream: &Upstream) -> Gateway {
    let meta = Route::new("whatsapp", "/webhooks/whatsapp", "meta", upstream.address);
    let evolution = Route::new("evolution", "/evolution/*", "evolution", upstream.address).with("verify: off");
    let routes = [
        Route::stripe(upstream.address),
        meta.with(&format!("secret: {SECRET}")),
        evolution,
        Route::new("loose", "/loose", "generic", upstream.address).with("verify: off").with("key: ['$..id']"),
        Route::new("parts", "/parts", "generic", upstream.address)
            .with("verify: off")
            .with("key: ['$.id', 'header:X-Part']"),
    ];
    Gateway::start(&Store::Embedded, &routes)
}

/// The same body to each route, signed where that is needed.
fn deliveries(body: &[u8]) -> [Request; 5] {
    let signature = format!("sha256={}", hmac_sha256_hex(SECRET, body));
    [
        provider::stripe_with_body(body.to_vec()),
        Request::post("/webhooks/whatsapp", body).header("X-Hub-Signature-256", &signature),
        Request::post("/evolution/messages-upsert", body),
        Request::post("/loose", body),
        Request::post("/parts", body).header("X-Part", "one"),
    ]
}

#[test]
fn what_is_not_understood_is_forwarded_as_it_came_each_time() {
    let upstream = Upstream::start();
    let gateway = gateway(&upstream);
    let nested = |open: &str, close: &str| [open.repeat(100_000), close.repeat(100_000)].concat().into_bytes();
    let meta = br#"{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":["#;
    let bodies = [
        ("arrays without end", nested("[", "]")),
        ("objects without end", nested(r#"{"id":"#, "}")),
        ("arrays that are never closed", b"[".repeat(100_000)),
        ("a batch that is nested without end", [&meta[..], &b"[".repeat(100_000)].concat()),
        ("no UTF-8", b"{\"id\":\"evt_\xff\xfe\",\"object\":\"event\"}".to_vec()),
        ("an overlong form of a quote", b"{\"id\":\"evt_\xc0\xa2\"}".to_vec()),
        ("compressed", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xabV\xcaLQ\xb2R\x02\x00\x3bX".to_vec()),
        ("a mark of the byte order", b"\xef\xbb\xbf{\"id\":\"evt_1\"}".to_vec()),
        ("two documents", br#"{"id":"evt_1"}{"id":"evt_2"}"#.to_vec()),
        ("a zero byte", b"{\"id\":\"evt_\x00\"}".to_vec()),
    ];
    let mut count = 0;
    for (name, body) in &bodies {
        for delivery in deliveries(body) {
            for _ in 0..2 {
                let answer = gateway.send(&delivery);
                assert_eq!((answer.status, answer.result().as_str()), (200, "unkeyed"), "{name}: {delivery:?}");
                count += 1;
                assert_eq!(upstream.wait_for(count).body, *body, "{name}");
            }
        }
    }
    assert_eq!(upstream.count(), count);
    assert_eq!(gateway.metric("hookonce_panics_total"), 0.0);
}

/// Readers differ on which of the two counts, so neither is an identity.
#[test]
fn a_name_that_occurs_twice_on_the_keys_path_makes_no_key() {
    let upstream = Upstream::start();
    let gateway = gateway(&upstream);
    for body in [
        &br#"{"id":"evt_1","id":"evt_2","object":"event"}"#[..],
        br#"{"id":"evt_1","object":"event","\u0069d":"evt_1"}"#,
    ] {
        let delivery = provider::stripe_with_body(body.to_vec());
        gateway.send(&delivery).expect(200, "unkeyed");
        gateway.send(&delivery).expect(200, "unkeyed");
    }
    let elsewhere = br#"{"id":"evt_3","object":"event","data":{"a":1,"a":2}}"#;
    gateway.send(&provider::stripe_with_body(elsewhere.to_vec())).expect(200, "first");
    gateway.send(&provider::stripe_with_body(elsewhere.to_vec())).expect(200, "duplicate");
    assert_eq!(upstream.count(), 5);
}

#[test]
fn a_part_in_a_header_that_is_no_text_or_stands_there_twice_makes_no_key() {
    let upstream = Upstream::start();
    let gateway = gateway(&upstream);
    let head = |parts: &[&[u8]]| -> Vec<u8> {
        let mut head = b"POST /parts HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n".to_vec();
        for part in parts {
            head.extend([b"X-Part: ", *part, b"\r\n"].concat());
        }
        head.extend_from_slice(b"\r\n{\"id\":\"1\"}");
        head
    };
    for (parts, result) in [
        (&[&b"one"[..]][..], "first"),
        (&[b"one"], "duplicate"),
        (&[b"on\xff"], "unkeyed"),
        (&[b"one", b"one"], "unkeyed"),
    ] {
        let mut line = Line::open(gateway.address());
        line.write(&head(parts));
        line.finish().expect(200, result);
    }
}

#[test]
fn headers_without_end_are_not_forwarded_and_the_gateway_lives_on() {
    let upstream = Upstream::start();
    let gateway = gateway(&upstream);
    let delivery = provider::stripe("evt_headers");
    for (name, header, value, times) in
        [("one long", "X-Long", "a".repeat(2_000_000), 1), ("very many", "X-Many", "a".to_owned(), 20_000)]
    {
        let mut request = delivery.clone();
        for _ in 0..times {
            request = request.header(header, &value);
        }
        let mut line = gateway.begin(&request);
        match line.answer() {
            Ok(answer) => assert!((400..500).contains(&answer.status), "{name}: {}", answer.status),
            Err(_ended) => {}
        }
        assert_eq!(upstream.count(), 0, "{name}");
    }
    gateway.send(&delivery).expect(200, "first");
}
