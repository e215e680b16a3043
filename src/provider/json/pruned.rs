//! Reading only what a key needs: the rest of the body is passed over, without being kept.
//!
//! A body is checked to its end all the same, and what is read is read as [`super::parse`] reads it.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::{REPEATED, Tree, TreeVisitor, escape_lone_surrogates};
use crate::event::Unkeyed;

/// Plain paths, such as `$.data.order.uuid`, as a tree of names.
#[derive(Debug, Default)]
pub(in crate::provider) struct Wanted {
    members: Vec<(String, Wanted)>,
    /// A path ends here: the value is read whole, whatever else is wanted inside it.
    whole: bool,
}

impl Wanted {
    /// `None` if one of the paths is more than names and dots.
    pub(in crate::provider) fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut wanted = Self::default();
        for path in paths {
            let names = path.strip_prefix("$.")?;
            let is_plain =
                |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !names.split('.').all(is_plain) {
                return None;
            }
            wanted.add(names);
        }
        Some(wanted)
    }

    fn add(&mut self, names: &str) {
        let (first, rest) = names.split_once('.').map_or((names, None), |(first, rest)| (first, Some(rest)));
        let index = self.members.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            self.members.push((first.to_owned(), Self::default()));
            self.members.len() - 1
        });
        match rest {
            Some(rest) => self.members[index].1.add(rest),
            None => self.members[index].1.whole = true,
        }
    }
}

/// The body's JSON with nothing but what is `wanted`, and what stands around it.
pub(in crate::provider) fn parse_only(body: &[u8], wanted: &Wanted) -> Result<Value, Unkeyed> {
    if body.trim_ascii().is_empty() {
        return Err(Unkeyed::EmptyBody);
    }
    let read = |body: &[u8]| {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let value = Pruned(wanted).deserialize(&mut reader)?;
        reader.end().map(|()| value)
    };
    let value = read(body).or_else(|error| match escape_lone_surrogates(body) {
        Some(escaped) => read(&escaped),
        None => Err(error),
    });
    // What is passed over is not decoded, so that its bytes are text is looked at here.
    match value {
        Ok(value) if std::str::from_utf8(body).is_ok() => Ok(value),
        _ => Err(Unkeyed::NotJson),
    }
}

struct Pruned<'w>(&'w Wanted);

impl<'de> DeserializeSeed<'de> for Pruned<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pruned<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        TreeVisitor.visit_unit().map(|Tree(value)| value)
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Value, E> {
        TreeVisitor.visit_bool(truth).map(|Tree(value)| value)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        TreeVisitor.visit_u64(number).map(|Tree(value)| value)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        TreeVisitor.visit_i64(number).map(|Tree(value)| value)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        TreeVisitor.visit_str(text).map(|Tree(value)| value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            let Some((_, wanted)) = self.0.members.iter().find(|(wanted, _)| *wanted == name) else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            let value =
                if wanted.whole { members.next_value::<Tree>()?.0 } else { members.next_value_seed(Pruned(wanted))? };
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
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{at, parse, required};
    use super::*;

    #[test]
    fn only_plain_paths_are_wanted() {
        assert!(Wanted::new(["$.id", "$.data.order.uuid", "$.data.id"]).is_some());
        for path in ["$", "id", "$.items[0]", "$..id", "$['id']", "$.a.*", "$.a b", "$."] {
            assert!(Wanted::new([path]).is_none(), "{path}");
        }
    }

    #[test]
    fn what_is_read_is_what_the_whole_reading_gives() {
        let paths = ["$.id", "$.data.id", "$.type", "$.data"];
        let wanted = Wanted::new(paths).expect("plain paths");
        for body in [
            r#"{"id":"a","data":{"id":12345678901234567890123,"x":[1,{"id":2}]},"type":true}"#,
            r#" {"x":{"id":1},"i\u0064":"esc\u0061ped","data":[{"id":1}]} "#,
            r#"{"id":1,"id":2,"data":{"id":1,"id":1}}"#,
            r#"{"x":1,"x":2,"id":1E5}"#,
            r#"{"id":null,"data":5,"type":"\ud83d"}"#,
            r#"{"id":{"a":1},"data":"text"}"#,
            r#"{"id":49.90,"data":12345678901234567890123}"#,
            r#"[{"id":1}]"#,
            r#""id""#,
            "7",
            "null",
            "",
            " ",
            "{",
            r#"{"id":1}x"#,
            r#"{"id":1,"x":nul}"#,
            r#"{"id":1,}"#,
        ] {
            let (pruned, whole) = (parse_only(body.as_bytes(), &wanted), parse(body.as_bytes()));
            assert_eq!(pruned.as_ref().err(), whole.as_ref().err(), "{body}");
            if let (Ok(pruned), Ok(whole)) = (pruned, whole) {
                for path in paths {
                    assert_eq!(required(&pruned, path), required(&whole, path), "{path} in {body}");
                    assert_eq!(at(&pruned, path).is_some(), at(&whole, path).is_some(), "{path} in {body}");
                }
            }
        }
        assert_eq!(parse_only(b"{\"id\":1,\"x\":\"\xff\"}", &wanted), Err(Unkeyed::NotJson));
    }

    proptest! {
        #[test]
        fn any_body_gives_the_same_parts_either_way(body in r#"[\{\}\[\]",:a0\\ ]{0,24}|\{"a":("[a\\]{0,3}"|-?[0-9]{1,3}|\{"b":[0-9]\}|\[\])(,"a":1)?\}"#) {
            let wanted = Wanted::new(["$.a.b", "$.a"]).expect("plain paths");
            let alone = Wanted::new(["$.a"]).expect("a plain path");
            let whole = parse(body.as_bytes());
            prop_assert_eq!(parse_only(body.as_bytes(), &alone).and_then(|value| required(&value, "$.a").map(|a| a.into_owned())),
                whole.clone().and_then(|value| required(&value, "$.a").map(|a| a.into_owned())));
            prop_assert_eq!(parse_only(body.as_bytes(), &wanted).and_then(|value| required(&value, "$.a.b").map(|a| a.into_owned())),
                whole.and_then(|value| required(&value, "$.a.b").map(|a| a.into_owned())));
        }
    }
}
