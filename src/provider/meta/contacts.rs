//! Whose contact is whose: a part of a batch takes along the contacts that its event is about.

use std::borrow::Cow;

use super::super::batch::Companions;
use super::super::outline::{Members, Text};

/// The contacts of one value, by the ids they go by.
pub(super) struct Contacts<'a> {
    /// Each id with the index of its contact, in order.
    by_id: Vec<(Cow<'a, str>, usize)>,
}

impl<'a> Contacts<'a> {
    /// `None`, and what is no array, holds no contacts.
    pub(super) fn of(contacts: Option<Text<'a>>) -> Self {
        let mut by_id = Vec::new();
        for (index, contact) in contacts.and_then(Text::array).into_iter().flatten().enumerate() {
            let Some(members) = contact.object() else { continue };
            for id in ["wa_id", "user_id"].into_iter().filter_map(|name| members.get(name)?.key_part()) {
                by_id.push((id, index));
            }
        }
        by_id.sort_unstable();
        Self { by_id }
    }

    /// An element takes along the contacts of those whom it names as a party of its conversation.
    pub(super) fn take_parties(&self, element: Members<'_>, companions: &mut Companions) {
        if self.by_id.is_empty() {
            return;
        }
        let parties = element.filter(|member| is_party(&member.name()));
        for id in parties.filter_map(|party| party.value.key_part()) {
            let first = self.by_id.partition_point(|(other, _)| *other < id);
            let own = self.by_id[first..].iter().take_while(|(other, _)| *other == id);
            own.for_each(|(_, contact)| companions.take(*contact));
        }
    }
}

fn is_party(member: &str) -> bool {
    matches!(
        member,
        "from"
            | "from_user_id"
            | "to"
            | "to_user_id"
            | "recipient_id"
            | "recipient_user_id"
            | "recipient_participant_id"
            | "recipient_participant_user_id"
            | "user_id"
            | "wa_id"
    )
}
