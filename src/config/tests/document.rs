//! The file as a whole: YAML, unknown keys, variables, and all mistakes at once.

use std::error::Error;
use std::path::Path;

use super::{config, each_gives_these_problems, file, parse_text};
use crate::config::load;

#[test]
fn one_bad_file_names_all_its_mistakes_at_once() {
    let text = "
server: {listen: 8080, threads: 0, log: {level: loud, colour: on}}
store: {redis: {url: http://127.0.0.1, persistance: off}}
sevrer: {}
routes:
  - {name: Stripe, path: webhooks, provider: stripe, upstream: 'http://x/y', window: 10s, lease: 500ms}
  - {name: orders, path: /orders, provider: generic, upstream: http://x, mode: watch, max_body: 0}
  - {path: /o/../rders, provider: srtipe, max_bodi: 3, window: 7}
  - {name: orders, path: /orders, provider: none, upstream: http://x, secret: s}
  - nothing
";
    let expected = [
        "server.listen: must be an address and a port, such as `0.0.0.0:8080` or `[::1]:8080`",
        "server.threads: must be a whole number from 1 to 1024",
        "server.log.level: must be `error`, `warn`, `info`, `debug` or `trace`",
        "server.log.colour: unknown key",
        "store.redis.url: must be a `redis://` or `rediss://` URL, such as `redis://127.0.0.1:6379/0`",
        "store.redis.persistance: unknown key, did you mean `persistence`?",
        "routes[0].name: must be made of `a` to `z`, `0` to `9` and `-`",
        "routes[0].path: must start with `/`",
        "routes[0].upstream: an upstream has no path of its own: the received path is kept",
        "routes[0].lease: must be at least 1s",
        "routes[0].secret: is missing: stripe proves its deliveries with one (or say `verify: off`)",
        "routes[1].max_body: must be at least one byte",
        "routes[1].mode: must be `enforce` or `observe`",
        "routes[1].verify: is missing: generic does not fix how a delivery is verified, so say it, or say `off`",
        "routes[1].key: is missing: a generic route must say what identifies an event",
        "routes[2].name: is missing",
        "routes[2].path: must be normalised: without `//`, `/./` and `/../`",
        "routes[2].provider: must be `stripe`, `hotmart`, `meta`, `evolution`, `marcha`, `generic` or `none`",
        "routes[2].upstream: is missing",
        "routes[2].window: needs a unit, such as `500ms`, `30s` or `7d`",
        "routes[2].max_bodi: unknown key, did you mean `max_body`?",
        "routes[3].secret: says nothing with `provider: none`, which streams everything through",
        "routes[3].name: is the name of `routes[1]` already",
        "routes[3].path: is the path of `routes[1]` already, for the same host",
        "routes[4]: must be a mapping of keys to values",
        "sevrer: unknown key, did you mean `server`?",
    ];
    let mut problems = parse_text(text).expect_err("nothing of it is right");
    let mut expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
    problems.sort();
    expected.sort();
    assert_eq!(problems, expected);
}

#[test]
fn a_file_that_is_no_configuration_at_all_says_so() {
    let cases: &[(&str, &[&str])] = &[
        ("", &["the file is empty: it needs at least `store` and `routes`"]),
        ("# nothing yet\n", &["the file is empty: it needs at least `store` and `routes`"]),
        ("- a\n- b\n", &["must be a mapping of keys to values"]),
        ("{}", &["store: is missing", "routes: is missing"]),
        ("store:\nroutes:\n", &["store: has no value", "routes: has no value"]),
        (
            "store: {}\nroutes: []\n",
            &["store: must hold `redis` or `embedded`", "routes: must have at least one route"],
        ),
        ("store: {embedded: {path: x}}\nroutes: {name: a}\n", &["routes: must be a list"]),
        (
            "1: x\nstore: {embedded: {path: x}}\nroutes: []\n",
            &["a key must be text: put it in quotes", "routes: must have at least one route"],
        ),
    ];
    for (text, expected) in cases {
        let problems = parse_text(text).expect_err(text);
        assert_eq!(problems, *expected, "for {text:?}");
    }
}

#[test]
fn a_syntax_error_is_one_problem_with_its_line() {
    for (text, line) in [
        ("store: [\nroutes: ]]\n", "line 2"),
        ("a:\n\tb: c\n", "line 2"),
        ("server: {}\nserver: {}\n", "duplicate entry with key \"server\""),
        ("server:\n  listen: 127.0.0.1:1\n  listen: 127.0.0.1:2\n", "line 2"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("a: *nowhere\n", "line 1"),
    ] {
        let problems = parse_text(text).expect_err(text);
        assert_eq!(problems.len(), 1, "for {text:?}: {problems:?}");
        assert!(problems[0].starts_with("the file is not valid YAML: "), "for {text:?}: {}", problems[0]);
        assert!(problems[0].contains(line), "for {text:?}: {}", problems[0]);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem_with_its_name() {
    let problems = load(Path::new("conf/nowhere.yaml")).expect_err("there is no such file");
    assert_eq!(problems.0.len(), 1);
    assert!(problems.to_string().starts_with("cannot read `conf/nowhere.yaml`: "), "{problems}");
    let _: &dyn Error = &problems;
}

#[test]
fn values_of_the_wrong_shape_are_named() {
    each_gives_these_problems(&[
        ("stripe", "window:", &["routes[0].window: has no value"]),
        ("stripe", "window: [7d]", &["routes[0].window: must be a single value"]),
        ("stripe", "window: {days: 7}", &["routes[0].window: must be a single value"]),
        ("stripe", "window: !days 7", &["routes[0].window: a YAML tag has no meaning here"]),
        ("stripe", "secret: 12345", &["routes[0].secret: must be text: put it in quotes"]),
        ("stripe", "name: true", &["routes[0].name: must be text: put it in quotes"]),
        ("stripe", "in_flight: 3s", &["routes[0].in_flight: must be a mapping of keys to values"]),
        ("stripe", "upstream: [http://x]", &["routes[0].upstream: must be a single value"]),
        ("stripe", "upstream: {}", &["routes[0].upstream.url: is missing"]),
        ("generic", "key: $.id", &["routes[0].key: must be a list"]),
    ]);
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    each_gives_these_problems(&[
        ("stripe", "windw: 7d", &["routes[0].windw: unknown key, did you mean `window`?"]),
        ("stripe", "maxBody: 4MiB", &["routes[0].maxBody: unknown key, did you mean `max_body`?"]),
        ("stripe", "in-flight: {}", &["routes[0].in-flight: unknown key, did you mean `in_flight`?"]),
        ("stripe", "bananas: 3", &["routes[0].bananas: unknown key"]),
        (
            "stripe",
            "in_flight: {wait: 3s, than: accept}",
            &["routes[0].in_flight.than: unknown key, did you mean `then`?"],
        ),
        (
            "stripe",
            "upstream: {url: http://x, time_out: 3s}",
            &["routes[0].upstream.time_out: unknown key, did you mean `timeout`?"],
        ),
        ("stripe", "duplicate_response: {code: 200}", &["routes[0].duplicate_response.code: unknown key"]),
        (
            "generic",
            "verify: {token: header:X-Token, signature: header:X}",
            &["routes[0].verify.signature: unknown key"],
        ),
        (
            "stripe",
            "secret: {flie: x}",
            &["routes[0].secret.file: is missing", "routes[0].secret.flie: unknown key, did you mean `file`?"],
        ),
        ("stripe", "server.lisen: 127.0.0.1:1", &["server.lisen: unknown key, did you mean `listen`?"]),
        ("stripe", "store: {embedded: {path: x, pth: y}}", &["store.embedded.pth: unknown key, did you mean `path`?"]),
        (
            "stripe",
            "store: {embeded: {path: x}}",
            &["store: must hold `redis` or `embedded`", "store.embeded: unknown key, did you mean `embedded`?"],
        ),
    ]);
}

#[test]
fn variables_are_put_in_everywhere_and_missing_ones_named() {
    let config = config(
        "stripe",
        "namespace: ${SET}
         window: ${WINDOW:-9d}
         batch_concurrency: ${CONCURRENCY:-3}
         max_body: ${EMPTY:-4096}
         mode: ${MODE:-enforce}
         secret: pre-${SET}-post
         verify: ${VERIFY:-off}
         duplicate_response: {body: 'a $${SET} $$ $.b $'}",
    );
    let route = &config.routes[0];
    assert_eq!(route.namespace, "value");
    assert_eq!(route.window.as_secs(), 9 * 24 * 60 * 60);
    assert_eq!(route.batch_concurrency, 3);
    assert_eq!(route.max_body, 4096);
    assert_eq!(route.provider.secrets[0].reveal(), "pre-value-post");
    assert_eq!(route.duplicate_response.body, "a ${SET} $$ $.b $");

    let form = "a variable is written `${NAME}` or `${NAME:-default}`, its name in letters, digits and `_` (write \
                `$${` for `${` itself)";
    let open = "a `${` has no `}` (write `$${` for `${` itself)";
    for (value, expected) in [
        ("${UNSET}", vec!["the environment variable `UNSET` is not set"]),
        (
            "${ONE}${SET}${TWO}",
            vec!["the environment variable `ONE` is not set", "the environment variable `TWO` is not set"],
        ),
        ("${EMPTY}", vec!["must not be empty"]),
        ("${NOT SO}", vec![form]),
        ("${}", vec![form]),
        ("${SET", vec![open]),
    ] {
        let expected: Vec<String> = expected.iter().map(|line| format!("routes[0].secret: {line}")).collect();
        let problems = parse_text(&file("stripe", &format!("secret: '{value}'"))).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(expected), "for {value}");
    }
}

#[test]
fn a_variable_adds_no_yaml_and_names_no_other_variable() {
    let hostile = |name: &str| (name == "X").then(|| "a\nprovider: none # ${UNSET} $${X}".to_owned());
    let loaded = crate::config::parse(&file("stripe", "secret: ${X}"), &hostile).expect("only a strange secret");
    assert_eq!(loaded.config.routes[0].provider.secrets[0].reveal(), "a\nprovider: none # ${UNSET} $${X}");
}
