//! Cutting a batch into parts.
//!
//! The document is read once, when its events are found, into a tree of places in the received body. Each leaf of that
//! tree that is an event has its index; every branch knows which events lie in it. A part is then written by walking
//! only the branches that lead to its events: a part of a batch of 1000 costs what the part is long, not what the batch
//! is.

use std::ops::Range;

use bytes::Bytes;
use serde_json_path::{NormalizedPath, PathElement};

use super::outline::Document;

/// How to make a body that holds only some of a delivery's events.
///
/// # Guarantees
///
/// - A part is JSON of the same shape as the whole, with every chosen event in it once, in the order of the whole, and
///   no other.
/// - Every value that is kept has the text it was received with: digits, escapes, white space and order of members.
/// - Arrays that would be empty are left out together with their name.
#[derive(Clone, Debug)]
pub struct Batch {
    body: Bytes,
    root: Node,
    companions: Companions,
}

/// By event: which elements of its [`Slot::Companions`] it takes along; none means all.
#[derive(Clone, Debug, Default)]
pub(super) struct Companions {
    elements: Vec<usize>,
    /// Where the elements of each event end.
    ends: Vec<usize>,
}

impl Companions {
    /// The next event takes this element along.
    pub(super) fn take(&mut self, element: usize) {
        self.elements.push(element);
    }

    /// That is all the next event takes along.
    pub(super) fn end_of_event(&mut self) {
        self.ends.push(self.elements.len());
    }

    fn of(&self, event: usize) -> &[usize] {
        let start = event.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(event).map_or(&[], |end| &self.elements[start..*end])
    }
}

/// A piece of the document that holds at least one event.
#[derive(Clone, Debug)]
pub(super) struct Node {
    events: Range<usize>,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// One event, kept as it stands.
    Event(Range<usize>),
    /// An array of which every element holds events.
    Array(Vec<Node>),
    /// An object.
    Object(Vec<Slot>),
    /// A document that is kept byte for byte around the one array that is cut.
    Around(Range<usize>, Box<Node>, Range<usize>),
}

/// A member of an object that holds events.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// The envelope: kept with every event, name and value.
    Kept(Range<usize>),
    /// The heading, and a value that holds events: kept where one of them is.
    Events(Range<usize>, Node),
    /// The heading, and an array whose elements belong to events: each event takes its own along.
    Companions(Range<usize>, Vec<Range<usize>>),
}

impl Node {
    /// The event of this index, which is this place of the document.
    pub(super) fn event(index: usize, place: Range<usize>) -> Self {
        Self { events: index..index + 1, shape: Shape::Event(place) }
    }

    /// An array of these elements; `None` if there are none.
    pub(super) fn array(elements: Vec<Self>) -> Option<Self> {
        let events = elements.first()?.events.start..elements.last()?.events.end;
        Some(Self { events, shape: Shape::Array(elements) })
    }

    /// An object of these members; `None` if none of them holds an event.
    pub(super) fn object(members: Vec<Slot>) -> Option<Self> {
        let mut with_events = members.iter().filter_map(|slot| match slot {
            Slot::Events(_, node) => Some(&node.events),
            _ => None,
        });
        let first = with_events.next()?;
        let events = first.start..with_events.next_back().unwrap_or(first).end;
        Some(Self { events, shape: Shape::Object(members) })
    }
}

impl Batch {
    /// A batch whose events are the leaves of `root`, numbered in the order in which they stand in the document.
    pub(super) fn new(body: &Bytes, root: Node, companions: Companions) -> Self {
        Self { body: body.clone(), root, companions }
    }

    /// A batch whose events are the elements of one array of the document, wherever it is; all else is kept byte for
    /// byte in every part.
    ///
    /// `elements` are where a JSONPath found the events. There is a batch only if they are all the elements of one
    /// array, each once and in order: else something in the array would be in no part, or an event within another.
    #[must_use]
    pub fn of_elements(body: &Bytes, elements: &[&NormalizedPath<'_>]) -> Option<Self> {
        let (last, array) = elements.first()?.iter().as_slice().split_last()?;
        last.as_index()?;
        let document = Document::read(body).ok()?;
        let mut text = document.root();
        for step in array {
            text = match step {
                PathElement::Name(name) => text.object()?.get(name)?,
                PathElement::Index(index) => text.array()?.nth(*index)?,
            };
        }
        let places: Vec<_> = text.array()?.collect();
        let all_in_order = elements.iter().enumerate().all(|(index, element)| {
            element.iter().as_slice().split_last() == Some((&PathElement::Index(index), array))
        });
        if places.len() != elements.len() || !all_in_order {
            return None;
        }
        let events =
            places.into_iter().enumerate().map(|(index, place)| Node::event(index, place.range())).collect::<Vec<_>>();
        let array = Node::array(events)?;
        let (before, after) = (0..text.range().start, text.range().end..body.len());
        let root = Node { events: array.events.clone(), shape: Shape::Around(before, Box::new(array), after) };
        Some(Self::new(body, root, Companions::default()))
    }

    /// The body with only the events at these indices of [`Extraction::events`](super::Extraction::events), at least
    /// one; their order here does not matter.
    #[must_use]
    pub fn part(&self, events: &[usize]) -> Bytes {
        let mut chosen = events.to_vec();
        chosen.sort_unstable();
        chosen.dedup();
        let mut pieces = Vec::with_capacity(32);
        self.write(&self.root, &chosen, &mut pieces);
        pieces.concat().into()
    }

    /// Writes what of `node` the `chosen` events need, which all lie in it.
    fn write<'b>(&'b self, node: &Node, chosen: &[usize], part: &mut Vec<&'b [u8]>) {
        match &node.shape {
            Shape::Event(place) => self.copy(place, part),
            Shape::Around(before, array, after) => {
                self.copy(before, part);
                self.write(array, chosen, part);
                self.copy(after, part);
            }
            Shape::Array(elements) => {
                let mut rest = chosen;
                part.push(b"[");
                while let Some(first) = rest.first() {
                    let index = elements.partition_point(|element| element.events.end <= *first);
                    let Some(element) = elements.get(index) else { break };
                    let (here, later) = rest.split_at(rest.partition_point(|event| *event < element.events.end));
                    separate(part, b"[");
                    self.write(element, here, part);
                    rest = later;
                }
                part.push(b"]");
            }
            Shape::Object(members) => {
                part.push(b"{");
                for member in members {
                    self.write_member(member, chosen, part);
                }
                part.push(b"}");
            }
        }
    }

