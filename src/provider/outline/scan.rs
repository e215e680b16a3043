//! One pass over a JSON text that finds every value and checks the grammar (RFC 8259) to the last byte.
//!
//! It does not recurse, so that no nesting is too deep for it, and decodes nothing.

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

/// Stands for what is around a container that is in none.
const OUTSIDE: u32 = u32::MAX;

/// The nodes of a text; `None` if it is not one JSON value.
pub(super) fn nodes(text: &str) -> Option<Vec<Node>> {
    // Places are kept in 32 bits, and one is `OUTSIDE`.
    u32::try_from(text.len()).ok().filter(|length| *length < OUTSIDE)?;
    let mut scan = Scan { bytes: text.as_bytes(), at: 0, nodes: Vec::with_capacity(text.len() / 12 + 4) };
    scan.document()?;
    Some(scan.nodes)
}

struct Scan<'b> {
    bytes: &'b [u8],
    at: usize,
    nodes: Vec<Node>,
}

impl Scan<'_> {
    fn document(&mut self) -> Option<()> {
        let mut around = OUTSIDE;
        loop {
            self.space();
            let start = self.at;
            match self.peek()? {
                b'{' => {
                    around = self.open(Kind::Object, around);
                    if self.peek()? != b'}' {
                        self.name()?;
                        continue;
                    }
                }
                b'[' => {
                    around = self.open(Kind::Array, around);
                    if self.peek()? != b']' {
                        continue;
                    }
                }
                b'"' => {
                    let kind = self.string()?;
                    self.push(kind, start);
                }
                b't' => self.word(b"true", Kind::Boolean)?,
                b'f' => self.word(b"false", Kind::Boolean)?,
                b'n' => self.word(b"null", Kind::Null)?,
                _ => {
                    self.number()?;
                    self.push(Kind::Number, start);
                }
            }
            // A value has ended, and perhaps the containers around it end with it.
            loop {
                self.space();
                let Some(container) = self.nodes.get(around as usize) else {
                    return (self.at == self.bytes.len()).then_some(());
                };
                let kind = container.kind;
                let byte = self.peek()?;
                self.at += 1;
                match (byte, kind) {
                    (b',', Kind::Object) => {
                        self.space();
                        self.name()?;
                        break;
                    }
                    (b',', _) => break,
                    (b'}', Kind::Object) | (b']', Kind::Array) => around = self.close(around),
                    _ => return None,
                }
            }
        }
    }

    /// Until it is closed, a container's `next` is the one around it.
    fn open(&mut self, kind: Kind, around: u32) -> u32 {
        let index = self.nodes.len() as u32;
        self.nodes.push(Node { start: self.at as u32, end: 0, next: around, kind });
        self.at += 1;
        self.space();
        index
    }

    fn close(&mut self, container: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[container as usize];
        node.end = self.at as u32;
        std::mem::replace(&mut node.next, next)
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: self.at as u32, next, kind });
    }

    /// A name and its colon.
    fn name(&mut self) -> Option<()> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        let kind = self.string()?;
        self.push(kind, start);
        self.space();
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn string(&mut self) -> Option<Kind> {
        let mut kind = Kind::String;
        self.at += 1;
        loop {
            self.at += length_of_plain(&self.bytes[self.at..]);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(kind);
                }
                b'\\' => {
                    kind = Kind::Escaped;
                    self.escape()?;
                }
                // Control characters must be escaped.
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(6)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        self.skip_if(|byte| byte == b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.skip_if(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.skip_if(|byte| matches!(byte, b'e' | b'E')) {
            self.skip_if(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        Some(())
    }

    /// At least one.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.skip_if(|byte| byte.is_ascii_digit()) {}
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<()> {
        let start = self.at;
        self.at += word.len();
        (self.bytes.get(start..self.at)? == word).then(|| self.push(kind, start))
    }

    fn skip_if(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.bytes.get(self.at).is_some_and(|byte| wanted(*byte));
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while self.skip_if(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {}
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// How many bytes stand before the first quote, backslash or control character. Most of a body is inside strings, so
/// eight are looked at in one step: `x - 0x01…` borrows into the high bit of the first byte that is zero.
fn length_of_plain(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let mut rest = bytes;
    while let Some((eight, behind)) = rest.split_first_chunk() {
        let eight = u64::from_le_bytes(*eight);
        let first_below = |word: u64, limit: u64| word.wrapping_sub(limit * EACH) & !word;
        let found = first_below(eight, 0x20)
            | first_below(eight ^ (u64::from(b'"') * EACH), 1)
            | first_below(eight ^ (u64::from(b'\\') * EACH), 1);
        if found & HIGH != 0 {
            return bytes.len() - rest.len() + (found & HIGH).trailing_zeros() as usize / 8;
        }
        rest = behind;
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.len() - rest.len() + rest.iter().position(ends).unwrap_or(rest.len())
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
