//! Single values: durations, sizes and words.

use std::time::Duration;

use super::{config, each_gives_these_problems};
use crate::config::values::{duration, size};

#[test]
fn durations_have_a_unit() {
    let read = duration(Duration::from_millis(1));
    for (text, milliseconds) in [("500ms", 500), ("30s", 30_000), ("1m 30s", 90_000), ("7d", 604_800_000)] {
        assert_eq!(read(text), Ok(Duration::from_millis(milliseconds)), "for {text}");
    }
    let unit = "needs a unit, such as `500ms`, `30s` or `7d`";
    let form = "must be a duration, such as `500ms`, `30s` or `7d`";
    for (text, expected) in [
        ("30", unit),
        ("0", unit),
        ("1.5", unit),
        ("-3s", form),
        ("", form),
        ("soon", form),
        ("7 dogs", form),
        ("0s", "must be at least 1ms"),
        ("10us", "must be at least 1ms"),
        ("11years", "must be at most ten years (3650d)"),
        ("99999999999999999999s", form),
    ] {
        assert_eq!(read(text), Err(expected.to_owned()), "for {text}");
    }
}

#[test]
fn sizes_count_in_thousands_or_in_1024s() {
    for (text, bytes) in [
        ("4096", 4096),
        ("12B", 12),
        ("4kB", 4000),
        ("4KB", 4000),
        ("4KiB", 4096),
        ("4MB", 4_000_000),
        ("64MiB", 67_108_864),
        ("64 MiB", 67_108_864),
        ("2GB", 2_000_000_000),
        ("1GiB", 1_073_741_824),
    ] {
        assert_eq!(size(text), Ok(bytes), "for {text}");
    }
    for text in
        ["", "MiB", "1.5MiB", "-1", "4M", "4mib", "4 MiB more", "18446744073709551616", "18446744073709551615kB"]
    {
        let expected = "must be a size in whole bytes, such as `64MiB`, `4MB` or `4096`";
        assert_eq!(size(text), Err(expected.to_owned()), "for {text}");
    }
    assert_eq!(size("0MiB"), Err("must be at least one byte".to_owned()));
}

#[test]
fn zero_is_refused_where_it_makes_no_sense() {
    each_gives_these_problems(&[
        ("stripe", "window: 0s", &["routes[0].window: must be at least 1ms"]),
        ("stripe", "lease: 0s", &["routes[0].lease: must be at least 1s"]),
        ("stripe", "upstream: {url: http://x, timeout: 0s}", &["routes[0].upstream.timeout: must be at least 1ms"]),
        (
            "stripe",
            "upstream: {url: http://x, connect_timeout: 0s}",
            &["routes[0].upstream.connect_timeout: must be at least 1ms"],
        ),
        ("stripe", "max_body: 0", &["routes[0].max_body: must be at least one byte"]),
        ("stripe", "batch_concurrency: 0", &["routes[0].batch_concurrency: must be a whole number from 1 to 1000"]),
        ("stripe", "server.threads: 0", &["server.threads: must be a whole number from 1 to 1024"]),
        ("stripe", "server.body_budget: 0", &["server.body_budget: must be at least one byte"]),
        ("stripe", "server.body_timeout: 0s", &["server.body_timeout: must be at least 1ms"]),
        ("stripe", "store: {embedded: {path: x, timeout: 0s}}", &["store.embedded.timeout: must be at least 1ms"]),
        ("stripe", "store: {redis: {url: redis://x, timeout: 0s}}", &["store.redis.timeout: must be at least 1ms"]),
    ]);
    let config = config("stripe", "in_flight: {wait: 0s}\nserver.shutdown_grace: 0s");
    assert_eq!(config.routes[0].in_flight.wait, Duration::ZERO);
    assert_eq!(config.server.shutdown_grace, Duration::ZERO);
}

#[test]
fn words_name_their_choices() {
    each_gives_these_problems(&[
        ("stripe", "unknown_outcome: drop", &["routes[0].unknown_outcome: must be `redeliver` or `suppress`"]),
        ("stripe", "store_down: off", &["routes[0].store_down: must be `refuse` or `forward`"]),
        ("stripe", "store_down: false", &["routes[0].store_down: must be `refuse` or `forward`"]),
        ("stripe", "mode: Enforce", &["routes[0].mode: must be `enforce` or `observe`"]),
        ("stripe", "batch: cut", &["routes[0].batch: must be `split`, `filter` or `whole`"]),
        ("stripe", "in_flight: {then: 1}", &["routes[0].in_flight.then: must be `retry_later` or `accept`"]),
        (
            "stripe",
            "on_auth_failure: 401",
            &["routes[0].on_auth_failure: must be `reject`, `discard` or `retry_later`"],
        ),
        ("stripe", "server.readiness: off", &["server.readiness: must be `process` or `store`"]),
        ("stripe", "server.log: {deliveries: none}", &["server.log.deliveries: must be `all`, `exceptions` or `off`"]),
        ("stripe", "server.log: {format: xml}", &["server.log.format: must be `text` or `json`"]),
        (
            "stripe",
            "store: {redis: {url: redis://x, persistence: always}}",
            &["store.redis.persistence: must be `require`, `warn` or `off`"],
        ),
    ]);
}
