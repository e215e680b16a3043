//! Stopping: what runs ends well, and the process leaves as soon as nothing runs.

use std::time::{Duration, Instant};

use crate::support::gateway::Gateway;
use crate::support::provider;
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Gate, Upstream};

#[test]
fn a_delivery_in_flight_finishes_and_is_remembered() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::with_body(201, b"made").behind(&gate)]);
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let delivery = provider::stripe("evt_while_stopping");
        let mut first = gateway.begin(&delivery);
        upstream.wait_for(1);
        gateway.terminate();
        gateway.wait_until_closed();
        assert!(gateway.is_running());
        gate.open();
        assert_eq!(first.finish().expect(201, "first").text(), "made");
        let answered = Instant::now();
        assert!(gateway.wait_for_end().success());
        assert!(answered.elapsed() < Duration::from_secs(10), "the grace of 30 s was waited out");
        gateway.start_again();
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn an_idle_gateway_leaves_at_once() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        // A connection that is kept open is nothing in flight.
        let mut line = gateway.begin(&provider::stripe("evt_before"));
        line.finish().expect(200, "first");
        let asked = Instant::now();
        gateway.terminate();
        assert!(gateway.wait_for_end().success());
        assert!(asked.elapsed() < Duration::from_secs(10), "the grace of 30 s was waited out");
    });
}

#[test]
fn copies_that_wait_are_sent_away() {
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address).with("in_flight: {wait: 60s}")]);
    let delivery = provider::stripe("evt_waiting");
    let mut first = gateway.begin(&delivery);
    upstream.wait_for(1);
    let mut copy = gateway.begin(&delivery);
    gateway.wait_for_in_flight(2);
    gateway.terminate();
    // Before the first is answered: the gate is still closed.
    let told = copy.finish();
    assert_eq!(told.status, 503);
    assert!(told.header("retry-after").is_some());
    gate.open();
    first.finish().expect(200, "first");
    assert!(gateway.wait_for_end().success());
}

#[test]
fn a_handler_that_never_answers_is_left_after_the_grace() {
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let routes = [Route::stripe(upstream.address).timeout("60s")];
    let gateway = Gateway::start_with(&Store::Embedded, &["shutdown_grace: 1s"], &routes);
    let _cut = gateway.begin(&provider::stripe("evt_never"));
    upstream.wait_for(1);
    gateway.terminate();
    // This waits at most for the kit's deadline, which is far below the 60 s of the exchange.
    gateway.wait_for_end();
    gate.open();
}

#[test]
fn what_cannot_be_recorded_before_the_end_is_in_the_log() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let routes = [Route::stripe(upstream.address)];
    let gateway = Gateway::start_with(&store, &["shutdown_grace: 2s"], &routes);
    let mut first = gateway.begin(&provider::stripe("evt_never_recorded"));
    upstream.wait_for(1);
    store.as_redis().expect("Redis").kill();
    gate.open();
    first.finish().expect(200, "first");
    gateway.wait_for_metric("hookonce_unsettled", 1.0);
    gateway.terminate();
    gateway.wait_for_end();
    gateway.wait_for_log(&["ERROR", "stripe:evt_never_recorded"]);
}