    fn write_member<'b>(&'b self, member: &Slot, chosen: &[usize], part: &mut Vec<&'b [u8]>) {
        match member {
            Slot::Kept(place) => {
                separate(part, b"{");
                self.copy(place, part);
            }
            Slot::Events(heading, node) => {
                let from = chosen.partition_point(|event| *event < node.events.start);
                let to = chosen.partition_point(|event| *event < node.events.end);
                if from < to {
                    separate(part, b"{");
                    self.copy(heading, part);
                    self.write(node, &chosen[from..to], part);
                }
            }
            Slot::Companions(heading, elements) => {
                separate(part, b"{");
                self.copy(heading, part);
                part.push(b"[");
                for index in self.companions_of(chosen, elements.len()) {
                    separate(part, b"[");
                    self.copy(&elements[index], part);
                }
                part.push(b"]");
            }
        }
    }

    fn companions_of(&self, chosen: &[usize], all: usize) -> Vec<usize> {
        let mut wanted = Vec::new();
        for event in chosen {
            match self.companions.of(*event) {
                [] => return (0..all).collect(),
                own => wanted.extend_from_slice(own),
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    fn copy<'b>(&'b self, place: &Range<usize>, part: &mut Vec<&'b [u8]>) {
        part.push(&self.body[place.clone()]);
    }
}

/// A comma, unless what follows is the first thing behind the opening bracket.
fn separate(part: &mut Vec<&[u8]>, opening: &[u8]) {
    if part.last() != Some(&opening) {
        part.push(b",");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json_path::JsonPath;

    fn batch(document: &str, path: &str) -> Option<Batch> {
        let value = serde_json::from_str(document).unwrap();
        let located = JsonPath::parse(path).unwrap().query_located(&value);
        let elements: Vec<_> = located.iter().map(|node| node.location()).collect();
        Batch::of_elements(&Bytes::copy_from_slice(document.as_bytes()), &elements)
    }

    #[test]
    fn a_part_keeps_the_document_with_the_array_cut() {
        let document = "{ \"n\" : 1e2,\n \"in\": [0, {\"items\": [ {\"id\":1} , \"\\u00e9\",[3] ] , \"z\":[]}]} \n";
        let batch = batch(document, "$.in[1].items[*]").unwrap();
        for (events, array) in [
            (&[0][..], "[{\"id\":1}]"),
            (&[1], "[\"\\u00e9\"]"),
            (&[2, 0], "[{\"id\":1},[3]]"),
            (&[0, 1, 2, 1], "[{\"id\":1},\"\\u00e9\",[3]]"),
        ] {
            let expected = document.replace("[ {\"id\":1} , \"\\u00e9\",[3] ]", array);
            assert_eq!(batch.part(events), expected, "{events:?}");
        }
    }

    #[test]
    fn the_document_itself_may_be_the_array() {
        assert_eq!(batch(" [1, 2] ", "$[*]").unwrap().part(&[1]), " [2] ");
    }

    #[test]
    fn only_all_the_elements_of_one_array_are_a_batch() {
        for (document, path) in [
            (r#"{"items":[1,2]}"#, "$.items"),
            (r#"{"items":[1,2]}"#, "$.items[0]"),
            (r#"{"items":[1,2]}"#, "$.items[1,0]"),
            (r#"{"items":[1,2]}"#, "$.items[0,1,0]"),
            (r#"{"items":[1,2]}"#, "$.items[?@>1]"),
            (r#"{"items":[]}"#, "$.items[*]"),
            (r#"{"items":{"a":1}}"#, "$.items[*]"),
            (r#"{"a":[1],"b":[2]}"#, "$[*][*]"),
            (r#"{"items":[[1,2]]}"#, "$..*"),
            (r#"{"items":[1,2],"items":[1,2]}"#, "$.items[*]"),
            ("1", "$"),
        ] {
            assert!(batch(document, path).is_none(), "{path} in {document}");
        }
    }

    proptest! {
        #[test]
        fn parts_hold_exactly_the_chosen_elements(
            elements in prop::collection::vec(r#"1e2|"[\[\],{}]"|\{"a":\[1, 2\]\}|\[\[\]\]|900719925474099312345"#, 1..20),
            choice in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        ) {
            let document = format!("{{\"a\":[{}]}}", elements.join(" ,"));
            let chosen: std::collections::BTreeSet<usize> = choice.iter().map(|index| index.index(elements.len())).collect();
            let expected: Vec<_> = chosen.iter().map(|index| elements[*index].clone()).collect();
            let part = batch(&document, "$.a[*]").unwrap().part(&chosen.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(part, format!("{{\"a\":[{}]}}", expected.join(",")));
        }
    }
}
