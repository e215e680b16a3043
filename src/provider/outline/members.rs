//! What is in an object or an array: its members or elements, one after the other.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::scan::Kind;
use super::{Document, Text};

/// One member of an object, whose name stands right before its value.
#[derive(Clone, Copy)]
pub(in crate::provider) struct Member<'d> {
    pub(in crate::provider) value: Text<'d>,
}

impl<'d> Member<'d> {
    /// Its name, decoded.
    pub(in crate::provider) fn name(self) -> Cow<'d, str> {
        self.written_name().decoded().unwrap_or_default()
    }

    /// From the first quote of the name to the value: the name, the colon and the white space around it.
    pub(in crate::provider) fn heading(self) -> Range<usize> {
        self.written_name().range().start..self.value.range().start
    }

    /// Its name and value together.
    pub(in crate::provider) fn range(self) -> Range<usize> {
        self.written_name().range().start..self.value.range().end
    }

    fn written_name(self) -> Text<'d> {
        Text { index: self.value.index - 1, repeated_until: None, ..self.value }
    }

    pub(super) fn is_named(self, name: &[u8]) -> bool {
        let node = self.written_name().node();
        if node.kind == Kind::Escaped {
            return self.name().as_bytes() == name;
        }
        let Range { start, end } = node.inside_quotes();
        // Most names differ in length, which needs no look at the body.
        end - start == name.len() && self.value.document.text.as_bytes()[start..end] == *name
    }
}

/// The members of an object, in their order.
#[derive(Clone, Copy)]
pub(in crate::provider) struct Members<'d> {
    pub(super) document: &'d Document<'d>,
    /// The node of the next name, and the first that is behind the object.
    pub(super) next: u32,
    pub(super) end: u32,
}

impl<'d> Iterator for Members<'d> {
    type Item = Member<'d>;

    fn next(&mut self) -> Option<Member<'d>> {
        (self.next < self.end).then(|| {
            let value = Text { document: self.document, index: self.next + 1, repeated_until: None };
            self.next = value.node().next;
            Member { value }
        })
    }
}

impl<'d> Members<'d> {
    /// What an object without members has.
    pub(in crate::provider) fn none(self) -> Self {
        Self { end: self.next, ..self }
    }

    /// The first of this name.
    pub(in crate::provider) fn get(mut self, name: &str) -> Option<Text<'d>> {
        self.find(|member| member.is_named(name.as_bytes())).map(|member| member.value)
    }

    pub(super) fn have_no_name_twice(self) -> bool {
        // Most names of an object differ from each other in this sign, and then need not be compared.
        let bytes = self.document.text.as_bytes();
        let mut signs = 0_u64;
        let all_differ = self.into_iter().all(|member| {
            let node = member.written_name().node();
            let Range { start, end } = node.inside_quotes();
            let sign = 1 << ((end - start + usize::from(bytes[start]) + usize::from(bytes[end - 1])) % 64);
            let differs = node.kind == Kind::String && signs & sign == 0;
            signs |= sign;
            differs
        });
        all_differ || {
            let mut seen = HashSet::new();
            self.into_iter().all(|member| seen.insert(member.name()))
        }
    }
}

/// The elements of an array, in their order.
#[derive(Clone, Copy)]
pub(in crate::provider) struct Elements<'d> {
    pub(super) document: &'d Document<'d>,
    /// The node of the next element, and the first that is behind the array.
    pub(super) next: u32,
    pub(super) end: u32,
}

impl<'d> Iterator for Elements<'d> {
    type Item = Text<'d>;

    fn next(&mut self) -> Option<Text<'d>> {
        (self.next < self.end).then(|| {
            let element = Text { document: self.document, index: self.next, repeated_until: None };
            self.next = element.node().next;
            element
        })
    }
}
