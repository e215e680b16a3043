//! Waiting for an event that somebody else is sending: a delivery of this gateway, or of another.

use std::time::Duration;

use tokio::time::Instant;

use super::Core;
use super::inflight::{Ended, Follow, Lead, Place};
use super::lease::OpenClaims;
use crate::claim::{Found, Outcome};
use crate::dedup::verdict::End;
use crate::event::EventKey;

/// How often another gateway's claim is asked after, in milliseconds: at random between these.
const POLL: std::ops::RangeInclusive<u64> = 25..=250;

/// How waiting for one event ended.
pub(super) enum Waited {
    /// The event is free again, and this delivery has claimed it.
    Claimed(Lead),
    /// It has ended without this delivery.
    Ended(End),
}

/// Waits for `key` until `deadline`. `place` is where this delivery stands: behind a delivery of this gateway, or at
/// the head of this gateway's copies and behind another gateway's claim.
///
/// After a release one waiter of this gateway claims the event, the others take how its exchange ends. After an
/// exchange of this gateway that was refused, or whose outcome is unknown, no waiter sends again.
pub(super) async fn wait_for(
    core: &Core,
    claims: &OpenClaims,
    key: &EventKey,
    mut place: Place,
    deadline: Instant,
) -> Waited {
    // A delivery that leads from the start has just been told that the claim is held.
    let mut held = matches!(place, Place::Lead(_));
    let mut second_exchange = false;
    loop {
        place = match place {
            Place::Follow(follow) => match follow_until(core, &follow, deadline).await {
                None => return still_open(core, claims, key).await,
                Some(Ended::Done(record)) => return Waited::Ended(End::Duplicate(record)),
                Some(Ended::Unavailable) => return Waited::Ended(End::StoreUnavailable),
                Some(Ended::Failed(outcome)) if outcome != Outcome::NotSent || second_exchange => {
                    return Waited::Ended(End::CopyFailed(outcome));
                }
                Some(Ended::Failed(_)) => {
                    second_exchange = true;
                    core.in_flight.join(key)
                }
                Some(Ended::GaveUp) => core.in_flight.join(key),
            },
            Place::Lead(lead) => {
                if held && !pause_until(core, deadline).await {
                    lead.end(Ended::GaveUp);
                    return still_open(core, claims, key).await;
                }
                match claims.claim(std::slice::from_ref(key)).await.pop() {
                    Some(Ok(Found::Claimed)) => return Waited::Claimed(lead),
                    Some(Ok(Found::Done(record))) => {
                        lead.end(Ended::Done(record));
                        return Waited::Ended(End::Duplicate(record));
                    }
                    Some(Ok(Found::Held)) => {
                        held = true;
                        Place::Lead(lead)
                    }
                    Some(Err(_)) | None => {
                        core.settler.release_later(claims, vec![key.clone()]);
                        lead.end(Ended::Unavailable);
                        return Waited::Ended(End::StoreUnavailable);
                    }
                }
            }
        };
        if Instant::now() >= deadline || core.is_stopping() {
            // A leader that keeps giving up must not keep its copies beyond their time.
            drop(place);
            return still_open(core, claims, key).await;
        }
    }
}

async fn follow_until(core: &Core, follow: &Follow, deadline: Instant) -> Option<Ended> {
    tokio::select! {
        ended = follow.ended() => Some(ended),
        () = tokio::time::sleep_until(deadline) => None,
        () = core.stopping() => None,
    }
}

/// Pauses before the next look at another gateway's claim. `false`: there is no time left.
async fn pause_until(core: &Core, deadline: Instant) -> bool {
    let next = Instant::now() + Duration::from_millis(rand::random_range(POLL));
    tokio::select! {
        () = tokio::time::sleep_until(next.min(deadline)) => {}
        () = core.stopping() => return false,
    }
    next < deadline
}

/// The event stays open for this delivery; its provider is told about how long the claim still holds.
pub(super) async fn still_open(core: &Core, claims: &OpenClaims, key: &EventKey) -> Waited {
    let remaining = match core.store.look(key, claims.terms).await {
        Ok(Some(standing)) => standing.remaining.min(claims.terms.lease),
        Ok(None) => Duration::ZERO,
        Err(_) => claims.terms.lease,
    };
    Waited::Ended(End::Open(remaining))
}
