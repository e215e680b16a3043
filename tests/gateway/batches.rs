//! Batches: each event of a delivery reaches the handler once, whatever becomes of the others.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Answer, Request, SECRET, hmac_sha256_hex};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{self, Gate, Received, Upstream};

const PATH: &str = "/webhooks/whatsapp";

fn meta(upstream: &Upstream) -> Route {
    Route::new("whatsapp", PATH, "meta", upstream.address).with(&format!("secret: {SECRET}"))
}

fn message(id: &str, from: &str) -> String {
    format!(
        r#"{{"from":"{from}", "id":"wamid.{id}","timestamp":"1760000001","type":"text","text":{{"body":"caf\u00e9 {id}"}},"n":900719925474099312345}}"#
    )
}

fn status(id: &str, status: &str) -> String {
    format!(r#"{{"id":"wamid.{id}","status":"{status}","timestamp":"1760000002","recipient_id":"5511999990009"}}"#)
}

/// One `value` with these messages and statuses.
fn body(messages: &[String], statuses: &[String]) -> String {
    let mut members = vec![
        r#""messaging_product":"whatsapp""#.to_owned(),
        r#""metadata":{"display_phone_number":"15550001111","phone_number_id":"1000"}"#.to_owned(),
        r#""contacts":[{"wa_id":"5511999990001"},{"wa_id":"5511999990002"},{"wa_id":"5511999990009"}]"#.to_owned(),
    ];
    if !messages.is_empty() {
        members.push(format!(r#""messages":[{}]"#, messages.join(",")));
    }
    if !statuses.is_empty() {
        members.push(format!(r#""statuses":[{}]"#, statuses.join(", ")));
    }
    format!(
        r#"{{"object":"whatsapp_business_account","entry":[{{"id":"200","changes":[{{"field":"messages","value":{{{}}}}}]}}]}}"#,
        members.join(",")
    )
}

fn delivery(body: &str) -> Request {
    let signature = format!("sha256={}", hmac_sha256_hex(SECRET, body.as_bytes()));
    Request::post(PATH, body).header("X-Hub-Signature-256", &signature)
}

/// What a handler sees that verifies the signature and reads only the first message or status of the first change.
fn seen(received: &Received) -> String {
    let signature = received.header("x-hub-signature-256").expect("a signature");
    assert_eq!(signature, format!("sha256={}", hmac_sha256_hex(SECRET, &received.body)));
    let body: serde_json::Value = serde_json::from_slice(&received.body).expect("JSON");
    let value = &body["entry"][0]["changes"][0]["value"];
    let first = if value["messages"].is_array() { &value["messages"][0] } else { &value["statuses"][0] };
    let id = first["id"].as_str().expect("an id").trim_start_matches("wamid.");
    match first["status"].as_str() {
        Some(status) => format!("{id} {status}"),
        None => id.to_owned(),
    }
}

fn all_seen(upstream: &Upstream) -> Vec<String> {
    let mut all: Vec<String> = upstream.received().iter().map(seen).collect();
    all.sort();
    all
}

fn label(answer: &Answer) -> String {
    answer.header("hookonce-result").expect("a result")
}

#[test]
fn a_handler_that_reads_only_the_first_element_sees_every_one() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[meta(&upstream)]);
        let batch = body(
            &[message("1", "5511999990001"), message("2", "5511999990001"), message("3", "5511999990002")],
            &[status("9", "sent"), status("9", "delivered")],
        );
        let answer = gateway.send(&delivery(&batch)).expect(200, "split");
        assert_eq!(label(&answer), "split; first=5; duplicate=0; failed=0; open=0; unkeyed=0");
        assert_eq!(all_seen(&upstream), ["1", "2", "3", "9 delivered", "9 sent"]);
        for received in upstream.received() {
            let text = String::from_utf8(received.body.clone()).expect("text");
            assert_eq!(received.header("content-length"), Some(text.len().to_string()));
            assert!(text.contains(r#""phone_number_id":"1000""#), "{text}");
            // An element's own text is untouched, and its own contact comes along.
            if seen(&received) == "3" {
                assert!(text.contains(&message("3", "5511999990002")), "{text}");
                assert!(text.contains(r#""contacts":[{"wa_id":"5511999990002"}]"#), "{text}");
            }
        }
        // The same batch once more: nothing is new.
        let again = gateway.send(&delivery(&batch)).expect(200, "duplicate");
        assert_eq!(again.text(), r#"{"received":true,"duplicate":true}"#);
        assert_eq!(upstream.count(), 5);
        gateway.wait_for_metric("hookonce_events_total{route=\"whatsapp\",outcome=\"first\"}", 5.0);
        gateway.wait_for_metric("hookonce_duplicates_total{route=\"whatsapp\"}", 5.0);
    });
}

/// They share the message's id, come within one second, and need not come in order or all.
#[test]
fn statuses_of_one_message_are_events_of_their_own_in_any_order() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let of = |words: &[&str]| -> Vec<String> { words.iter().map(|word| status("9", word)).collect() };
    for words in [&["delivered"][..], &["sent"], &["read", "failed"]] {
        gateway.send(&delivery(&body(&[], &of(words)))).expect(200, if words.len() > 1 { "split" } else { "first" });
    }
    assert_eq!(all_seen(&upstream), ["9 delivered", "9 failed", "9 read", "9 sent"]);
    for words in [&["sent", "delivered"][..], &["failed"], &["read"]] {
        gateway.send(&delivery(&body(&[], &of(words)))).expect(200, "duplicate");
    }
    assert_eq!(upstream.count(), 4);
}

#[test]
fn a_delivery_of_one_event_goes_byte_for_byte() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let one = body(&[message("1", "5511999990001")], &[]);
    gateway.send(&delivery(&one).header("X-Other", "kept")).expect(200, "first");
    let received = upstream.wait_for(1);
    assert_eq!(received.body, one.as_bytes());
    assert_eq!(received.header("x-other").as_deref(), Some("kept"));
}

#[test]
fn a_redelivered_batch_with_two_new_elements_forwards_two() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[meta(&upstream)]);
        let ana = "5511999990001";
        gateway.send(&delivery(&body(&[message("1", ana), message("2", ana)], &[]))).expect(200, "split");
        let more = body(&[message("1", ana), message("3", ana), message("2", ana)], &[status("2", "read")]);
        let answer = gateway.send(&delivery(&more)).expect(200, "split");
        assert_eq!(label(&answer), "split; first=2; duplicate=2; failed=0; open=0; unkeyed=0");
        assert_eq!(all_seen(&upstream), ["1", "2", "2 read", "3"]);
    });
}

