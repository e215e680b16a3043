//! `routes`: names, paths, upstreams, times, answers, and what is right for which provider.

use std::time::Duration;

use super::{config, each_gives_these_problems, file, parse_text};
use crate::config::{BatchMode, OnAuthFailure, PathPattern};

#[test]
fn names_and_namespaces_are_plain_words() {
    let name: &[&str] = &["routes[0].name: must be made of `a` to `z`, `0` to `9` and `-`"];
    let word: &[&str] = &["routes[0].namespace: must be made of letters, digits, `.`, `_` and `-`"];
    each_gives_these_problems(&[
        ("stripe", "name: Stripe", name),
        ("stripe", "name: a_b", name),
        ("stripe", "name: ''", name),
        ("stripe", "name: shop-2", &[]),
        ("stripe", "namespace: ''", word),
        ("stripe", "namespace: 'a:b'", word),
        ("stripe", "namespace: Old_Name.2", &[]),
    ]);
    assert_eq!(config("stripe", "name: shop").routes[0].namespace, "shop");
}

#[test]
fn paths_are_exact_or_a_prefix() {
    for (path, expected) in [
        ("/", PathPattern::Exact("/".to_owned())),
        ("/a/b/", PathPattern::Exact("/a/b/".to_owned())),
        ("/evo/*", PathPattern::Prefix("/evo".to_owned())),
        ("/*", PathPattern::Prefix(String::new())),
        ("/caf%C3%A9/a.b~c", PathPattern::Exact("/caf%C3%A9/a.b~c".to_owned())),
        ("/.well-known/x", PathPattern::Exact("/.well-known/x".to_owned())),
    ] {
        assert_eq!(config("stripe", &format!("path: '{path}'")).routes[0].path, expected, "for {path}");
    }
    let start = "must start with `/`";
    let star = "`*` can only stand at the end, after a `/`";
    let slashes = "must be normalised: without `//`, `/./` and `/../`";
    let url = "must be a path as it stands in a URL: no query, and other characters percent-encoded";
    let encoded = "must be normalised: `%` encodes only what has to be, in capitals, and never a slash";
    for (path, message) in [
        ("", start),
        ("webhooks", start),
        ("*", start),
        ("http://x/a", start),
        ("/evo*", star),
        ("/*/a", star),
        ("/a/**", star),
        ("//", slashes),
        ("/a//b", slashes),
        ("/a//*", slashes),
        ("//*", slashes),
        ("/a/./b", slashes),
        ("/a/..", slashes),
        ("/a/../*", slashes),
        ("/a?b", url),
        ("/a#b", url),
        ("/a b", url),
        ("/café", url),
        ("/a\\b", url),
        ("/a%2Fb", encoded),
        ("/a%2fb", encoded),
        ("/a/%2E%2E/b", encoded),
        ("/%61", encoded),
        ("/%c3", encoded),
        ("/%", encoded),
        ("/%4", encoded),
        ("/%zz", encoded),
    ] {
        let problems = parse_text(&file("stripe", &format!("path: '{path}'"))).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(vec![format!("routes[0].path: {message}")]), "for {path}");
    }
}

#[test]
fn hosts_are_names_without_port() {
    assert_eq!(config("stripe", "host: Hooks.Example.com").routes[0].host.as_deref(), Some("hooks.example.com"));
    assert_eq!(config("stripe", "host: '[::1]'").routes[0].host.as_deref(), Some("[::1]"));
    let host: &[&str] = &["routes[0].host: must be one host, without a scheme, a port and `*`"];
    each_gives_these_problems(&[
        ("stripe", "host: ''", host),
        ("stripe", "host: a.example:443", host),
        ("stripe", "host: '*.example'", host),
        ("stripe", "host: https://a.example", host),
    ]);
}

#[test]
fn two_routes_differ_in_name_and_in_host_or_path() {
    let routes = |second: &str| {
        let first = "{name: a, path: /a, host: x.example, provider: none, upstream: http://x}";
        format!("store: {{embedded: {{path: x}}}}\nroutes:\n  - {first}\n  - {{{second}, upstream: http://x}}\n")
    };
    for (second, expected) in [
        ("name: a, path: /b, provider: none", vec!["routes[1].name: is the name of `routes[0]` already"]),
        (
            "name: b, path: /a, host: X.example, provider: none",
            vec!["routes[1].path: is the path of `routes[0]` already, for the same host"],
        ),
        ("name: b, path: /a, provider: none", vec![]),
        ("name: b, path: /a/*, host: x.example, provider: none", vec![]),
    ] {
        let problems = parse_text(&routes(second)).map_or_else(|problems| problems, |_| Vec::new());
        assert_eq!(problems, expected, "for {second}");
    }
}

