//! Processes that die.

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::provider::{self, Request};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Absent, Answer, Gate, Upstream};

/// Long enough for a slow machine to renew in time, short enough to be waited for.
const LEASE: &str = "lease: 3s";

/// Sends until the event is no longer in flight, and never takes a 2xx for an open claim.
fn send_until_settled(gateway: &Gateway, delivery: &Request) -> provider::Answer {
    eventually("the end of the claim", || {
        let answer = gateway.send(delivery);
        // A provider tries again after any 503, also after one that only a slow machine's store gave.
        if answer.status == 503 {
            return None;
        }
        assert_ne!(answer.result(), "in-flight");
        Some(answer)
    })
}

#[test]
fn still_a_duplicate_after_gateway_and_store_were_killed() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let delivery = provider::stripe("evt_survives");
        gateway.send(&delivery).expect(200, "first");
        gateway.kill();
        if let Some(redis) = store.as_redis() {
            redis.kill();
            redis.start_again();
        }
        gateway.start_again();
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1);
    });
}

/// A record lives for the window, not for the time of a lock. In Redis a claim that nobody renews shows when that time
/// has passed.
#[test]
fn a_copy_that_comes_after_every_lease_has_ended_is_still_a_duplicate() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(200), Answer::status(200).behind(&gate)]);
        let route = Route::stripe(upstream.address).with(LEASE).with("in_flight: {wait: 100ms}");
        let gateway = Gateway::start(&store, &[route]);
        let delivery = provider::stripe("evt_remembered");
        gateway.send(&delivery).expect(200, "first");
        let _cut = gateway.begin(&provider::stripe("evt_cut"));
        upstream.wait_for(2);
        gateway.kill();
        gateway.start_again();
        send_until_settled(&gateway, &provider::stripe("evt_cut")).expect(200, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        gate.open();
        assert_eq!(upstream.count(), 3);
    });
}

#[test]
fn the_claim_of_a_gateway_killed_mid_exchange_is_taken_over_within_a_lease() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(200).behind(&gate)]);
        let route = Route::stripe(upstream.address).with(LEASE).with("in_flight: {wait: 100ms}");
        let gateway = Gateway::start(&store, &[route]);
        let delivery = provider::stripe("evt_killed");
        let _cut = gateway.begin(&delivery);
        upstream.wait_for(1);
        gateway.kill();
        gateway.start_again();
        let taken_over = std::time::Instant::now();
        send_until_settled(&gateway, &delivery).expect(200, "first");
        assert!(taken_over.elapsed().as_secs() < 10, "a lease of 3 s held for {:?}", taken_over.elapsed());
        gateway.send(&delivery).expect(200, "duplicate");
        gate.open();
        assert_eq!(upstream.count(), 2);
    });
}

#[test]
fn the_claim_of_a_gateway_killed_mid_exchange_is_taken_over_by_the_other_one() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let routes = [Route::stripe(upstream.address).with(LEASE).with("in_flight: {wait: 20s}")];
    let (killed, other) = (Gateway::start(&store, &routes), Gateway::start(&store, &routes));
    let delivery = provider::stripe("evt_other_takes_over");
    let _cut = killed.begin(&delivery);
    upstream.wait_for(1);
    let mut waiting = other.begin(&delivery);
    other.wait_for_in_flight(1);
    killed.kill();
    waiting.finish().expect(200, "first");
    gate.open();
    assert_eq!(upstream.count(), 2);
}

#[test]
fn a_gateway_killed_mid_exchange_leaves_a_duplicate_under_suppress() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(200).behind(&gate)]);
        let route = Route::stripe(upstream.address)
            .with(LEASE)
            .with("in_flight: {wait: 100ms}")
            .with("unknown_outcome: suppress");
        let gateway = Gateway::start(&store, &[route]);
        let delivery = provider::stripe("evt_killed_sending");
        let _cut = gateway.begin(&delivery);
        upstream.wait_for(1);
        gateway.kill();
        gateway.start_again();
        send_until_settled(&gateway, &delivery).expect(200, "duplicate");
        gate.open();
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn a_gateway_killed_before_the_first_byte_leaves_the_event_to_be_sent() {
    for unknown_outcome in ["redeliver", "suppress"] {
        on_both_stores(|store| {
            let deaf = Absent::new().appear_deaf();
            let route = Route::stripe(deaf.address())
                .upstream("connect_timeout: 20s")
                .with(LEASE)
                .with("in_flight: {wait: 100ms}")
                .with(&format!("unknown_outcome: {unknown_outcome}"));
            let gateway = Gateway::start(&store, &[route]);
            let delivery = provider::stripe("evt_killed_early");
            let _cut = gateway.begin(&delivery);
            gateway.wait_for_metric("hookonce_store_seconds_count{operation=\"claim\"}", 1.0);
            gateway.kill();
            let upstream = deaf.listen();
            gateway.start_again();
            send_until_settled(&gateway, &delivery).expect(200, "first");
            assert_eq!(upstream.count(), 1, "{unknown_outcome}");
        });
    }
}

