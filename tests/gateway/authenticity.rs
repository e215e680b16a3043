//! Nothing is read, written or sent for a delivery that is not authentic.

use std::time::Duration;

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Request, SECRET, stripe_body, stripe_signature, timestamp};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::Upstream;

#[test]
fn a_forged_stale_or_missing_signature_is_401_and_the_true_delivery_still_passes() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let (body, now) = (stripe_body("evt_true"), timestamp(Duration::ZERO));
        let post = || Request::post("/webhooks/stripe", body.clone());
        let stale = stripe_signature(SECRET, timestamp(Duration::from_secs(400)), &body);
        let of_other_body = stripe_signature(SECRET, now, &stripe_body("evt_other"));
        let moved_in_time =
            stripe_signature(SECRET, now - 10, &body).replace(&format!("t={}", now - 10), &format!("t={now}"));
        let not_v1 = stripe_signature(SECRET, now, &body).replace("v1=", "v0=");
        for (name, delivery) in [
            ("missing", post()),
            ("another secret", post().header("Stripe-Signature", &stripe_signature("whsec_other", now, &body))),
            ("another body", post().header("Stripe-Signature", &of_other_body)),
            ("another time", post().header("Stripe-Signature", &moved_in_time)),
            ("another scheme", post().header("Stripe-Signature", &not_v1)),
            ("stale", post().header("Stripe-Signature", &stale)),
            ("malformed", post().header("Stripe-Signature", "t=now,v1=zz")),
            ("empty", post().header("Stripe-Signature", "")),
        ] {
            let answer = gateway.send(&delivery);
            assert_eq!((answer.status, answer.result().as_str()), (401, "unauthorized"), "{name}");
        }
        assert_eq!(upstream.count(), 0);
        if let Some(redis) = store.as_redis() {
            assert_eq!(redis.keys(), [""; 0]);
        }
        gateway.wait_for_metric("hookonce_auth_failures_total{route=\"stripe\"}", 8.0);
        gateway.wait_for_metric("hookonce_auth_failures_total{reason=\"stale\"}", 1.0);
        assert_eq!(gateway.metric("hookonce_store_seconds_count{operation=\"claim\"}"), 0.0);

        let delivery = post().header("Stripe-Signature", &stripe_signature(SECRET, now, &body));
        gateway.send(&delivery).expect(200, "first");
        // A forged copy learns nothing about an event that is known.
        gateway.send(&post()).expect(401, "unauthorized");
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn one_good_signature_of_several_and_each_of_several_secrets_will_do() {
    let upstream = Upstream::start();
    let route = Route::new("stripe", "/webhooks/stripe", "stripe", upstream.address)
        .with(&format!("secret: [whsec_next, {SECRET}]"));
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    let now = timestamp(Duration::ZERO);
    for (id, secret) in [("evt_by_old", SECRET), ("evt_by_next", "whsec_next")] {
        let body = stripe_body(id);
        let good = stripe_signature(secret, now, &body);
        let several = format!("t={now},v1={},v0=abc,{}", "0".repeat(64), good.split_once(',').expect("a comma").1);
        let delivery = Request::post("/webhooks/stripe", body).header("Stripe-Signature", &several);
        gateway.send(&delivery).expect(200, "first");
        assert_eq!(upstream.received().last().expect("one").header("stripe-signature"), Some(several));
    }
}

#[test]
fn what_a_failing_delivery_is_answered_can_be_chosen() {
    for (choice, status) in [("reject", 401), ("discard", 200), ("retry_later", 503)] {
        let upstream = Upstream::start();
        let route = Route::stripe(upstream.address).with(&format!("on_auth_failure: {choice}"));
        let gateway = Gateway::start(&Store::Embedded, &[route]);
        let forged = Request::post("/webhooks/stripe", stripe_body("evt_forged"));
        gateway.send(&forged).expect(status, "unauthorized");
        assert_eq!(upstream.count(), 0, "{choice}");
        gateway.wait_for_metric("hookonce_auth_failures_total{reason=\"missing\"}", 1.0);
    }
}

#[test]
fn generic_routes_verify_in_every_form() {
    let body = r#"{"id":"evt_generic"}"#;
    let sha256 = provider::hmac_sha256_hex(SECRET, body.as_bytes());
    let sha256_in_base64 = {
        let bytes = data_encoding::HEXLOWER.decode(sha256.as_bytes()).expect("hexadecimal");
        data_encoding::BASE64.encode(&bytes)
    };
    let prefixed = format!("sha256={sha256}");
    let post = |target: &str| Request::post(target, body);
    let cases = [
        (
            "{token: 'header:X-Token'}",
            post("/webhooks/generic").header("X-Token", SECRET),
            post("/webhooks/generic").header("X-Token", "wrong"),
        ),
        (
            "{token: 'query:token'}",
            post(&format!("/webhooks/generic?token={SECRET}")),
            post("/webhooks/generic?token=wrong"),
        ),
        (
            "{hmac: sha256, signature: 'header:X-Signature', encoding: hex, prefix: 'sha256='}",
            post("/webhooks/generic").header("X-Signature", &prefixed),
            post("/webhooks/generic").header("X-Signature", &sha256),
        ),
        (
            "{hmac: sha256, signature: 'header:X-Signature', encoding: base64}",
            post("/webhooks/generic").header("X-Signature", &sha256_in_base64),
            Request::post("/webhooks/generic", "{}").header("X-Signature", &sha256_in_base64),
        ),
        ("off", post("/webhooks/generic"), Request::new("DELETE", "/webhooks/generic", "")),
    ];
    for (verify, good, bad) in cases {
        let upstream = Upstream::start();
        let mut route = Route::new("generic", "/webhooks/generic", "generic", upstream.address)
            .with(&format!("verify: {verify}"))
            .with("key: ['$.id']");
        if verify != "off" {
            route = route.with(&format!("secret: {SECRET}"));
        }
        let gateway = Gateway::start(&Store::Embedded, &[route]);
        let refused = gateway.send(&bad);
        assert_eq!(refused.status, if verify == "off" { 405 } else { 401 }, "{verify}");
        let answer = gateway.send(&good);
        assert_eq!((answer.status, answer.result().as_str()), (200, "first"), "{verify}");
        assert_eq!(upstream.count(), 1, "{verify}");
    }
}
