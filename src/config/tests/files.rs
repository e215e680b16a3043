//! The files in `conf/`.

use std::path::PathBuf;

use super::lines;
use crate::config::{Loaded, load, parse};

fn conf(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conf").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a file of `conf/` where each of `variables` is set and no other.
fn read(name: &str, variables: &[&str]) -> Loaded {
    let environment = |name: &str| variables.contains(&name).then(|| format!("value-of-{name}"));
    parse(&conf(name), &environment).unwrap_or_else(|problems| panic!("{name}:\n{problems}"))
}

#[test]
fn every_file_in_conf_loads_without_a_warning() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conf");
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let secrets = ["STRIPE_WEBHOOK_SECRET", "ORDERS_WEBHOOK_SECRET", "HOTMART_HOTTOK", "META_APP_SECRET"];
        assert_eq!(lines(&read(&name, &secrets).warnings), [""; 0], "for {name}");
    }
}

#[test]
fn the_quickstart_needs_nothing_set() {
    let loaded = read("quickstart.yaml", &[]);
    assert_eq!(loaded.config.routes[0].provider.secrets[0].reveal(), "whsec_quickstart");
    assert!(loaded.config.server.listen.ip().is_loopback());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conf/quickstart.yaml");
    assert_eq!(load(&path).map(|loaded| loaded.warnings), Ok(Vec::new()));
}

#[test]
fn the_three_providers_need_their_secrets_and_name_them() {
    let problems = parse(&conf("hotmart-stripe-whatsapp.yaml"), &|_| None).expect_err("no secret is set");
    assert_eq!(
        lines(&problems.0),
        [
            "routes[0].secret: the environment variable `HOTMART_HOTTOK` is not set",
            "routes[1].secret: the environment variable `STRIPE_WEBHOOK_SECRET` is not set",
            "routes[2].secret: the environment variable `META_APP_SECRET` is not set",
        ]
    );
}

#[test]
fn hookonce_yaml_says_what_is_the_default_anyway() {
    let minimal = "
store: {redis: {url: redis://127.0.0.1:6379/0}}
routes:
  - {name: stripe, path: /webhooks/stripe, provider: stripe, secret: s, upstream: http://127.0.0.1:3000}
  - name: orders
    path: /webhooks/orders
    provider: generic
    key: [header:X-Shop, $.order.id, $.order.status?]
    verify: {hmac: sha256, signature: header:X-Signature}
    secret: s
    upstream: http://127.0.0.1:3000
  - {name: everything-else, path: /*, provider: none, upstream: http://127.0.0.1:3000}
";
    let written = read("hookonce.yaml", &["STRIPE_WEBHOOK_SECRET", "ORDERS_WEBHOOK_SECRET"]);
    let minimal = parse(minimal, &|_| None).expect("a minimal file");
    assert_eq!(format!("{:#?}", written.config), format!("{:#?}", minimal.config));
}

#[test]
fn hookonce_yaml_names_every_key() {
    let text = conf("hookonce.yaml");
    let keys = [
        "listen",
        "admin",
        "threads",
        "shutdown_grace",
        "body_budget",
        "body_timeout",
        "log",
        "level",
        "format",
        "deliveries",
        "keys",
        "readiness",
        "redis",
        "url",
        "password",
        "prefix",
        "persistence",
        "timeout",
        "embedded",
        "path",
        "name",
        "provider",
        "secret",
        "upstream",
        "connect_timeout",
        "host",
        "namespace",
        "window",
        "lease",
        "in_flight",
        "wait",
        "then",
        "unknown_outcome",
        "store_down",
        "mode",
        "on_auth_failure",
        "max_body",
        "duplicate_response",
        "status",
        "body",
        "content_type",
        "batch",
        "batch_concurrency",
        "pass_methods",
        "unknown_statuses",
        "key",
        "events",
        "verify",
        "token",
        "hmac",
        "signature",
        "encoding",
        "jwt",
        "leeway",
    ];
    for key in keys {
        let stands = |before: &str| text.contains(&format!("{before}{key}:"));
        assert!(stands(" ") || stands("{") || stands("# "), "{key} is not named");
    }
}