#[test]
fn a_handler_slower_than_the_lease_still_gets_one_exchange() {
    for unknown_outcome in ["redeliver", "suppress"] {
        on_both_stores(|store| {
            let upstream = Upstream::start();
            let gate = Gate::closed();
            upstream.script([Answer::status(200).behind(&gate)]);
            let route = Route::stripe(upstream.address)
                .timeout("60s")
                .with(LEASE)
                .with("in_flight: {wait: 100ms}")
                .with(&format!("unknown_outcome: {unknown_outcome}"));
            let gateway = Gateway::start(&store, &[route]);
            let delivery = provider::stripe("evt_slow");
            let mut first = gateway.begin(&delivery);
            upstream.wait_for(1);
            // A renewal comes every third of the lease, so after five of them the first lease has long ended.
            eventually("five renewals", || {
                let renewals = gateway.metric("hookonce_store_seconds_count{operation=\"renew\"}");
                (renewals >= 5.0).then_some(())
            });
            gateway.send(&delivery).expect(503, "in-flight");
            gate.open();
            first.finish().expect(200, "first");
            gateway.send(&delivery).expect(200, "duplicate");
            assert_eq!(upstream.count(), 1);
            assert_eq!(gateway.metric("hookonce_leases_lost_total"), 0.0);
        });
    }
}

/// "Delivered" is right even from an owner that lost its lease; everything else from it must change nothing.
#[test]
fn a_gateway_that_was_paused_past_its_lease_does_no_harm() {
    for status in [200, 500] {
        let store = Store::redis();
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::status(status).behind(&gate)]);
        let routes = [Route::stripe(upstream.address).with(LEASE).timeout("60s").with("in_flight: {wait: 20s}")];
        let (paused, other) = (Gateway::start(&store, &routes), Gateway::start(&store, &routes));
        let delivery = provider::stripe("evt_paused");
        let mut first = paused.begin(&delivery);
        upstream.wait_for(1);
        paused.freeze();
        other.send(&delivery).expect(200, "first");
        gate.open();
        paused.thaw();
        first.finish().expect(status, "first");
        paused.send(&delivery).expect(200, "duplicate");
        other.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 2);
    }
}

/// A claim is looked at once more when the connection stands: between a claim and its first byte, anything can take long.
#[test]
fn a_gateway_that_was_paused_before_the_first_byte_sends_nothing() {
    for unknown_outcome in ["redeliver", "suppress"] {
        let store = Store::redis();
        let upstream = Upstream::start();
        let deaf = Absent::new().appear_deaf();
        let route = |address| {
            Route::stripe(address)
                .upstream("connect_timeout: 60s")
                .timeout("60s")
                .with(LEASE)
                .with("in_flight: {wait: 20s}")
                .with(&format!("unknown_outcome: {unknown_outcome}"))
        };
        let paused = Gateway::start(&store, &[route(deaf.address())]);
        let other = Gateway::start(&store, &[route(upstream.address)]);
        let delivery = provider::stripe("evt_paused_early");
        let mut first = paused.begin(&delivery);
        paused.wait_for_metric("hookonce_store_seconds_count{operation=\"claim\"}", 1.0);
        paused.freeze();
        other.send(&delivery).expect(200, "first");
        let late = deaf.listen();
        paused.thaw();
        assert_eq!(first.finish().status, 503, "{unknown_outcome}");
        paused.send(&delivery).expect(200, "duplicate");
        assert_eq!((upstream.count(), late.count()), (1, 0), "{unknown_outcome}");
    }
}
