//! Waiting for events that somebody else is sending: a delivery of this gateway, or of another.
//!
//! Behind a delivery of this gateway one waits to be woken. What another gateway holds is asked after, all of it in one
//! round trip. A store that does not answer while one waits makes the delivery unavailable even under
//! `store_down: forward`: a moment ago somebody else had the event, so it is not forwarded on a guess.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::Core;
use super::inflight::{Ended, Lead, Place};
use super::lease::OpenClaims;
use crate::claim::{Found, Outcome};
use crate::dedup::verdict::End;
use crate::event::EventKey;

/// How often another gateway's claims are asked after, in milliseconds: at random between these.
const POLL: std::ops::RangeInclusive<u64> = 25..=250;

/// How waiting for one event ended.
pub(super) enum Waited {
    /// It is free again, and this delivery has claimed it.
    Claimed(Lead),
    /// It has ended without this delivery.
    Ended(End),
}

/// An event to wait for, and where this delivery stands: behind a delivery of this gateway, or at the head of this
/// gateway's copies and behind another gateway's claim.
pub(super) struct Wait {
    pub(super) item: usize,
    pub(super) key: EventKey,
    pub(super) place: Place,
}

/// A delivery that waits.
pub(super) struct Waiting<'a> {
    core: &'a Core,
    claims: &'a OpenClaims,
    deadline: Instant,
    /// Led here, held by another gateway.
    led: Vec<(usize, Lead)>,
    /// When those are asked after next.
    next_look: Instant,
    /// Led by another delivery of this gateway.
    followed: FuturesUnordered<BoxFuture<'static, Followed>>,
    following: HashMap<usize, EventKey>,
    ended: VecDeque<(usize, Waited)>,
}

struct Followed {
    item: usize,
    key: EventKey,
    /// The exchange of a leader before this one was not sent: this one's counts, however it ends.
    second: bool,
    ended: Ended,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(core: &'a Core, claims: &'a OpenClaims, deadline: Instant, waits: Vec<Wait>) -> Self {
        let mut waiting = Self {
            core,
            claims,
            deadline,
            led: Vec::new(),
            next_look: next_look(),
            followed: FuturesUnordered::new(),
            following: HashMap::new(),
            ended: VecDeque::new(),
        };
        for Wait { item, key, place } in waits {
            waiting.stand(item, key, place, false);
        }
        waiting
    }

    /// Tells `tell` how each wait ended, as soon as it has. All have ended by the deadline, or when the gateway stops.
    ///
    /// After a release one waiter of this gateway claims the event, the others take how its exchange ends. After an
    /// exchange of this gateway that was refused, or whose outcome is unknown, no waiter sends again.
    pub(super) async fn run(mut self, mut tell: impl FnMut(usize, Waited)) {
        loop {
            while let Some((item, waited)) = self.ended.pop_front() {
                tell(item, waited);
            }
            if self.led.is_empty() && self.followed.is_empty() {
                return;
            }
            tokio::select! {
                Some(followed) = self.followed.next() => self.wake(followed),
                () = tokio::time::sleep_until(self.next_look.min(self.deadline)), if !self.led.is_empty() => {
                    if Instant::now() < self.deadline {
                        self.look().await;
                    } else {
                        self.give_up().await;
                    }
                }
                () = tokio::time::sleep_until(self.deadline) => self.give_up().await,
                () = self.core.stopping() => self.give_up().await,
            }
        }
    }

    fn stand(&mut self, item: usize, key: EventKey, place: Place, second: bool) {
        match place {
            Place::Lead(lead) => self.led.push((item, lead)),
            Place::Follow(follow) => {
                self.following.insert(item, key.clone());
                self.followed.push(Box::pin(async move {
                    let ended = follow.ended().await;
                    Followed { item, key, second, ended }
                }));
            }
        }
    }

    fn wake(&mut self, Followed { item, key, second, ended }: Followed) {
        self.following.remove(&item);
        let end = match ended {
            Ended::Done(record) => End::Duplicate(record),
            Ended::Unavailable => End::StoreUnavailable,
            Ended::Failed(outcome) if outcome != Outcome::NotSent || second => End::CopyFailed(outcome),
            Ended::Failed(_) | Ended::GaveUp => {
                let second = second || matches!(ended, Ended::Failed(_));
                let place = self.core.in_flight.join(&key);
                if matches!(place, Place::Lead(_)) {
                    self.next_look = Instant::now();
                }
                self.stand(item, key, place, second);
                return;
            }
        };
        self.ended.push_back((item, Waited::Ended(end)));
    }

    /// Tries to claim what other gateways held a moment ago.
    async fn look(&mut self) {
        let keys: Vec<EventKey> = self.led.iter().map(|(_, lead)| lead.key().clone()).collect();
        let found = self.claims.claim(&keys).await;
        let mut doubtful = Vec::new();
        for ((item, lead), found) in std::mem::take(&mut self.led).into_iter().zip(found) {
            match found {
                Ok(Found::Claimed) => self.ended.push_back((item, Waited::Claimed(lead))),
                Ok(Found::Held) => self.led.push((item, lead)),
                Ok(Found::Done(record)) => {
                    lead.end(Ended::Done(record));
                    self.ended.push_back((item, Waited::Ended(End::Duplicate(record))));
                }
                Err(_) => {
                    doubtful.push(lead.key().clone());
                    lead.end(Ended::Unavailable);
                    self.ended.push_back((item, Waited::Ended(End::StoreUnavailable)));
                }
            }
        }
        self.core.settler.release_later(self.claims, doubtful, Vec::new(), Ended::Unavailable);
        self.next_look = next_look();
    }

    /// What has not ended stays open for this delivery. Its provider is told about how long the claims still hold.
    async fn give_up(&mut self) {
        let mut open = std::mem::take(&mut self.following);
        self.followed.clear();
        for (item, lead) in std::mem::take(&mut self.led) {
            open.insert(item, lead.key().clone());
            lead.end(Ended::GaveUp);
        }
        let terms = self.claims.terms;
        let remaining = match open.values().next() {
            Some(key) => match self.core.store.look(key, terms).await {
                Ok(standing) => standing.map_or(Duration::ZERO, |standing| standing.remaining.min(terms.lease)),
                Err(_) => terms.lease,
            },
            None => Duration::ZERO,
        };
        self.ended.extend(open.into_keys().map(|item| (item, Waited::Ended(End::Open(remaining)))));
    }
}

fn next_look() -> Instant {
    Instant::now() + Duration::from_millis(rand::random_range(POLL))
}
