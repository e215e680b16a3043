//! What the provider is answered, and what becomes of the event, when the handler does not take it.

use std::net::TcpListener;

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::provider;
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Absent, Answer, Gate, Upstream};
use crate::support::wire::{Connection, Unframed};

#[test]
fn what_the_handler_refuses_is_relayed_and_the_retry_is_forwarded() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for status in [400, 401, 404, 409, 422, 429, 500, 501, 503] {
            upstream.script([Answer::with_body(status, b"not now")]);
            let delivery = provider::stripe(&format!("evt_{status}"));
            let refused = gateway.send(&delivery).expect(status, "first");
            assert_eq!(
                (refused.text().as_str(), refused.header("x-handler").as_deref()),
                ("not now", Some("upstream"))
            );
            gateway.send(&delivery).expect(200, "first");
            gateway.send(&delivery).expect(200, "duplicate");
        }
        assert_eq!(upstream.count(), 18);
        gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"refused\"}", 9.0);
    });
}

#[test]
fn redirects_and_switches_of_protocol_are_neither_followed_nor_relayed() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for (name, head) in [
            ("301", "HTTP/1.1 301 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"),
            ("307", "HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"),
            ("304", "HTTP/1.1 304 Not Modified\r\n\r\n"),
            ("101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n"),
        ] {
            let before = upstream.count();
            let answer = Answer::bytes(head.as_bytes());
            upstream.script([if name == "101" { answer.and_close() } else { answer }]);
            let delivery = provider::stripe(&format!("evt_{name}"));
            let answer = gateway.send(&delivery).expect(502, "first");
            assert_eq!(answer.header("location"), None);
            gateway.send(&delivery).expect(200, "first");
            assert_eq!(upstream.count(), before + 2, "{name}");
        }
    });
}

#[test]
fn a_refused_connection_is_502_and_the_retry_is_forwarded() {
    on_both_stores(|store| {
        let absent = Absent::new();
        let gateway = Gateway::start(&store, &[Route::stripe(absent.address)]);
        let delivery = provider::stripe("evt_refused_connection");
        gateway.send(&delivery).expect(502, "first");
        gateway.send(&delivery).expect(502, "first");
        gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"not_sent\"}", 2.0);
        let upstream = absent.appear();
        gateway.send(&delivery).expect(200, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn a_name_that_does_not_resolve_is_502_and_keeps_nothing() {
    let absent = Absent::new();
    let store = Store::redis();
    let gateway = Gateway::start(&store, &[Route::stripe(absent.address).at("http://no-such-handler.invalid:80")]);
    gateway.send(&provider::stripe("evt_nowhere")).expect(502, "first");
    gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"not_sent\"}", 1.0);
    assert_eq!(store.as_redis().expect("Redis").keys(), [""; 0]);
}

#[test]
fn a_timeout_is_504_and_the_retry_is_forwarded_under_redeliver() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(200).behind(&gate)]);
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).timeout("300ms")]);
        let delivery = provider::stripe("evt_timeout");
        gateway.send(&delivery).expect(504, "first");
        gateway.send(&delivery).expect(200, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        gate.open();
        assert_eq!(upstream.count(), 2);
        gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"unknown\"}", 1.0);
    });
}

#[test]
fn a_connection_that_ends_without_an_answer_is_502_and_the_retry_is_forwarded_under_redeliver() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for (name, answer) in [
            ("reset", Answer::reset()),
            ("closed", Answer::none()),
            ("cut", Answer::bytes(b"HTTP/1.1 200 O").and_close()),
            ("no-http", Answer::bytes(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").and_close()),
            ("only-interim", Answer::bytes(b"HTTP/1.1 103 Early Hints\r\n\r\n").and_close()),
        ] {
            let before = upstream.count();
            upstream.script([answer]);
            let delivery = provider::stripe(&format!("evt_{name}"));
            let told = gateway.send(&delivery);
            assert_eq!((told.status, told.result().as_str()), (502, "first"), "{name}");
            gateway.send(&delivery).expect(200, "first");
            gateway.send(&delivery).expect(200, "duplicate");
            assert_eq!(upstream.count(), before + 2, "{name}");
        }
        gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"unknown\"}", 5.0);
    });
}

