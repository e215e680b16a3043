//! What the replies say, one by one: an error among them is that command's and no other's.

use std::time::Duration;

use ::redis::Value as Reply;

use crate::claim::{Found, Record, Token, Value};
use crate::store::StoreError;
use crate::store::reading::{Held, found_at_once};

/// A claim that is decided, or that takes a second look at the key: because of the time that is left, or because Redis
/// refused the write with this error, which a duplicate need not mind.
pub(super) enum Attempt {
    Decided(Result<Found, StoreError>),
    TimeDecides,
    Refused(StoreError),
}

/// The answer to a claim by `token`.
pub(super) fn attempt(reply: &Reply, token: &Token) -> Attempt {
    match reply {
        Reply::Nil => Attempt::Decided(Ok(Found::Claimed)),
        Reply::BulkString(bytes) => match Value::read(&String::from_utf8_lossy(bytes)) {
            Ok(value) => found_at_once(value, token).map_or(Attempt::TimeDecides, |found| Attempt::Decided(Ok(found))),
            Err(error) => Attempt::Decided(Err(error.into())),
        },
        Reply::ServerError(_) => Attempt::Refused(other_shape(reply)),
        _ => Attempt::Decided(Err(other_shape(reply))),
    }
}

/// Which of so many keys that were read together are done, in their order. What is not sure is left to a claim.
pub(super) fn done(reply: &Reply, keys: usize) -> Vec<Option<Record>> {
    let values: &[Reply] = match reply {
        Reply::Array(values) if values.len() == keys => values,
        _ => return vec![None; keys],
    };
    let done = |value: &Reply| match Value::read(text(value)?) {
        Ok(Value::Done(record)) => Some(record),
        _ => None,
    };
    values.iter().map(done).collect()
}

/// The answer of [`READ`](super::scripts::READ).
pub(super) fn held(reply: &Reply) -> Result<Option<Held>, StoreError> {
    let Reply::Array(parts) = reply else { return Err(other_shape(reply)) };
    match parts.as_slice() {
        [Reply::Nil, _] => Ok(None),
        [Reply::BulkString(bytes), Reply::Int(remaining)] => Ok(Some(Held {
            text: String::from_utf8_lossy(bytes).into_owned(),
            remaining: Duration::from_millis(u64::try_from(*remaining).unwrap_or(0)),
        })),
        [other, Reply::Int(_)] => Err(other_shape(other)),
        _ => Err(other_shape(reply)),
    }
}

/// The answer of a script that changes a key or leaves it.
pub(super) fn yes_or_no(reply: &Reply) -> Result<bool, StoreError> {
    match reply {
        Reply::Int(answer) => Ok(*answer == 1),
        _ => Err(other_shape(reply)),
    }
}

/// The answer to a plain `SET`.
pub(super) fn taken(reply: &Reply) -> Result<(), StoreError> {
    match reply {
        Reply::Okay => Ok(()),
        _ => Err(other_shape(reply)),
    }
}

/// The reply's text, if it has one.
pub(super) fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Reply::SimpleString(text) | Reply::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

/// The error's code, if the reply is one.
pub(super) fn code(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::ServerError(error) => Some(error.code()),
        _ => None,
    }
}

/// The error as Redis sent it, if the reply is one.
pub(super) fn refusal(reply: &Reply) -> Option<String> {
    match reply {
        Reply::ServerError(error) => Some(match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        }),
        _ => None,
    }
}

fn other_shape(reply: &Reply) -> StoreError {
    StoreError::Refused(refusal(reply).unwrap_or_else(|| "the reply has another shape than expected".to_owned()))
}
