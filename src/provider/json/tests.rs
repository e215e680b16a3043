//! What two readers of one body agree on, and what they might not.

use super::*;
use proptest::prelude::*;

fn parsed(body: &str) -> Value {
    parse(body.as_bytes()).unwrap()
}

#[test]
fn bodies_that_are_no_json_say_so() {
    for (body, reason) in [
        ("", Unkeyed::EmptyBody),
        (" \r\n", Unkeyed::EmptyBody),
        ("a=1&b=2", Unkeyed::NotJson),
        ("{\"id\":1", Unkeyed::NotJson),
        ("{} {}", Unkeyed::NotJson),
    ] {
        assert_eq!(parse(body.as_bytes()), Err(reason), "{body:?}");
    }
    assert_eq!(parse(b"{\"id\":\"\xff\"}"), Err(Unkeyed::NotJson), "text that is not UTF-8");
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(parse(deep.as_bytes()), Err(Unkeyed::NotJson), "nested too deep");
}

#[test]
fn scalars_have_texts_and_nothing_else_has() {
    for (body, expected) in [
        (r#""evt_1""#, Some("evt_1")),
        (r#""\u0065vt\/1""#, Some("evt/1")),
        ("12345", Some("12345")),
        (r#""12345""#, Some("12345")),
        ("12345678901234567890123", Some("12345678901234567890123")),
        ("0.10", Some("0.10")),
        ("-1.5E300", Some("-1.5e+300")),
        ("true", Some("true")),
        ("false", Some("false")),
        (r#""""#, None),
        ("null", None),
        ("[1]", None),
        (r#"{"a":1}"#, None),
    ] {
        assert_eq!(text(&parsed(body)).as_deref(), expected, "{body}");
    }
}

#[test]
fn a_name_that_occurs_twice_has_no_usable_value() {
    for body in [r#"{"id":"a","id":"b"}"#, r#"{"id":"a","\u0069d":"a"}"#, r#"{"id":"a","id":"b","id":"c"}"#] {
        assert_eq!(required(&parsed(body), "$.id"), Err(Unkeyed::Part("$.id".to_owned())), "{body}");
    }
    let elsewhere = parsed(r#"{"id":"a","data":{"x":1,"x":2}}"#);
    assert_eq!(required(&elsewhere, "$.id").as_deref(), Ok("a"));
    let another = parsed(r#"{"id":"a","data":{"x":1,"x":3}}"#);
    assert_ne!(canonical_sha256(&elsewhere), canonical_sha256(&another));
}

#[test]
fn private_names_of_the_json_library_are_plain_names() {
    for name in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let document = parsed(&format!(r#"{{"id":"a","metadata":{{"{name}":"no number"}}}}"#));
        assert_eq!(required(&document, "$.id").as_deref(), Ok("a"), "{name}");
        assert!(document["metadata"].is_object(), "{name}");
    }
}

#[test]
fn half_a_surrogate_pair_does_not_hide_the_rest() {
    let document = parsed(r#"{"id":"a","name":"x\ud83d","pair":"\ud83d\ude00","path":"\\ud83d"}"#);
    assert_eq!(required(&document, "$.id").as_deref(), Ok("a"));
    assert_eq!(document["pair"], "\u{1f600}");
    assert_eq!(document["path"], r"\ud83d");
    let another = parsed(r#"{"id":"a","name":"x\ud83e","pair":"\ud83d\ude00","path":"\\ud83d"}"#);
    assert_ne!(canonical_sha256(&document), canonical_sha256(&another));
}

#[test]
fn the_canonical_hash_tells_values_apart() {
    let bodies = [
        "null",
        "[]",
        "{}",
        r#""""#,
        "0",
        r#""0""#,
        "[[]]",
        r#"["a","b"]"#,
        r#"["ab"]"#,
        r#"[["a"],"b"]"#,
        r#"{"a":"b"}"#,
        r#"{"a":{"b":null}}"#,
        r#"{"a":{},"b":null}"#,
        "1",
        "1.0",
        "true",
        "false",
    ];
    let hashes: std::collections::HashSet<_> = bodies.iter().map(|body| canonical_sha256(&parsed(body))).collect();
    assert_eq!(hashes.len(), bodies.len());
}

proptest! {
    #[test]
    fn a_number_keeps_its_digits(digits in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?") {
        let document = parsed(&format!(r#"{{"id":{digits}}}"#));
        let written = parsed(&format!(r#"{{"id":"{digits}"}}"#));
        prop_assert_eq!(required(&document, "$.id"), Ok(digits.as_str().into()));
        prop_assert_eq!(required(&document, "$.id"), required(&written, "$.id"));
    }

    #[test]
    fn order_and_spacing_do_not_change_the_hash(
        members in proptest::collection::btree_map("[a-z]{1,6}", any::<i64>(), 0..8),
        seed in any::<u64>(),
    ) {
        let mut shuffled: Vec<_> = members.iter().collect();
        shuffled.sort_by_key(|(name, value)| seed.rotate_left(name.len() as u32) ^ **value as u64);
        let write = |members: &[(&String, &i64)], space: &str| {
            let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{space}{value}")).collect();
            format!("{{\"data\":{space}{{{}}}}}", members.join(&format!("{space},")))
        };
        let plain = write(&members.iter().collect::<Vec<_>>(), "");
        prop_assert_eq!(canonical_sha256(&parsed(&plain)), canonical_sha256(&parsed(&write(&shuffled, "\n\t "))));
    }
}