#[test]
fn a_502_or_504_of_something_in_between_leaves_the_outcome_unknown() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    for status in [502, 504] {
        upstream.script([Answer::status(status)]);
        let delivery = provider::stripe(&format!("evt_{status}"));
        gateway.send(&delivery).expect(status, "first");
        gateway.send(&delivery).expect(200, "first");
    }
    gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"unknown\"}", 2.0);
}

#[test]
fn a_2xx_head_decides_whatever_becomes_of_the_body() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        upstream.script([Answer::bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort").and_close()]);
        let delivery = provider::stripe("evt_cut_answer");
        let _cut_or_replaced = gateway.begin(&delivery).answer();
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn interim_answers_are_read_past() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    upstream.script([Answer::with_body(201, b"made").after(interim)]);
    let delivery = provider::stripe("evt_interim");
    assert_eq!(gateway.send(&delivery).expect(201, "first").text(), "made");
    gateway.send(&delivery).expect(200, "duplicate");
}

#[test]
fn answers_of_every_framing_and_size_are_relayed() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    upstream.script([
        Answer::bytes(chunked),
        Answer::bytes(b"HTTP/1.1 200 OK\r\n\r\nuntil the end").and_close(),
        Answer::with_body(200, "x".repeat(3_000_000).as_bytes()),
        Answer::with_body(200, b""),
    ]);
    for (name, text) in
        [("chunked", "hello world"), ("close", "until the end"), ("big", &"x".repeat(3_000_000)), ("none", "")]
    {
        let answer = gateway.send(&provider::stripe(&format!("evt_{name}"))).expect(200, "first");
        assert!(answer.text() == text, "{name}: {} bytes", answer.body.len());
    }
}

/// A request that nobody reads to its end must not have another written behind it: the handler would take that one for the
/// rest of the first.
#[test]
fn a_connection_with_half_a_request_in_it_is_not_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let route = Route::stripe(listener.local_addr().expect("an address")).with("max_body: 64MiB").timeout("1s");
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let accept = || {
        let stream = eventually("a connection of the gateway's", || listener.accept().ok()).0;
        stream.set_nonblocking(false).expect("a stream that waits");
        Connection::new(stream)
    };
    let long = format!(r#"{{"id":"evt_unread","object":"event","note":"{}"}}"#, "x".repeat(40_000_000));
    let mut line = gateway.begin(&provider::stripe_with_body(long.into_bytes()));
    let mut unread = accept();
    unread.read_head().expect("a head").expect("a request");
    unread.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("an answer");
    assert_eq!(line.finish().expect(200, "first").text(), "ok");

    // Over the same connection, and so in the thread that had the other one.
    line.request(&provider::stripe("evt_next"));
    let mut fresh = accept();
    let head = fresh.read_head().expect("a head").expect("a request");
    fresh.read_body(&head, Unframed::IsEmpty).expect("a body");
    fresh.write(b"HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n").expect("an answer");
    line.finish().expect(201, "first");
}

/// What a handler's `Connection` names stays behind, but an answer must have an end.
#[test]
fn an_answer_whose_length_is_named_as_a_hop_s_still_has_one() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    upstream.script([Answer::bytes(
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, Content-Length, X-Own\r\nX-Own: 1\r\nContent-Length: 2\r\n\r\nok",
    )]);
    let mut line = gateway.begin(&provider::stripe("evt_named"));
    let answer = line.finish().expect(200, "first");
    assert_eq!((answer.text().as_str(), answer.header("x-own")), ("ok", None));
    line.request(&provider::stripe("evt_named"));
    line.finish().expect(200, "duplicate");
}

#[test]
fn a_connection_that_died_while_idle_costs_no_delivery() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for number in 0..5 {
            upstream.script([Answer::status(200).and_close()]);
            gateway.send(&provider::stripe(&format!("evt_idle_{number}"))).expect(200, "first");
            upstream.wait_for_no_connection();
        }
        assert_eq!(upstream.count(), 5);
    });
}
