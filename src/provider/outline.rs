//! JSON as it stands in a body: each value with its own text and its place.
//!
//! A body is read once, into the places of all its values, and only what must be looked at is decoded. Whoever cuts or
//! keys a part of it must not write values anew: `1e2` would become `100`, `\u00e9` an `é`, and big numbers would lose
//! digits.
//!
//! Two readers of one body must see one identity, or the gateway would call a delivery a duplicate of an event that
//! the handler never saw. So numbers keep their own digits (a float would make two ids out of one, or one out of two),
//! and a name that occurs twice in one object has no value that could be a part of a key: readers differ on which of
//! the two counts.

mod canonical;
mod members;
mod scan;

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;

pub(super) use self::members::{Elements, Member, Members};
use self::scan::{Kind, Node};
use super::tree::escape_lone_surrogates;
use crate::event::Unkeyed;

/// A body that is JSON.
pub(super) struct Document<'b> {
    text: &'b str,
    nodes: Vec<Node>,
}

impl<'b> Document<'b> {
    pub(super) fn read(body: &'b [u8]) -> Result<Self, Unkeyed> {
        if body.trim_ascii().is_empty() {
            return Err(Unkeyed::EmptyBody);
        }
        let text = std::str::from_utf8(body).map_err(|_| Unkeyed::NotJson)?;
        let nodes = scan::nodes(text).ok_or(Unkeyed::NotJson)?;
        Ok(Self { text, nodes })
    }

    /// The value that the document is.
    pub(super) fn root(&self) -> Text<'_> {
        Text { document: self, index: 0, repeated_until: None }
    }

    /// The document `null`.
    pub(super) fn null() -> Self {
        Self { text: "null", nodes: vec![Node { start: 0, end: 4, next: 1, kind: Kind::Null }] }
    }
}

/// One value of a document, without the white space around it.
#[derive(Clone, Copy)]
pub(super) struct Text<'d> {
    document: &'d Document<'d>,
    index: u32,
    /// The first node behind the object in which its name occurs more than once. Such a value is there, but it is no
    /// text, no array and no object.
    repeated_until: Option<NonZeroU32>,
}

impl<'d> Text<'d> {
    /// Its place in the document.
    pub(super) fn range(self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    /// Whether it is neither an object nor an array.
    pub(super) fn is_scalar(self) -> bool {
        !matches!(self.node().kind, Kind::Object | Kind::Array)
    }

    /// Whether it is `null`.
    pub(super) fn is_null(self) -> bool {
        self.is(Kind::Null)
    }

    /// Whether it is `""`.
    pub(super) fn is_empty_string(self) -> bool {
        self.is(Kind::String) && self.range().len() == 2
    }

    /// Whether it is an object without members or an array without elements.
    pub(super) fn is_hollow(self) -> bool {
        !self.is_scalar() && self.node().next == self.index + 1
    }

    /// The members, if it is an object. An object that says a name twice is none: its readers would not agree on what
    /// it means.
    pub(super) fn object(self) -> Option<Members<'d>> {
        let members = self.members();
        (self.is(Kind::Object) && members.have_no_name_twice()).then_some(members)
    }

    /// The elements, if it is an array.
    pub(super) fn array(self) -> Option<Elements<'d>> {
        self.is(Kind::Array).then(|| self.elements())
    }

    /// The member of this name, if it is an object that has one.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.named(name.as_bytes())
    }

    /// The value at a path of names, such as `$.data.order.uuid`.
    pub(super) fn at(self, path: &str) -> Option<Self> {
        path.as_bytes().split(|byte| *byte == b'.').skip(1).try_fold(self, Self::named)
    }

    fn named(self, name: &[u8]) -> Option<Self> {
        let mut members = self.members();
        let value = members.find(|member| member.is_named(name))?.value;
        let repeated = members.any(|member| member.is_named(name));
        Some(Self { repeated_until: NonZeroU32::new(members.end).filter(|_| repeated), ..value })
    }

    /// The value as a part of a key: a string that is not empty, decoded; a number by its own digits; a boolean.
    pub(super) fn key_part(self) -> Option<Cow<'d, str>> {
        match self.node().kind {
            _ if self.repeated_until.is_some() => None,
            Kind::Null | Kind::Array | Kind::Object => None,
            Kind::Boolean => Some(Cow::Borrowed(self.written())),
            Kind::Number | Kind::String | Kind::Escaped => self.decoded().filter(|text| !text.is_empty()),
        }
    }

    /// The part of a key at a path of names, which must be there.
    pub(super) fn required(self, path: &str) -> Result<Cow<'d, str>, Unkeyed> {
        self.at(path).and_then(Self::key_part).ok_or_else(|| Unkeyed::Part(path.to_owned()))
    }

    /// The SHA-256 of the value, whatever the order of its members, its spacing and its escapes. `None` for a value
    /// nested too deep to be hashed.
    pub(super) fn canonical_sha256(self) -> Option<String> {
        canonical::sha256(self)
    }

    fn node(self) -> &'d Node {
        &self.document.nodes[self.index as usize]
    }

    fn is(self, kind: Kind) -> bool {
        self.node().kind == kind && self.repeated_until.is_none()
    }

    fn written(self) -> &'d str {
        &self.document.text[self.range()]
    }

    /// The characters of a string, or the digits of a number. Exponents are spelled in one way, as serde_json does.
    fn decoded(self) -> Option<Cow<'d, str>> {
        match self.node().kind {
            Kind::String => Some(Cow::Borrowed(&self.document.text[self.node().inside_quotes()])),
            Kind::Escaped => {
                let written = self.written();
                let decoded = serde_json::from_str::<String>(written).ok();
                let escaped = || serde_json::from_slice::<String>(&escape_lone_surrogates(written.as_bytes())?).ok();
                decoded.or_else(escaped).map(Cow::Owned)
            }
            Kind::Number => Some(match self.written().split_once(['e', 'E']) {
                Some((digits, exponent)) if exponent.starts_with(['+', '-']) => format!("{digits}e{exponent}").into(),
                Some((digits, exponent)) => format!("{digits}e+{exponent}").into(),
                None => Cow::Borrowed(self.written()),
            }),
            Kind::Null | Kind::Boolean | Kind::Array | Kind::Object => None,
        }
    }

    /// The members of an object, also where it says a name twice; none of anything else.
    pub(super) fn members(self) -> Members<'d> {
        let end = if self.is(Kind::Object) { self.node().next } else { 0 };
        Members { document: self.document, next: self.index + 1, end }
    }

    /// The elements of an array; none of anything else.
    fn elements(self) -> Elements<'d> {
        let end = if self.is(Kind::Array) { self.node().next } else { 0 };
        Elements { document: self.document, next: self.index + 1, end }
    }

    /// All values of its name, if that occurs more than once.
    fn repeated(self) -> Option<Vec<Self>> {
        let end = self.repeated_until?.get();
        // It is the first of them.
        let rest = Members { document: self.document, next: self.index - 1, end };
        let name = Member { value: self }.name();
        Some(rest.filter(|member| member.name() == name).map(|member| member.value).collect())
    }
}

#[cfg(test)]
mod tests;