#[test]
fn one_failing_element_makes_the_answer_retryable_and_the_retry_forwards_only_it() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[meta(&upstream).with("batch_concurrency: 1")]);
        let batch = body(&[message("1", "a"), message("2", "b"), message("3", "c")], &[]);
        // A handler's 422 would make some providers give up all three.
        upstream.script([upstream::Answer::status(200), upstream::Answer::status(422), upstream::Answer::status(200)]);
        let answer = gateway.send(&delivery(&batch)).expect(503, "split");
        assert_eq!(label(&answer), "split; first=2; duplicate=0; failed=1; open=0; unkeyed=0");
        let answer = gateway.send(&delivery(&batch)).expect(200, "split");
        assert_eq!(label(&answer), "split; first=1; duplicate=2; failed=0; open=0; unkeyed=0");
        let order: Vec<String> = upstream.received().iter().map(seen).collect();
        assert_eq!(order.len(), 4);
        assert_eq!(order[1], order[3]);
    });
}

#[test]
fn a_thousand_updates_all_arrive_and_their_copy_costs_one_round_trip_and_no_exchange() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[meta(&upstream).with("batch_concurrency: 32")]);
        let messages: Vec<String> =
            (0..1000).map(|number| message(&format!("{number:04}"), &format!("55119{number:04}"))).collect();
        let batch = delivery(&body(&messages, &[]));
        gateway.send(&batch).expect(200, "split");
        let seen = all_seen(&upstream);
        assert_eq!(seen.len(), 1000);
        assert!(seen.iter().enumerate().all(|(number, id)| *id == format!("{number:04}")));

        let claims = gateway.metric("hookonce_store_seconds_count{operation=\"claim\"}");
        gateway.send(&batch).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1000);
        gateway.wait_for_metric("hookonce_store_seconds_count{operation=\"claim\"}", claims + 1.0);
        gateway.wait_for_metric("hookonce_duplicates_total{route=\"whatsapp\"}", 1000.0);
    });
}