#[test]
fn an_upstream_is_a_place_and_nothing_more() {
    for (url, expected) in [
        ("http://127.0.0.1:3000", (false, "127.0.0.1", 3000)),
        ("http://handler/", (false, "handler", 80)),
        ("HTTPS://Handler.Example", (true, "handler.example", 443)),
        ("http://[::1]:3000", (false, "::1", 3000)),
        ("http://does-not-resolve.invalid:1", (false, "does-not-resolve.invalid", 1)),
    ] {
        let route = config("stripe", &format!("upstream: '{url}'")).routes.remove(0);
        assert_eq!((route.upstream.tls, &*route.upstream.host, route.upstream.port), expected, "for {url}");
    }
    let form = "such as `http://127.0.0.1:3000`";
    let scheme = format!("must be an `http://` or `https://` URL, {form}");
    let path = "an upstream has no path of its own: the received path is kept".to_owned();
    let user = "must have no user and password: the headers are passed on as they were received".to_owned();
    let itself = "is `server.listen`: hookonce would send every delivery to itself".to_owned();
    for (url, message) in [
        ("", scheme.clone()),
        ("127.0.0.1:3000", scheme.clone()),
        ("http:127.0.0.1", scheme.clone()),
        ("ftp://x", scheme.clone()),
        ("http://", format!("must be a URL, {form} (empty host)")),
        ("http://x:99999", format!("must be a URL, {form} (invalid port number)")),
        ("http://x:0", "must have a port that can be connected to".to_owned()),
        ("http://::1:3000", format!("must be a URL, {form} (empty host)")),
        ("http://a b", format!("must be a URL without spaces and backslashes, {form}")),
        ("http://x/hooks", path.clone()),
        ("http://x?a=b", path.clone()),
        ("http://x#a", path),
        ("http://user@x", user.clone()),
        ("http://user:pass@x", user),
        ("http://127.0.0.1:8080", itself.clone()),
        ("http://localhost:8080", itself),
    ] {
        let problems = parse_text(&file("stripe", &format!("upstream: '{url}'"))).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(vec![format!("routes[0].upstream: {message}")]), "for {url}");
    }
    let route = config("stripe", "upstream: {url: http://x, host: y.example:81, connect_timeout: 2s, timeout: 1m}");
    let upstream = &route.routes[0].upstream;
    assert_eq!(upstream.host_header.as_deref(), Some("y.example:81"));
    assert_eq!((upstream.connect_timeout, upstream.timeout), (Duration::from_secs(2), Duration::from_secs(60)));
    let header: &[&str] = &["routes[0].upstream.host: must be a host, with its port where it has one"];
    each_gives_these_problems(&[
        ("stripe", "upstream: {url: http://x, host: ''}", header),
        ("stripe", "upstream: {url: http://x, host: 'a b'}", header),
        ("stripe", "upstream: {url: http://x, host: http://y}", header),
        ("stripe", "upstream: {url: http://x, host: 'u@y'}", header),
    ]);
}

#[test]
fn window_lease_and_timeout_stand_in_order() {
    each_gives_these_problems(&[
        ("generic", "window: 30s", &["routes[0].window: must be longer than the lease (30s)"]),
        ("generic", "window: 1m\nlease: 2m", &["routes[0].window: must be longer than the lease (2m)"]),
        ("generic", "window: 31s", &[]),
        ("generic", "lease: 2s", &["routes[0].lease: must be longer than the store's timeout (2s)"]),
        (
            "generic",
            "store: {redis: {url: redis://x, timeout: 40s}}",
            &["routes[0].lease: must be longer than the store's timeout (40s)"],
        ),
        ("generic", "lease: 3000ms", &[]),
        ("generic", "lease: 999ms", &["routes[0].lease: must be at least 1s"]),
        // What cannot be read is not judged a second time.
        (
            "generic",
            "window: 1s\nlease: never",
            &["routes[0].lease: must be a duration, such as `500ms`, `30s` or `7d`"],
        ),
        (
            "generic",
            "max_body: 65MiB",
            &["routes[0].max_body: must not be more than `server.body_budget`, which holds all bodies together"],
        ),
        ("generic", "max_body: 65MiB\nserver.body_budget: 65MiB", &[]),
    ]);
}

#[test]
fn a_duplicate_is_answered_with_a_2xx() {
    let status: &[&str] = &["routes[0].duplicate_response.status: must be a whole number from 200 to 299"];
    each_gives_these_problems(&[
        ("stripe", "duplicate_response: {status: 199}", status),
        ("stripe", "duplicate_response: {status: 302}", status),
        ("stripe", "duplicate_response: {status: ok}", status),
        (
            "stripe",
            "duplicate_response: {status: 204, body: x}",
            &["routes[0].duplicate_response.body: must be empty: an answer of 204 has no body"],
        ),
        (
            "stripe",
            "duplicate_response: {content_type: json}",
            &["routes[0].duplicate_response.content_type: must be a media type, such as `application/json`"],
        ),
        (
            "stripe",
            "duplicate_response: {content_type: \"a/b\\r\\nx: y\"}",
            &["routes[0].duplicate_response.content_type: must be a media type, such as `application/json`"],
        ),
    ]);
    assert_eq!(config("stripe", "duplicate_response: {status: 204}").routes[0].duplicate_response.body, "");
    assert_eq!(config("stripe", "duplicate_response: {body: ''}").routes[0].duplicate_response.body, "");
}

