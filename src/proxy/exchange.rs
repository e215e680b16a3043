//! One exchange of a delivery: from the last check of its claims to its settlement.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

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
}

impl Pace {
    pub(super) fn new(events: usize) -> Self {
        Self { batch: events > 1, not_sent_in_a_row: AtomicU32::new(0) }
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
    /// The upstream's answer, where it is to be relayed.
    pub(super) answer: Option<Answer>,
    /// What the operator should know about it.
    pub(super) cause: Option<String>,
    pub(super) status: Option<u16>,
}

/// What an exchange needs from its delivery.
pub(super) struct Sender<'a> {
    pub(super) core: &'a Core,
    pub(super) incoming: &'a Incoming,
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
        let started = Instant::now();
        let sent = if core.is_stopping() {
            Sent::NotBegun("the gateway is stopping".to_owned())
        } else if !self.pace.allows(incoming.arrived) {
            Sent::NotBegun("too late, or the upstream cannot be reached".to_owned())
        } else {
            self.send(&exchange.body, &keys).await
        };
        let (outcome, answer, cause) = match sent {
            Sent::Answered(outcome, answer) => (outcome, Some(answer), None),
            Sent::Ended(outcome, cause) => (outcome, None, Some(cause)),
            Sent::NotBegun(cause) => {
                core.settler.release(claims, &keys).await;
                claims.close(&keys);
                leads.into_iter().for_each(|lead| lead.end(Ended::GaveUp));
                let (end, cause) = (End::NotBegun, Some(cause));
                return Exchanged { items: exchange.items, end, answer: None, cause, status: None };
            }
            Sent::StoreUnavailable(cause) => {
                core.settler.release_later(claims, keys);
                leads.into_iter().for_each(|lead| lead.end(Ended::Unavailable));
                let (end, cause) = (End::StoreUnavailable, Some(cause));
                return Exchanged { items: exchange.items, end, answer: None, cause, status: None };
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

        let status = answer.as_ref().map(|answer| answer.head.status.as_u16());
        // Only the received bytes bring an answer that is the provider's; 101 and 3xx are never relayed.
        let relayed = exchange.body == Body::Whole && status.is_some_and(is_relayed);
        Exchanged { items: exchange.items, end: End::Sent(outcome), answer: answer.filter(|_| relayed), cause, status }
    }

    async fn send(&self, body: &Body, keys: &[EventKey]) -> Sent {
        let Self { incoming, claims, .. } = self;
        let route = &incoming.route;
        let observe = route.config.mode == Mode::Observe;
        // At most once needs a connection that nobody has used: one that died while idle could swallow the request.
        let fresh = self.suppresses();
        let Some(request) = Request::new(incoming, body) else {
            return Sent::Ended(Outcome::NotSent, "the request cannot be written as HTTP/1.1".to_owned());
        };
        let mut connection = match route.upstream.connect(fresh).await {
            Ok(connection) => connection,
            Err(failure) => return ended(failure),
        };
        // The last moment before the first byte: from here on, the claims must be ours.
        let claimed: Vec<EventKey> = keys.iter().filter(|key| claims.holds(key)).cloned().collect();
        if !claimed.is_empty() && !observe {
            if self.suppresses() {
                match claims.promote(&claimed).await {
                    Ok(true) => {}
                    Ok(false) => return Sent::NotBegun("the claim was lost before the first byte".to_owned()),
                    Err(error) => return Sent::StoreUnavailable(error.to_string()),
                }
            } else if !claims.fit_to_send(&claimed).await {
                return Sent::NotBegun("the claim was lost before the first byte".to_owned());
            }
        }
        let mut result = route.upstream.exchange(connection, &request).await;
        if !fresh && matches!(result, Err(Failure::NotSent(_))) {
            // The idle connection was closed under us, and not a byte was written: a fresh one is as good as the first.
            connection = match route.upstream.connect(true).await {
                Ok(connection) => connection,
                Err(failure) => return ended(failure),
            };
            result = route.upstream.exchange(connection, &request).await;
        }
        match result {
            Ok(answer) => {
                let status = answer.head.status.as_u16();
                let outcome = match status {
                    200..=299 => Outcome::Delivered(status),
                    _ if route.config.unknown_statuses.contains(&status) => Outcome::Unknown(Doubt::GaveUp(status)),
                    _ => Outcome::Refused(status),
                };
                Sent::Answered(outcome, answer)
            }
            Err(failure) => ended(failure),
        }
    }

    fn suppresses(&self) -> bool {
        self.incoming.route.config.unknown_outcome == UnknownOutcome::Suppress
    }
}

fn ended(failure: Failure) -> Sent {
    match failure {
        Failure::NotSent(cause) => Sent::Ended(Outcome::NotSent, cause),
        Failure::Unknown(doubt, cause) => Sent::Ended(Outcome::Unknown(doubt), cause),
    }
}

fn is_relayed(status: u16) -> bool {
    (200..300).contains(&status) || status >= 400
}
