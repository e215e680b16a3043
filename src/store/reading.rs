//! What a stored value says to whoever reads it, the same for every store.
//!
//! This is the one place where a sender that died is told from one that lives: every renewal gives a sending key a
//! whole window again, so a key with less than window minus lease left has not been renewed for a whole lease.

use std::time::Duration;

use crate::claim::{Forgotten, Found, Record, Recorded, Standing, State, Terms, Token, UnreadableValue, Value};

/// What a store holds under a key: the value as it stands there, and how long it holds.
pub(super) struct Held {
    pub(super) text: String,
    pub(super) remaining: Duration,
}

impl Held {
    pub(super) fn value(&self) -> Result<Value<'_>, UnreadableValue> {
        Value::read(&self.text)
    }
}

/// What is known of an event whose owner died while sending it: nobody wrote down when.
const SENDER_DIED: Record = Record { at: None, result: Recorded::Unknown };

/// What a claim attempt by `ours` found, where the value alone tells. `None`: the time that is left decides.
pub(super) fn found_at_once(value: Value<'_>, ours: &Token) -> Option<Found> {
    match value {
        Value::Claimed(owner) | Value::Sending(owner) if owner == ours.as_str() => Some(Found::Claimed),
        Value::Claimed(_) => Some(Found::Held),
        Value::Done(record) => Some(Found::Done(record)),
        Value::Sending(_) => None,
    }
}

/// What a claim attempt by `ours` found.
pub(super) fn found(value: Value<'_>, remaining: Duration, ours: &Token, terms: Terms) -> Found {
    found_at_once(value, ours).unwrap_or_else(|| match sender_died(remaining, terms) {
        true => Found::Done(SENDER_DIED),
        false => Found::Held,
    })
}

/// A key as it stands.
pub(super) fn standing(value: Value<'_>, remaining: Duration, terms: Terms) -> Standing {
    let state = match value {
        Value::Claimed(_) => State::Claimed,
        Value::Sending(_) if sender_died(remaining, terms) => State::Done(SENDER_DIED),
        Value::Sending(_) => State::Sending,
        Value::Done(record) => State::Done(record),
    };
    Standing { state, remaining }
}

/// What is to become of a key that a person wants forgotten. `Freed` stands only once that is written.
pub(super) fn forgotten(value: Value<'_>, remaining: Duration, terms: Terms, force: bool) -> Forgotten {
    let standing = standing(value, remaining, terms);
    match standing.state {
        State::Claimed | State::Sending if !force => Forgotten::Open(standing),
        State::Claimed | State::Sending | State::Done(_) => Forgotten::Freed(standing),
    }
}

fn sender_died(remaining: Duration, terms: Terms) -> bool {
    remaining.saturating_add(terms.lease) < terms.window
}

/// A duration in the stores' unit. Nothing lasts less than one millisecond: a store would refuse it or forget at once.
pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { lease: Duration::from_secs(30), window: Duration::from_secs(3600) };

    #[test]
    fn a_sender_is_dead_once_a_whole_lease_has_passed_without_renewal() {
        let owner = Token::fresh();
        let value = Value::Sending(owner.as_str());
        let alive_until = TERMS.window - TERMS.lease;
        let just_less = alive_until - Duration::from_millis(1);
        for (remaining, state) in [
            (TERMS.window, State::Sending),
            (alive_until, State::Sending),
            (just_less, State::Done(SENDER_DIED)),
            (Duration::ZERO, State::Done(SENDER_DIED)),
        ] {
            let standing = standing(value, remaining, TERMS);
            assert_eq!(standing, Standing { state, remaining }, "with {remaining:?} left");
        }
        let other = Token::fresh();
        assert_eq!(found(value, alive_until, &other, TERMS), Found::Held);
        assert_eq!(found(value, just_less, &other, TERMS), Found::Done(SENDER_DIED));
    }

    #[test]
    fn an_owner_finds_its_own_key_claimed() {
        let ours = Token::fresh();
        for value in [Value::Claimed(ours.as_str()), Value::Sending(ours.as_str())] {
            assert_eq!(found_at_once(value, &ours), Some(Found::Claimed), "{value:?}");
        }
    }

    #[test]
    fn no_duration_becomes_nothing() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::from_micros(1500)), 1);
        assert_eq!(milliseconds(Duration::MAX), i64::MAX);
    }
}
