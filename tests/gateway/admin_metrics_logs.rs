//! What an operator sees: health, metrics and the log.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Request, SECRET};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Upstream};

#[test]
fn every_series_is_there_at_zero_from_the_start() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address), Route::generic(upstream.address)]);
        for route in ["stripe", "generic"] {
            for result in [
                "first",
                "duplicate",
                "in-flight",
                "unkeyed",
                "unauthorized",
                "too-large",
                "store-unavailable",
                "refused",
            ] {
                let labels = format!("route=\"{route}\",provider=\"{route}\",result=\"{result}\"");
                assert_eq!(gateway.metric(&format!("hookonce_deliveries_total{{{labels}}}")), 0.0);
                let labels = format!("route=\"{route}\",result=\"{result}\"");
                assert_eq!(gateway.metric(&format!("hookonce_delivery_seconds_count{{{labels}}}")), 0.0);
            }
            for outcome in ["first", "duplicate", "in_flight", "unkeyed"] {
                let labels = format!("route=\"{route}\",provider=\"{route}\",outcome=\"{outcome}\"");
                assert_eq!(gateway.metric(&format!("hookonce_events_total{{{labels}}}")), 0.0);
            }
            for outcome in ["delivered", "refused", "not_sent", "unknown"] {
                let labels = format!("route=\"{route}\",outcome=\"{outcome}\"");
                assert_eq!(gateway.metric(&format!("hookonce_exchanges_total{{{labels}}}")), 0.0);
            }
            for name in ["duplicates_total", "exchange_seconds_count", "in_flight"] {
                assert_eq!(gateway.metric(&format!("hookonce_{name}{{route=\"{route}\"}}")), 0.0, "{name}");
            }
        }
        for reason in ["missing", "malformed", "mismatch", "stale"] {
            let series = format!("hookonce_auth_failures_total{{route=\"stripe\",reason=\"{reason}\"}}");
            assert_eq!(gateway.metric(&series), 0.0);
        }
        for operation in ["claim", "settle", "release", "renew", "promote"] {
            assert_eq!(gateway.metric(&format!("hookonce_store_errors_total{{operation=\"{operation}\"}}")), 0.0);
            gateway.metric(&format!("hookonce_store_seconds_count{{operation=\"{operation}\"}}"));
        }
        for name in ["leases_lost_total", "store_losses_total", "panics_total", "unsettled"] {
            assert_eq!(gateway.metric(&format!("hookonce_{name}")), 0.0, "{name}");
        }
        gateway.wait_for_metric("hookonce_store_up", 1.0);
        gateway.wait_for_metric("hookonce_store_durable", 1.0);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(gateway.metric(&format!("hookonce_build_info{{version=\"{version}\"}}")), 1.0);
    });
}

#[test]
fn deliveries_events_and_exchanges_are_counted() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        upstream.script([Answer::status(500)]);
        let delivery = provider::stripe("evt_counted");
        for (status, result) in [(500, "first"), (200, "first"), (200, "duplicate"), (200, "duplicate")] {
            gateway.send(&delivery).expect(status, result);
        }
        for (series, value) in [
            ("hookonce_deliveries_total{result=\"first\"}", 2.0),
            ("hookonce_deliveries_total{result=\"duplicate\"}", 2.0),
            ("hookonce_delivery_seconds_count{result=\"duplicate\"}", 2.0),
            ("hookonce_events_total{outcome=\"first\"}", 2.0),
            ("hookonce_events_total{outcome=\"duplicate\"}", 2.0),
            ("hookonce_duplicates_total{route=\"stripe\",provider=\"stripe\"}", 2.0),
            ("hookonce_exchanges_total{outcome=\"refused\"}", 1.0),
            ("hookonce_exchanges_total{outcome=\"delivered\"}", 1.0),
            ("hookonce_exchange_seconds_count{route=\"stripe\"}", 2.0),
            ("hookonce_store_seconds_count{operation=\"claim\"}", 4.0),
            ("hookonce_in_flight", 0.0),
        ] {
            gateway.wait_for_metric(series, value);
        }
    });
}

#[test]
fn health_and_readiness_are_told_and_nothing_else_is() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(gateway.admin(path).status, 200, "{path}");
        }
        assert!(gateway.admin("/readyz").text().contains("store"));
        assert_eq!(gateway.admin("/").status, 404);
        assert_eq!(gateway.admin("/webhooks/stripe").status, 404);
        let answer = gateway.send(&Request::new("GET", "/metrics", ""));
        assert_eq!(answer.status, 404, "the admin paths are not for providers");
    });
}

#[test]
fn readiness_follows_the_store_where_the_configuration_says_so() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address)];
    let gateway = Gateway::start_with(&store, &["readiness: store"], &routes);
    let redis = store.as_redis().expect("Redis");
    redis.kill();
    let not_ready = crate::support::eventually("not ready", || {
        let answer = gateway.admin("/readyz");
        (answer.status == 503).then_some(answer)
    });
    assert!(not_ready.text().contains("store"));
    assert_eq!(gateway.admin("/healthz").status, 200);
    redis.start_again();
    crate::support::eventually("ready again", || (gateway.admin("/readyz").status == 200).then_some(()));
}

#[test]
fn each_delivery_is_a_line_that_tells_why_and_no_secret() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let delivery = provider::stripe("evt_logged");
        gateway.send(&delivery).expect(200, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        gateway.send(&Request::post("/webhooks/stripe", "{}")).expect(401, "unauthorized");
        gateway.wait_for_log(&["stripe", "first", "stripe:evt_logged", "200"]);
        gateway.wait_for_log(&["stripe", "duplicate", "stripe:evt_logged", "seen"]);
        gateway.wait_for_log(&["stripe", "unauthorized"]);
        let log = gateway.log();
        for secret in [SECRET, "v1=", "amount", "caf"] {
            assert!(!log.contains(secret), "`{secret}` is in the log:\n{log}");
        }
    });
}

#[test]
fn the_log_can_be_json_and_can_leave_out_what_is_ordinary() {
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address)];
    let server = ["log: {level: info, format: json, deliveries: exceptions}"];
    let gateway = Gateway::start_with(&Store::Embedded, &server, &routes);
    let delivery = provider::stripe("evt_ordinary");
    gateway.send(&delivery).expect(200, "first");
    gateway.send(&delivery).expect(200, "duplicate");
    upstream.script([Answer::status(500)]);
    gateway.send(&provider::stripe("evt_exception")).expect(500, "first");
    gateway.wait_for_log(&["evt_exception"]);
    let log = gateway.log();
    assert!(!log.contains("evt_ordinary"), "{log}");
    for line in log.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok_and(|value| value.is_object()), "{line}");
    }
}
