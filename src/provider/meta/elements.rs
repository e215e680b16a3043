//! Which pieces of a Meta delivery are events, and which are the envelope that every part of it keeps.
//!
//! A delivery is `entry[]`, an entry `changes[]` (or `messaging[]`), a change has a `field` and a `value`, and the
//! values of some fields hold arrays of events. On each of these levels, the rule is:
//!
//! - A known array is a list of events, one per element; if it is empty, it is left out.
//! - A scalar, and an empty array or object, is envelope: it comes along with every part. So do `metadata`, and of
//!   `contacts` those that belong to the event.
//! - Everything else (an unknown array or object, `errors`, a known array that is none, `standby`) is an event of its
//!   own, most of them without a key: it is in one part, and in no part of another event.
//! - What holds no event at all is itself an event without a key.
//!
//! So whatever a delivery holds is in some part of it, and a part read again holds the very events it was made for.

use bytes::Bytes;

use super::super::batch::{Companions, Node, Slot};
use super::super::outline::{Document, Member, Text};
use super::super::{Batch, Extraction};
use super::contacts::Contacts;
use super::keys::{self, Element, Field, Fields};
use crate::event::{Event, Unkeyed};

const ENTRY: &str = "entry[]";
const CHANGE: &str = "entry[].changes[]";
const VALUE: &str = "entry[].changes[].value";
const METADATA: &str = "entry[].changes[].value.metadata";

/// The events of a delivery, and how to cut it where it holds more than one.
pub(super) fn read(body: &Bytes, namespace: &str) -> Extraction {
    let alone = |reason| Extraction {
        events: vec![Event { kind: "unknown".into(), key: Err(reason), conversation: None }],
        batch: None,
    };
    let document = match Document::read(body) {
        Ok(document) => document,
        Err(reason) => return alone(reason),
    };
    let mut reader = Reader { namespace, events: Vec::new(), companions: Companions::default() };
    match reader.document(document.root()) {
        Some(root) => {
            let batch = (reader.events.len() > 1).then(|| Batch::new(body, root, reader.companions));
            Extraction { events: reader.events, batch }
        }
        None => alone(Unkeyed::UnknownKind("$".to_owned())),
    }
}

/// Who a delivery is about (`object`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    WhatsApp,
    Page,
    /// `user`, `permissions`, and whatever Meta adds: read as changes without an id of their own.
    Other,
}

/// What a member of a container is.
enum Found {
    Slot(Slot),
    LeftOut,
    /// Envelope or an event of an unknown kind, as its value is.
    Other,
}

struct Reader<'r> {
    namespace: &'r str,
    events: Vec<Event>,
    companions: Companions,
}

