//! One exchange of a delivery: from the last check of its claims to its settlement.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore, SemaphorePermit};

use super::inflight::{Ended, Lead};
use super::lease::OpenClaims;
use super::request::Request;
use super::upstream::{Answer, Failure};
use super::{Core, Incoming};
use crate::claim::{Doubt, Outcome};
use crate::config::{Mode, UnknownOutcome};
use crate::dedup::plan::{Body, Exchange, Item};
use crate::dedup::verdict::{End, settlement};
use crate::event::EventKey;

/// A batch begins no exchange later than this after its arrival: by then its provider has sent it again.
const LONGEST_BATCH: Duration = Duration::from_secs(5 * 60);
/// A batch begins no exchange after this many in a row that found no connection.
const MOST_NOT_SENT: u32 = 8;

/// What keeps a batch from hammering an upstream that is down, and from going on for ever.
pub(super) struct Pace {
    batch: bool,
    not_sent_in_a_row: AtomicU32,
    /// The store did not answer when a claim had to be renewed: it will not for the next event either.
    store_gone: AtomicBool,
    side_by_side: Semaphore,
    conversations: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// An exchange's turn: nothing else of its conversation runs meanwhile.
struct Turn<'a> {
    _conversation: Option<OwnedMutexGuard<()>>,
    _place: Option<SemaphorePermit<'a>>,
}

impl Pace {
    pub(super) fn new(events: usize, concurrency: usize) -> Self {
        Self {
            batch: events > 1,
            not_sent_in_a_row: AtomicU32::new(0),
            store_gone: AtomicBool::new(false),
            side_by_side: Semaphore::new(concurrency),
            conversations: Mutex::default(),
        }
    }

    /// Waits until nothing of the same conversation runs, and for a place among those that run side by side.
    async fn turn(&self, conversation: Option<&str>) -> Turn<'_> {
        if !self.batch {
            return Turn { _conversation: None, _place: None };
        }
        let conversation = conversation.map(|conversation| {
            let mut known = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(conversation.to_owned()).or_default())
        });
        let conversation = match conversation {
            Some(conversation) => Some(conversation.lock_owned().await),
            None => None,
        };
        // The semaphore is never closed, so there always is a place in the end.
        Turn { _conversation: conversation, _place: self.side_by_side.acquire().await.ok() }
    }

    fn allows(&self, arrived: Instant) -> bool {
        !self.batch
            || (arrived.elapsed() < LONGEST_BATCH && self.not_sent_in_a_row.load(Ordering::Relaxed) < MOST_NOT_SENT)
    }

    fn note(&self, outcome: Outcome) {
        if outcome == Outcome::NotSent {
            self.not_sent_in_a_row.fetch_add(1, Ordering::Relaxed);
        } else {
            self.not_sent_in_a_row.store(0, Ordering::Relaxed);
        }
    }
}

/// How an exchange ended.
pub(super) struct Exchanged {
    pub(super) items: Vec<usize>,
    pub(super) end: End,
    /// Whether its body was a part of the received one.
    pub(super) cut: bool,
    /// The upstream's answer, where it is to be relayed.
    pub(super) answer: Option<Answer>,
    /// What the operator should know about it.
    pub(super) cause: Option<String>,
    pub(super) status: Option<u16>,
}

/// What an exchange needs from its delivery.
pub(super) struct Sender<'a> {
    pub(super) core: &'a Core,
    pub(super) incoming: &'a Incoming<'a>,
    pub(super) items: &'a [Item],
    pub(super) claims: &'a OpenClaims,
    pub(super) pace: &'a Pace,
}

enum Sent {
    Answered(Outcome, Answer),
    Ended(Outcome, String),
    NotBegun(String),
    StoreUnavailable(String),
}

