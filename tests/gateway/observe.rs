//! `mode: observe`: everything is forwarded, and what would have been done is told.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Answer, Request};
use crate::support::route::Route;
use crate::support::store::on_both_stores;
use crate::support::upstream::{self, Gate, Upstream};

fn would(answer: &Answer) -> String {
    let value = answer.header("hookonce-result").unwrap_or_default();
    let (result, would) = value.split_once("; would=").unwrap_or((&value, ""));
    assert_eq!(result, "observe");
    would.to_owned()
}

#[test]
fn every_copy_is_forwarded_and_the_result_tells_what_would_have_been_done() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        upstream.otherwise(upstream::Answer::with_body(201, b"made"));
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("mode: observe")]);
        let delivery = provider::stripe("evt_observed");
        let forged = Request::post("/webhooks/stripe", provider::stripe_body("evt_forged"));
        let unkeyed = provider::stripe_with_body(b"{}".to_vec());
        for (count, (delivery, told)) in (1..).zip([
            (&delivery, "first"),
            (&delivery, "duplicate"),
            (&delivery, "duplicate"),
            (&forged, "unauthorized"),
            (&unkeyed, "unkeyed"),
        ]) {
            let answer = gateway.send(delivery);
            assert_eq!((answer.status, answer.text().as_str()), (201, "made"), "{told}");
            assert_eq!(would(&answer), told);
            assert_eq!(upstream.wait_for(count).body, delivery.body());
        }
        gateway.wait_for_metric("hookonce_deliveries_total{result=\"observe\"}", 5.0);
        assert_eq!(gateway.metric("hookonce_auth_failures_total{reason=\"missing\"}"), 1.0);
        if let Some(redis) = store.as_redis() {
            assert_eq!(redis.keys(), ["dedup:stripe:evt_observed"], "a forged delivery must leave no key");
        }
        gateway.wait_for_log(&["evt_observed", "duplicate"]);
    });
}

#[test]
fn nothing_waits() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([upstream::Answer::status(200).behind(&gate)]);
        let route = Route::stripe(upstream.address).with("mode: observe").with("in_flight: {wait: 60s}");
        let gateway = Gateway::start(&store, &[route]);
        let delivery = provider::stripe("evt_not_waited_for");
        let mut first = gateway.begin(&delivery);
        upstream.wait_for(1);
        let copy = gateway.send(&delivery);
        assert_eq!((copy.status, would(&copy).as_str()), (200, "in-flight"));
        gate.open();
        assert_eq!(would(&first.finish()), "first");
        assert_eq!(upstream.count(), 2);
    });
}