impl Reader<'_> {
    fn document(&mut self, root: Text<'_>) -> Option<Node> {
        let members = Fields::read(root, "$")?;
        let subject = match &*members.text("object")? {
            "whatsapp_business_account" => Subject::WhatsApp,
            "page" | "instagram" => Subject::Page,
            _ => Subject::Other,
        };
        self.container(members, |reader, member| match &*member.name() {
            "entry" => reader.array(member, ENTRY, |reader, entry| reader.entry(entry, subject)),
            _ => Found::Other,
        })
    }

    fn entry(&mut self, text: Text<'_>, subject: Subject) -> Node {
        let read = Fields::read(text, ENTRY).and_then(|entry| {
            self.container(entry, |reader, member| match &*member.name() {
                "changes" => reader.array(member, CHANGE, |reader, change| reader.change(change, subject, entry)),
                "messaging" if subject == Subject::Page => {
                    reader.array(member, keys::MESSAGING, |reader, element| reader.messaging(element, entry))
                }
                _ => Found::Other,
            })
        });
        read.unwrap_or_else(|| self.unknown(ENTRY, text))
    }

    fn change(&mut self, text: Text<'_>, subject: Subject, entry: Fields<'_>) -> Node {
        let read = Fields::read(text, CHANGE).and_then(|change| {
            self.container(change, |reader, member| match &*member.name() {
                "value" => {
                    Found::Slot(Slot::Events(member.heading(), reader.value(member.value, subject, entry, change)))
                }
                _ => Found::Other,
            })
        });
        read.unwrap_or_else(|| self.unknown(CHANGE, text))
    }

    fn value(&mut self, text: Text<'_>, subject: Subject, entry: Fields<'_>, change: Fields<'_>) -> Node {
        let field = change.text("field").unwrap_or_default();
        let event = match (subject, Field::of_whatsapp(&field)) {
            (Subject::Page, _) => keys::page_change(entry, change, text, self.namespace),
            (Subject::Other, _) | (Subject::WhatsApp, Field::Whole) => {
                keys::whole_change(entry, change, text, self.namespace)
            }
            (Subject::WhatsApp, Field::History) => {
                let value = Fields::read_or_none(text, VALUE);
                keys::history(value.inner("metadata", METADATA), text, self.namespace)
            }
            (Subject::WhatsApp, Field::Elements) => return self.elements(text, entry, field == "calls"),
            (Subject::WhatsApp, Field::Unknown) => Event {
                kind: keys::readable(&field).to_owned().into(),
                key: Err(Unkeyed::UnknownKind(VALUE.to_owned())),
                conversation: None,
            },
        };
        self.push(event, text)
    }

    /// A value whose arrays are lists of events.
    fn elements(&mut self, text: Text<'_>, entry: Fields<'_>, calls: bool) -> Node {
        let read = Fields::read(text, VALUE).and_then(|value| {
            let metadata = value.inner("metadata", METADATA);
            let contacts = Contacts::of(value.get("contacts"));
            self.container(value, |reader, member| {
                if let Some(kind) = Element::in_array(&member.name(), calls) {
                    return reader.array(member, kind.place(), |reader, element| {
                        reader.element(kind, element, metadata, &contacts)
                    });
                }
                match &*member.name() {
                    "metadata" => Found::Slot(Slot::Kept(member.range())),
                    "contacts" => companions(member),
                    "errors" if !member.value.is_scalar() && !member.value.is_hollow() => {
                        let event = keys::errors(metadata, entry, member.value, reader.namespace);
                        let node = reader.push(event, member.value);
                        Found::Slot(Slot::Events(member.heading(), node))
                    }
                    _ => Found::Other,
                }
            })
        });
        read.unwrap_or_else(|| self.unknown(VALUE, text))
    }

    fn element(&mut self, kind: Element, text: Text<'_>, metadata: Fields<'_>, contacts: &Contacts<'_>) -> Node {
        let Some(element) = Fields::read(text, kind.place()) else { return self.unknown(kind.place(), text) };
        let event = kind.event(text, element, metadata, self.namespace);
        contacts.take_parties(element.members(), &mut self.companions);
        self.push(event, text)
    }

    fn messaging(&mut self, text: Text<'_>, entry: Fields<'_>) -> Node {
        match Fields::read(text, keys::MESSAGING) {
            Some(element) => self.push(keys::messaging(entry, element, self.namespace), text),
            None => self.unknown(keys::MESSAGING, text),
        }
    }

    /// An object whose members `read` knows; `None` if it holds no event.
    fn container<'a>(
        &mut self,
        object: Fields<'a>,
        mut read: impl FnMut(&mut Self, Member<'a>) -> Found,
    ) -> Option<Node> {
        let mut slots = Vec::new();
        for member in object.members() {
            match read(self, member) {
                Found::Slot(slot) => slots.push(slot),
                Found::LeftOut => {}
                Found::Other if member.value.is_scalar() || member.value.is_hollow() => {
                    slots.push(Slot::Kept(member.range()));
                }
                Found::Other => {
                    let place = format!("{}.{}", object.place(), keys::readable(&member.name()));
                    let node = self.unknown(&place, member.value);
                    slots.push(Slot::Events(member.heading(), node));
                }
            }
        }
        Node::object(slots)
    }

    /// A member that should be an array of things that each hold an event.
    fn array(&mut self, member: Member<'_>, place: &str, mut read: impl FnMut(&mut Self, Text<'_>) -> Node) -> Found {
        if member.value.is_null() {
            return Found::Other;
        }
        let node = match member.value.array() {
            Some(elements) => {
                let mut nodes = Vec::with_capacity(elements.count());
                nodes.extend(elements.map(|element| read(self, element)));
                Node::array(nodes)
            }
            None => Some(self.unknown(place.trim_end_matches("[]"), member.value)),
        };
        node.map_or(Found::LeftOut, |node| Found::Slot(Slot::Events(member.heading(), node)))
    }

    fn unknown(&mut self, place: &str, text: Text<'_>) -> Node {
        let key = Err(Unkeyed::UnknownKind(place.to_owned()));
        self.push(Event { kind: "unknown".into(), key, conversation: None }, text)
    }

    fn push(&mut self, event: Event, text: Text<'_>) -> Node {
        self.events.push(event);
        self.companions.end_of_event();
        Node::event(self.events.len() - 1, text.range())
    }
}

/// The contacts, each of which comes along with the events of its own.
fn companions(member: Member<'_>) -> Found {
    match member.value.array() {
        Some(contacts) if !member.value.is_hollow() => {
            Found::Slot(Slot::Companions(member.heading(), contacts.map(Text::range).collect()))
        }
        _ => Found::Other,
    }
}
