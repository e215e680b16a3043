//! What identifies each kind of event that Meta sends.
//!
//! An id of a WhatsApp message says nothing of the business number it went to, and the statuses of a message have its
//! id, so every key begins with the kind and the number (or the page). No key needs a phone number: users with a
//! username may have none.

use std::borrow::Cow;

use super::super::outline::{Members, Text};
use crate::event::{Event, EventKey, Joining, Unkeyed};

/// The place of Messenger's and Instagram's events.
pub(super) const MESSAGING: &str = "entry[].messaging[]";

/// The members of one object of the delivery.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    members: Members<'a>,
    place: &'static str,
}

impl<'a> Fields<'a> {
    /// The object at this place; `None` if there is none.
    pub(super) fn read(text: Text<'a>, place: &'static str) -> Option<Self> {
        Some(Self { members: text.object()?, place })
    }

    /// The same, without members if there is none.
    pub(super) fn read_or_none(text: Text<'a>, place: &'static str) -> Self {
        Self { members: text.object().unwrap_or(text.members().none()), place }
    }

    /// The object that is the member `name`; without members if there is none.
    pub(super) fn inner(self, name: &str, place: &'static str) -> Self {
        Self { members: self.get(name).and_then(Text::object).unwrap_or(self.members.none()), place }
    }

    pub(super) fn members(self) -> Members<'a> {
        self.members
    }

    pub(super) fn place(self) -> &'static str {
        self.place
    }

    pub(super) fn get(self, name: &str) -> Option<Text<'a>> {
        self.members.get(name)
    }

    /// A string that is not empty, a number's own digits or a boolean.
    pub(super) fn text(self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.key_part()
    }

    fn first_text(self, names: &[&str]) -> Option<Cow<'a, str>> {
        names.iter().find_map(|name| self.text(name))
    }

    fn is_true(self, name: &str) -> bool {
        self.text(name).as_deref() == Some("true")
    }
}

/// A key of parts as they are found, or the first that is missing.
struct Parts(Result<Joining, Unkeyed>);

impl Parts {
    fn under(namespace: &str) -> Self {
        Self(Ok(Joining::under(namespace)))
    }

    /// The first of these members that is there.
    fn need(self, fields: Fields<'_>, names: &[&str]) -> Self {
        self.first(fields, names, true)
    }

    /// The same, where none of them need be there.
    fn may(self, fields: Fields<'_>, names: &[&str]) -> Self {
        self.first(fields, names, false)
    }

    fn first(self, fields: Fields<'_>, names: &[&str], needed: bool) -> Self {
        let value = names.iter().find_map(|name| fields.get(name));
        match value.map(Text::key_part) {
            Some(Some(part)) => self.word(&part),
            None if !needed => self.add(None),
            _ => self.missing(|| format!("{}.{}", fields.place, names.join("|"))),
        }
    }

    /// All of a value, whatever the order of its members.
    fn hash(self, value: Text<'_>, place: &str) -> Self {
        match value.canonical_sha256() {
            Some(hash) => self.word(&hash),
            None => self.missing(|| place.to_owned()),
        }
    }

    fn word(self, word: &str) -> Self {
        self.add(Some(word))
    }

    fn add(mut self, part: Option<&str>) -> Self {
        if let Ok(key) = &mut self.0 {
            key.add(part);
        }
        self
    }

    fn missing(self, place: impl FnOnce() -> String) -> Self {
        Self(self.0.and_then(|_| Err(Unkeyed::Part(place()))))
    }

    fn key(self) -> Result<EventKey, Unkeyed> {
        self.0.map(Joining::finish)
    }
}

/// How the value of a change of a WhatsApp account is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// Its arrays are lists of events.
    Elements,
    /// It is one event, a chunk of what was said before. Its messages have the ids that they had when they were new,
    /// and must never be taken for those.
    History,
    /// It is one event without an id.
    Whole,
    /// It may be anything.
    Unknown,
}

impl Field {
    pub(super) fn of_whatsapp(field: &str) -> Self {
        match field {
            "messages" | "calls" | "smb_message_echoes" | "smb_app_state_sync" | "user_preferences" => Self::Elements,
            "history" => Self::History,
            "account_alerts"
            | "account_review_update"
            | "account_update"
            | "automatic_events"
            | "business_capability_update"
            | "message_template_components_update"
            | "message_template_quality_update"
            | "message_template_status_update"
            | "partner_solutions"
            | "payment_configuration_update"
            | "phone_number_name_update"
            | "phone_number_quality_update"
            | "security"
            | "template_category_update" => Self::Whole,
            _ if field.starts_with("group_") => Self::Whole,
            _ => Self::Unknown,
        }
    }
}

/// An element of one of the arrays that the value of a change of a WhatsApp account holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Message,
    Status,
    /// A status of the field `calls`.
    CallStatus,
    Call,
    Echo,
    StateSync,
    UserPreference,
}

