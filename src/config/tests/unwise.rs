//! Warnings: what works, but seldom as one wants it.

use super::{Row, each_gives_these_warnings, file, lines, parse_text};

#[test]
fn a_plain_route_of_each_provider_warns_of_nothing() {
    for provider in ["stripe", "hotmart", "meta", "evolution", "marcha", "generic", "none"] {
        each_gives_these_warnings(&[(provider, "", &[]), (provider, "store: {redis: {url: redis://x}}", &[])]);
    }
    each_gives_these_warnings(&[("stripe", "unknown_outcome: suppress", &[])]);
}

#[test]
fn what_lets_duplicates_or_strangers_in_is_said() {
    let strangers = "routes[0].verify: `off` takes deliveries from anyone: who knows the address can send events, and use \
                     up the keys of true ones";
    let forgets: &[&str] =
        &["store.redis.persistence: a Redis that forgets lets duplicates through, and nothing stops \
                              it from that here"];
    let alone: &[&str] = &["store.embedded: is not shared: a second replica would know nothing of this one's events \
                            (more than one needs `redis`)"];
    let rows: &[Row] = &[
        (
            "stripe",
            "in_flight: {then: accept}",
            &["routes[0].in_flight.then: `accept` loses an event whose first copy fails after this answer"],
        ),
        (
            "stripe",
            "store_down: forward",
            &["routes[0].store_down: `forward` lets duplicates through while the store is down"],
        ),
        (
            "stripe",
            "mode: observe",
            &["routes[0].mode: `observe` forwards every duplicate: it only tells what would have been done"],
        ),
        ("stripe", "store: {redis: {url: redis://x, persistence: warn}}", forgets),
        ("stripe", "store: {redis: {url: redis://x, persistence: off}}", forgets),
        ("stripe", "server.listen: 0.0.0.0:8080", alone),
        ("stripe", "server.listen: 0.0.0.0:8080\nstore: {redis: {url: redis://x}}", &[]),
        ("stripe", "server.listen: '[::1]:8080'", &[]),
    ];
    each_gives_these_warnings(rows);
    for (changes, expected) in [
        ("verify: off\n!secret", vec![strangers]),
        ("verify: off", vec![strangers, "routes[0].secret: is not used while `verify` is `off`"]),
    ] {
        let loaded = parse_text(&file("stripe", changes)).expect(changes);
        assert_eq!(lines(&loaded.warnings), expected, "for {changes}");
    }
    // There the secret signs the parts.
    let loaded = parse_text(&file("meta", "verify: off")).expect("a secret to sign with");
    assert_eq!(lines(&loaded.warnings), [strangers]);
}

#[test]
fn times_that_do_not_fit_the_provider_are_said() {
    each_gives_these_warnings(&[
        (
            "stripe",
            "window: 2d",
            &["routes[0].window: is shorter than stripe repeats a delivery (3days): later copies are sent on"],
        ),
        ("stripe", "window: 3d", &[]),
        (
            "meta",
            "window: 6d",
            &["routes[0].window: is shorter than meta repeats a delivery (7days): later copies are sent on"],
        ),
        (
            "evolution",
            "window: 29m",
            &["routes[0].window: is shorter than evolution repeats a delivery (30m): later copies are sent on"],
        ),
        (
            "evolution",
            "upstream: {url: http://x, timeout: 31s}",
            &["routes[0].upstream.timeout: is longer than evolution waits for an answer (30s), so it will repeat"],
        ),
        ("evolution", "upstream: {url: http://x, timeout: 30s}", &[]),
        ("generic", "window: 1h", &[]),
    ]);
}

#[test]
fn keys_that_no_repeated_delivery_will_match_are_said() {
    let transport =
        "routes[0].key[1]: belongs to one delivery, not to the event: a repeated delivery would get another key";
    for header in [
        "X-Request-Id",
        "traceparent",
        "X-Amzn-Trace-Id",
        "CF-Ray",
        "Date",
        "Stripe-Signature",
        "X-Hub-Signature-256",
        "X-Hub-Signature",
        "X-Retry",
        "X-Retry-Count",
        "webhook-timestamp",
        "svix-signature",
        "X-Slack-Request-Timestamp",
        "X-Slack-Retry-Num",
        "X-Forwarded-For",
        "User-Agent",
        "Authorization",
    ] {
        let loaded = parse_text(&file("generic", &format!("key: [$.id, header:{header}]"))).expect(header);
        assert_eq!(lines(&loaded.warnings), [transport], "for {header}");
    }
    let time = "routes[0].key[1]: looks like a time or a counter: where a repeated delivery has another one, it gets \
                another key (`hookonce diff` compares two deliveries)";
    for path in [
        "$.created",
        "$.created_at",
        "$.data.createdAt",
        "\"$['timestamp']\"",
        "$.sent_at",
        "$.date_time",
        "$.attempt",
        "$.delivery_attempt",
        "$.pending_webhooks",
        "'$.updated_at?'",
    ] {
        let loaded = parse_text(&file("generic", &format!("key: [$.id, {path}]"))).expect(path);
        assert_eq!(lines(&loaded.warnings), [time], "for {path}");
    }
    for harmless in ["header:webhook-id", "header:X-GitHub-Delivery", "$.created.id", "$.order.status", "query:date"] {
        let loaded = parse_text(&file("generic", &format!("key: [$.id, {harmless}]"))).expect(harmless);
        assert_eq!(lines(&loaded.warnings), [""; 0], "for {harmless}");
    }
}

#[test]
fn two_routes_with_one_namespace_are_said() {
    let route = |name: &str, more: &str| {
        format!("  - {{name: {name}, path: /{name}, provider: stripe, secret: s, upstream: http://x{more}}}\n")
    };
    let text =
        |more: &str| format!("store: {{redis: {{url: redis://x}}}}\nroutes:\n{}{}", route("a", ""), route("b", more));
    let loaded = parse_text(&text(", namespace: a")).expect("it may be meant");
    let expected =
        "routes[1].namespace: is the one of `routes[0]` too: an event that reaches both is sent on only once";
    assert_eq!(lines(&loaded.warnings), [expected]);
    assert_eq!(parse_text(&text("")).expect("two routes").warnings, []);
}

#[test]
fn under_suppress_a_shared_namespace_has_one_window_and_one_lease() {
    let text = |second: &str| {
        format!(
            "store: {{redis: {{url: redis://x}}}}\nroutes:\n  - {{name: a, path: /a, provider: stripe, secret: s, upstream: \
             'http://h', unknown_outcome: suppress}}\n  - {{name: b, path: /b, provider: stripe, secret: s, upstream: \
             'http://h', namespace: a{second}}}\n"
        )
    };
    assert!(parse_text(&text("")).is_ok());
    let problem = "routes[1].namespace: is shared with `routes[0]`: under `suppress` both must have the same `window` and \
                   `lease`";
    for second in [", window: 8d", ", lease: 20s"] {
        let problems = parse_text(&text(second)).expect_err("a living sender could be taken for a dead one");
        assert_eq!(problems, [problem], "{second}");
    }
}