#[test]
fn three_megabytes_of_updates_are_split() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream).with("batch_concurrency: 32")]);
    let long = "x".repeat(30_000);
    let messages: Vec<String> = (0..100)
        .map(|number| format!(r#"{{"from":"{number}","id":"wamid.{number:03}","text":{{"body":"{long}"}}}}"#))
        .collect();
    gateway.send(&delivery(&body(&messages, &[])).chunked(50_000)).expect(200, "split");
    assert_eq!(all_seen(&upstream).len(), 100);
}

#[test]
fn an_event_that_occurs_twice_in_a_delivery_is_sent_once() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let batch = body(&[message("1", "a"), message("1", "a"), message("2", "a")], &[]);
    let answer = gateway.send(&delivery(&batch)).expect(200, "split");
    assert_eq!(label(&answer), "split; first=2; duplicate=0; failed=0; open=0; unkeyed=0");
    assert_eq!(all_seen(&upstream), ["1", "2"]);
}

#[test]
fn content_of_an_unknown_kind_is_sent_beside_the_events_and_every_time() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let batch = body(&[message("1", "a")], &[]).replace(r#""messages":"#, r#""wonders":[{"id":"w1"}],"messages":"#);
    let answer = gateway.send(&delivery(&batch)).expect(200, "split");
    assert_eq!(label(&answer), "split; first=1; duplicate=0; failed=0; open=0; unkeyed=1");
    let answer = gateway.send(&delivery(&batch)).expect(200, "split");
    assert_eq!(label(&answer), "split; first=0; duplicate=1; failed=0; open=0; unkeyed=1");
    let wonders = |received: &Received| String::from_utf8_lossy(&received.body).contains(r#""wonders":[{"id":"w1"}]"#);
    assert_eq!((upstream.count(), upstream.received().iter().filter(|one| wonders(one)).count()), (3, 2));
}

#[test]
fn one_conversation_goes_in_order_and_others_beside_it() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let gate = Gate::closed();
    upstream.otherwise(upstream::Answer::status(200).behind(&gate));
    let batch = body(&[message("a1", "ana"), message("a2", "ana"), message("a3", "ana"), message("r1", "rui")], &[]);
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| gateway.send(&delivery(&batch)));
        upstream.wait_for(2);
        gate.open();
        answer.join().expect("an answer").expect(200, "split");
    });
    let order: Vec<String> = upstream.received().iter().map(seen).collect();
    let ana: Vec<&String> = order.iter().filter(|id| id.starts_with('a')).collect();
    assert_eq!(ana, ["a1", "a2", "a3"]);
    assert!(order[..2].contains(&"r1".to_owned()), "{order:?}");
}

#[test]
fn two_deliveries_that_hold_each_others_events_in_opposite_order_both_get_on() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[meta(&upstream).with("in_flight: {wait: 10s}")]);
        let gate = Gate::closed();
        upstream.otherwise(upstream::Answer::status(200).behind(&gate));
        let (one, two, three) = (message("1", "a"), message("2", "b"), message("3", "c"));
        let forth = body(&[one.clone(), two.clone()], &[]);
        let back = body(&[three, two, one], &[]);
        std::thread::scope(|scope| {
            let forth = scope.spawn(|| gateway.send(&delivery(&forth)));
            upstream.wait_for(2);
            let back = scope.spawn(|| gateway.send(&delivery(&back)));
            upstream.wait_for(3);
            gate.open();
            assert_eq!(forth.join().expect("an answer").status, 200);
            let back = back.join().expect("an answer").expect(200, "split");
            assert_eq!(label(&back), "split; first=1; duplicate=2; failed=0; open=0; unkeyed=0");
        });
        assert_eq!(all_seen(&upstream), ["1", "2", "3"]);
    });
}

