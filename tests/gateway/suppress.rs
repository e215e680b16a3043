//! `unknown_outcome: suppress`: at most once.

use std::time::Duration;

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::provider;
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Absent, Answer, Gate, Upstream};

fn suppressing(route: Route) -> Route {
    route.with("unknown_outcome: suppress")
}

#[test]
fn an_unknown_outcome_is_not_sent_again() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        let gateway = Gateway::start(&store, &[suppressing(Route::stripe(upstream.address)).timeout("500ms")]);
        for (count, (name, answer, status)) in (1..).zip([
            ("timeout", Answer::status(200).behind(&gate), 504),
            ("reset", Answer::reset(), 502),
            ("closed", Answer::none(), 502),
            ("gave-up", Answer::status(504), 504),
        ]) {
            upstream.script([answer]);
            let delivery = provider::stripe(&format!("evt_{name}"));
            let told = gateway.send(&delivery);
            assert_eq!((told.status, told.result().as_str()), (status, "first"), "{name}");
            gateway.send(&delivery).expect(200, "duplicate");
            assert_eq!(upstream.count(), count, "{name}");
            if let Some(redis) = store.as_redis() {
                let value = redis.get(&format!("dedup:stripe:evt_{name}")).expect("a value");
                assert!(value.starts_with("1u:"), "{name}: {value}");
            }
        }
        gate.open();
        gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"unknown\"}", 4.0);
    });
}

#[test]
fn what_was_refused_or_not_sent_is_sent_again() {
    on_both_stores(|store| {
        let absent = Absent::new();
        let gateway = Gateway::start(&store, &[suppressing(Route::stripe(absent.address))]);
        let delivery = provider::stripe("evt_again");
        gateway.send(&delivery).expect(502, "first");
        let upstream = absent.appear();
        upstream.script([Answer::status(500)]);
        gateway.send(&delivery).expect(500, "first");
        gateway.send(&delivery).expect(200, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 2);
    });
}

/// A dead pooled connection would make an unknown outcome of what was never sent.
#[test]
fn each_exchange_has_a_connection_of_its_own() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[suppressing(Route::stripe(upstream.address))]);
    for number in 0..3 {
        gateway.send(&provider::stripe(&format!("evt_{number}"))).expect(200, "first");
    }
    assert_eq!((upstream.count(), upstream.connections()), (3, 3));
}

#[test]
fn a_refusal_that_the_store_hears_of_after_more_than_a_lease_still_frees_the_event() {
    let store = Store::redis();
    let redis = store.as_redis().expect("a Redis");
    let upstream = Upstream::start();
    let gate = Gate::closed();
    upstream.script([Answer::status(500).behind(&gate)]);
    let route = suppressing(Route::stripe(upstream.address)).with("lease: 1s").with("in_flight: {wait: 100ms}");
    let gateway = Gateway::start(&store, &[route]);
    let delivery = provider::stripe("evt_refused_in_the_dark");
    let mut first = gateway.begin(&delivery);
    upstream.wait_for(1);
    redis.kill();
    gate.open();
    first.finish().expect(500, "first");
    let since = std::time::Instant::now();
    eventually("more than a lease", || (since.elapsed() > Duration::from_millis(1500)).then_some(()));
    redis.start_again();
    // Its key says `sending`, of an owner that did not renew it; the owner knows better.
    eventually("the retry is sent", || {
        let answer = gateway.send(&delivery);
        assert_ne!(answer.result(), "duplicate", "an event that was refused counts as done");
        (answer.result() == "first").then_some(())
    });
    assert_eq!(upstream.count(), 2);
}
