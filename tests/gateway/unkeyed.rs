//! What has no key is forwarded, every time.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Request};
use crate::support::route::Route;
use crate::support::store::on_both_stores;
use crate::support::upstream::{Answer, Upstream};

#[test]
fn a_delivery_without_a_key_is_forwarded_each_time_and_counted() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        upstream.otherwise(Answer::with_body(202, b"challenge"));
        let gateway = Gateway::start(&store, &[Route::generic(upstream.address), Route::stripe(upstream.address)]);
        let post = |body: &str| Request::post("/webhooks/generic", body);
        let deliveries = [
            post(""),
            post("hello"),
            post(r#"{"id":"evt_cut"#),
            post("[]"),
            post("null"),
            post("{}"),
            post(r#"{"other":"x"}"#),
            post(r#"{"id":null}"#),
            post(r#"{"id":""}"#),
            post(r#"{"id":{"a":1}}"#),
            post(r#"{"id":["a"]}"#),
            Request::post("/webhooks/generic", vec![0xff, 0xfe, 0x00]),
            provider::stripe_with_body(b"".to_vec()),
            provider::stripe_with_body(b"not JSON".to_vec()),
            provider::stripe_with_body(br#"{"object":"event"}"#.to_vec()),
        ];
        for (number, delivery) in deliveries.iter().enumerate() {
            for copy in 1..=2 {
                let answer = gateway.send(delivery).expect(202, "unkeyed");
                assert_eq!(answer.text(), "challenge");
                assert_eq!(upstream.count(), 2 * number + copy);
                assert_eq!(upstream.received().last().expect("one").body, delivery.body());
            }
        }
        let count = 2.0 * deliveries.len() as f64;
        assert_eq!(gateway.metric("hookonce_events_total{outcome=\"unkeyed\"}"), count);
        gateway.wait_for_metric("hookonce_deliveries_total{result=\"unkeyed\"}", count);
        if let Some(redis) = store.as_redis() {
            assert_eq!(redis.keys(), [""; 0]);
        }
        gateway.wait_for_log(&["unkeyed", "generic"]);
    });
}
