//! The first copy of an event reaches the handler byte for byte; every other is answered for it.

use std::time::Duration;

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Request, SECRET};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Received, Upstream};

/// The headers without what belongs to the connection, names in lower case, in their order.
fn end_to_end_headers(received: &Received) -> Vec<(String, String)> {
    let headers = received.head.headers().into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    headers.filter(|(name, _)| name != "connection").collect()
}

#[test]
fn first_is_forwarded_unchanged_and_second_is_answered_200() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let body = provider::stripe_body("evt_first");
        let signature = provider::stripe_signature(SECRET, provider::timestamp(Duration::ZERO), &body);
        let delivery = Request::post("/webhooks/stripe?tenant=a%20b&empty=", body.clone())
            .header("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
            .header("stripe-signature", &signature)
            .header("X-Repeated", "one")
            .header("x-repeated", "two")
            .header("X-Odd_Name", "  kept, as it is; \"quoted\"");

        let first = gateway.send(&delivery).expect(200, "first");
        assert_eq!((first.text().as_str(), first.header("x-handler").as_deref()), ("answer", Some("upstream")));

        let received = upstream.wait_for(1);
        assert_eq!(received.head.start_line(), "POST /webhooks/stripe?tenant=a%20b&empty= HTTP/1.1");
        assert_eq!(received.body, body);
        let length = body.len().to_string();
        let mut expected = [
            ("host", "hooks.example.com"),
            ("content-type", "application/json"),
            ("user-agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)"),
            ("stripe-signature", &signature),
            ("x-repeated", "one"),
            ("x-repeated", "two"),
            ("x-odd_name", "kept, as it is; \"quoted\""),
            ("content-length", &length),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut headers = end_to_end_headers(&received);
        // Only headers of one name have an order that means something.
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(headers, expected);

        let second = gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(second.text(), r#"{"received":true,"duplicate":true}"#);
        assert_eq!(second.header("content-type").as_deref(), Some("application/json"));
        assert_eq!(upstream.count(), 1);

        if let Some(redis) = store.as_redis() {
            assert_eq!(redis.keys(), ["dedup:stripe:evt_first"]);
            let value = redis.get("dedup:stripe:evt_first").expect("a value");
            assert!(value.starts_with("1d:") && value.ends_with(":200"), "{value}");
            let left = redis.time_to_live("dedup:stripe:evt_first");
            let week = Duration::from_secs(7 * 24 * 60 * 60);
            assert!(left <= week && left > week - Duration::from_secs(120), "{left:?}");
        }
    });
}

#[test]
fn a_redelivery_with_a_signature_of_its_own_is_a_duplicate() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for (ago, result) in [(0, "first"), (60, "duplicate"), (250, "duplicate")] {
            let body = provider::stripe_body("evt_signed_again");
            let signature = provider::stripe_signature(SECRET, provider::timestamp(Duration::from_secs(ago)), &body);
            let delivery = Request::post("/webhooks/stripe", body).header("Stripe-Signature", &signature);
            gateway.send(&delivery).expect(200, result);
        }
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn a_thin_event_is_known_by_its_id_too() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let body = br#"{"id":"evt_thin","object":"v2.core.event","type":"v1.billing.meter.no_meter_found"}"#;
    let delivery = provider::stripe_with_body(body.to_vec());
    gateway.send(&delivery).expect(200, "first");
    gateway.send(&delivery).expect(200, "duplicate");
}

#[test]
fn every_2xx_is_relayed_and_counts_as_delivered() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for status in [200, 201, 202, 299] {
            upstream.script([Answer::status(status)]);
            let delivery = provider::stripe(&format!("evt_{status}"));
            gateway.send(&delivery).expect(status, "first");
            gateway.send(&delivery).expect(200, "duplicate");
        }
        upstream.script([Answer::bytes(b"HTTP/1.1 204 No Content\r\n\r\n")]);
        let delivery = provider::stripe("evt_204");
        gateway.send(&delivery).expect(204, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 5);
    });
}

#[test]
fn events_are_told_apart_by_id_and_by_route_unless_routes_share_a_namespace() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let other = |name: &str| {
            Route::new(name, &format!("/{name}"), "generic", upstream.address).with("verify: off").with("key: ['$.id']")
        };
        let routes = [
            other("one"),
            other("two"),
            other("three").with("namespace: shared"),
            other("four").with("namespace: shared"),
        ];
        let gateway = Gateway::start(&store, &routes);
        for (path, id, result) in [
            ("/one", "a", "first"),
            ("/one", "b", "first"),
            ("/two", "a", "first"),
            ("/one", "a", "duplicate"),
            ("/three", "a", "first"),
            ("/four", "a", "duplicate"),
        ] {
            let delivery = Request::post(path, format!(r#"{{"id":"{id}"}}"#));
            gateway.send(&delivery).expect(200, result);
        }
        assert_eq!(upstream.count(), 4);
    });
}

#[test]
fn a_number_is_the_same_id_as_its_digits_and_long_ones_are_not_rounded() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::generic(upstream.address)]);
    for (id, result) in [
        ("900719925474099312345", "first"),
        ("\"900719925474099312345\"", "duplicate"),
        ("900719925474099312346", "first"),
        ("\"caf\\u00e9\"", "first"),
        ("\"café\"", "duplicate"),
    ] {
        let delivery = Request::post("/webhooks/generic", format!(r#"{{"id":{id}}}"#));
        gateway.send(&delivery).expect(200, result);
    }
}

#[test]
fn keys_are_built_from_body_header_query_and_literal() {
    let upstream = Upstream::start();
    let route = Route::new("mixed", "/mixed", "generic", upstream.address)
        .with("verify: off")
        .with("key: [\"'invoice'\", '$.data.id', 'header:X-Tenant', 'query:kind?']");
    let store = Store::redis();
    let gateway = Gateway::start(&store, &[route]);
    let send = |target: &str, tenant: &str| {
        gateway.send(&Request::post(target, r#"{"data":{"id":"i:1"}}"#).header("X-Tenant", tenant))
    };
    send("/mixed?kind=paid", "a").expect(200, "first");
    send("/mixed", "a").expect(200, "first");
    send("/mixed", "b").expect(200, "first");
    send("/mixed?other=1", "b").expect(200, "duplicate");
    let keys = store.as_redis().expect("Redis").keys();
    assert_eq!(
        keys,
        ["dedup:mixed:invoice:i%3A1:a:#", "dedup:mixed:invoice:i%3A1:a:paid", "dedup:mixed:invoice:i%3A1:b:#"]
    );
}

#[test]
fn the_answer_to_a_duplicate_can_be_chosen() {
    let upstream = Upstream::start();
    let route = Route::stripe(upstream.address)
        .with("duplicate_response: {status: 202, body: 'seen', content_type: text/plain}");
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    let delivery = provider::stripe("evt_chosen");
    gateway.send(&delivery).expect(200, "first");
    let answer = gateway.send(&delivery).expect(202, "duplicate");
    assert_eq!((answer.text().as_str(), answer.header("content-type").as_deref()), ("seen", Some("text/plain")));
}

#[test]
fn one_connection_carries_many_deliveries() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_on_one_line");
    let mut line = gateway.begin(&delivery);
    line.finish().expect(200, "first");
    for _ in 0..3 {
        line.request(&delivery);
        line.finish().expect(200, "duplicate");
    }
    line.request(&provider::stripe("evt_on_one_line_2"));
    line.finish().expect(200, "first");
}
