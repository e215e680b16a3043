//! `diff` and `schema`.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::gateway::{Site, hookonce};
use crate::support::provider;
use crate::support::route::Route;
use crate::support::store::Store;

fn diff(first: &[u8], second: &[u8], arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["a", "b"].map(|name| folder.path().join(name));
    for (file, content) in files.iter().zip([first, second]) {
        std::fs::write(file, content).expect("a file");
    }
    hookonce().arg("diff").args(arguments).args(files).output().expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn expect(output: Output, code: i32) -> Output {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{}{stderr}", stdout(&output));
    output
}

/// Two deliveries of one event, as `echo --save` writes them.
fn copies() -> [Vec<u8>; 2] {
    [1_700_000_000, 1_700_000_300].map(|time| {
        let body = format!("{{\"id\":\"evt_1\",\"type\":\"invoice.paid\",\"sent_at\":{time},\"amount\":1.50}}");
        let signature = provider::stripe_signature("s", time, body.as_bytes());
        let head = format!("POST /webhooks/generic HTTP/1.1\r\nStripe-Signature: {signature}\r\nX-Shop: 7\r\n\r\n");
        (head + &body).into_bytes()
    })
}

#[test]
fn what_changed_must_stay_out_of_a_key_and_the_keys_are_equal() {
    let [a, b] = copies();
    let text = stdout(&expect(diff(&a, &b, &["--provider", "stripe"]), 0));
    let (changed, rest) = text.split_once("stayed,").expect("two lists");
    for place in ["header:stripe-signature", "$.sent_at", "1700000000 -> 1700000300"] {
        assert!(changed.contains(place), "`{place}` is not in:\n{changed}");
    }
    for place in ["header:x-shop", "$.id", "$.type", "$.amount", "keys: equal", "A  stripe:evt_1", "B  stripe:evt_1"] {
        assert!(rest.contains(place), "`{place}` is not in:\n{rest}");
    }

    let told: Value = serde_json::from_slice(&expect(diff(&a, &b, &["--provider", "stripe", "--json"]), 0).stdout)
        .expect("one JSON document");
    assert_eq!(told["changed"][1], json!({"place": "$.sent_at", "a": "1700000000", "b": "1700000300"}));
    assert_eq!(told["stayed"], json!(["header:x-shop", "$.id", "$.type", "$.amount"]));
    assert_eq!(told["keys"], json!({"a": ["stripe:evt_1"], "b": ["stripe:evt_1"], "equal": true}));
}

#[test]
fn keys_that_differ_are_exit_code_1() {
    let nowhere = "127.0.0.1:9".parse().expect("an address");
    let wrong =
        Route::new("wrong", "/wrong", "generic", nowhere).with("verify: off").with("key: ['$.id', '$.sent_at']");
    let site = Site::new(&Store::Embedded, &[], &[Route::generic(nowhere), wrong]);
    let config = site.config();
    let config = config.to_str().expect("a path");
    let [a, b] = copies();
    let text = stdout(&expect(diff(&a, &b, &["--config", config, "--route", "wrong"]), 1));
    for words in ["keys: different", "A  wrong:evt_1:1700000000", "B  wrong:evt_1:1700000300"] {
        assert!(text.contains(words), "`{words}` is not in:\n{text}");
    }
    let text = stdout(&expect(diff(&a, &b, &["--config", config, "--route", "generic"]), 0));
    assert!(text.contains("A  generic:evt_1"), "{text}");
    // Events without a key are never taken for one.
    let text = stdout(&expect(diff(b"{}", b"{}", &["--config", config, "--route", "generic"]), 1));
    assert!(text.contains("A  no key"), "{text}");
    expect(diff(&a, &b, &["--config", config, "--route", "none"]), 1);
}

#[test]
fn without_a_provider_no_keys_are_asked_for() {
    let text = stdout(&expect(diff(b"{\"a\":1}", b"{\"a\":2}", &[]), 0));
    assert!(text.contains("$.a  1 -> 2") && !text.contains("keys"), "{text}");
    expect(diff(b"{}", b"{}", &["--provider", "generic"]), 2);
    expect(diff(b"{}", b"{}", &["--route", "a"]), 2);
    let missing = hookonce().args(["diff", "/no/such/file", "/no/such/file"]).output().expect("the binary starts");
    expect(missing, 1);
}

#[test]
fn schema_prints_the_file_that_the_examples_name() {
    let output = expect(hookonce().arg("schema").output().expect("the binary starts"), 0);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conf/hookonce.schema.json");
    assert_eq!(stdout(&output), std::fs::read_to_string(file).expect("a text"));
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON");
}
