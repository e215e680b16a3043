//! JSON read one level at a time: each value with its own text and its place in the document.
//!
//! Whoever cuts or keys a part of a document must not write its values anew: `1e2` would become `100`, `\u00e9` an
//! `é`, and big numbers would lose digits. So a value stays the text that it is, and only what must be looked at is
//! decoded.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json;

/// One JSON value, without the white space around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    text: &'a str,
    /// Where it begins in the document, in bytes.
    start: usize,
}

/// One member of an object.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// Its name, decoded.
    pub(super) name: Cow<'a, str>,
    /// From the first quote of the name to the value: the name, the colon and the white space around it.
    pub(super) heading: Range<usize>,
    /// Its value.
    pub(super) value: Text<'a>,
}

impl Member<'_> {
    /// Its name and value together.
    pub(super) fn range(&self) -> Range<usize> {
        self.heading.start..self.value.range().end
    }
}

impl<'a> Text<'a> {
    /// The whole document; `None` if it is not JSON.
    pub(super) fn document(body: &'a [u8]) -> Option<Self> {
        let body = std::str::from_utf8(body).ok()?;
        let value: &RawValue = serde_json::from_str(body).ok()?;
        Some(Self { text: body, start: 0 }.inside(value))
    }

    /// Its place in the document.
    pub(super) fn range(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Whether it is neither an object nor an array.
    pub(super) fn is_scalar(self) -> bool {
        !self.text.starts_with(['{', '['])
    }

    /// Whether it is `null`.
    pub(super) fn is_null(self) -> bool {
        self.text == "null"
    }

    /// Whether it is an object without members or an array without elements.
    pub(super) fn is_hollow(self) -> bool {
        !self.is_scalar() && self.text[1..self.text.len() - 1].trim_ascii().is_empty()
    }

    /// The members, if it is an object. An object that says a name twice is none: its readers would not agree on what
    /// it means.
    pub(super) fn object(self) -> Option<Vec<Member<'a>>> {
        let Members(members) = serde_json::from_str(self.text).ok()?;
        let mut names = HashSet::with_capacity(members.len());
        let mut end_of_last = 0;
        let mut read = Vec::with_capacity(members.len());
        for (Name(name), value) in members {
            if !names.insert(name.clone()) {
                return None;
            }
            let value = self.inside(value);
            // Between two values stand a brace or a comma, the name and a colon, and nothing else but white space.
            let gap = &self.text[end_of_last..value.start - self.start];
            let before = gap.len() - gap.trim_start_matches([' ', '\t', '\n', '\r', '{', ',']).len();
            read.push(Member { name, heading: self.start + end_of_last + before..value.start, value });
            end_of_last = value.range().end - self.start;
        }
        Some(read)
    }

    /// The elements, if it is an array.
    pub(super) fn array(self) -> Option<Vec<Self>> {
        let elements: Vec<&'a RawValue> = serde_json::from_str(self.text).ok()?;
        Some(elements.into_iter().map(|element| self.inside(element)).collect())
    }

    /// The value as a part of a key: a string that is not empty, decoded; a number by its own digits; a boolean.
    pub(super) fn key_part(self) -> Option<Cow<'a, str>> {
        match self.text.as_bytes().first()? {
            b'"' => {
                let Name(text) = serde_json::from_str(self.text).ok()?;
                (!text.is_empty()).then_some(text)
            }
            b'{' | b'[' | b'n' => None,
            _ => Some(Cow::Borrowed(self.text)),
        }
    }

    /// The SHA-256 of the value, whatever the order of its members, its spacing and its escapes: those may change from
    /// one delivery of an event to the next. `None` for a value nested too deep to be read.
    pub(super) fn canonical_hash(self) -> Option<String> {
        Some(json::canonical_sha256(&json::parse(self.text.as_bytes()).ok()?))
    }

    fn inside(self, value: &'a RawValue) -> Self {
        let text = value.get();
        Self { text, start: self.start + (text.as_ptr().addr() - self.text.as_ptr().addr()) }
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = " {\n \"a\\u0062\" : [1e2, {} ,\"\\u00e9\\/\"],\"c\":{ \"\":-0.0 } , \"d\" :null}\n";

    fn at(range: Range<usize>) -> &'static str {
        &DOCUMENT[range]
    }

    #[test]
    fn values_and_headings_are_found_where_they_stand() {
        let members = Text::document(DOCUMENT.as_bytes()).unwrap().object().unwrap();
        let seen: Vec<_> = members
            .iter()
            .map(|member| (&*member.name, at(member.heading.clone()), at(member.value.range())))
            .collect();
        assert_eq!(
            seen,
            [
                ("ab", "\"a\\u0062\" : ", "[1e2, {} ,\"\\u00e9\\/\"]"),
                ("c", "\"c\":", "{ \"\":-0.0 }"),
                ("d", "\"d\" :", "null"),
            ]
        );
        let elements: Vec<_> = members[0].value.array().unwrap().into_iter().map(|text| at(text.range())).collect();
        assert_eq!(elements, ["1e2", "{}", "\"\\u00e9\\/\""]);
        assert_eq!(at(members[1].value.object().unwrap()[0].heading.clone()), "\"\":");
    }

    #[test]
    fn parts_of_keys_are_decoded_strings_and_literal_numbers() {
        for (text, part) in [
            (r#""\u00e9\/""#, Some("é/")),
            ("900719925474099312345", Some("900719925474099312345")),
            ("1e2", Some("1e2")),
            ("true", Some("true")),
            (r#""""#, None),
            (r#""\ud800""#, None),
            ("null", None),
            ("{}", None),
            ("[1]", None),
        ] {
            assert_eq!(Text::document(text.as_bytes()).unwrap().key_part().as_deref(), part, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_or_ambiguous_is_not_read() {
        for body in [&b""[..], b"{", b"{}x", b"\xff", b"{\"a\":\"\xc3\"}"] {
            assert!(Text::document(body).is_none(), "{body:?}");
        }
        for text in ["[]", "1", r#"{"a":1,"\u0061":2}"#, r#"{"\ud800":1}"#] {
            assert!(Text::document(text.as_bytes()).unwrap().object().is_none(), "{text}");
        }
    }

    #[test]
    fn a_value_is_hashed_whatever_its_spelling_and_by_its_own_digits() {
        let hash = |text: &str| Text::document(text.as_bytes()).unwrap().canonical_hash();
        let one = hash(r#"{"b":[1e2,"é/"],"a":null}"#);
        assert_eq!(one, hash(" {\"a\": null,\n\"b\":[1e2, \"\\u00e9\\/\"]} "));
        assert_ne!(one, hash(r#"{"b":[100,"é/"],"a":null}"#));
        assert_eq!(hash(&("[".repeat(200) + &"]".repeat(200))), None, "nested too deep");
    }
}
