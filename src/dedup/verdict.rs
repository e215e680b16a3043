//! From how an exchange ended to what is written down, and from how every event ended to one answer.

use std::time::{Duration, SystemTime};

use crate::claim::{Doubt, Outcome, Record, Recorded, Settlement};

/// What an exchange's outcome means for the claims it carried. `suppress` is the route's choice for an unknown
/// outcome; `at` is when the outcome was known.
///
/// | outcome | `redeliver` | `suppress` |
/// | --- | --- | --- |
/// | delivered | done | done |
/// | refused, not sent | release | release |
/// | unknown | release: the event may run twice | done, marked unknown: it may not have run at all |
#[must_use]
pub fn settlement(outcome: Outcome, suppress: bool, at: SystemTime) -> Settlement {
    match outcome {
        Outcome::Delivered(status) => Settlement::Done(Record { at: Some(at), result: Recorded::Delivered(status) }),
        Outcome::Unknown(_) if suppress => Settlement::Unknown(Record { at: Some(at), result: Recorded::Unknown }),
        Outcome::Refused(_) | Outcome::NotSent | Outcome::Unknown(_) => Settlement::Release,
    }
}

/// How one event of a delivery ended, as far as the answer to the provider goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was sent by this delivery.
    Sent(Outcome),
    /// It is settled: by an earlier delivery, or by one that this one waited for.
    Duplicate(Record),
    /// This delivery waited for another one in this gateway, and that one's exchange did not deliver.
    CopyFailed(Outcome),
    /// Its claim is still open elsewhere, for about this long.
    Open(Duration),
    /// The store did not answer for it, and nothing was sent.
    StoreUnavailable,
    /// Its exchange was not begun: the gateway is stopping, the claim was lost before the first byte, too much time
    /// had passed, or the upstream cannot be reached. Its claim was released.
    NotBegun,
}

/// The status that the gateway itself answers for an exchange that brought no answer to relay, or one that must not be
/// relayed.
#[must_use]
pub fn status_for(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Delivered(_) => 200,
        Outcome::Unknown(Doubt::TimedOut) => 504,
        // 101 and 3xx are never relayed: some senders would follow a redirect as a GET without a body.
        Outcome::Refused(status) | Outcome::Unknown(Doubt::GaveUp(status)) if status < 400 => 502,
        Outcome::Refused(status) | Outcome::Unknown(Doubt::GaveUp(status)) => status,
        Outcome::NotSent | Outcome::Unknown(Doubt::Reset) => 502,
    }
}

/// The answer to a delivery whose events had no single exchange to relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Every event is done: the route's answer to a duplicate, or 200 for a batch in which something was sent.
    Accepted,
    /// An exchange failed: this status.
    Failed(u16),
    /// The store did not answer.
    StoreUnavailable,
    /// An event is still open; try again after this long.
    Open(Duration),
    /// Something was not begun; the next delivery will.
    TryAgain,
}

/// The answer to a delivery, by how its events ended. The worst thing that happened decides, in this order: a failed
/// exchange, the store, what was not begun, an event still open.
///
/// A failed exchange is 503, or the 502 or 504 of what the gateway itself saw; never the handler's own 3xx or 4xx,
/// which would make a provider give up the other events of the batch as well. Where the delivery is one event
/// (`single`) that waited for a copy, it is answered like that copy: what the handler said of the event, a 4xx included,
/// holds for all copies that were there when it said so.
#[must_use]
pub fn answer(ends: &[End], single: bool) -> Answer {
    let failed = ends.iter().filter_map(|end| match end {
        End::Sent(outcome) | End::CopyFailed(outcome) if !matches!(outcome, Outcome::Delivered(_)) => Some(*outcome),
        _ => None,
    });
    let status = failed.map(|outcome| if single { status_for(outcome) } else { batch_status(outcome) }).max();
    if let Some(status) = status {
        return Answer::Failed(status);
    }
    if ends.contains(&End::StoreUnavailable) {
        return Answer::StoreUnavailable;
    }
    if ends.contains(&End::NotBegun) {
        return Answer::TryAgain;
    }
    let open = ends.iter().filter_map(|end| match end {
        End::Open(remaining) => Some(*remaining),
        _ => None,
    });
    open.max().map_or(Answer::Accepted, Answer::Open)
}

fn batch_status(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::NotSent | Outcome::Unknown(Doubt::Reset) => 502,
        Outcome::Unknown(Doubt::TimedOut) => 504,
        Outcome::Delivered(_) | Outcome::Refused(_) | Outcome::Unknown(Doubt::GaveUp(_)) => 503,
    }
}

#[cfg(test)]
mod tests;
