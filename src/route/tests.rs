//! Which route takes what, and which paths none may take.

use std::time::Duration;

use super::*;
use crate::config::*;

fn route(host: Option<&str>, path: PathPattern) -> config::Route {
    config::Route {
        name: "r".to_owned(),
        host: host.map(str::to_owned),
        path,
        provider: config::Provider {
            kind: ProviderKind::None,
            secrets: Vec::new(),
            verify: Verify::Preset,
            key: None,
            events: None,
        },
        upstream: Upstream {
            tls: false,
            host: "127.0.0.1".to_owned(),
            port: 80,
            host_header: None,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
        },
        namespace: "r".to_owned(),
        window: Duration::from_secs(60),
        lease: Duration::from_secs(30),
        in_flight: InFlight { wait: Duration::from_secs(3), then: InFlightThen::RetryLater },
        unknown_outcome: UnknownOutcome::Redeliver,
        store_down: StoreDown::Refuse,
        mode: Mode::Enforce,
        on_auth_failure: OnAuthFailure::Reject,
        max_body: 4 << 20,
        duplicate_response: DuplicateResponse { status: 200, body: String::new(), content_type: String::new() },
        batch: BatchMode::Whole,
        batch_concurrency: 8,
        pass_methods: Vec::new(),
        unknown_statuses: vec![502, 504],
    }
}

#[test]
fn the_host_then_the_exact_path_then_the_longest_prefix() {
    let exact = |path: &str| PathPattern::Exact(path.to_owned());
    let prefix = |path: &str| PathPattern::Prefix(path.to_owned());
    let routes = [
        route(None, prefix("")),
        route(None, exact("/webhooks/stripe")),
        route(None, prefix("/webhooks")),
        route(None, prefix("/webhooks/evo")),
        route(Some("pay.example.com"), prefix("")),
    ];
    for (host, path, expected) in [
        (None, "/", Some(0)),
        (None, "/other", Some(0)),
        (None, "/webhooks/stripe", Some(1)),
        (None, "/webhooks/stripe/", Some(2)),
        (None, "/webhooks", Some(2)),
        (None, "/webhooks/", Some(2)),
        (None, "/webhookss", Some(0)),
        (None, "/webhooks/evo", Some(3)),
        (None, "/webhooks/evo/messages-upsert", Some(3)),
        (None, "/webhooks/evolution", Some(2)),
        (Some("other.example.com"), "/webhooks/stripe", Some(1)),
        (Some("pay.example.com"), "/webhooks/stripe", Some(4)),
        (Some("PAY.example.com:8443"), "/webhooks/stripe", Some(4)),
    ] {
        assert_eq!(find(&routes, host, path), Ok(expected), "{host:?} {path}");
    }
    assert_eq!(find(&routes[1..2], None, "/elsewhere"), Ok(None));
}

#[test]
fn a_path_that_another_server_may_read_differently_is_refused() {
    let routes = [route(None, PathPattern::Prefix(String::new()))];
    for path in [
        "//webhooks",
        "/webhooks//stripe",
        "/a/../webhooks",
        "/a/..",
        "/./webhooks",
        "/a/.",
        "/a%2Fb",
        "/a%2fb",
        "/a%5Cb",
        "/%2e%2e/webhooks",
        "/%77ebhooks",
        "/a%",
        "/a%2",
        "/a%zz",
        "/caf%c3%a9",
        "/a\\b",
        "/a b",
        "/a\u{7f}",
        "webhooks",
        "",
    ] {
        assert_eq!(find(&routes, None, path), Err(NotNormal), "`{path}` was taken");
    }
    for path in ["/", "/a/", "/a.b/..c", "/caf%C3%A9", "/a%20b", "/a%3Ab", "/a~b-c_d"] {
        assert_eq!(find(&routes, None, path), Ok(Some(0)), "`{path}` was refused");
    }
}

#[test]
fn a_path_that_only_spells_a_keyed_routes_path_otherwise_is_known() {
    let mut stripe = route(None, PathPattern::Exact("/webhooks/stripe".to_owned()));
    stripe.provider.kind = ProviderKind::Stripe;
    let mut evolution = route(None, PathPattern::Prefix("/evo".to_owned()));
    evolution.provider.kind = ProviderKind::Evolution;
    let routes = [stripe, evolution, route(None, PathPattern::Prefix(String::new()))];
    for path in ["/webhooks/stripe/", "/Webhooks/STRIPE", "/webhooks;a=1/stripe;b", "/EVO/messages-upsert", "/Evo/"] {
        assert!(spelled_otherwise(&routes, None, path).is_some(), "`{path}` goes around its route");
    }
    for path in ["/", "/webhooks", "/webhooks/stripes", "/webhooks/stripe/status", "/evolution", "/evo/health"] {
        assert!(spelled_otherwise(&routes, None, path).is_none(), "`{path}` is another path");
    }
}

#[test]
fn a_keyed_routes_path_under_another_host_is_known_too() {
    let mut stripe = route(Some("hooks.example.com"), PathPattern::Exact("/webhooks/stripe".to_owned()));
    stripe.provider.kind = ProviderKind::Stripe;
    let routes = [stripe, route(None, PathPattern::Prefix(String::new()))];
    assert_eq!(find(&routes, Some("hooks.example.com."), "/webhooks/stripe"), Ok(Some(0)));
    for host in [None, Some("10.0.0.1:8080"), Some("other.example.com")] {
        assert_eq!(find(&routes, host, "/webhooks/stripe"), Ok(Some(1)), "{host:?}");
        assert!(spelled_otherwise(&routes, host, "/webhooks/stripe").is_some(), "{host:?}");
        assert!(spelled_otherwise(&routes, host, "/elsewhere").is_none(), "{host:?}");
    }
}