#[test]
fn lists_of_statuses_and_methods_hold_only_such() {
    let status = "must be a whole number from 300 to 599";
    let taken = "is taken anyway: list only other methods";
    for (changes, expected) in [
        (
            "unknown_statuses: [200, 502, 299, 600, x]",
            vec![
                format!("routes[0].unknown_statuses[0]: {status}"),
                format!("routes[0].unknown_statuses[2]: {status}"),
                format!("routes[0].unknown_statuses[3]: {status}"),
                format!("routes[0].unknown_statuses[4]: {status}"),
            ],
        ),
        ("unknown_statuses: 502", vec!["routes[0].unknown_statuses: must be a list".to_owned()]),
        (
            "pass_methods: [PUT, GET, POST, HEAD, OPTIONS]",
            vec![
                format!("routes[0].pass_methods[1]: {taken}"),
                format!("routes[0].pass_methods[2]: {taken}"),
                format!("routes[0].pass_methods[3]: {taken}"),
                format!("routes[0].pass_methods[4]: {taken}"),
            ],
        ),
        (
            "pass_methods: [put, 'A B', '', CONNECT]",
            vec![
                "routes[0].pass_methods[0]: must be a method in capitals, such as `PUT`".to_owned(),
                "routes[0].pass_methods[1]: must be a method in capitals, such as `PUT`".to_owned(),
                "routes[0].pass_methods[2]: must be a method in capitals, such as `PUT`".to_owned(),
                "routes[0].pass_methods[3]: cannot be passed on".to_owned(),
            ],
        ),
    ] {
        let problems = parse_text(&file("stripe", changes)).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(expected), "for {changes}");
    }
    let route = config("stripe", "unknown_statuses: []\npass_methods: [PUT, PURGE]").routes.remove(0);
    assert_eq!((route.unknown_statuses, route.pass_methods), (vec![], vec!["PUT".to_owned(), "PURGE".to_owned()]));
}

#[test]
fn suppress_and_forward_exclude_each_other() {
    each_gives_these_problems(&[
        (
            "stripe",
            "unknown_outcome: suppress\nstore_down: forward",
            &["routes[0].unknown_outcome: `suppress` cannot be kept together with `store_down: forward`, which sends \
             without a claim"],
        ),
        ("stripe", "unknown_outcome: suppress", &[]),
    ]);
}

#[test]
fn defaults_are_the_providers() {
    let day = Duration::from_secs(24 * 60 * 60);
    let mebibyte = 1 << 20;
    for (provider, window, max_body, on_auth_failure, batch) in [
        ("stripe", 7, 4, OnAuthFailure::Reject, BatchMode::Whole),
        ("hotmart", 7, 4, OnAuthFailure::Discard, BatchMode::Whole),
        ("meta", 8, 4, OnAuthFailure::Reject, BatchMode::Split),
        ("evolution", 7, 32, OnAuthFailure::RetryLater, BatchMode::Whole),
        ("marcha", 7, 4, OnAuthFailure::Reject, BatchMode::Whole),
        ("generic", 15, 4, OnAuthFailure::Reject, BatchMode::Whole),
    ] {
        let route = config(provider, "").routes.remove(0);
        let expected = (window * day, max_body * mebibyte, on_auth_failure, batch);
        assert_eq!((route.window, route.max_body, route.on_auth_failure, route.batch), expected, "for {provider}");
        assert_eq!(route.provider.kind.label(), provider);
    }
}

#[test]
fn a_route_without_claims_says_nothing_about_them() {
    let keys = [
        "namespace: a",
        "secret: s",
        "verify: off",
        "key: [$.id]",
        "events: $.a",
        "window: 7d",
        "lease: 30s",
        "in_flight: {}",
        "unknown_outcome: redeliver",
        "store_down: refuse",
        "mode: enforce",
        "on_auth_failure: reject",
        "max_body: 4MiB",
        "duplicate_response: {}",
        "batch: whole",
        "batch_concurrency: 8",
        "pass_methods: []",
        "unknown_statuses: []",
    ];
    for key in keys {
        let (name, _) = key.split_once(':').expect("each has a value");
        let message = "says nothing with `provider: none`, which streams everything through";
        let problems = parse_text(&file("none", key)).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(vec![format!("routes[0].{name}: {message}")]), "for {key}");
    }
    let loaded = parse_text(&file("none", "host: a.example")).expect("host is about the route alone");
    assert_eq!(loaded.warnings, []);
}
