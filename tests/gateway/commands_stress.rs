//! `stress`: against a gateway, and against handlers without one.

use std::process::Output;

use crate::support::gateway::{Gateway, hookonce};
use crate::support::provider::{self, SECRET};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Upstream};

fn stress(url: &str, body: &[u8], arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("delivery");
    std::fs::write(&file, body).expect("a file");
    let mut command = hookonce();
    command.args(["stress", "--url", url, "--body"]).arg(file).args(arguments);
    command.output().expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn expect(output: Output, code: i32) -> Output {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(&output), stderr(&output));
    output
}

#[test]
fn exactly_one_is_first_behind_a_gateway() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let url = format!("http://{}/webhooks/stripe", gateway.address());
        let sign = ["--times", "40", "--parallel", "20", "--sign-as", "stripe", "--secret", SECRET];
        let output = expect(stress(&url, &provider::stripe_body("evt_1"), &sign), 0);
        let text = stdout(&output);
        let counts = |result: &str| {
            let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(result));
            line.and_then(|line| line.split_whitespace().nth(2)?.parse::<usize>().ok()).unwrap_or_default()
        };
        assert_eq!((counts("first"), counts("duplicate")), (1, 39), "{text}");
        assert!(text.contains("40 answered in") && text.contains("exactly one was first"), "{text}");
        assert!(stderr(&output).contains("40 times, 20 at the same moment"), "{}", stderr(&output));
        assert_eq!(upstream.count(), 1);

        // Again: the event is done, so none is first.
        let output = expect(stress(&url, &provider::stripe_body("evt_1"), &sign), 1);
        assert!(stderr(&output).contains("error: none was first"), "{}", stderr(&output));
        assert_eq!(upstream.count(), 1);
        assert!(!stderr(&output).contains(SECRET) && !stdout(&output).contains(SECRET));
    });
}

#[test]
fn a_saved_delivery_is_sent_as_it_came() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_saved");
    let saved = [delivery.head_bytes(), delivery.body_bytes()].concat();
    // Without a path of its own the URL takes the delivery's.
    let arguments = ["--times", "3", "--parallel", "3", "--header", "X-Extra: yes"];
    expect(stress(&format!("http://{}", gateway.address()), &saved, &arguments), 0);
    let received = upstream.wait_for(1);
    assert_eq!(received.body, delivery.body());
    assert_eq!(received.header("x-extra").as_deref(), Some("yes"));
    assert!(received.header("stripe-signature").is_some());
}

#[test]
fn copies_that_all_pass_are_found_out() {
    // As it answers where two gateways share no store.
    let balancer = Upstream::start();
    let first = Answer::bytes(b"HTTP/1.1 200 OK\r\nhookonce-result: first\r\nContent-Length: 0\r\n\r\n");
    balancer.otherwise(first);
    let output = expect(stress(&format!("http://{}/", balancer.address), b"{}", &["--times", "2"]), 1);
    assert!(stderr(&output).contains("error: 2 were first"), "{}", stderr(&output));
}

#[test]
fn without_a_gateway_only_a_probe_can_judge() {
    let handler = Upstream::start();
    let output = expect(stress(&format!("http://{}/h", handler.address), b"{}", &["--times", "2"]), 1);
    assert!(stderr(&output).contains("hookonce-result") && stderr(&output).contains("--probe"), "{}", stderr(&output));
    assert_eq!(handler.count(), 2);
}

#[test]
fn a_probe_judges_a_handler_by_its_effect() {
    let handler = Upstream::start();
    let url = format!("http://{}/h", handler.address);
    for (numbers, code, said) in
        [([7, 8], 0, "effect: 7 before, 8 after: 1"), ([7, 57], 1, "the effect is 50"), ([7, 7], 1, "the effect is 0")]
    {
        let probe = Upstream::start();
        probe.script(numbers.map(|number| Answer::with_body(200, format!("{number}\n").as_bytes())));
        let probe_url = format!("http://{}/count", probe.address);
        let output = expect(stress(&url, b"{}", &["--times", "3", "--probe", &probe_url]), code);
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains(said), "`{said}` is not in:\n{text}");
        assert_eq!(probe.count(), 2, "it is read before and after");
    }
}

#[test]
fn what_is_in_its_way_is_said() {
    let handler = Upstream::start();
    let url = format!("http://{}/h", handler.address);
    let wordy = Upstream::start();
    wordy.otherwise(Answer::with_body(200, b"seven"));
    let output = expect(stress(&url, b"{}", &["--probe", &format!("http://{}/", wordy.address)]), 1);
    assert!(stderr(&output).contains("whole number"), "{}", stderr(&output));
    assert_eq!(handler.count(), 0, "nothing is sent where the effect cannot be read");

    let nowhere = crate::support::free_port();
    let output = expect(stress(&format!("http://127.0.0.1:{nowhere}/"), b"{}", &["--times", "2"]), 1);
    assert!(stdout(&output).contains("refused"), "{}", stdout(&output));

    expect(stress("https://127.0.0.1/", b"{}", &[]), 2);
    expect(stress(&url, b"{}", &["--sign-as", "paypal", "--secret", "s"]), 2);
    expect(stress(&url, b"{}", &["--sign-as", "stripe"]), 2);
    let missing = hookonce().args(["stress", "--url", &url, "--body", "/no/such/file"]).output().expect("it starts");
    expect(missing, 1);
}
