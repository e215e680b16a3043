//! How much the gateway takes: what does not fit is turned away, it does not grow.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line};
use crate::support::route::Route;
use crate::support::store::Store;
use crate::support::upstream::{Answer, Gate, Upstream};

const MEBIBYTE: usize = 1024 * 1024;

#[test]
fn with_a_thousand_connections_a_full_gateway_turns_bodies_away_and_does_not_grow() {
    const CONNECTIONS: usize = 1_000;
    const BUDGET: usize = 8 * MEBIBYTE;
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address).with("max_body: 1MiB").timeout("60s")];
    let gateway = Gateway::start_with(&Store::Embedded, &[&format!("body_budget: {BUDGET}")], &routes);
    // Every connection has had a delivery, which needs no store, and stays open.
    let unkeyed = provider::stripe_with_body(b"{}".to_vec());
    let mut lines: Vec<Line> = (0..CONNECTIONS)
        .map(|_| {
            let mut line = gateway.begin(&unkeyed);
            line.finish().expect(200, "unkeyed");
            line
        })
        .collect();

    let idle = gateway.resident_memory();
    let gate = Gate::closed();
    upstream.otherwise(Answer::status(200).behind(&gate));
    let long = |number: usize| {
        let note = "x".repeat(1_000_000);
        let body = format!(r#"{{"id":"evt_long_{number}","object":"event","note":"{note}"}}"#);
        provider::stripe_with_body(body.into_bytes())
    };
    let (held, rest) = lines.split_at_mut(8);
    for (number, line) in held.iter_mut().enumerate() {
        line.request(&long(number));
    }
    upstream.wait_for(CONNECTIONS + held.len());
    // A body is read into memory that doubles, and looked into as a tree.
    let full = gateway.resident_memory();
    assert!(full < idle + 6 * BUDGET, "from {} to {} MiB", idle / MEBIBYTE, full / MEBIBYTE);
    // The budget is used up: whoever comes now is told to come back, and leaves nothing behind.
    for (number, line) in rest.iter_mut().take(200).enumerate() {
        line.request(&long(100 + number));
        let told = line.finish().expect(503, "busy");
        assert!(told.header("retry-after").is_some());
    }
    let turned_away = gateway.resident_memory();
    assert!(turned_away < full + BUDGET, "from {} to {} MiB", full / MEBIBYTE, turned_away / MEBIBYTE);
    gate.open();
    for line in held {
        line.finish().expect(200, "first");
    }
    assert_eq!(upstream.count(), CONNECTIONS + 8);
}

/// A length costs whoever sends it a few bytes, so it must not make the gateway hold more than has come.
#[test]
fn a_body_that_is_only_announced_takes_no_memory() {
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address).with("max_body: 32MiB")];
    let gateway = Gateway::start_with(&Store::Embedded, &["body_budget: 64MiB"], &routes);
    let idle = gateway.resident_memory();
    let head = format!("POST /webhooks/stripe HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{{", 32 * MEBIBYTE);
    let lines: Vec<Line> = (0..300)
        .map(|_| {
            let mut line = Line::open(gateway.address());
            line.write(head.as_bytes());
            line
        })
        .collect();
    gateway.wait_for_in_flight(lines.len());
    let held = gateway.resident_memory();
    assert!(held < idle + 64 * MEBIBYTE, "from {} to {} MiB", idle / MEBIBYTE, held / MEBIBYTE);
}
