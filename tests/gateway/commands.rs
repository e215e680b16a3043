//! `check`, `explain`, `echo` and `run`, as a person types them.

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::gateway::{Site, hookonce};
use crate::support::provider::{self, Request, SECRET};
use crate::support::route::Route;
use crate::support::store::Store;

fn site() -> Site {
    let nowhere = "127.0.0.1:9".parse().expect("an address");
    Site::new(&Store::Embedded, &[], &[Route::stripe(nowhere), Route::generic(nowhere)])
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn explain(site: &Site, route: &str, arguments: &[&str], content: &[u8]) -> Output {
    let file = site.folder().join("delivery");
    std::fs::write(&file, content).expect("a file");
    let mut command = hookonce();
    command.arg("explain").arg("--config").arg(site.config()).args(["--route", route]).args(arguments).arg(file);
    command.output().expect("the binary starts")
}

fn explain_json(site: &Site, route: &str, arguments: &[&str], content: &[u8]) -> Value {
    let output = explain(site, route, &[arguments, &["--json"]].concat(), content);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn check_says_ok_on_stdout() {
    let site = site();
    let output = hookonce().arg("check").arg("--config").arg(site.config()).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("ok: "), "{}", stdout(&output));
    assert!(!site.folder().join("hookonce.db").exists(), "check must start nothing");
}

#[test]
fn explain_tells_events_and_keys_as_json() {
    let site = site();
    let body = br#"{"id":"evt_explained","type":"invoice.paid"}"#;
    let told = explain_json(&site, "generic", &[], body);
    assert_eq!(told["route"], "generic");
    assert_eq!(told["provider"], "generic");
    assert_eq!(told["verified"], Value::Null);
    assert_eq!(told["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(told["events"][0]["key"], "generic:evt_explained");

    let told = explain_json(&site, "generic", &[], b"{}");
    assert_eq!(told["events"][0]["key"], Value::Null);
    assert_eq!(told["events"][0]["reason"], "no usable value at `$.id`");
}

#[test]
fn explain_verifies_with_the_headers_that_are_given() {
    let site = site();
    let body = provider::stripe_body("evt_verified");
    let sign = |ago| provider::stripe_signature(SECRET, provider::timestamp(Duration::from_secs(ago)), &body);
    let forged = provider::stripe_signature("whsec_other", provider::timestamp(Duration::ZERO), &body);
    for (signature, verified) in [(sign(0), true), (sign(4000), false), (forged, false)] {
        let told = explain_json(&site, "stripe", &["--header", &format!("stripe-signature: {signature}")], &body);
        assert_eq!(told["verified"], json!(verified), "{told}");
        assert_eq!(told["events"][0]["key"], "stripe:evt_verified");
    }
    let told = explain_json(&site, "stripe", &[], &body);
    assert_eq!(told["verified"], json!(false));
}

#[test]
fn explain_is_read_by_people_too() {
    let output = explain(&site(), "stripe", &[], &provider::stripe_body("evt_read"));
    let text = stdout(&output);
    for words in ["stripe", "verified:   no", "missing", "stripe:evt_read"] {
        assert!(text.contains(words), "`{words}` is not in:\n{text}");
    }
    assert!(!text.contains(SECRET));
}

#[test]
fn an_unknown_route_is_an_error_with_the_routes_as_hint() {
    let output = explain(&site(), "strip", &[], b"{}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let errors: Vec<_> =
        stderr(&output).lines().filter(|line| !line.starts_with("warning: ")).map(str::to_owned).collect();
    assert_eq!(errors, ["error: no route is called `strip`", "hint: the routes are `stripe`, `generic`"]);
}

#[test]
fn what_echo_prints_and_saves_is_what_was_sent_and_explain_reads_it() {
    let site = site();
    let saved = site.folder().join("saved");
    let mut handler = hookonce()
        .args(["echo", "--listen", "127.0.0.1:0", "--status", "202", "--delay", "10ms", "--save"])
        .arg(&saved)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut first_line = String::new();
    let mut log = BufReader::new(handler.stderr.take().expect("its stderr"));
    log.read_line(&mut first_line).expect("a line");
    let address = first_line.trim().rsplit("http://").next().expect("an address").parse().expect("an address");

    let delivery = provider::stripe("evt_saved");
    assert_eq!(provider::send(address, &delivery).status, 202);
    assert_eq!(provider::send(address, &delivery.clone().chunked(50)).status, 202);
    let bytes = Request::post("/other?a=b", vec![0, 159, 146, 150]).header("X-Token", "t");
    assert_eq!(provider::send(address, &bytes).status, 202);

    rustix::process::kill_process(rustix::process::Pid::from_child(&handler), rustix::process::Signal::TERM)
        .expect("a signal");
    let status = eventually("the end of the handler", || handler.try_wait().expect("a state"));
    assert!(status.success());
    let printed = stdout(&handler.wait_with_output().expect("its output"));
    for words in
        ["POST /webhooks/stripe", "stripe-signature: t=", "\"id\": \"evt_saved\"", "POST /other?a=b", "x-token: t"]
    {
        assert!(printed.contains(words), "`{words}` is not in:\n{printed}");
    }

    let read = |name: &str| std::fs::read(saved.join(name)).expect("a saved delivery");
    for name in ["0001-webhooks-stripe.http", "0002-webhooks-stripe.http"] {
        assert!(read(name).starts_with(b"POST /webhooks/stripe HTTP/1.1\r\n"));
        assert!(read(name).ends_with(&[b"\r\n\r\n", delivery.body()].concat()));
        let told = explain_json(&site, "stripe", &[], &read(name));
        assert_eq!((&told["verified"], &told["events"][0]["key"]), (&json!(true), &json!("stripe:evt_saved")));
    }
    assert!(read("0003-other.http").ends_with(&[b"\r\n\r\n", bytes.body()].concat()));
}

#[test]
fn run_names_what_is_in_its_way() {
    let output = hookonce().args(["run", "--config", "/no/such/file.yaml"]).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(78));
    assert!(stderr(&output).starts_with("error: ") && stderr(&output).contains("/no/such/file.yaml"));

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let site = site();
    let text = std::fs::read_to_string(site.config()).expect("a configuration");
    let text = text.replace(&format!("listen: 127.0.0.1:{}", site.port), &format!("listen: 127.0.0.1:{port}"));
    std::fs::write(site.config(), text).expect("written");
    let output = site.run_to_its_end();
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("error: ") && said.contains(&port.to_string()), "{said}");
}