impl Element {
    /// What the elements of the array of this name are.
    pub(super) fn in_array(name: &str, calls: bool) -> Option<Self> {
        Some(match name {
            "messages" => Self::Message,
            "statuses" if calls => Self::CallStatus,
            "statuses" => Self::Status,
            "calls" => Self::Call,
            "message_echoes" => Self::Echo,
            "state_sync" => Self::StateSync,
            "user_preferences" => Self::UserPreference,
            _ => return None,
        })
    }

    /// Where its array stands.
    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Message => "entry[].changes[].value.messages[]",
            Self::Status | Self::CallStatus => "entry[].changes[].value.statuses[]",
            Self::Call => "entry[].changes[].value.calls[]",
            Self::Echo => "entry[].changes[].value.message_echoes[]",
            Self::StateSync => "entry[].changes[].value.state_sync[]",
            Self::UserPreference => "entry[].changes[].value.user_preferences[]",
        }
    }

    /// The event that `text` is, whose members are `element`, at the number that `metadata` names.
    pub(super) fn event(self, text: Text<'_>, element: Fields<'_>, metadata: Fields<'_>, namespace: &str) -> Event {
        let of = |kind| Parts::under(namespace).word(kind).need(metadata, &["phone_number_id"]);
        let (kind, parts, party) = match self {
            Self::Message => {
                let party = element.first_text(&["from", "from_user_id"]);
                ("message", of("message").need(element, &["id"]), party)
            }
            // The time is when the notification was made, not when the message was read: no part of the key.
            Self::Status if element.text("type").as_deref() != Some("call") => {
                let parts = of("status")
                    .need(element, &["id"])
                    .need(element, &["status"])
                    .may(element, &["recipient_participant_id", "recipient_participant_user_id"]);
                ("status", parts, element.first_text(&["recipient_id", "recipient_user_id"]))
            }
            Self::Status | Self::CallStatus => {
                let parts =
                    of("call_status").need(element, &["id"]).need(element, &["status"]).need(element, &["timestamp"]);
                ("call_status", parts, element.first_text(&["recipient_id", "recipient_user_id"]))
            }
            Self::Call => {
                let parts = of("call").need(element, &["id"]).need(element, &["event"]).need(element, &["timestamp"]);
                let names: &[&str] = match element.text("direction").as_deref() {
                    Some("BUSINESS_INITIATED") => &["to", "to_user_id"],
                    _ => &["from", "from_user_id"],
                };
                ("call", parts, element.first_text(names))
            }
            Self::Echo => {
                let party = element.first_text(&["to", "to_user_id"]);
                ("echo", of("echo").need(element, &["id"]), party)
            }
            // A contact that is added, removed and added again gives the same element but for the time. The rest of
            // the element tells apart what the contact's number would, and is there where no number is.
            Self::StateSync => {
                let times = element.inner("metadata", "entry[].changes[].value.state_sync[].metadata");
                let parts =
                    of("state_sync").need(element, &["action"]).need(times, &["timestamp"]).hash(text, self.place());
                let contact = element.inner("contact", "entry[].changes[].value.state_sync[].contact");
                ("state_sync", parts, contact.first_text(&["phone_number", "user_id"]))
            }
            Self::UserPreference => {
                let parts = of("user_preferences")
                    .need(element, &["wa_id", "user_id"])
                    .need(element, &["category"])
                    .need(element, &["value"])
                    .need(element, &["timestamp"]);
                ("user_preferences", parts, element.first_text(&["wa_id", "user_id"]))
            }
        };
        let number = metadata.text("phone_number_id");
        Event { kind: kind.into(), key: parts.key(), conversation: conversation(number, party) }
    }
}

/// Errors that belong to the business number, or to elements that stand beside them. Where nothing says when they
/// happened, the next occurrence looks the same as a copy of this one, and there is no key.
pub(super) fn errors(metadata: Fields<'_>, entry: Fields<'_>, errors: Text<'_>, namespace: &str) -> Event {
    let parts = Parts::under(namespace)
        .word("error")
        .need(metadata, &["phone_number_id"])
        .need(entry, &["time"])
        .hash(errors, "entry[].changes[].value.errors");
    Event { kind: "error".into(), key: parts.key(), conversation: None }
}

/// A chunk of history. Its phase and progress are no id: several chunks share them.
pub(super) fn history(metadata: Fields<'_>, value: Text<'_>, namespace: &str) -> Event {
    let parts = Parts::under(namespace)
        .word("history")
        .need(metadata, &["phone_number_id"])
        .hash(value, "entry[].changes[].value");
    Event { kind: "history".into(), key: parts.key(), conversation: None }
}

