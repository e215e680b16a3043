//! Generic routes: keys from body, headers, query and literals.

use super::*;
use hookonce::config::{KeyPart, KeySource};
use proptest::prelude::*;

/// A `key` entry as the file writes it, without escapes in literals.
fn part(entry: &str) -> KeyPart {
    let (written, optional) = entry.strip_suffix('?').map_or((entry, false), |written| (written, true));
    let source = match written.split_once(':') {
        Some(("header", name)) => KeySource::Header(name.to_owned()),
        Some(("query", name)) => KeySource::Query(name.to_owned()),
        _ if written.starts_with('\'') => KeySource::Literal(written.trim_matches('\'').to_owned()),
        _ if written.starts_with('@') => KeySource::Item(written.replacen('@', "$", 1)),
        _ => KeySource::Body(written.to_owned()),
    };
    KeyPart { written: written.to_owned(), source, optional }
}

fn keyed(kind: ProviderKind, entries: &[&str], events: Option<&str>) -> Arc<dyn Provider> {
    let key = Some(entries.iter().map(|entry| part(entry)).collect());
    build(&config::Provider { key, events: events.map(str::to_owned), verify: Verify::Off, ..config(kind) })
}

fn generic(entries: &[&str]) -> Arc<dyn Provider> {
    keyed(ProviderKind::Generic, entries, None)
}

#[test]
fn parts_come_from_body_header_query_and_the_route() {
    let sent = Sent::body(r#"{"id":12345,"data":{"name":"a:b","ok":true,"none":null,"list":[1,2],"empty":""}}"#)
        .query("event=paid%20twice&x=1&x=2")
        .header("X-Id", "h-1")
        .header("X-Twice", "1")
        .header("X-Twice", "1");
    let unusable = |part: &str| Err(Unkeyed::Part(part.to_owned()));
    let key = |text: &str| Ok(text.to_owned());
    for (entries, expected) in [
        (vec!["$.id"], key("generic:12345")),
        (vec!["$.data.name", "$.data.ok"], key("generic:a%3Ab:true")),
        (vec!["'lembrete_pix'", "$['id']"], key("generic:lembrete_pix:12345")),
        (vec!["header:x-id", "query:event"], key("generic:h-1:paid%20twice")),
        (vec!["$.id", "$.missing?"], key("generic:12345:#")),
        (vec!["$.id", "$.data.none?", "header:X-None?", "query:none?"], key("generic:12345:#:#:#")),
        (vec!["$.missing"], unusable("$.missing")),
        (vec!["$.data.none"], unusable("$.data.none")),
        (vec!["$.data.empty"], unusable("$.data.empty")),
        (vec!["$.data"], unusable("$.data")),
        (vec!["$.data.list"], unusable("$.data.list")),
        (vec!["$.data.list[*]"], unusable("$.data.list[*]")),
        (vec!["$.id", "$.data.list[*]?"], unusable("$.data.list[*]")),
        (vec!["$.id", "$.data.list?"], unusable("$.data.list")),
        (vec!["header:X-Twice"], unusable("header:X-Twice")),
        (vec!["$.id", "header:X-Twice?"], unusable("header:X-Twice")),
        (vec!["query:x"], unusable("query:x")),
        (vec!["header:X-None"], unusable("header:X-None")),
        (vec!["'only'", "'literals'"], unusable("'only'")),
        (vec!["'one'", "$.missing?"], unusable("'one'")),
        (vec!["$.["], unusable("$.[")),
    ] {
        assert_eq!(sent.key(&*generic(&entries)), expected, "{entries:?}");
    }
}

#[test]
fn a_key_without_body_parts_needs_no_json() {
    let provider = generic(&["header:webhook-id"]);
    for body in ["", "a=1", "{}"] {
        assert_eq!(Sent::body(body).header("webhook-id", "msg_1").key(&*provider).unwrap(), "generic:msg_1");
    }
    let provider = generic(&["$.id"]);
    for (body, reason) in [("", Unkeyed::EmptyBody), ("a=1", Unkeyed::NotJson), ("{\"id\":1", Unkeyed::NotJson)] {
        assert_eq!(Sent::body(body).key(&*provider), Err(reason), "{body}");
    }
    let asked = Sent::body(r#"{"type":"url_verification","challenge":"c","token":"t"}"#);
    assert_eq!(asked.key(&*generic(&["$.event_id"])), Err(Unkeyed::Handshake));
}

#[test]
fn each_element_that_events_finds_is_an_event() {
    let provider = keyed(ProviderKind::Generic, &["$.shop", "@.id"], Some("$.items[*]"));
    let sent = Sent::fixture("generic/items.json");
    let keyed = |key: &str| ("event".to_owned(), Ok(key.to_owned()));
    assert_eq!(
        sent.found(&*provider),
        [
            keyed("generic:12345:9007199254740993"),
            keyed("generic:12345:b-2"),
            ("event".to_owned(), Err("no usable value at `@.id`".to_owned())),
            keyed("generic:12345:9007199254740993"),
        ]
    );
    for body in [r#"{"shop":1,"items":[]}"#, r#"{"shop":1}"#] {
        assert_eq!(Sent::body(body).found(&*provider), unkeyed("event", "no usable value at `$.items[*]`"), "{body}");
    }
}

#[test]
fn a_key_list_takes_the_place_of_a_presets_parts() {
    let sent = Sent::fixture("stripe/snapshot.json");
    let provider = keyed(ProviderKind::Stripe, &["$.type", "$.data.object.id"], None);
    assert_eq!(
        sent.found(&*provider),
        one("checkout.session.completed", "stripe:checkout.session.completed:cs_test_a1b2c3")
    );
    let config = config::Provider { key: Some(vec![part("$.type")]), ..config(ProviderKind::Stripe) };
    assert_eq!(sent.verify(&*build(&config)), Err(AuthFailure::Missing), "what it verifies stays the preset's");
}

proptest! {
    #[test]
    fn how_a_body_is_written_does_not_change_its_key(id in any::<u64>(), name in "[a-zé\u{1f600}]{1,8}", space in "[ \n\t]{0,3}") {
        let provider = generic(&["$.id", "$.name"]);
        let escaped: String = name.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let plain = Sent::body(format!(r#"{{"id":{id},"name":"{name}"}}"#));
        let other = Sent::body(format!(r#"{{{space}"name":{space}"{escaped}",{space}"sent":1,"id":"{id}"{space}}}"#));
        prop_assert_eq!(plain.key(&*provider), other.key(&*provider));
        let next = Sent::body(format!(r#"{{"id":{},"name":"{name}"}}"#, id.wrapping_add(1)));
        prop_assert_ne!(plain.key(&*provider), next.key(&*provider));
    }
}