#[test]
fn a_batch_that_takes_longer_than_the_lease_runs_nothing_twice() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let route = meta(&upstream).with("lease: 3s").with("in_flight: {wait: 200ms}").with("batch_concurrency: 1");
        let gateway = Gateway::start(&store, &[route]);
        let gate = Gate::closed();
        upstream.script([upstream::Answer::status(200).behind(&gate)]);
        let batch = delivery(&body(&[message("1", "a"), message("2", "b")], &[]));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| gateway.send(&batch));
            upstream.wait_for(1);
            // A renewal comes every third of the lease. Until more than a whole one has passed, copies find both events
            // held, the waiting one too.
            while gateway.metric("hookonce_store_seconds_count{operation=\"renew\"}") < 5.0 {
                let answer = gateway.send(&batch).expect(503, "in-flight");
                assert!(answer.header("retry-after").is_some());
            }
            assert_eq!(upstream.count(), 1);
            gate.open();
            first.join().expect("an answer").expect(200, "split");
        });
        assert_eq!(all_seen(&upstream), ["1", "2"]);
        gateway.send(&batch).expect(200, "duplicate");
    });
}

#[test]
fn filter_sends_one_delivery_without_what_is_done() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream).with("batch: filter")]);
    let all_new = body(&[message("1", "a"), message("2", "b")], &[]);
    gateway.send(&delivery(&all_new)).expect(200, "first");
    assert_eq!(upstream.wait_for(1).body, all_new.as_bytes());

    let answer = gateway
        .send(&delivery(&body(&[message("1", "a"), message("3", "c"), message("4", "a")], &[status("1", "read")])))
        .expect(200, "filtered");
    assert_eq!(label(&answer), "filtered; first=3; duplicate=1; failed=0; open=0; unkeyed=0");
    let received = upstream.wait_for(2);
    assert_eq!(seen(&received), "3");
    let text = String::from_utf8(received.body).expect("text");
    assert!(!text.contains("\"wamid.1\",\"timestamp\"") && text.contains("wamid.4") && text.contains("read"), "{text}");
    assert_eq!(upstream.count(), 2);
}

#[test]
fn whole_sends_a_batch_as_it_came_when_anything_in_it_is_new() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream).with("batch: whole")]);
    gateway.send(&delivery(&body(&[message("1", "a")], &[]))).expect(200, "first");
    let partly_new = body(&[message("1", "a"), message("2", "b")], &[]);
    gateway.send(&delivery(&partly_new)).expect(200, "first");
    assert_eq!(upstream.wait_for(2).body, partly_new.as_bytes());
    gateway.send(&delivery(&partly_new)).expect(200, "duplicate");
    assert_eq!(upstream.count(), 2);
}

#[test]
fn both_signature_headers_are_renewed_and_a_body_digest_is_dropped() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let batch = body(&[message("1", "a"), message("2", "b")], &[]);
    let request = delivery(&batch).header("X-Hub-Signature", "sha1=0123").header("Content-MD5", "Q2hlY2s=");
    gateway.send(&request).expect(200, "split");
    for received in upstream.received() {
        seen(&received);
        let legacy = received.header("x-hub-signature").expect("the older signature");
        assert!(legacy.starts_with("sha1=") && legacy != "sha1=0123" && legacy.len() == 45, "{legacy}");
        assert_eq!(received.header("content-md5"), None);
    }
}

