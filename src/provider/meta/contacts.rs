//! Whose contact is whose: a part of a batch takes along the contacts that its event is about.

use std::borrow::Cow;

use super::super::outline::Text;
use super::keys::Fields;

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
            let members = Fields::read(contact, "").into_iter().flat_map(Fields::members);
            let ids = members.filter(|member| matches!(&*member.name(), "wa_id" | "user_id"));
            by_id.extend(ids.filter_map(|id| Some((id.value.key_part()?, index))));
        }
        by_id.sort_unstable();
        Self { by_id }
    }

    /// The contacts of those whom the element names as a party of its conversation.
    pub(super) fn of_parties<'e>(&self, element: Fields<'e>) -> impl Iterator<Item = usize> + use<'_, 'a, 'e> {
        let members = (!self.by_id.is_empty()).then(|| element.members()).into_iter().flatten();
        let parties = members.filter(|member| is_party(&member.name()));
        parties.filter_map(|party| party.value.key_part()).flat_map(|id| {
            let first = self.by_id.partition_point(|(other, _)| *other < id);
            let own = self.by_id[first..].iter().take_while(move |(other, _)| *other == id);
            own.map(|(_, contact)| *contact)
        })
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
