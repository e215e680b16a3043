//! Bodies as JSON: read once, looked into by paths, and turned into the texts that keys are made of.
//!
//! Two readers of one body must see one identity, or the gateway would call a delivery a duplicate of an event that
//! the handler never saw. So numbers keep their own digits (a float would make two ids out of one, or one out of two),
//! and a name that occurs twice in one object has no value that could be a part of a key: readers differ on which of
//! the two counts.

mod pruned;

use std::borrow::Cow;
use std::fmt;

use data_encoding::HEXLOWER;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use serde_json_path::{JsonPath, LocatedNodeList};
use sha2::{Digest, Sha256};

pub(super) use self::pruned::{Wanted, parse_only};
use crate::event::Unkeyed;

/// How serde_json, under `arbitrary_precision`, hands over a number that is no 64-bit integer: as an object with this
/// one name.
const NUMBER: &str = "$serde_json::private::Number";

/// Holds the values of a name that occurs more than once. An object, so that it is no part of a key, and with all of
/// its values, so that a hash over it still tells different contents apart.
const REPEATED: &str = "\u{0}repeated";

/// The body as JSON.
pub(super) fn parse(body: &[u8]) -> Result<Value, Unkeyed> {
    if body.trim_ascii().is_empty() {
        return Err(Unkeyed::EmptyBody);
    }
    let tree = serde_json::from_slice::<Tree>(body).or_else(|error| match escape_lone_surrogates(body) {
        Some(escaped) => serde_json::from_slice(&escaped),
        None => Err(error),
    });
    tree.map(|tree| tree.0).map_err(|_| Unkeyed::NotJson)
}

/// JavaScript writes a text that was cut inside an emoji as an escape of half a surrogate pair. Its own parser takes
/// that back; ours would take the whole body for no JSON. Such an escape is read as its six characters instead. `None`
/// where there is none.
fn escape_lone_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = body.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut escaped = Vec::with_capacity(body.len() + 8);
    let mut at = 0;
    let mut found = false;
    while at < body.len() {
        let length = match (body[at], unit(at)) {
            (b'\\', Some(0xd800..=0xdbff)) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            (b'\\', Some(0xd800..=0xdfff)) => {
                found = true;
                escaped.push(b'\\');
                6
            }
            (b'\\', _) => 2,
            _ => 1,
        };
        let end = body.len().min(at + length);
        escaped.extend_from_slice(&body[at..end]);
        at = end;
    }
    found.then_some(escaped)
}

/// The text of a value that may be a part of a key: a non-empty string as decoded, a number's own digits, a boolean.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Borrowed(number.as_str())),
        Value::Bool(truth) => Some(Cow::Borrowed(if *truth { "true" } else { "false" })),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value at a plain path such as `$.data.order.uuid`.
pub(super) fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').skip(1).try_fold(document, |value, name| value.get(name))
}

/// The text at a plain path, which must be there.
pub(super) fn required<'a>(document: &'a Value, path: &str) -> Result<Cow<'a, str>, Unkeyed> {
    at(document, path).and_then(text).ok_or_else(|| Unkeyed::Part(path.to_owned()))
}

/// The SHA-256 of a value, equal for equal values whatever the order of their names, their spacing and their escapes:
/// names are sorted, and every text stands behind its length.
pub(super) fn canonical_sha256(value: &Value) -> String {
    let mut hash = Sha256::new();
    add_canonical(&mut hash, value);
    HEXLOWER.encode(&hash.finalize())
}

fn add_canonical(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Number(number) => add_text(hash, b'd', number.as_str()),
        Value::String(text) => add_text(hash, b's', text),
        Value::Array(elements) => {
            hash.update(format!("[{}:", elements.len()));
            for element in elements {
                add_canonical(hash, element);
            }
        }
        Value::Object(members) => {
            hash.update(format!("{{{}:", members.len()));
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                add_text(hash, b's', name);
                add_canonical(hash, member);
            }
        }
    }
}

fn add_text(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update(format!("{}:", text.len()));
    hash.update(text);
}

/// A JSONPath of the configuration, compiled once.
#[derive(Debug)]
pub(super) struct Path {
    /// A path that does not compile is a mistake that the configuration's own check reports. Here it matches nothing,
    /// so that its events are forwarded without a key.
    compiled: Option<JsonPath>,
}

impl Path {
    pub(super) fn compile(written: &str) -> Self {
        Self { compiled: JsonPath::parse(written).ok() }
    }

    /// Every value that the path matches, in the order of the document.
    pub(super) fn all<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        self.compiled.as_ref().map(|path| path.query(document).all()).unwrap_or_default()
    }

    /// The same values, each with its place in the document.
    pub(super) fn located<'a>(&self, document: &'a Value) -> LocatedNodeList<'a> {
        self.compiled.as_ref().map(|path| path.query_located(document)).unwrap_or_default()
    }
}

/// A value whose repeated names are kept apart and whose numbers keep their digits. serde_json's own reading of a
/// value takes the last of two equal names, and would take an object that carries its private names for something
/// else than an object.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree(Value::Null))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Tree, E> {
        Ok(Tree(Value::Bool(truth)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree(Value::Number(number.into())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree(Value::Number(number.into())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree(Value::String(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree(Value::String(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Tree, A::Error> {
        let mut array = Vec::new();
        while let Some(Tree(element)) = elements.next_element()? {
            array.push(element);
        }
        Ok(Tree(Value::Array(array)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
        let mut object = Map::new();
        let mut next = members.next_key::<String>()?;
        while let Some(name) = next {
            let Tree(value) = members.next_value()?;
            next = members.next_key()?;
            if name == NUMBER
                && object.is_empty()
                && next.is_none()
                && let Some(number) = value.as_str().and_then(|digits| digits.parse::<Number>().ok())
            {
                return Ok(Tree(Value::Number(number)));
            }
            match object.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut place) => {
                    let both = Value::Array(vec![place.get_mut().take(), value]);
                    place.insert(Value::Object(Map::from_iter([(REPEATED.to_owned(), both)])));
                }
            }
        }
        Ok(Tree(Value::Object(object)))
    }
}

#[cfg(test)]
mod tests;
