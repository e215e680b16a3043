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
mod scan;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

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
        Text { document: self, index: 0, repeated_in: None }
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
    index: usize,
    /// The object in which its name occurs more than once. Such a value is there, but it is no text, no array and no
    /// object.
    repeated_in: Option<usize>,
}

/// One member of an object.
#[derive(Clone, Copy)]
pub(super) struct Member<'d> {
    name: Text<'d>,
    pub(super) value: Text<'d>,
}

impl<'d> Member<'d> {
    /// Its name, decoded.
    pub(super) fn name(self) -> Cow<'d, str> {
        self.name.decoded().unwrap_or_default()
    }

    pub(super) fn is_named(self, name: &str) -> bool {
        match self.name.node().kind {
            Kind::Escaped => self.name() == name,
            _ => self.name.inside_quotes() == name.as_bytes(),
        }
    }

    /// From the first quote of the name to the value: the name, the colon and the white space around it.
    pub(super) fn heading(self) -> Range<usize> {
        self.name.range().start..self.value.range().start
    }

    /// Its name and value together.
    pub(super) fn range(self) -> Range<usize> {
        self.name.range().start..self.value.range().end
    }
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
        self.node().kind == Kind::Null && self.repeated_in.is_none()
    }

    /// Whether it is `""`.
    pub(super) fn is_empty_string(self) -> bool {
        self.node().kind == Kind::String && self.range().len() == 2 && self.repeated_in.is_none()
    }

    /// Whether it is an object without members or an array without elements.
    pub(super) fn is_hollow(self) -> bool {
        !self.is_scalar() && self.node().next as usize == self.index + 1
    }

    /// The members, if it is an object. An object that says a name twice is none: its readers would not agree on what
    /// it means.
    pub(super) fn object(self) -> Option<impl Iterator<Item = Member<'d>>> {
        (self.node().kind == Kind::Object && self.repeated_in.is_none() && self.has_no_name_twice())
            .then(|| self.members())
    }

    /// The elements, if it is an array.
    pub(super) fn array(self) -> Option<impl Iterator<Item = Self> + Clone> {
        (self.node().kind == Kind::Array && self.repeated_in.is_none()).then(|| self.elements())
    }

    /// The member of this name, if it is an object that has one.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        let mut found = self.members().filter(|member| member.is_named(name));
        let value = found.next()?.value;
        Some(Self { repeated_in: found.next().map(|_| self.index), ..value })
    }

    /// The value at a path of names, such as `$.data.order.uuid`.
    pub(super) fn at(self, path: &str) -> Option<Self> {
        path.split('.').skip(1).try_fold(self, Self::get)
    }

    /// The value as a part of a key: a string that is not empty, decoded; a number by its own digits; a boolean.
    pub(super) fn key_part(self) -> Option<Cow<'d, str>> {
        match self.node().kind {
            _ if self.repeated_in.is_some() => None,
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
        &self.document.nodes[self.index]
    }

    fn written(self) -> &'d str {
        &self.document.text[self.range()]
    }

    /// What stands between the quotes of a string.
    fn inside_quotes(self) -> &'d [u8] {
        let Range { start, end } = self.range();
        &self.document.text.as_bytes()[start + 1..end - 1]
    }

    /// The characters of a string, or the digits of a number. Exponents are spelled in one way, as serde_json does.
    fn decoded(self) -> Option<Cow<'d, str>> {
        let written = self.written();
        match self.node().kind {
            Kind::String => Some(Cow::Borrowed(&written[1..written.len() - 1])),
            Kind::Escaped => {
                let decoded = serde_json::from_str::<String>(written).ok();
                let escaped = || serde_json::from_slice::<String>(&escape_lone_surrogates(written.as_bytes())?).ok();
                decoded.or_else(escaped).map(Cow::Owned)
            }
            Kind::Number => Some(match written.split_once(['e', 'E']) {
                Some((digits, exponent)) if exponent.starts_with(['+', '-']) => format!("{digits}e{exponent}").into(),
                Some((digits, exponent)) => format!("{digits}e+{exponent}").into(),
                None => Cow::Borrowed(written),
            }),
            _ => None,
        }
    }

    /// The members of an object, also where it says a name twice; none of anything else.
    pub(super) fn members(self) -> impl Iterator<Item = Member<'d>> {
        let mut values = self.children(Kind::Object);
        std::iter::from_fn(move || {
            let name = values.next()?;
            // The name's own node has no other behind it than its value's.
            Some(Member { name, value: values.next()? })
        })
    }

    /// The elements of an array; none of anything else.
    fn elements(self) -> Children<'d> {
        self.children(Kind::Array)
    }

    fn children(self, of: Kind) -> Children<'d> {
        let node = self.node();
        let next = if node.kind == of && self.repeated_in.is_none() { self.index + 1 } else { node.next as usize };
        Children { document: self.document, next, end: node.next as usize }
    }

    fn has_no_name_twice(self) -> bool {
        // A few plain names are quicker compared with each other than hashed; of many, that would take for ever.
        let mut seen = [&[][..]; 16];
        for (index, Member { name, .. }) in self.members().enumerate() {
            if index == seen.len() || name.node().kind == Kind::Escaped {
                let mut seen = HashSet::new();
                return self.members().all(|member| seen.insert(member.name()));
            }
            let name = name.inside_quotes();
            if seen[..index].contains(&name) {
                return false;
            }
            seen[index] = name;
        }
        true
    }

    /// All values of its name, if that occurs more than once.
    fn repeated(self) -> Option<Vec<Self>> {
        let at = |index| Self { index, repeated_in: None, ..self };
        let (object, name) = (at(self.repeated_in?), at(self.index - 1).decoded());
        Some(object.members().filter(|member| member.name.decoded() == name).map(|member| member.value).collect())
    }
}

/// The nodes right below a container, in their order.
#[derive(Clone)]
struct Children<'d> {
    document: &'d Document<'d>,
    next: usize,
    end: usize,
}

impl<'d> Iterator for Children<'d> {
    type Item = Text<'d>;

    fn next(&mut self) -> Option<Text<'d>> {
        if self.next >= self.end {
            return None;
        }
        let child = Text { document: self.document, index: self.next, repeated_in: None };
        self.next = child.node().next as usize;
        Some(child)
    }
}

#[cfg(test)]
mod tests;
