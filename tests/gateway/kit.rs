//! The kit itself: a test that rests on it is worth what it is worth.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::provider::{self, Line, Request};
use crate::support::redis::{Redis, Reply};
use crate::support::upstream::{Absent, Answer, Gate, Upstream};
use crate::support::wire::Connection;

#[test]
fn the_upstream_gets_the_bytes_that_were_sent() {
    let upstream = Upstream::start();
    let plain = provider::stripe("evt_1");
    let answer = provider::send(upstream.address, &plain);
    assert_eq!((answer.status, answer.text().as_str()), (200, "answer"));
    provider::send(upstream.address, &Request::post("/a", "x".repeat(3_000_000)).chunked(7_777));

    let received = upstream.received();
    assert_eq!(received[0].head.0, plain.head_bytes());
    assert_eq!(received[0].body, plain.body());
    assert_eq!(received[1].body.len(), 3_000_000);
}

#[test]
fn the_upstream_answers_by_its_script_and_then_as_before() {
    let upstream = Upstream::start();
    upstream.script([Answer::status(500), Answer::none(), Answer::reset()]);
    upstream.otherwise(Answer::with_body(201, b"made").after(b"HTTP/1.1 103 Early Hints\r\n\r\n"));
    let request = Request::post("/", "{}");
    assert_eq!(provider::send(upstream.address, &request).status, 500);
    for _ in ["closed", "reset"] {
        let mut line = Line::open(upstream.address);
        line.request(&request);
        assert!(line.answer().is_err());
    }
    assert_eq!(provider::send(upstream.address, &request).status, 201);
    assert_eq!((upstream.count(), upstream.connections()), (4, 4));
    upstream.reset_unread(1);
    // The reset may come while connecting, writing or reading.
    let reset = Connection::open(upstream.address).and_then(|mut connection| {
        connection.write(&request.head_bytes())?;
        connection.read_head()
    });
    assert!(!matches!(reset, Ok(Some(_))));
    assert_eq!((upstream.count(), upstream.connections()), (4, 5));
}

#[test]
fn a_gate_holds_an_answer_back_and_what_runs_together_is_counted() {
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.otherwise(Answer::status(200).behind(&gate));
    let answered = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            provider::send_at_once(&[upstream.address], &Request::post("/", "{}"), 3);
            answered.store(true, Ordering::SeqCst);
        });
        upstream.wait_for(3);
        assert!(!answered.load(Ordering::SeqCst));
        gate.open();
    });
    assert_eq!(upstream.most_at_once(), 3);
}

#[test]
fn an_absent_upstream_refuses_connections_until_it_appears() {
    let absent = Absent::new();
    let address = absent.address;
    assert!(Connection::open(address).is_err());
    let _upstream = absent.appear();
    assert_eq!(provider::send(address, &Request::post("/", "{}")).status, 200);
}

#[test]
fn a_deaf_upstream_lets_whoever_connects_wait() {
    let deaf = Absent::new().appear_deaf();
    let address = deaf.address();
    assert!(std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_millis(300)).is_err());
    let upstream = deaf.listen();
    assert_eq!(provider::send(address, &Request::post("/", "{}")).status, 200);
    assert_eq!(upstream.count(), 1);
}

#[test]
fn a_connection_can_be_used_twice_and_reset() {
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200), Answer::status(200).behind(&gate)]);
    let mut line = Line::open(upstream.address);
    line.request(&Request::post("/", "one"));
    line.answer().expect("the first answer");
    line.request(&Request::post("/", "two"));
    assert_eq!(upstream.wait_for(2).connection, 0);
    line.reset();
    gate.open();
    upstream.wait_for_no_connection();
}

#[test]
fn redis_keeps_what_it_acknowledged_over_sigkill() {
    let redis = Redis::start();
    assert_eq!(redis.command(&["SET", "a", "b", "PX", "60000"]), Reply::Text("OK".to_owned()));
    redis.freeze();
    redis.thaw();
    redis.kill();
    redis.start_again();
    assert_eq!(redis.get("a").as_deref(), Some("b"));
    assert!(redis.time_to_live("a").as_secs() > 30);
    assert_eq!(redis.keys(), ["a"]);
    let written = std::fs::read(redis.append_only_file()).expect("a file");
    assert!(String::from_utf8_lossy(&written).contains("PXAT"));
    assert!(matches!(redis.command(&["NO", "SUCH"]), Reply::Error(_)));
}

#[test]
fn signatures_are_stripes() {
    let body = br#"{"id":"evt_test_webhook","object":"event"}"#;
    assert_eq!(
        provider::stripe_signature("whsec_test_secret", 1_700_000_000, body),
        "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990"
    );
}