/// A change without an id. The time is part of the key, since RESTRICTED, REINSTATED, RESTRICTED are three events of
/// which two have the same value.
pub(super) fn whole_change(entry: Fields<'_>, change: Fields<'_>, value: Text<'_>, namespace: &str) -> Event {
    let parts = Parts::under(namespace)
        .need(change, &["field"])
        .need(entry, &["id"])
        .may(entry, &["time"])
        .hash(value, "entry[].changes[].value");
    named_by_field(change, parts)
}

/// A change of a page or an Instagram account: a comment, a post, a lead. One of them changes more than once, so its
/// id is not enough.
pub(super) fn page_change(entry: Fields<'_>, change: Fields<'_>, value: Text<'_>, namespace: &str) -> Event {
    let inside = Fields::read_or_none(value, "entry[].changes[].value");
    let parts = Parts::under(namespace)
        .need(change, &["field"])
        .need(entry, &["id"])
        .may(inside, &["comment_id", "post_id", "leadgen_id", "id"])
        .may(inside, &["verb"]);
    let parts = match inside.get("created_time") {
        Some(_) => parts.need(inside, &["created_time"]),
        None => parts.may(entry, &["time"]),
    };
    named_by_field(change, parts.hash(value, "entry[].changes[].value"))
}

fn named_by_field(change: Fields<'_>, parts: Parts) -> Event {
    let kind = readable(&change.text("field").unwrap_or_default()).to_owned().into();
    Event { kind, key: parts.key(), conversation: None }
}

/// An element of `messaging[]`, which holds one of several kinds of content.
pub(super) fn messaging(entry: Fields<'_>, element: Fields<'_>, namespace: &str) -> Event {
    const KINDS: [&str; 6] = ["message", "message_edit", "postback", "reaction", "delivery", "read"];
    let mut kinds = KINDS.into_iter().filter(|kind| element.get(kind).is_some());
    let sender = element.inner("sender", "entry[].messaging[].sender");
    let of = |kind| Parts::under(namespace).word(kind).need(entry, &["id"]);
    let (kind, parts) = match (kinds.next(), kinds.next()) {
        (Some("message"), None) => {
            let message = element.inner("message", "entry[].messaging[].message");
            let kind = if message.is_true("is_echo") { "echo" } else { "message" };
            let parts = of(kind).need(message, &["mid"]);
            // A message that was taken back comes once more, with the same id.
            (kind, if message.is_true("is_deleted") { parts.word("deleted") } else { parts })
        }
        (Some("message_edit"), None) => {
            let edit = element.inner("message_edit", "entry[].messaging[].message_edit");
            ("message_edit", of("message_edit").need(edit, &["mid"]).need(edit, &["num_edit"]))
        }
        (Some("postback"), None) => {
            let postback = element.inner("postback", "entry[].messaging[].postback");
            ("postback", of("postback").need(postback, &["mid"]))
        }
        // From here on, a `mid` is that of the message that was reacted to, delivered or read.
        (Some("reaction"), None) => {
            let reaction = element.inner("reaction", "entry[].messaging[].reaction");
            let parts = of("reaction")
                .need(sender, &["id"])
                .need(reaction, &["mid"])
                .need(reaction, &["action"])
                .may(reaction, &["emoji"])
                .need(element, &["timestamp"]);
            ("reaction", parts)
        }
        (Some("delivery"), None) => {
            let delivery = element.inner("delivery", "entry[].messaging[].delivery");
            let parts =
                of("delivery").need(sender, &["id"]).need(delivery, &["watermark"]).may(element, &["timestamp"]);
            (
                "delivery",
                match delivery.get("mids") {
                    Some(mids) => parts.hash(mids, "entry[].messaging[].delivery.mids"),
                    None => parts,
                },
            )
        }
        (Some("read"), None) => {
            let read = element.inner("read", "entry[].messaging[].read");
            let parts =
                of("read").need(sender, &["id"]).need(read, &["watermark", "mid"]).need(element, &["timestamp"]);
            ("read", parts)
        }
        _ => ("unknown", Parts(Err(Unkeyed::UnknownKind(MESSAGING.to_owned())))),
    };
    let page = entry.text("id");
    let recipient = element.inner("recipient", "entry[].messaging[].recipient");
    let party = [sender.text("id"), recipient.text("id")].into_iter().flatten().find(|id| Some(id) != page.as_ref());
    Event { kind: kind.into(), key: parts.key(), conversation: conversation(page, party) }
}

/// The other side of a conversation with this number or page: that of another number is another conversation.
fn conversation(ours: Option<Cow<'_, str>>, party: Option<Cow<'_, str>>) -> Option<String> {
    let party = party?;
    Some([ours.as_deref().unwrap_or_default(), ":", &party].concat())
}

/// A name out of the delivery, if it looks like one: logs and errors hold no payload.
pub(super) fn readable(name: &str) -> &str {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphabetic());
    if is_name && name.bytes().all(is_word) { name } else { "unknown" }
}
