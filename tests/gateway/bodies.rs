//! Bodies: long ones, chunked ones, and those that are not taken.

use std::time::Duration;

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line, Request, SECRET};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Gate, Upstream};

/// A Stripe event of 3 MB.
fn long_body(id: &str) -> Vec<u8> {
    format!(r#"{{"id":"{id}","object":"event","padding":"{}"}}"#, "0123456789".repeat(300_000)).into_bytes()
}

#[test]
fn three_megabytes_pass_plain_and_chunked() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let deliveries = [
            provider::stripe_with_body(long_body("evt_plain")),
            provider::stripe_with_body(long_body("evt_in_odd_chunks")).chunked(99_991),
            provider::stripe("evt_in_small_chunks").chunked(3),
        ];
        for (count, delivery) in (1..).zip(&deliveries) {
            gateway.send(delivery).expect(200, "first");
            let received = upstream.wait_for(count);
            assert!(received.body == delivery.body(), "{} bytes arrived", received.body.len());
            assert_eq!(received.header("content-length"), Some(delivery.body().len().to_string()));
            assert_eq!(received.header("transfer-encoding"), None);
            gateway.send(delivery).expect(200, "duplicate");
        }
        assert_eq!(upstream.count(), 3);
    });
}

#[test]
fn a_chunked_copy_of_a_plain_delivery_is_a_duplicate() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_framed_twice");
    gateway.send(&delivery).expect(200, "first");
    gateway.send(&delivery.chunked(10)).expect(200, "duplicate");
}

#[test]
fn a_body_over_the_limit_is_413_and_one_at_the_limit_passes() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address).with("max_body: 1KiB")]);
    let body_of = |length: usize| {
        let frame = r#"{"id":"evt_limit","padding":""}"#;
        frame.replace(r#""}"#, &format!(r#"{}"}}"#, "x".repeat(length - frame.len()))).into_bytes()
    };
    assert_eq!(body_of(1024).len(), 1024);
    for delivery in [
        provider::stripe_with_body(body_of(1025)),
        provider::stripe_with_body(body_of(1025)).chunked(100),
        provider::stripe_with_body(body_of(3_000_000)),
        provider::stripe_with_body(body_of(3_000_000)).chunked(100_000),
    ] {
        gateway.send(&delivery).expect(413, "too-large");
    }
    assert_eq!(upstream.count(), 0);
    gateway.send(&provider::stripe_with_body(body_of(1024))).expect(200, "first");
    gateway.send(&provider::stripe_with_body(body_of(1024)).chunked(100)).expect(200, "duplicate");
}

#[test]
fn a_sender_that_asks_first_is_told_to_go_on_at_once() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address).with("max_body: 8KiB")]);
    let delivery = provider::stripe("evt_asks").header("Expect", "100-continue");
    let mut line = Line::open(gateway.address());
    line.write(&delivery.head_bytes());
    // Nothing of the body is written before this comes.
    assert_eq!(line.head().start_line().split(' ').nth(1), Some("100"));
    line.write(&delivery.body_bytes());
    line.finish().expect(200, "first");
    let received = upstream.wait_for(1);
    assert_eq!((received.header("expect"), received.body), (None, delivery.body().to_vec()));

    let too_large = provider::stripe_with_body(long_body("evt_asks_in_vain")).header("Expect", "100-continue");
    let mut line = Line::open(gateway.address());
    line.write(&too_large.head_bytes());
    assert_eq!(line.head().start_line().split(' ').nth(1), Some("413"));
    assert_eq!(upstream.count(), 1);
}

#[test]
fn a_body_that_does_not_come_whole_in_time_is_408() {
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address)];
    let gateway = Gateway::start_with(&Store::Embedded, &["body_timeout: 500ms"], &routes);
    let delivery = provider::stripe("evt_late");
    for delivery in [delivery.clone(), delivery.clone().chunked(30)] {
        let mut line = Line::open(gateway.address());
        line.write(&delivery.head_bytes());
        line.write(&delivery.body_bytes()[..40]);
        line.finish().expect(408, "bad-request");
    }
    assert_eq!(upstream.count(), 0);
    gateway.send(&delivery).expect(200, "first");
}

/// A body that trickles must not outlive the deadline by always having something to read.
#[test]
fn a_trickling_body_is_408_too() {
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address)];
    let gateway = Gateway::start_with(&Store::Embedded, &["body_timeout: 700ms"], &routes);
    let delivery = provider::stripe_with_body(long_body("evt_trickle"));
    let mut line = Line::open(gateway.address());
    line.write(&delivery.head_bytes());
    let trickle = line.trickle(Duration::from_millis(20));
    line.finish().expect(408, "bad-request");
    drop(trickle);
    assert_eq!(upstream.count(), 0);
}

#[test]
fn framing_that_two_sides_could_read_differently_is_400() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let body = provider::stripe_body("evt_framing");
    let signature = provider::stripe_signature(SECRET, provider::timestamp(Duration::ZERO), &body);
    let length = body.len().to_string();
    let chunked = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let chunk_too_short = [b"5\r\n", &body[..], b"\r\n0\r\n\r\n"].concat();
    let no_number = [b"zz\r\n", &body[..], b"\r\n0\r\n\r\n"].concat();
    for (name, framing, bytes) in [
        ("both headers", &[("Content-Length", &*length), ("Transfer-Encoding", "chunked")][..], &chunked),
        ("two lengths", &[("Content-Length", &*length), ("Content-Length", "3")][..], &body),
        ("a length that is no number", &[("Content-Length", "+12")][..], &body),
        ("an unknown coding", &[("Transfer-Encoding", "gzip")][..], &chunked),
        ("chunked that is not last", &[("Transfer-Encoding", "chunked, gzip")][..], &chunked),
        ("a chunk longer than it says", &[("Transfer-Encoding", "chunked")][..], &chunk_too_short),
        ("a chunk size that is no number", &[("Transfer-Encoding", "chunked")][..], &no_number),
    ] {
        let mut delivery =
            Request::post("/webhooks/stripe", bytes.clone()).header("Stripe-Signature", &signature).framed_as_given();
        for (header, value) in framing {
            delivery = delivery.header(header, value);
        }
        let mut line = gateway.begin(&delivery);
        let answer = line.finish();
        assert_eq!((answer.status, answer.result().as_str()), (400, "bad-request"), "{name}");
        assert!(line.is_ended(), "{name}: what is left of the bytes could be taken for a request");
        assert_eq!(upstream.count(), 0, "{name}");
    }
}

#[test]
fn bodies_over_the_budget_of_the_process_are_503() {
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let routes = [Route::stripe(upstream.address).with("max_body: 4MiB")];
    let gateway = Gateway::start_with(&Store::Embedded, &["body_budget: 5MiB"], &routes);
    let mut first = gateway.begin(&provider::stripe_with_body(long_body("evt_fills_it")));
    upstream.wait_for(1);
    let other = provider::stripe_with_body(long_body("evt_does_not_fit"));
    for delivery in [other.clone(), other.clone().chunked(100_000)] {
        let told = gateway.send(&delivery).expect(503, "busy");
        assert!(told.header("retry-after").is_some());
    }
    gateway.send(&provider::stripe("evt_small")).expect(200, "first");
    gate.open();
    first.finish().expect(200, "first");
    gateway.wait_for_in_flight(0);
    gateway.send(&other).expect(200, "first");
}
