//! Events and their keys: what a delivery holds, before anything is known about it.
//!
//! An event is the smallest thing that can be a duplicate. Its key is equal for every redelivery of that event and
//! different for every other event; everything else in this crate rests on that one property, so the rules for
//! joining parts live here and nowhere else.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// An encoded part longer than this many bytes is replaced by `#` and the SHA-256 of the part.
const LONGEST_PART: usize = 200;

/// What a hashed key begins with in a log.
pub const HASHED: &str = "sha256:";

/// The identity of one event: its namespace and the parts that identify it, joined.
///
/// Keys read `namespace:part:part`, for example `hotmart:e8f9a0b1`. Two different lists of parts never give the same
/// key: `%`, `:` and `#` inside a part are percent-encoded (as are spaces and control characters, so that a key can
/// be typed on a command line), an absent part is a bare `#`, and a part too long to read is `#` and its SHA-256.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKey(Arc<str>);

impl EventKey {
    /// Joins `parts` under `namespace`. `None` stands for a part that may be absent and is.
    #[must_use]
    pub fn new<'a>(namespace: &str, parts: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut key = Joining::under(namespace);
        parts.into_iter().for_each(|part| key.add(part));
        key.finish()
    }

    /// A key as a log line, `explain` or Redis shows it, taken back as it stands.
    #[must_use]
    pub fn from_encoded(encoded: &str) -> Self {
        Self(encoded.into())
    }

    /// A short hash of the key, for logs that must not hold what is in it (a phone number, say). Equal keys have equal
    /// hashes, so that the lines about one event are still found; a hash cannot be turned back.
    #[must_use]
    pub fn hashed(&self) -> String {
        let hash = Sha256::digest(self.0.as_bytes());
        format!("{HASHED}{}", HEXLOWER.encode(&hash[..8]))
    }

    /// The key as it is shown to people and, behind the store's prefix, kept in the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for EventKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, out)
    }
}

/// A key whose parts come one after the other.
#[derive(Debug)]
pub struct Joining(String);

impl Joining {
    /// A key of this namespace that has no parts yet.
    #[must_use]
    pub fn under(namespace: &str) -> Self {
        let mut key = String::with_capacity(128);
        encode_into(&mut key, namespace);
        Self(key)
    }

    /// Adds a part. `None` stands for one that may be absent and is.
    pub fn add(&mut self, part: Option<&str>) {
        self.0.push(':');
        match part {
            Some(text) => encode_into(&mut self.0, text),
            None => self.0.push('#'),
        }
    }

    /// The key of the parts that were added.
    #[must_use]
    pub fn finish(self) -> EventKey {
        EventKey(self.0.into())
    }
}

fn encode_into(key: &mut String, part: &str) {
    let start = key.len();
    let mut rest = part;
    while let Some(at) = rest.bytes().position(|byte| ESCAPED[usize::from(byte)]) {
        let (plain, escaped) = rest.split_at(at);
        key.push_str(plain);
        key.push('%');
        // What is escaped is one byte long.
        let (byte, behind) = (escaped.as_bytes()[0], &escaped[1..]);
        for digit in [byte >> 4, byte & 0xf] {
            key.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
        }
        rest = behind;
    }
    key.push_str(rest);
    if key.len() - start > LONGEST_PART {
        key.truncate(start);
        key.push('#');
        HEXLOWER.encode_append(&Sha256::digest(part.as_bytes()), key);
    }
}

/// By byte: every byte of every key is looked up here.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        escaped[byte] = matches!(byte as u8, b'%' | b':' | b'#' | b' ' | 0..=0x1f | 0x7f);
        byte += 1;
    }
    escaped
};

/// The SHA-256 of `bytes` in lower-case hexadecimal, as it stands in a key.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// One event of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is, in the provider's words where it has some: `message`, `status`, `PURCHASE_APPROVED`.
    pub kind: Cow<'static, str>,
    /// Its key, or why there is none: such an event is forwarded, counted and logged, never dropped.
    pub key: Result<EventKey, Unkeyed>,
    /// The other side of the conversation it belongs to (sender or recipient). The events of one conversation that a
    /// delivery sends go to the upstream one after the other.
    pub conversation: Option<String>,
}

/// Why an event has no key. The text is for the operator and names no value of the payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unkeyed {
    /// The body is empty.
    #[error("the body is empty")]
    EmptyBody,
    /// The body is not the JSON that the key's parts are looked up in.
    #[error("the body is not JSON")]
    NotJson,
    /// A part of the key is absent, empty, not a single value, or neither text, number nor boolean.
    #[error("no usable value at `{0}`")]
    Part(String),
    /// Content of a kind that the provider's file does not know.
    #[error("content of an unknown kind at `{0}`")]
    UnknownKind(String),
    /// The delivery is not authentic, and its route only observes: its keys must not be touched.
    #[error("the delivery is not authentic")]
    NotAuthentic,
    /// A handshake or a probe of the provider, which is no event.
    #[error("a handshake, not an event")]
    Handshake,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_reads_as_the_design_says() {
        let key = EventKey::new("hotmart", [Some("e8f9a0b1")]);
        assert_eq!(key.as_str(), "hotmart:e8f9a0b1");
    }

    #[test]
    fn separators_and_escapes_inside_parts_are_encoded() {
        let key = EventKey::new("a", [Some("b:c"), Some("#"), Some("50%"), Some("x y\n")]);
        assert_eq!(key.as_str(), "a:b%3Ac:%23:50%25:x%20y%0A");
    }

    #[test]
    fn a_hashed_key_is_short_and_shows_nothing_of_it() {
        let key = EventKey::new("whatsapp", [Some("message"), Some("5511999990000")]);
        assert_eq!(key.hashed(), key.clone().hashed());
        assert_ne!(key.hashed(), EventKey::new("whatsapp", [Some("message"), Some("5511999990001")]).hashed());
        assert_eq!(key.hashed().len(), "sha256:".len() + 16);
        assert_eq!(key.hashed()["sha256:".len()..], sha256_hex(key.as_str().as_bytes())[..16]);
    }

    #[test]
    fn absent_differs_from_empty() {
        let absent = EventKey::new("a", [None, Some("b")]);
        let empty = EventKey::new("a", [Some(""), Some("b")]);
        assert_ne!(absent, empty);
        assert_eq!(absent.as_str(), "a:#:b");
    }

    #[test]
    fn a_part_of_over_200_encoded_bytes_becomes_its_hash() {
        let fits = "x".repeat(200);
        let long = "x".repeat(201);
        assert_eq!(EventKey::new("a", [Some(&*fits)]).as_str(), format!("a:{fits}"));
        assert_eq!(EventKey::new("a", [Some(&*long)]).as_str(), format!("a:#{}", sha256_hex(long.as_bytes())));
        let grows_by_escaping = ":".repeat(67);
        assert!(EventKey::new("a", [Some(&*grows_by_escaping)]).as_str().starts_with("a:#"));
    }

    proptest! {
        #[test]
        fn different_lists_of_parts_give_different_keys(
            one in proptest::collection::vec(proptest::option::of("[ab:#%]{0,3}"), 1..5),
            other in proptest::collection::vec(proptest::option::of("[ab:#%]{0,3}"), 1..5),
        ) {
            let key = |parts: &[Option<String>]| EventKey::new("n", parts.iter().map(Option::as_deref));
            prop_assert_eq!(key(&one) == key(&other), one == other);
        }
    }
}