impl Sender<'_> {
    /// Has one exchange and settles its events. `leads` are this delivery's places at those of its events that it
    /// leads.
    pub(super) async fn exchange(&self, exchange: Exchange, leads: Vec<Lead>) -> Exchanged {
        let Self { core, incoming, claims, .. } = self;
        let keys: Vec<EventKey> = exchange.items.iter().filter_map(|item| self.items[*item].key.clone()).collect();
        let cut = exchange.body != Body::Whole;
        let _turn = self.pace.turn(self.conversation(&exchange)).await;
        let started = Instant::now();
        let sent = if core.is_stopping() {
            Sent::NotBegun("the gateway is stopping".to_owned())
        } else if self.pace.store_gone.load(Ordering::Relaxed) {
            Sent::StoreUnavailable("the store did not answer for an event before".to_owned())
        } else if !self.pace.allows(incoming.arrived) {
            Sent::NotBegun("too late, or the upstream cannot be reached".to_owned())
        } else {
            self.send(&exchange.body, &keys).await
        };
        let (outcome, answer, cause) = match sent {
            Sent::Answered(outcome, answer) => (outcome, Some(answer), None),
            Sent::Ended(outcome, cause) => (outcome, None, Some(cause)),
            Sent::NotBegun(cause) => {
                Box::pin(core.settler.release(claims, &keys, leads, Ended::GaveUp)).await;
                let (end, cause) = (End::NotBegun, Some(cause));
                return Exchanged { items: exchange.items, end, cut, answer: None, cause, status: None };
            }
            Sent::StoreUnavailable(cause) => {
                self.pace.store_gone.store(true, Ordering::Relaxed);
                core.settler.release_later(claims, keys, leads, Ended::Unavailable);
                let (end, cause) = (End::StoreUnavailable, Some(cause));
                return Exchanged { items: exchange.items, end, cut, answer: None, cause, status: None };
            }
        };
        self.pace.note(outcome);
        incoming.route.metrics.exchanged(outcome.label(), started.elapsed());
        let settlement = settlement(outcome, self.suppresses(), SystemTime::now());
        if keys.is_empty() {
            drop(leads);
        } else {
            core.settler.settle(claims, &keys, leads, settlement, outcome).await;
        }

        let status = answer.as_ref().map(|answer| answer.status());
        // Only the received bytes bring an answer that is the provider's; 101 and 3xx are never relayed.
        let relayed = !cut && status.is_some_and(is_relayed);
        let answer = answer.filter(|_| relayed);
        Exchanged { items: exchange.items, end: End::Sent(outcome), cut, answer, cause, status }
    }

    fn conversation(&self, exchange: &Exchange) -> Option<&str> {
        match exchange.items.as_slice() {
            [only] => self.incoming.extraction.events[self.items[*only].event].conversation.as_deref(),
            _ => None,
        }
    }

    async fn send(&self, body: &Body, keys: &[EventKey]) -> Sent {
        let incoming = self.incoming;
        let route = &incoming.route;
        // At most once needs a connection that nobody has used: one that died while idle could swallow the request.
        let fresh = self.suppresses();
        let Some(request) = Request::new(incoming, body) else {
            return Sent::Ended(Outcome::NotSent, "the request cannot be written as HTTP/1.1".to_owned());
        };
        match self.attempt(&request, keys, fresh).await {
            Err(not_begun) => not_begun,
            Ok(Ok(answer)) => {
                let status = answer.status();
                let outcome = match status {
                    200..=299 => Outcome::Delivered(status),
                    _ if route.config.unknown_statuses.contains(&status) => Outcome::Unknown(Doubt::GaveUp(status)),
                    _ => Outcome::Refused(status),
                };
                Sent::Answered(outcome, answer)
            }
            Ok(Err(Failure::NotSent(cause))) => Sent::Ended(Outcome::NotSent, cause),
            Ok(Err(Failure::Unknown(doubt, cause))) => Sent::Ended(Outcome::Unknown(doubt), cause),
        }
    }

    /// Connects, makes sure of the claims, and sends. `Err`: nothing was sent, and nothing may be.
    async fn attempt(
        &self,
        request: &Request,
        keys: &[EventKey],
        mut fresh: bool,
    ) -> Result<Result<Answer, Failure>, Sent> {
        let upstream = &self.incoming.route.upstream;
        loop {
            let connection = match upstream.connect(fresh).await {
                Ok(connection) => connection,
                Err(failure) => return Ok(Err(failure)),
            };
            // The last moment before the first byte: from here on, the claims must be ours.
            self.make_sure(keys).await?;
            let reused = connection.reused;
            match upstream.exchange(connection, request).await {
                // The idle connection was closed under us, and not a byte was written: a fresh one is as good as new.
                Err(Failure::NotSent(_)) if reused => fresh = true,
                result => return Ok(result),
            }
        }
    }

    /// Makes sure that what this delivery has claimed of `keys` is still its own, as strictly as the route asks.
    async fn make_sure(&self, keys: &[EventKey]) -> Result<(), Sent> {
        if self.incoming.route.config.mode == Mode::Observe {
            return Ok(());
        }
        let claims = self.claims;
        let ours = if self.suppresses() { claims.promote(keys).await } else { claims.fit_to_send(keys).await };
        match ours {
            Ok(true) => Ok(()),
            Ok(false) => Err(Sent::NotBegun("the claim was lost before the first byte".to_owned())),
            Err(error) => Err(Sent::StoreUnavailable(error.to_string())),
        }
    }

    fn suppresses(&self) -> bool {
        self.incoming.route.config.unknown_outcome == UnknownOutcome::Suppress
    }
}

fn is_relayed(status: u16) -> bool {
    (200..300).contains(&status) || status >= 400
}
