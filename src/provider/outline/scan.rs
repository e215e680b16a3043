//! One pass over a JSON text that finds every value and checks the grammar (RFC 8259) to the last byte.
//!
//! It does not recurse, so that no nesting is too deep for it, and decodes nothing.

use std::ops::Range;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    /// A string whose characters stand as they are.
    String,
    /// A string with at least one escape.
    Escaped,
    Array,
    Object,
}

/// One value, or the name of a member.
///
/// Nodes stand in the order of the text: the elements of an array follow it, and so do the members of an object, each
/// name right before its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Where it begins in the text, in bytes, and where it ends.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The index of the first node behind it and all that it holds.
    pub(super) next: u32,
    pub(super) kind: Kind,
}

impl Node {
    /// Where the characters of a string stand.
    pub(super) fn inside_quotes(&self) -> Range<usize> {
        self.start as usize + 1..self.end as usize - 1
    }
}

/// Stands for what is around a container that is in none.
const OUTSIDE: u32 = u32::MAX;

/// The nodes of a text; `None` if it is not one JSON value.
pub(super) fn nodes(text: &str) -> Option<Vec<Node>> {
    // Places are kept in 32 bits, and one is `OUTSIDE`.
    u32::try_from(text.len()).ok().filter(|length| *length < OUTSIDE)?;
    let bytes = text.as_bytes();
    let mut nodes = Nodes(Vec::with_capacity(bytes.len() / 12 + 4));
    // The innermost container that is open, and what it is.
    let mut around = OUTSIDE;
    let mut of_object = false;
    let mut at = behind_space(bytes, 0);
    loop {
        let byte = *bytes.get(at)?;
        match byte {
            b'{' | b'[' => {
                of_object = byte == b'{';
                around = nodes.open(if of_object { Kind::Object } else { Kind::Array }, at, around);
                at = behind_space(bytes, at + 1);
                if *bytes.get(at)? != if of_object { b'}' } else { b']' } {
                    if of_object {
                        at = nodes.name(bytes, at)?;
                    }
                    continue;
                }
            }
            _ => {
                let (kind, end) = scalar(bytes, at)?;
                nodes.push(kind, at, end);
                at = behind_space(bytes, end);
            }
        }
        // A value has ended, and perhaps the containers around it end with it.
        loop {
            if around == OUTSIDE {
                return (at == bytes.len()).then_some(nodes.0);
            }
            let byte = *bytes.get(at)?;
            let end = at + 1;
            at = behind_space(bytes, end);
            match (byte, of_object) {
                (b',', true) => {
                    at = nodes.name(bytes, at)?;
                    break;
                }
                (b',', false) => break,
                (b'}', true) | (b']', false) => {
                    around = nodes.close(around, end);
                    of_object = nodes.0.get(around as usize).is_some_and(|node| node.kind == Kind::Object);
                }
                _ => return None,
            }
        }
    }
}

struct Nodes(Vec<Node>);

impl Nodes {
    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = self.0.len() as u32 + 1;
        self.0.push(Node { start: start as u32, end: end as u32, next, kind });
    }

    /// Until it is closed, a container's `next` is the one around it.
    fn open(&mut self, kind: Kind, start: usize, around: u32) -> u32 {
        let index = self.0.len() as u32;
        self.0.push(Node { start: start as u32, end: 0, next: around, kind });
        index
    }

    fn close(&mut self, container: u32, end: usize) -> u32 {
        let next = self.0.len() as u32;
        let node = &mut self.0[container as usize];
        node.end = end as u32;
        std::mem::replace(&mut node.next, next)
    }

    /// A name and its colon; where its value begins.
    fn name(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        if *bytes.get(at)? != b'"' {
            return None;
        }
        let (kind, end) = string(bytes, at)?;
        self.push(kind, at, end);
        let colon = behind_space(bytes, end);
        (*bytes.get(colon)? == b':').then(|| behind_space(bytes, colon + 1))
    }
}

/// What the value that begins here is, and where it ends.
fn scalar(bytes: &[u8], at: usize) -> Option<(Kind, usize)> {
    let word = |word: &[u8], kind| bytes[at..].starts_with(word).then_some((kind, at + word.len()));
    match bytes[at] {
        b'"' => string(bytes, at),
        b't' => word(b"true", Kind::Boolean),
        b'f' => word(b"false", Kind::Boolean),
        b'n' => word(b"null", Kind::Null),
        _ => Some((Kind::Number, number(bytes, at)?)),
    }
}

