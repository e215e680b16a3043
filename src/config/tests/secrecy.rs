//! Secrets never show: not in a debug print, and not in a problem, wherever in the file they were put by mistake.

use proptest::prelude::*;

use super::{file, parse_text};
use crate::config::parse;

const MARK: &str = "s3cr3t";

#[test]
fn a_debug_print_of_a_configuration_shows_no_secret() {
    let text = file(
        "generic",
        "secret: [s3cr3t-1, '${SECRET:-s3cr3t-2}']
         store: {redis: {url: 'redis://user@x:1', password: s3cr3t-3}}",
    );
    let shown = format!("{:?}", parse_text(&text).expect("a good file"));
    assert!(shown.contains("(secret)") && !shown.contains(MARK), "{shown}");
    let text = file("stripe", "store: {redis: {url: 'redis://:s3cr3t@x:1'}}");
    let shown = format!("{:?}", parse_text(&text).expect("a good file"));
    assert!(shown.contains("(secret)") && !shown.contains(MARK), "{shown}");
}

/// Where a value can stand: each with a place for it.
const PLACES: &[&str] = &[
    "name: {}",
    "host: {}",
    "path: {}",
    "path: /{}",
    "provider: {}",
    "upstream: {}",
    "upstream: 'http://u:{}@x'",
    "upstream: 'http://x/{}'",
    "upstream: 'http://x:{}'",
    "upstream: {url: {}}",
    "upstream: {url: http://x, host: {}}",
    "upstream: {url: http://x, timeout: {}}",
    "namespace: {}",
    "secret: {file: [{}]}",
    "secret: [[{}]]",
    "window: {}",
    "lease: {}",
    "in_flight: {}",
    "in_flight: {wait: {}}",
    "in_flight: {then: {}}",
    "unknown_outcome: {}",
    "store_down: {}",
    "mode: {}",
    "on_auth_failure: {}",
    "max_body: {}",
    "duplicate_response: {status: {}}",
    "duplicate_response: {content_type: {}}",
    "batch: {}",
    "batch_concurrency: {}",
    "pass_methods: [{}]",
    "unknown_statuses: [{}]",
    "verify: {}",
    "verify: {token: {}}",
    "verify: {token: 'header:{}'}",
    "verify: {hmac: {}}",
    "verify: {hmac: sha256, signature: {}, encoding: {}}",
    "verify: {jwt: {}, leeway: {}}",
    "key: [{}]",
    "key: ['$.{}']",
    "key: [\"'{}'\"]",
    "events: {}",
    "store: {redis: {url: {}}}",
    "store: {redis: {url: 'redis://:{}@x/y'}}",
    "store: {redis: {url: 'http://:{}@x'}}",
    "store: {redis: {url: 'redis://x:{}'}}",
    "store: {redis: {url: 'redis://:{}@x', password: {}}}",
    "store: {redis: {url: 'redis://:{}@x:port'}}",
    "store: {redis: {url: redis://x, prefix: {}, persistence: {}, timeout: {}}}",
    "store: {}",
    "server.listen: {}",
    "server.threads: {}",
    "server.log: {}",
    "server.log: {level: {}}",
    "server.body_budget: {}",
    "server.body_timeout: {}",
];

#[test]
fn no_problem_and_no_warning_quotes_a_value() {
    for provider in ["stripe", "meta", "generic", "none"] {
        for place in PLACES {
            for value in ["s3cr3t", "\"s3cr3t here:\\n $.\"", "${SECRET}", "!s3cr3t s3cr3t"] {
                let text = file(provider, &place.replace("{}", value));
                let environment = |name: &str| (name == "SECRET").then(|| MARK.to_owned());
                let said = match parse(&text, &environment) {
                    Ok(loaded) => format!("{:?}", loaded.warnings),
                    Err(problems) => format!("{problems} {problems:?}"),
                };
                assert!(!said.contains(MARK), "for {place} with {value}: {said}");
            }
        }
    }
}

/// A secret without quotes can be YAML of its own.
#[test]
fn no_syntax_error_quotes_a_value() {
    for value in [
        "*s3cr3t",
        "&s3cr3t",
        "@s3cr3t",
        "%s3cr3t",
        "`s3cr3t",
        "[s3cr3t",
        "{s3cr3t",
        "s3cr3t: x: y",
        "\"s3cr3t",
        "'s3cr3t",
        "\"\\s3cr3t\"",
        "!<s3cr3t",
        "|s3cr3t",
        ">s3cr3t",
    ] {
        let problems = parse_text(&file("stripe", &format!("secret: {value}"))).map(|_| ());
        assert!(!format!("{problems:?}").contains(MARK), "for {value}: {problems:?}");
    }
}

proptest! {
    /// Whatever a value is, reading ends with a result.
    #[test]
    fn no_value_ends_the_reading(place in prop::sample::select(PLACES), value in "\\PC{0,24}") {
        let quoted = format!("'{}'", value.replace('\'', "''"));
        let _ = parse_text(&file("generic", &place.replace("'{}'", "{}").replace("{}", &quoted)));
    }
}
