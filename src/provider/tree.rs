//! JSON as a tree of values, for the JSONPaths that are more than names.
//!
//! It tells the same parts of keys as an [`outline`](super::outline) does, at many times the cost.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use serde_json_path::{JsonPath, LocatedNodeList};

use crate::event::Unkeyed;

/// How serde_json, under `arbitrary_precision`, hands over a number that is no 64-bit integer: as an object with this
/// one name.
const NUMBER: &str = "$serde_json::private::Number";

/// Holds the values of a name that occurs more than once. An object, so that it is no part of a key.
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
pub(super) fn escape_lone_surrogates(body: &[u8]) -> Option<Vec<u8>> {
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

/// A JSONPath of the configuration, compiled once.
#[derive(Debug)]
pub(super) struct Path {
    /// A path that does not compile is a mistake that the configuration's own check reports. Here it matches nothing,
    /// so that its events are forwarded without a key.
    compiled: Option<JsonPath>,
    /// Where it says no more than names.
    names: Option<Vec<String>>,
}

impl Path {
    pub(super) fn compile(written: &str) -> Self {
        let compiled = JsonPath::parse(written).ok();
        let is_plain =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let names = written.strip_prefix("$.").filter(|names| compiled.is_some() && names.split('.').all(is_plain));
        Self { compiled, names: names.map(|names| names.split('.').map(str::to_owned).collect()) }
    }

    /// The names that lead to the value, where the path is that and no more.
    pub(super) fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
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