#[inline(always)]
fn string(bytes: &[u8], quote: usize) -> Option<(Kind, usize)> {
    let mut kind = Kind::String;
    let mut at = quote + 1;
    loop {
        if let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
            at += plain_among(*eight);
        }
        match *bytes.get(at)? {
            b'"' => return Some((kind, at + 1)),
            b'\\' => {
                kind = Kind::Escaped;
                at += length_of_escape(&bytes[at..])?;
            }
            // Control characters must be escaped.
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// How many of these bytes stand before the first that ends a run of plain characters: a quote, a backslash or a control
/// character. Most of a body is inside strings, so all eight are looked at together: where a byte of `word` is less
/// than `limit`, `word - limit` borrows from its high bit.
fn plain_among(eight: [u8; 8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let below = |word: u64, limit: u64| word.wrapping_sub(limit * EACH) & !word & HIGH;
    let word = u64::from_le_bytes(eight);
    // Flipping one bit puts the quote (0x22) right behind the control characters (up to 0x1f).
    let found = below(word ^ (0x02 * EACH), 0x21) | below(word ^ (u64::from(b'\\') * EACH), 1);
    found.trailing_zeros() as usize / 8
}

fn length_of_escape(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

fn number(bytes: &[u8], start: usize) -> Option<usize> {
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    // At least one.
    let digits = |start: usize| {
        let mut at = start;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > start).then_some(at)
    };
    let mut at = start + usize::from(is(start, b"-"));
    at = if is(at, b"0") { at + 1 } else { digits(at)? };
    if is(at, b".") {
        at = digits(at + 1)?;
    }
    if is(at, b"eE") {
        at = digits(at + 1 + usize::from(is(at + 1, b"+-")))?;
    }
    Some(at)
}

fn behind_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    /// What is JSON and what is not is decided as serde_json decides it.
    fn check(text: &str) -> Result<(), TestCaseError> {
        let read = serde_json::from_str::<IgnoredAny>(text).is_ok();
        prop_assert_eq!(nodes(text).is_some(), read, "{}", text);
        Ok(())
    }

    #[test]
    fn odd_texts_are_json_or_not() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "[]",
            "{}",
            "[,]",
            "[1,]",
            "[1 2]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1]"#,
            r#"[1}"#,
            "[[]]",
            "[[],{}]x",
            "01",
            "-",
            "-0",
            "1.",
            ".1",
            "1.5e",
            "1e+",
            "1E-07",
            "+1",
            "1e5 ",
            "nul",
            "null",
            "nulll",
            "true,",
            "\u{feff}1",
            r#""\u12"#,
            r#""\u12g4""#,
            r#""\ud800""#,
            r#""\x""#,
            r#""\""#,
            "\"\u{1}\"",
            "\"1234567\u{1f}\"",
            "\"\u{7f}é\u{20ac}\u{10348}\"",
            "\"a\nb\"",
            r#"{"a":{"b":[1,{"c":null}]}}"#,
        ] {
            check(text).unwrap();
        }
    }

    #[test]
    fn no_nesting_is_too_deep() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(nodes(&deep).map(|nodes| nodes.len()), Some(100_000));
        assert!(nodes(&deep[1..]).is_none());
    }

    proptest! {
        #[test]
        fn what_is_json_is_found_to_be(text in r#"[\{\}\[\]",:a0\\u\-.eé ]{0,16}"#) {
            check(&text)?;
        }

        #[test]
        fn damage_is_noticed_wherever_it_is(
            strings in prop::collection::vec("([a-zé ]|\\\\[\"nu/]|\\\\u[0-9a-g]{4}){0,12}", 1..6),
            at in any::<prop::sample::Index>(),
            damage in prop::sample::select(vec!["\"", "\\", "\u{1f}", ",", "{", "]", "0", "-", " "]),
        ) {
            let mut text = format!("{{\"a\":[{}],\"b\":{{\"c\":-1.5e3}}}}", strings.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(" ,"));
            check(&text)?;
            let places: Vec<_> = text.char_indices().map(|(place, _)| place).collect();
            text.insert_str(places[at.index(places.len())], damage);
            check(&text)?;
        }
    }
}
