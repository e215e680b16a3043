//! The end of a delivery's way: from how each event ended to the answer, the result and the counts.

use std::borrow::Cow;
use std::time::Duration;

use super::answer::Own;
use super::forward::{Progress, Run};
use super::journal::Line;
use super::respond::Reply;
use crate::claim::Outcome;
use crate::config::{InFlightThen, LogDeliveries};
use crate::dedup::plan::{Batching, Finding, Item};
use crate::dedup::verdict::{self, End};
use crate::metrics::{DeliveryResult, EventOutcome, RouteMetrics};

/// How long a provider is asked to stay away when there is no better guess.
pub(super) const COME_BACK: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// From how every event ended to the one answer.
    pub(super) fn conclude(&self, mut progress: Progress, found: &[Finding]) -> (Reply, Line) {
        let ends: Vec<End> = progress
            .ends
            .iter()
            .zip(found)
            .map(|(end, found)| match (end, found) {
                (Some(end), _) => *end,
                (None, Finding::Done(record)) => End::Duplicate(*record),
                (None, _) => End::NotBegun,
            })
            .collect();
        let tally = Tally::of(&ends, &self.items, found);
        let would = self.result_of(&ends, found, &progress);
        let result = if self.rules.observe { DeliveryResult::Observe } else { would };
        let metrics = &self.incoming.route.metrics;
        if self.rules.observe {
            found.iter().for_each(|finding| metrics.event(observed(*finding)));
        } else {
            tally.count(metrics);
        }
        let first_seen = ends.iter().find_map(|end| match end {
            End::Duplicate(record) => Some(*record),
            _ => None,
        });
        let reply = match progress.answer.take() {
            Some(answer) => Reply::Relay(answer),
            // Under `observe` everything rides on the one exchange, whatever is known of the events in it.
            None => match progress.exchanged {
                Some(end) if self.rules.observe => Reply::Own(self.own_answer(&[end], result)),
                _ => Reply::Own(self.own_answer(&ends, result)),
            },
        };
        let label = match result {
            DeliveryResult::Observe => Cow::Owned(format!("observe; would={}", would.label())),
            DeliveryResult::Split | DeliveryResult::Filtered => Cow::Owned(format!("{}; {tally}", result.label())),
            _ => Cow::Borrowed(result.label()),
        };
        for event in &self.incoming.extraction.events {
            if let Err(unkeyed) = &event.key {
                let cause = unkeyed.to_string();
                if !progress.causes.contains(&cause) {
                    progress.causes.push(cause);
                }
            }
        }
        let line = Line {
            result,
            label,
            keys: match self.core.log.deliveries {
                LogDeliveries::Off => Vec::new(),
                _ => self.items.iter().filter_map(|item| item.key.clone()).collect(),
            },
            identifies: first_seen.and(self.incoming.route.provider.as_ref()).map(|provider| provider.identifies()),
            first_seen,
            upstream_status: progress.upstream_status,
            exceptional: !progress.causes.is_empty()
                || ends.iter().any(|end| !matches!(end, End::Sent(Outcome::Delivered(_)) | End::Duplicate(_)))
                || found.contains(&Finding::Unkeyed),
            causes: progress.causes,
        };
        (reply, line)
    }

    /// The word for what was done; under `observe`, for what would have been done.
    fn result_of(&self, ends: &[End], found: &[Finding], progress: &Progress) -> DeliveryResult {
        let unavailable = found.contains(&Finding::NoAnswer) || ends.contains(&End::StoreUnavailable);
        if unavailable {
            return DeliveryResult::StoreUnavailable;
        }
        if self.rules.observe {
            return self.would_be(found);
        }
        let sent = ends.iter().any(|end| matches!(end, End::Sent(_)));
        if progress.cut {
            return if self.rules.batch == Batching::Split { DeliveryResult::Split } else { DeliveryResult::Filtered };
        }
        if sent {
            return if self.items.iter().all(|item| item.key.is_none()) {
                DeliveryResult::Unkeyed
            } else {
                DeliveryResult::First
            };
        }
        if ends.iter().all(|end| matches!(end, End::Duplicate(_))) {
            return DeliveryResult::Duplicate;
        }
        if ends.iter().any(|end| matches!(end, End::Open(_) | End::CopyFailed(_))) {
            return DeliveryResult::InFlight;
        }
        DeliveryResult::Busy
    }

    fn would_be(&self, found: &[Finding]) -> DeliveryResult {
        if self.incoming.verified.is_none() {
            return DeliveryResult::Unauthorized;
        }
        let new = |finding: &Finding| matches!(finding, Finding::Claimed | Finding::Unkeyed);
        if found.iter().all(|finding| matches!(finding, Finding::Done(_))) {
            DeliveryResult::Duplicate
        } else if !found.iter().any(new) {
            DeliveryResult::InFlight
        } else if self.items.iter().all(|item| item.key.is_none()) {
            DeliveryResult::Unkeyed
        } else if found.len() > 1 && self.rules.batch == Batching::Split {
            DeliveryResult::Split
        } else if !found.iter().all(new) && self.rules.batch == Batching::Filter {
            DeliveryResult::Filtered
        } else {
            DeliveryResult::First
        }
    }

    fn own_answer(&self, ends: &[End], result: DeliveryResult) -> Own {
        let config = &self.incoming.route.config;
        match verdict::answer(ends, ends.len() == 1) {
            verdict::Answer::Accepted if result == DeliveryResult::Duplicate => {
                Own::duplicate(&config.duplicate_response)
            }
            verdict::Answer::Accepted => Own::new(200, "delivered"),
            verdict::Answer::Failed(status) => match status {
                504 => Own::new(504, "the handler did not answer in time"),
                502 => Own::new(502, "the handler gave no usable answer"),
                _ => Own::new(status, "the handler did not take the event"),
            }
            .retry_after_if(status == 503, COME_BACK),
            verdict::Answer::StoreUnavailable => Own::new(503, "try again").retry_after(COME_BACK),
            verdict::Answer::TryAgain => Own::new(503, "try again").retry_after(COME_BACK),
            verdict::Answer::Open(_) if config.in_flight.then == InFlightThen::Accept => Own::new(200, "in flight"),
            verdict::Answer::Open(remaining) => Own::new(503, "in flight, try again").retry_after(remaining),
        }
    }
}

