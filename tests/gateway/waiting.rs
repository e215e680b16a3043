//! Copies that find their event in flight.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Gate, Upstream};

#[test]
fn still_in_flight_after_the_wait_is_503_with_retry_after() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(200).behind(&gate)]);
        let route = Route::stripe(upstream.address).with("in_flight: {wait: 200ms, then: retry_later}");
        let gateway = Gateway::start(&store, &[route]);
        let delivery = provider::stripe("evt_long");
        let mut first = gateway.begin(&delivery);
        upstream.wait_for(1);
        for _ in 0..2 {
            let told = gateway.send(&delivery).expect(503, "in-flight");
            let seconds: u64 = told.header("retry-after").expect("a Retry-After").parse().expect("seconds");
            assert!((1..=30).contains(&seconds), "the lease is 30 s, but Retry-After is {seconds}");
        }
        gate.open();
        first.finish().expect(200, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1);
        gateway.wait_for_metric("hookonce_events_total{outcome=\"in_flight\"}", 2.0);
    });
}

#[test]
fn in_flight_can_be_accepted() {
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let route = Route::stripe(upstream.address).with("in_flight: {wait: 100ms, then: accept}");
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    let delivery = provider::stripe("evt_accepted");
    let mut first = gateway.begin(&delivery);
    upstream.wait_for(1);
    gateway.send(&delivery).expect(200, "in-flight");
    gate.open();
    first.finish().expect(200, "first");
}

#[test]
fn forty_copies_before_a_refusing_handler_make_one_exchange_and_forty_like_answers() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::with_body(500, b"not today").behind(&gate)]);
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("in_flight: {wait: 20s}")]);
        let delivery = provider::stripe("evt_refused_together");
        let mut lines: Vec<_> = (0..40).map(|_| gateway.begin(&delivery)).collect();
        gateway.wait_for_in_flight(40);
        gate.open();
        let statuses: Vec<_> = lines.iter_mut().map(|line| line.finish().status).collect();
        assert_eq!(statuses, [500; 40]);
        assert_eq!(upstream.count(), 1);
        gateway.send(&delivery).expect(200, "first");
        assert_eq!(upstream.count(), 2);
    });
}

#[test]
fn copies_before_a_handler_that_times_out_make_one_exchange_and_like_answers() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(200).behind(&gate)]);
        let route = Route::stripe(upstream.address).timeout("3s").with("in_flight: {wait: 20s}");
        let gateway = Gateway::start(&store, &[route]);
        let delivery = provider::stripe("evt_timed_out_together");
        let mut lines: Vec<_> = (0..10).map(|_| gateway.begin(&delivery)).collect();
        gateway.wait_for_in_flight(10);
        let statuses: Vec<_> = lines.iter_mut().map(|line| line.finish().status).collect();
        gate.open();
        assert_eq!(statuses, [504; 10]);
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn a_copy_in_another_gateway_is_sent_when_the_first_was_refused() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(500).behind(&gate)]);
    let routes = [Route::stripe(upstream.address).with("in_flight: {wait: 20s}")];
    let (here, there) = (Gateway::start(&store, &routes), Gateway::start(&store, &routes));
    let delivery = provider::stripe("evt_refused_elsewhere");
    let mut first = here.begin(&delivery);
    upstream.wait_for(1);
    let mut copies: Vec<_> = (0..5).map(|_| there.begin(&delivery)).collect();
    there.wait_for_in_flight(5);
    gate.open();
    first.finish().expect(500, "first");
    let answers: Vec<_> = copies.iter_mut().map(Line::finish).collect();
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(upstream.count(), 2);
}
