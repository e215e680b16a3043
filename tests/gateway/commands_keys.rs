//! `keys get` and `keys forget`, beside a running gateway.

use std::process::Output;

use serde_json::Value;

use crate::support::gateway::{Gateway, Site, hookonce};
use crate::support::provider::{self, Request};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Gate, Upstream};

fn keys(site: &Site, arguments: &[&str]) -> Output {
    let mut command = hookonce();
    command.current_dir(site.folder()).arg("keys").arg(arguments[0]).arg("--config").arg(site.config());
    command.args(&arguments[1..]).env("USER", "maria").env_remove("SUDO_USER").output().expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Panics unless it ended with this code.
fn expect(output: Output, code: i32) -> Output {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(&output), stderr(&output));
    output
}

fn get(site: &Site, words: &[&str]) -> Value {
    let output = expect(keys(site, &[&["get", "--json"], words].concat()), 0);
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn a_done_key_is_told_and_forgotten_so_that_its_event_passes_again() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        upstream.otherwise(Answer::status(202));
        let delivery = provider::stripe("evt_1");
        gateway.send(&delivery).expect(202, "first");
        gateway.send(&delivery).expect(200, "duplicate");

        let site = &gateway.site;
        for words in [&["stripe:evt_1"][..], &["stripe", "evt_1"]] {
            let told = get(site, words);
            assert_eq!((&told["key"], &told["state"]), (&"stripe:evt_1".into(), &"done".into()), "{told}");
            assert_eq!(told["upstream_status"], 202);
            assert_eq!(told["since"], told["first_seen"]);
            assert!(told["first_seen"].is_string() && told["until"].as_str() > told["since"].as_str(), "{told}");
        }
        let text = stdout(&expect(keys(site, &["get", "stripe:evt_1"]), 0));
        for words in
            ["key:        stripe:evt_1", "state:      done", "until:", "left)", "first seen:", "upstream:   202"]
        {
            assert!(text.contains(words), "`{words}` is not in:\n{text}");
        }

        let output = expect(keys(site, &["forget", "stripe:evt_1"]), 0);
        assert!(stdout(&output).contains("forgotten"), "{}", stdout(&output));
        let audit = stderr(&output);
        assert_eq!(audit.lines().count(), 1, "{audit}");
        for words in ["audit", "maria (uid ", "host=", "stripe:evt_1", "freed", "done since 20", "(202)", "T", "Z"] {
            assert!(audit.contains(words), "`{words}` is not in:\n{audit}");
        }
        gateway.send(&delivery).expect(202, "first");
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 2);
    });
}

#[test]
fn an_absent_key_is_exit_code_3() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for command in ["get", "forget"] {
            let output = expect(keys(&gateway.site, &[command, "stripe", "evt_never"]), 3);
            assert!(stdout(&output).contains("absent"), "{}", stdout(&output));
        }
    });
}

#[test]
fn an_open_claim_is_freed_only_by_force() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::generic(upstream.address).with("in_flight: {wait: 0s}")]);
        let gate = Gate::closed();
        upstream.script([Answer::status(200).behind(&gate)]);
        let delivery = Request::post("/webhooks/generic", "{\"id\":\"a b\"}");
        let mut first = gateway.begin(&delivery);
        upstream.wait_for(1);

        let told = get(&gateway.site, &["generic", "a b"]);
        assert_eq!((&told["key"], &told["state"]), (&"generic:a%20b".into(), &"claimed".into()));
        assert_eq!(told["first_seen"], Value::Null);
        let output = expect(keys(&gateway.site, &["forget", "generic", "a b"]), 4);
        let said = stderr(&output);
        assert!(said.contains("error: ") && said.contains("in flight") && said.contains("--force"), "{said}");
        assert!(said.contains("audit") && said.contains("left"), "a refusal is in the audit too: {said}");
        assert_eq!(get(&gateway.site, &["generic", "a b"])["state"], "claimed");

        expect(keys(&gateway.site, &["forget", "--force", "generic", "a b"]), 0);
        expect(keys(&gateway.site, &["get", "generic", "a b"]), 3);
        gate.open();
        first.finish().expect(200, "first");
        assert_eq!(get(&gateway.site, &["generic", "a b"])["state"], "done", "what was delivered is remembered");
    });
}

#[test]
fn a_key_can_be_given_as_redis_shows_it() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    gateway.send(&provider::stripe("evt_1")).expect(200, "first");
    let shown = &store.as_redis().expect("Redis").keys()[0];
    assert_eq!(get(&gateway.site, &[shown])["key"], "stripe:evt_1");
}

#[test]
fn what_cannot_be_asked_says_why() {
    let nowhere = "127.0.0.1:9".parse().expect("an address");
    let site = Site::new(&Store::Embedded, &[], &[Route::stripe(nowhere)]);
    for (words, said) in [
        (&["get", "strip", "evt_1"][..], "the routes are `stripe`"),
        (&["get", "stripe"], "parts of the key are missing"),
        (&["get", "paypal:evt_1"], "they begin with `stripe`"),
        (&["get", "sha256:0123456789abcdef"], "cannot be turned back"),
        (&["get", "stripe:evt_1"], "there is no file"),
        (&["forget", "stripe:evt_1"], "there is no file"),
    ] {
        let output = expect(keys(&site, words), 1);
        assert!(stderr(&output).contains("error: ") && stderr(&output).contains(said), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    assert!(!site.folder().join("hookonce.db").exists(), "looking made a file");
    expect(keys(&site, &["get"]), 2);

    let store = Store::redis();
    let site = Site::new(&store, &[], &[Route::stripe(nowhere)]);
    store.as_redis().expect("Redis").kill();
    for command in ["get", "forget"] {
        let output = expect(keys(&site, &[command, "stripe:evt_1"]), 1);
        assert!(stderr(&output).contains("store"), "{}", stderr(&output));
    }
    std::fs::write(site.config(), "routes: []").expect("written");
    expect(keys(&site, &["get", "stripe:evt_1"]), 78);
}

#[test]
fn hashed_keys_are_in_no_log_and_can_be_matched() {
    let upstream = Upstream::start();
    let server = ["log: {keys: hashed}"];
    let gateway = Gateway::start_with(&Store::Embedded, &server, &[Route::generic(upstream.address)]);
    let delivery = Request::post("/webhooks/generic", "{\"id\":\"5511999990000\"}");
    gateway.send(&delivery).expect(200, "first");
    gateway.send(&delivery).expect(200, "duplicate");
    let told = get(&gateway.site, &["generic", "5511999990000"]);
    let hashed = told["logged_as"].as_str().expect("the hash");
    assert!(hashed.starts_with("sha256:") && hashed.len() == 23, "{hashed}");
    gateway.wait_for_log(&["first", hashed]);
    gateway.wait_for_log(&["duplicate", hashed]);
    let audit = stderr(&expect(keys(&gateway.site, &["forget", "generic", "5511999990000"]), 0));
    assert!(audit.contains(hashed), "{audit}");
    for log in [gateway.log(), audit] {
        assert!(!log.contains("5511999990000"), "{log}");
    }
}