#[test]
fn a_generic_batch_is_cut_at_its_elements() {
    let upstream = Upstream::start();
    let route = Route::new("orders", "/orders", "generic", upstream.address)
        .with("verify: off")
        .with("events: $.items[*]")
        .with("key: ['@.id']")
        .with("batch: split");
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    let answer = gateway.send(&Request::post("/orders", r#"{"shop": 7.10, "items": [ {"id": 1}, {"id":"2"} ]}"#));
    assert_eq!(label(&answer), "split; first=2; duplicate=0; failed=0; open=0; unkeyed=0");
    let mut bodies: Vec<String> =
        upstream.received().into_iter().map(|one| String::from_utf8(one.body).expect("text")).collect();
    bodies.sort();
    assert!(bodies[0].contains(r#""shop": 7.10"#) && bodies[0].contains(r#"{"id": 1}"#), "{bodies:?}");
    assert!(!bodies[0].contains("\"2\"") && bodies[1].contains(r#"{"id":"2"}"#), "{bodies:?}");
}

#[test]
fn an_upstream_that_is_down_is_not_tried_for_every_event_of_a_batch() {
    let absent = upstream::Absent::new();
    let route = Route::new("whatsapp", PATH, "meta", absent.address).with(&format!("secret: {SECRET}"));
    let gateway = Gateway::start(&Store::Embedded, &[route.with("batch_concurrency: 1")]);
    let messages: Vec<String> = (0..50).map(|number| message(&number.to_string(), &number.to_string())).collect();
    let batch = delivery(&body(&messages, &[]));
    assert_eq!(gateway.send(&batch).status, 502);
    gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"not_sent\"}", 8.0);
    let upstream = absent.appear();
    gateway.send(&batch).expect(200, "split");
    assert_eq!(upstream.count(), 50);
}

#[test]
fn a_killed_gateways_batch_is_finished_by_the_retry() {
    let upstream = Upstream::start();
    let store = Store::redis();
    let gateway = Gateway::start(&store, &[meta(&upstream).with("lease: 2s").with("batch_concurrency: 1")]);
    let gate = Gate::closed();
    upstream.script([upstream::Answer::status(200), upstream::Answer::status(200).behind(&gate)]);
    let batch = delivery(&body(&[message("1", "a"), message("2", "b"), message("3", "c")], &[]));
    let mut line = provider::Line::open(gateway.address());
    line.request(&batch);
    upstream.wait_for(2);
    gateway.kill();
    gate.open();
    gateway.start_again();
    // The first was done; the second's outcome died with the gateway, so it runs again; the third had not begun.
    crate::support::eventually("the retry is accepted", || (gateway.send(&batch).status == 200).then_some(()));
    assert_eq!(all_seen(&upstream), ["1", "2", "2", "3"]);
}

#[test]
fn a_delivery_that_holds_one_event_twice_is_cut_to_one() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[meta(&upstream)]);
    let answer = gateway.send(&delivery(&body(&[message("1", "a"), message("1", "a")], &[]))).expect(200, "split");
    assert_eq!(label(&answer), "split; first=1; duplicate=0; failed=0; open=0; unkeyed=0");
    let received = upstream.wait_for(1);
    assert_eq!(String::from_utf8_lossy(&received.body).matches("wamid.1").count(), 1);
    assert_eq!(upstream.count(), 1);
}

#[test]
fn an_event_that_becomes_free_is_sent_while_others_are_still_waited_for() {
    let upstream = Upstream::start();
    let store = Store::redis();
    let routes = [meta(&upstream).with("in_flight: {wait: 20s}")];
    let (one, other) = (Gateway::start(&store, &routes), Gateway::start(&store, &routes));
    let (short, long) = (Gate::closed(), Gate::closed());
    upstream.script([upstream::Answer::status(500).behind(&short), upstream::Answer::status(200).behind(&long)]);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| one.send(&delivery(&body(&[message("1", "a")], &[]))));
        upstream.wait_for(1);
        let slow = scope.spawn(|| one.send(&delivery(&body(&[message("2", "b")], &[]))));
        upstream.wait_for(2);
        let both = scope.spawn(|| other.send(&delivery(&body(&[message("1", "a"), message("2", "b")], &[]))));
        short.open();
        assert_eq!(refused.join().expect("an answer").status, 500);
        // The second gateway sends the first event while the second one is still at the handler.
        assert_eq!(seen(&upstream.wait_for(3)), "1");
        long.open();
        slow.join().expect("an answer").expect(200, "first");
        let both = both.join().expect("an answer").expect(200, "split");
        assert_eq!(label(&both), "split; first=1; duplicate=1; failed=0; open=0; unkeyed=0");
    });
    assert_eq!(all_seen(&upstream), ["1", "1", "2"]);
}

#[test]
fn what_a_whole_batch_carries_along_is_done_with_it() {
    let upstream = Upstream::start();
    let store = Store::redis();
    let routes = [meta(&upstream).with("batch: whole").with("in_flight: {wait: 300ms}")];
    let (one, other) = (Gateway::start(&store, &routes), Gateway::start(&store, &routes));
    let gate = Gate::closed();
    upstream.script([upstream::Answer::status(500).behind(&gate)]);
    std::thread::scope(|scope| {
        let open = scope.spawn(|| one.send(&delivery(&body(&[message("1", "a")], &[]))));
        upstream.wait_for(1);
        let both = body(&[message("1", "a"), message("2", "b")], &[]);
        other.send(&delivery(&both)).expect(200, "first");
        gate.open();
        assert_eq!(open.join().expect("an answer").status, 500);
    });
    // The batch delivered the first event too, whatever became of its other copy.
    other.send(&delivery(&body(&[message("1", "a")], &[]))).expect(200, "duplicate");
    assert_eq!(upstream.count(), 2);
}
