//! A provider's connection: what comes over it one after the other, and how long it lasts.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line, Request};
use crate::support::route::Route;
use crate::support::store::Store;
use crate::support::upstream::{Answer, Gate, Upstream};

fn bytes(request: &Request) -> Vec<u8> {
    [request.head_bytes(), request.body_bytes()].concat()
}

/// Some senders write the next request before they have read the answer (RFC 9112, section 9.3.2).
#[test]
fn deliveries_written_at_once_are_answered_in_their_order() {
    let upstream = Upstream::start();
    upstream.script([Answer::with_body(200, b"one"), Answer::with_body(201, b"two")]);
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let (one, two) = (provider::stripe("evt_one"), provider::stripe("evt_two").chunked(7));
    let mut line = Line::open(gateway.address());
    line.write(&[bytes(&one), bytes(&two), bytes(&one)].concat());
    assert_eq!(line.finish().expect(200, "first").text(), "one");
    assert_eq!(line.finish().expect(201, "first").text(), "two");
    line.finish().expect(200, "duplicate");
    line.request(&two);
    line.finish().expect(200, "duplicate");
    assert_eq!(upstream.count(), 2);
}

#[test]
fn what_is_streamed_through_and_what_is_not_share_a_connection() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address), Route::passed(upstream.address)]);
    let long = "x".repeat(300_000);
    let mut line = Line::open(gateway.address());
    let mut count = 0;
    for passed in [
        Request::new("GET", "/webhooks/stripe?hub.challenge=1", ""),
        Request::post("/other", "short"),
        Request::post("/other", long.clone()),
        Request::post("/other", "in pieces").chunked(4),
        Request::new("PUT", "/other", long).chunked(50_000),
        Request::post("/other", ""),
    ] {
        // Once in one piece, so that all of it may be read with the head, and once with the body by itself.
        line.write(&bytes(&passed));
        assert_eq!(line.finish().status, 200);
        line.write(&passed.head_bytes());
        upstream.wait_for(count + 1);
        line.write(&passed.body_bytes());
        assert_eq!(line.finish().status, 200);
        for _ in 0..2 {
            count += 1;
            let received = upstream.received()[count - 1].clone();
            assert!(passed.head_bytes().starts_with(received.head.start_line().as_bytes()), "{count}");
            assert_eq!(received.body, passed.body(), "{count}");
        }
        line.request(&provider::stripe("evt_between"));
        let answer = line.finish();
        count += usize::from(answer.result() == "first");
        assert_eq!(answer.status, 200);
    }
    assert_eq!(upstream.count(), count);
}

/// RFC 9112, section 9.3.
#[test]
fn a_connection_lasts_as_long_as_its_sender_wants() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_lasting");
    for (version, connection, lasts) in [
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
    ] {
        let head = String::from_utf8(delivery.head_bytes()).expect("text");
        let head = head.replacen("HTTP/1.1\r\n", &format!("HTTP/{version}\r\n{connection}"), 1);
        let mut line = Line::open(gateway.address());
        for _ in 0..if lasts { 2 } else { 1 } {
            line.write(&[head.as_bytes(), &delivery.body_bytes()].concat());
            let answer = line.finish();
            assert_eq!(answer.status, 200, "{version} {connection}");
            let said = answer.header("connection");
            let expected = match (lasts, version) {
                (false, _) => Some("close"),
                (true, "1.0") => Some("keep-alive"),
                (true, _) => None,
            };
            assert_eq!(said.as_deref(), expected, "{version} {connection}");
        }
        if !lasts {
            assert!(line.is_ended(), "{version} {connection}");
        }
    }
    assert_eq!(upstream.count(), 1);
}

#[test]
fn requests_written_at_once_are_answered_in_their_order_whoever_answers_them() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address), Route::passed(upstream.address)]);
    let (one, two) = (provider::stripe("evt_one"), provider::stripe("evt_two"));
    let passed = Request::post("/other", "passed");
    let (head, body) = (passed.head_bytes(), passed.body_bytes());
    let mut line = Line::open(gateway.address());
    // The second passed request comes in two pieces, the last one together with what follows it.
    line.write(&[bytes(&passed), bytes(&one), head, body[..2].to_vec()].concat());
    assert_eq!(line.finish().result(), "");
    line.finish().expect(200, "first");
    line.write(&[body[2..].to_vec(), bytes(&two), bytes(&one)].concat());
    assert_eq!(line.finish().result(), "");
    line.finish().expect(200, "first");
    line.finish().expect(200, "duplicate");
    assert_eq!(upstream.count(), 4);
}

/// A client that has sent all it wants may close its half of the connection and wait.
#[test]
fn a_half_closed_sender_gets_its_answer() {
    for streamed in [true, false] {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::with_body(200, b"heard").behind(&gate)]);
        let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
        let request =
            if streamed { Request::new("GET", "/webhooks/stripe", "") } else { provider::stripe("evt_half_closed") };
        let mut line = gateway.begin(&request);
        line.close_half();
        upstream.wait_for(1);
        gate.open();
        assert_eq!(line.finish().text(), "heard", "{streamed}");
    }
}

/// RFC 9110, section 8.6. If the gateway and pingora understood such a length differently, what is left of the body would be
/// taken for a request.
#[test]
fn a_length_that_is_said_twice_is_one() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_twice_said");
    let length = delivery.body().len().to_string();
    let (twice, listed) = (
        format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"),
        format!("Content-Length: {length}, {length}\r\n"),
    );
    let mut line = Line::open(gateway.address());
    for (said, result) in [(twice, "first"), (listed, "duplicate")] {
        let head = String::from_utf8(delivery.head_bytes()).expect("text");
        let head = head.replacen(&format!("Content-Length: {length}\r\n"), &said, 1);
        line.write(&[head.as_bytes(), delivery.body()].concat());
        line.finish().expect(200, result);
    }
    assert_eq!(upstream.wait_for(1).body, delivery.body());
    assert_eq!(upstream.count(), 1);
}

#[test]
fn an_answer_to_head_has_no_body_and_the_next_request_is_read() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let mut line = Line::open(gateway.address());
    line.request(&Request::new("HEAD", "/nowhere", ""));
    let answer = line.answer_to("HEAD").expect("an answer");
    assert_eq!((answer.status, answer.result().as_str()), (404, "no-route"));
    line.request(&provider::stripe("evt_after_head"));
    line.finish().expect(200, "first");
}
