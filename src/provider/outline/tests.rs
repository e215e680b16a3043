//! Where values stand, what their texts are, and what two readers of one body might not agree on.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Document<'_> {
    Document::read(text.as_bytes()).unwrap()
}

fn hash(text: &str) -> Option<String> {
    read(text).root().canonical_sha256()
}

const DOCUMENT: &str = " {\n \"a\\u0062\" : [1e2, {} ,\"\\u00e9\\/\"],\"c\":{ \"\":-0.0 } , \"d\" :null}\n";

fn at(range: Range<usize>) -> &'static str {
    &DOCUMENT[range]
}

#[test]
fn values_and_headings_are_found_where_they_stand() {
    let document = read(DOCUMENT);
    let members: Vec<_> = document.root().object().unwrap().collect();
    let seen: Vec<_> =
        members.iter().map(|member| (member.name(), at(member.heading()), at(member.value.range()))).collect();
    assert_eq!(
        seen,
        [
            ("ab".into(), "\"a\\u0062\" : ", "[1e2, {} ,\"\\u00e9\\/\"]"),
            ("c".into(), "\"c\":", "{ \"\":-0.0 }"),
            ("d".into(), "\"d\" :", "null"),
        ]
    );
    let elements: Vec<_> = members[0].value.array().unwrap().map(|text| at(text.range())).collect();
    assert_eq!(elements, ["1e2", "{}", "\"\\u00e9\\/\""]);
    assert_eq!(at(members[1].value.object().unwrap().next().unwrap().heading()), "\"\":");
}

#[test]
fn parts_of_keys_are_decoded_strings_and_literal_numbers() {
    for (text, part) in [
        (r#""\u00e9\/""#, Some("é/")),
        ("900719925474099312345", Some("900719925474099312345")),
        ("1e2", Some("1e+2")),
        ("-1.5E300", Some("-1.5e+300")),
        ("2E-07", Some("2e-07")),
        ("true", Some("true")),
        (r#""""#, None),
        (r#""\ud800""#, Some(r"\ud800")),
        ("null", None),
        ("{}", None),
        ("[1]", None),
    ] {
        assert_eq!(read(text).root().key_part().as_deref(), part, "{text}");
    }
}

#[test]
fn what_is_no_json_or_ambiguous_is_not_read() {
    for body in [&b""[..], b"{", b"{}x", b"\xff", b"{\"a\":\"\xc3\"}"] {
        assert!(Document::read(body).is_err(), "{body:?}");
    }
    for text in ["[]", "1", r#"{"a":1,"\u0061":2}"#, r#"{"a":{},"b":[],"a":{}}"#, r#"{"":1,"":2}"#] {
        assert!(read(text).root().object().is_none(), "{text}");
    }
}

#[test]
fn a_value_is_hashed_whatever_its_spelling_and_by_its_own_digits() {
    let hash = |text: &str| read(text).root().canonical_sha256();
    let one = hash(r#"{"b":[1e2,"é/"],"a":null}"#);
    assert_eq!(one, hash(" {\"a\": null,\n\"b\":[1e2, \"\\u00e9\\/\"]} "));
    assert_ne!(one, hash(r#"{"b":[100,"é/"],"a":null}"#));
    assert_eq!(hash(&("[".repeat(200) + &"]".repeat(200))), None, "nested too deep");
}

#[test]
fn a_name_that_occurs_twice_has_no_usable_value() {
    for body in [r#"{"id":"a","id":"b"}"#, r#"{"id":"a","\u0069d":"a"}"#, r#"{"id":"a","id":"b","id":"c"}"#] {
        let document = read(body);
        assert!(document.root().get("id").is_some(), "{body}");
        assert_eq!(document.root().required("$.id"), Err(Unkeyed::Part("$.id".to_owned())), "{body}");
    }
    let twice = read(r#"{"a":{"id":1},"n":null,"e":"","l":[1],"a":{"id":1},"n":null,"e":"","l":[1]}"#);
    let [object, null, empty, list] = ["a", "n", "e", "l"].map(|name| twice.root().get(name).unwrap());
    assert!(object.get("id").is_none() && object.object().is_none() && list.array().is_none());
    assert!(!null.is_null() && !empty.is_empty_string());
    let elsewhere = |again: &str| {
        read(&format!(r#"{{"id":"a","data":{{"x":1,"x":{again}}}}}"#)).root().required("$.id").map(Cow::into_owned)
    };
    assert_eq!(elsewhere("2").as_deref(), Ok("a"));
}

#[test]
fn all_values_of_a_name_are_hashed() {
    let of_data = |body: &str| read(body).root().get("data").unwrap().canonical_sha256();
    assert_ne!(hash(r#"{"x":1,"x":2}"#), hash(r#"{"x":1,"x":3}"#));
    assert_ne!(hash(r#"{"x":1,"x":2}"#), hash(r#"{"x":2,"x":1}"#));
    assert_eq!(hash(r#"{"x":1,"y":0,"\u0078":2}"#), hash(r#"{"y":0,"x":1,"x":2}"#));
    assert_ne!(of_data(r#"{"data":1,"data":2}"#), of_data(r#"{"data":1,"data":3}"#));
    assert_ne!(of_data(r#"{"data":1,"data":2}"#), of_data(r#"{"data":1}"#));
}

#[test]
fn a_name_is_looked_for_among_many() {
    let many = |last: &str| {
        format!("{{{},\"{last}\":0}}", (0..100).map(|n| format!("\"n{n}\":{n}")).collect::<Vec<_>>().join(","))
    };
    assert!(read(&many("n100")).root().object().is_some());
    assert!(read(&many("n99")).root().object().is_none());
    assert!(read(&many("n0")).root().object().is_none());
    assert_eq!(read(&many("n100")).root().required("$.n57").as_deref(), Ok("57"));
    for text in ["{}", r#"{"":1,"a":2}"#, r#"{"from":1,"form":2,"fm":3,"foom":4}"#, r#"{"a":1,"\u0062":2}"#] {
        assert!(read(text).root().object().is_some(), "{text}");
    }
}

#[test]
fn half_a_surrogate_pair_does_not_hide_the_rest() {
    let body = r#"{"id":"a","name":"x\ud83d","pair":"\ud83d\ude00","path":"\\ud83d"}"#;
    for (name, expected) in [("id", "a"), ("name", r"x\ud83d"), ("pair", "\u{1f600}"), ("path", r"\ud83d")] {
        assert_eq!(read(body).root().get(name).unwrap().key_part().as_deref(), Some(expected), "{name}");
    }
    assert_ne!(hash(body), hash(&body.replace(r"x\ud83d", r"x\ud83e")));
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
    let hashes: std::collections::HashSet<_> = bodies.iter().map(|body| hash(body)).collect();
    assert_eq!(hashes.len(), bodies.len());
}

proptest! {
    #[test]
    fn a_number_keeps_its_digits(digits in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?") {
        let number = format!(r#"{{"id":{digits}}}"#);
        let written = format!(r#"{{"id":"{digits}"}}"#);
        for body in [number, written] {
            let document = read(&body);
            prop_assert_eq!(document.root().required("$.id"), Ok(digits.as_str().into()));
        }
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
        prop_assert_eq!(hash(&plain), hash(&write(&shuffled, "\n\t ")));
    }
}
