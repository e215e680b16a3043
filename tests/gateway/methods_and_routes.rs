//! What is no event: handshakes, other methods, and paths that no route takes.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line, Request};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Upstream};

#[test]
fn get_head_and_options_are_streamed_through_each_time() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        upstream.otherwise(Answer::with_body(200, b"1158201444"));
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let target = "/webhooks/stripe?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=a%20b";
        for (count, method) in (1..).zip(["GET", "GET", "OPTIONS"]) {
            let answer = gateway.send(&Request::new(method, target, ""));
            assert_eq!((answer.status, answer.text().as_str()), (200, "1158201444"), "{method}");
            assert_eq!(answer.header("hookonce-result"), None, "{method}");
            assert_eq!(upstream.wait_for(count).head.start_line(), format!("{method} {target} HTTP/1.1"));
        }
        upstream.script([Answer::bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")]);
        let answer = gateway.send(&Request::new("HEAD", target, ""));
        assert_eq!((answer.status, answer.header("content-length").as_deref()), (200, Some("10")));
        assert_eq!(answer.header("hookonce-result"), None);
        assert_eq!(upstream.count(), 4);
        if let Some(redis) = store.as_redis() {
            assert_eq!(redis.keys(), [""; 0]);
        }
        upstream.script([Answer::with_body(403, b"no")]);
        assert_eq!(gateway.send(&Request::new("GET", target, "")).status, 403);
    });
}

#[test]
fn other_methods_are_405_unless_the_route_passes_them() {
    let upstream = Upstream::start();
    let routes = [
        Route::stripe(upstream.address),
        Route::new("passing", "/passing", "generic", upstream.address)
            .with("verify: off")
            .with("key: ['$.id']")
            .with("pass_methods: [PUT]"),
    ];
    let gateway = Gateway::start(&Store::Embedded, &routes);
    for method in ["PUT", "PATCH", "DELETE", "PROPFIND"] {
        gateway.send(&Request::new(method, "/webhooks/stripe", "")).expect(405, "refused");
    }
    for header in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
        gateway.send(&provider::stripe("evt_override").header(header, "DELETE")).expect(405, "refused");
    }
    gateway.send(&Request::new("DELETE", "/passing", "")).expect(405, "refused");
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.send(&Request::new("PUT", "/passing", "")).status, 200);
    assert_eq!(upstream.wait_for(1).head.start_line(), "PUT /passing HTTP/1.1");
}

#[test]
fn what_no_route_takes_is_404() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    for target in
        ["/", "/webhooks", "/webhooks/stripe/", "/webhooks/stripe/more", "/Webhooks/stripe", "/webhooks/stripes"]
    {
        let answer = gateway.send(&Request::post(target, "{}"));
        assert_eq!((answer.status, answer.result().as_str()), (404, "no-route"), "{target}");
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn paths_that_change_when_they_are_normalised_are_400() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address), Route::passed(upstream.address)]);
    for target in [
        "/webhooks//stripe",
        "/webhooks/./stripe",
        "/webhooks/../webhooks/stripe",
        "/other/../webhooks/stripe",
        "/webhooks%2fstripe",
        "/webhooks%2Fstripe",
        "/webhooks/%2e%2e/stripe",
    ] {
        let answer = gateway.send(&Request::post(target, "{}"));
        assert_eq!((answer.status, answer.result().as_str()), (400, "bad-request"), "{target}");
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn the_exact_path_goes_before_the_longest_prefix_and_the_host_before_both() {
    let upstreams: [Upstream; 4] = std::array::from_fn(|number| {
        let upstream = Upstream::start();
        upstream.otherwise(Answer::with_body(200, number.to_string().as_bytes()));
        upstream
    });
    let route = |name: &str, path: &str, number: usize| {
        Route::new(name, path, "generic", upstreams[number].address).with("verify: off").with("key: ['$.id']")
    };
    let routes = [
        Route::passed(upstreams[0].address),
        route("evo", "/evo/*", 1),
        route("exact", "/evo/one", 2),
        route("host", "/evo/one", 3).with("host: other.example.com"),
    ];
    let gateway = Gateway::start(&Store::Embedded, &routes);
    for (target, number) in
        [("/evo", "1"), ("/evo/", "1"), ("/evo/two/three", "1"), ("/evo/one", "2"), ("/evolution", "0"), ("/", "0")]
    {
        let answer = gateway.send(&Request::post(target, "{}"));
        assert_eq!((answer.status, answer.text().as_str()), (200, number), "{target}");
    }
    for (host, number) in [("other.example.com", "3"), ("OTHER.example.com:8080", "3"), ("hooks.example.com", "2")] {
        let mut line = Line::open(gateway.address());
        line.write(format!("POST /evo/one HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{{}}").as_bytes());
        assert_eq!(line.finish().text(), number, "{host}");
    }
}

#[test]
fn a_route_without_a_provider_streams_everything_through() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::passed(upstream.address)]);
    let long = "x".repeat(6_000_000);
    let requests = [
        Request::new("DELETE", "/a/b?c=d", ""),
        Request::new("PATCH", "/a", "{}"),
        Request::post("/a", r#"{"id":"evt_1"}"#),
        Request::post("/a", r#"{"id":"evt_1"}"#),
        Request::post("/long", long.clone()),
        Request::post("/long-in-chunks", long).chunked(65_000),
    ];
    for (count, request) in (1..).zip(&requests) {
        let answer = gateway.send(request);
        assert_eq!((answer.status, answer.text().as_str()), (200, "answer"));
        assert_eq!(answer.header("hookonce-result"), None);
        assert!(upstream.wait_for(count).body == request.body(), "request {count}");
    }
}

#[test]
fn the_upstream_gets_the_host_that_the_route_sets() {
    let upstream = Upstream::start();
    let route = Route::stripe(upstream.address).upstream("host: handler.internal");
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    gateway.send(&provider::stripe("evt_host")).expect(200, "first");
    assert_eq!(upstream.wait_for(1).header("host").as_deref(), Some("handler.internal"));
}

#[test]
fn nothing_goes_around_a_keyed_route_by_another_spelling_of_its_path() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address), Route::passed(upstream.address)]);
    for path in ["/webhooks/stripe/", "/Webhooks/Stripe", "/webhooks/stripe;x=1"] {
        gateway.send(&Request::post(path, "{}")).expect(404, "no-route");
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.send(&Request::post("/webhooks/stripe/status", "{}")).status, 200);
}
