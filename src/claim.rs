//! Claims: who may send an event to the upstream, for how long, and what became of it.
//!
//! A key is absent, claimed (an owner holds it until its lease ends), sending (claimed under `suppress`, and past the
//! point where the upstream may have seen it) or done. This module holds the words for that; the stores keep them, and
//! [`crate::dedup`] decides with them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;

/// The owner of a claim: 128 random bits, fresh for every delivery that claims.
///
/// Release, renewal and promotion touch a key only while it carries the token they were made for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token([u8; 32]);

impl Token {
    /// A token nobody else has.
    #[must_use]
    pub fn fresh() -> Self {
        let mut digits = [0; 32];
        HEXLOWER.encode_mut(&rand::random::<[u8; 16]>(), &mut digits);
        Self(digits)
    }

    /// The token as it stands in a stored value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Hexadecimal digits are text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The two times of a route, which every operation on its keys needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a claim holds without being renewed.
    pub lease: Duration,
    /// How long a done key is remembered.
    pub window: Duration,
}

/// What a done key remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the upstream's answer came (under `suppress` with an unknown outcome: when that was settled).
    /// `None` for a key whose owner died while sending: nobody wrote down when.
    pub at: Option<SystemTime>,
    /// What is known of the exchange.
    pub result: Recorded,
}

/// How a done key came to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The upstream answered with this 2xx status.
    Delivered(u16),
    /// Under `suppress`: the upstream may have got the event, and it is not sent again.
    Unknown,
}

/// What a claim attempt found for one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The key was absent and is now held by the token of the attempt (or it carried that token already).
    Claimed,
    /// Another owner's lease holds.
    Held,
    /// The event is settled: a duplicate.
    Done(Record),
}

/// A key as it stands in the store, for people and for `Retry-After`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// How long the state holds if nobody touches it: the rest of the lease, or of the window.
    pub remaining: Duration,
}

/// The state of a key that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Claimed: the event is in flight and nothing was sent yet, or it may be sent again.
    Claimed,
    /// In flight under `suppress`, and past the point of no return.
    Sending,
    /// Settled.
    Done(Record),
}

/// What became of the attempt to forget a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// There was nothing to forget.
    Absent,
    /// It is absent now; before, it stood like this.
    Freed(Standing),
    /// It is in flight and was left as it is.
    Open(Standing),
}

/// How an exchange ended: the final (not 1xx) response head decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A 2xx head, whatever becomes of the body after it.
    Delivered(u16),
    /// Any other head.
    Refused(u16),
    /// No byte of the request was written: connection refused, name not found, TLS failed.
    NotSent,
    /// At least one byte was written and no final head told what became of it.
    Unknown(Doubt),
}

/// Why an outcome is unknown. It decides the status the provider gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// No final head came within the upstream's `timeout`.
    TimedOut,
    /// The connection ended before a final head, or what came was no HTTP.
    Reset,
    /// Something between the gateway and the handler gave up (`unknown_statuses`).
    GaveUp(u16),
}

impl Outcome {
    /// The metrics' label for this outcome.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Delivered(_) => "delivered",
            Self::Refused(_) => "refused",
            Self::NotSent => "not_sent",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// What is to be written for a claim once its exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Remember the event as delivered, whoever holds the key now: the handler ran.
    Done(Record),
    /// Under `suppress`: remember it as done and unknown, if the claim is still ours.
    Unknown(Record),
    /// Free the key, if the claim is still ours.
    Release,
}

/// A value in a store: version 1 of how a key's state is written down.
///
/// `1c:<token>` claimed, `1s:<token>` sending, `1d:<milliseconds since 1970>:<status>` done,
/// `1u:<milliseconds since 1970>` done with an unknown outcome. Whoever reads anything else must treat the store as
/// unavailable: a newer version may mean what this one cannot guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `1c:`, with its owner.
    Claimed(&'a str),
    /// `1s:`, with its owner.
    Sending(&'a str),
    /// `1d:` and `1u:`
    Done(Record),
}

/// A stored value that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored value `{0}` is not one that this version of hookonce writes")]
pub struct UnreadableValue(String);

impl<'a> Value<'a> {
    /// Reads what is stored.
    ///
    /// # Errors
    ///
    /// What is not of version 1, or not whole.
    pub fn read(text: &'a str) -> Result<Self, UnreadableValue> {
        let unreadable = || UnreadableValue(text.chars().take(80).collect());
        let time = |text: &str| {
            let at: u64 = text.parse().map_err(|_| unreadable())?;
            Ok((at > 0).then(|| UNIX_EPOCH + Duration::from_millis(at)))
        };
        match text.split_once(':') {
            Some(("1c", owner)) if !owner.is_empty() => Ok(Self::Claimed(owner)),
            Some(("1s", owner)) if !owner.is_empty() => Ok(Self::Sending(owner)),
            Some(("1u", at)) => Ok(Self::Done(Record { at: time(at)?, result: Recorded::Unknown })),
            Some(("1d", rest)) => {
                let (at, status) = rest.split_once(':').ok_or_else(unreadable)?;
                let status = status.parse().map_err(|_| unreadable())?;
                Ok(Self::Done(Record { at: time(at)?, result: Recorded::Delivered(status) }))
            }
            _ => Err(unreadable()),
        }
    }

    /// Appends the value as it is stored to `text`.
    pub fn write_to(self, text: &mut String) {
        let (version, owner) = match self {
            Self::Claimed(owner) => ("1c:", owner),
            Self::Sending(owner) => ("1s:", owner),
            Self::Done(Record { result: Recorded::Delivered(_), .. }) => ("1d:", ""),
            Self::Done(Record { result: Recorded::Unknown, .. }) => ("1u:", ""),
        };
        text.push_str(version);
        text.push_str(owner);
        if let Self::Done(Record { at, result }) = self {
            text.push_str(itoa::Buffer::new().format(at.map_or(0, milliseconds)));
            if let Recorded::Delivered(status) = result {
                text.push(':');
                text.push_str(itoa::Buffer::new().format(status));
            }
        }
    }

    /// The value as it is stored.
    #[must_use]
    pub fn text(self) -> String {
        let mut text = String::with_capacity(LONGEST_VALUE);
        self.write_to(&mut text);
        text
    }
}

/// How many bytes a value takes that this process writes.
pub const LONGEST_VALUE: usize = 36;

/// Milliseconds since 1970, as they stand in a stored value.
#[must_use]
pub fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_back_as_they_were_written() {
        let at = Some(UNIX_EPOCH + Duration::from_millis(1_760_000_000_123));
        let token = Token::fresh();
        for value in [
            Value::Claimed(token.as_str()),
            Value::Sending(token.as_str()),
            Value::Done(Record { at, result: Recorded::Delivered(204) }),
            Value::Done(Record { at, result: Recorded::Unknown }),
        ] {
            assert_eq!(Value::read(&value.text()), Ok(value));
            assert!(value.text().len() <= LONGEST_VALUE, "{value:?}");
        }
    }

    #[test]
    fn a_value_of_another_version_is_refused() {
        for text in ["", "1", "1c:", "1d:1760000000123", "1d:x:200", "1u:", "2c:abc", "true"] {
            assert!(Value::read(text).is_err(), "`{text}` was read");
        }
    }

    #[test]
    fn tokens_are_fresh() {
        assert_ne!(Token::fresh(), Token::fresh());
    }
}