/// What would have become of an event, had the route enforced.
fn observed(finding: Finding) -> EventOutcome {
    match finding {
        Finding::Claimed => EventOutcome::First,
        Finding::Done(_) => EventOutcome::Duplicate,
        Finding::Open => EventOutcome::InFlight,
        Finding::Unkeyed | Finding::NoAnswer | Finding::Ended => EventOutcome::Unkeyed,
    }
}

/// How many of a delivery's events ended in which way; every event is counted once.
#[derive(Default)]
struct Tally {
    first: usize,
    duplicate: usize,
    failed: usize,
    open: usize,
    unkeyed: usize,
    counted: Vec<EventOutcome>,
}

impl Tally {
    fn of(ends: &[End], items: &[Item], found: &[Finding]) -> Self {
        let mut tally = Self::default();
        for ((end, item), found) in ends.iter().zip(items).zip(found) {
            let claimless = item.key.is_none() || *found == Finding::NoAnswer;
            match end {
                End::Sent(Outcome::Delivered(_)) if claimless => tally.unkeyed += 1,
                End::Sent(Outcome::Delivered(_)) => tally.first += 1,
                End::Duplicate(_) => tally.duplicate += 1,
                End::Open(_) => tally.open += 1,
                End::Sent(_) | End::CopyFailed(_) | End::StoreUnavailable | End::NotBegun => tally.failed += 1,
            }
            tally.counted.extend(match end {
                End::Sent(_) if claimless => Some(EventOutcome::Unkeyed),
                End::Sent(_) => Some(EventOutcome::First),
                End::Duplicate(_) => Some(EventOutcome::Duplicate),
                End::Open(_) | End::CopyFailed(_) => Some(EventOutcome::InFlight),
                End::StoreUnavailable | End::NotBegun => None,
            });
        }
        tally
    }

    fn count(&self, metrics: &RouteMetrics) {
        for outcome in &self.counted {
            metrics.event(*outcome);
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { first, duplicate, failed, open, unkeyed, counted: _ } = self;
        write!(out, "first={first}; duplicate={duplicate}; failed={failed}; open={open}; unkeyed={unkeyed}")
    }
}
