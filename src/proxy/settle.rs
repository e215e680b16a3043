//! Settling: what an exchange's outcome leaves in the store, now or as soon as the store is back.
//!
//! A provider is answered as soon as the outcome is known and the store was asked once. What the store did not
//! acknowledge goes on here, in the background: a delivered event until it is recorded, a release until its lease has
//! ended anyway. The list is bounded; what finds no place, or is still here when the process must end, is logged.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::inflight::{Ended, Lead};
use super::journal::shown;
use super::lease::OpenClaims;
use crate::claim::{Outcome, Record, Settlement, Token};
use crate::config::LogKeys;
use crate::event::EventKey;
use crate::metrics::Metrics;
use crate::store::ClaimStore;

/// How many settlements may wait for the store.
const MOST_PENDING: usize = 50_000;
/// How many of them are tried in one round trip.
const BITE: usize = 500;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// Settles in the background what the store did not take at once.
pub(super) struct Settler {
    store: Arc<dyn ClaimStore>,
    metrics: Arc<Metrics>,
    log_keys: LogKeys,
    pending: Mutex<VecDeque<Pending>>,
    at_work: AtomicBool,
    idle: Notify,
}

/// A settlement that the store has not acknowledged.
enum Pending {
    /// An event that the upstream took.
    Done {
        key: EventKey,
        record: Record,
        /// How long it is remembered, counted from the delivery.
        window: Duration,
        /// Keeps the key known as done in this process until it is recorded.
        lead: Option<Lead>,
    },
    /// A claim that is, or may be, ours and is not needed.
    Release { key: EventKey, token: Token, until: Instant },
    /// Under `suppress`: an event that may have been handled.
    Unknown { key: EventKey, token: Token, record: Record, window: Duration, until: Instant },
}

impl Settler {
    pub(super) fn new(store: Arc<dyn ClaimStore>, metrics: Arc<Metrics>, log_keys: LogKeys) -> Arc<Self> {
        Arc::new(Self {
            store,
            metrics,
            log_keys,
            pending: Mutex::default(),
            at_work: AtomicBool::new(false),
            idle: Notify::new(),
        })
    }

    /// Writes down what an exchange's outcome means for `keys`, the events it carried, and tells their copies. `leads`
    /// are the places this delivery has at some of them.
    ///
    /// Copies of a delivered event are told before the record is acknowledged; a released one is given up only after
    /// it, so that the next delivery of the event finds it free.
    pub(super) async fn settle(
        self: &Arc<Self>,
        claims: &OpenClaims,
        keys: &[EventKey],
        leads: Vec<Lead>,
        settlement: Settlement,
        outcome: Outcome,
    ) {
        match settlement {
            Settlement::Done(record) => self.record(claims, keys, leads, record).await,
            Settlement::Unknown(record) => {
                let until = Instant::now() + claims.terms.lease;
                let window = claims.terms.window;
                let settling = keys.iter().map(|key| self.store.settle_unknown(key, &claims.token, record, window));
                let answers = futures_util::future::join_all(settling).await;
                let open = keys.iter().zip(answers).filter(|(_, answer)| answer.is_err());
                let token = &claims.token;
                self.take_over(open.map(|(key, _)| Pending::Unknown {
                    key: key.clone(),
                    token: token.clone(),
                    record,
                    window,
                    until,
                }));
                leads.into_iter().for_each(|lead| lead.end(Ended::Failed(outcome)));
            }
            Settlement::Release => {
                self.release(claims, keys).await;
                leads.into_iter().for_each(|lead| lead.end(Ended::Failed(outcome)));
            }
        }
        claims.close(keys);
    }

    async fn record(self: &Arc<Self>, claims: &OpenClaims, keys: &[EventKey], leads: Vec<Lead>, record: Record) {
        let window = claims.terms.window;
        let mut leads: HashMap<EventKey, Lead> =
            leads.into_iter().map(|lead| (lead.key().clone(), lead.done_unrecorded(record))).collect();
        // What is not held was sent without the store's answer: its provider does not wait for that store again.
        let (held, unheld): (Vec<_>, Vec<_>) =
            keys.iter().map(|key| (key.clone(), record, window)).partition(|(key, _, _)| claims.holds(key));
        let answers = if held.is_empty() { Vec::new() } else { self.store.settle_done(&held).await };
        let failed = held.into_iter().zip(answers).filter_map(|((key, ..), answer)| {
            let error = answer.err()?;
            warn!(key = %shown(self.log_keys, &key), %error, "a delivered event is not recorded yet");
            Some(key)
        });
        let open: Vec<Pending> = failed
            .chain(unheld.into_iter().map(|(key, ..)| key))
            .map(|key| Pending::Done { lead: leads.remove(&key), key, record, window })
            .collect();
        self.take_over(open);
    }

    /// Frees the claims this delivery has, or may have, on `keys`; goes on in the background where the store does not
    /// answer.
    pub(super) async fn release(self: &Arc<Self>, claims: &OpenClaims, keys: &[EventKey]) {
        if keys.is_empty() {
            return;
        }
        let answers = self.store.release(keys, &claims.token).await;
        let open: Vec<EventKey> =
            keys.iter().zip(answers).filter(|(_, answer)| answer.is_err()).map(|(key, _)| key.clone()).collect();
        self.release_later(claims, open);
    }

    /// Frees claims in the background: the provider need not wait for a store that just failed.
    pub(super) fn release_later(self: &Arc<Self>, claims: &OpenClaims, keys: Vec<EventKey>) {
        let until = Instant::now() + claims.terms.lease;
        claims.close(&keys);
        self.take_over(keys.into_iter().map(|key| Pending::Release { key, token: claims.token.clone(), until }));
    }

    /// Takes settlements over. Must be called inside the runtime in which they are to be tried.
    fn take_over(self: &Arc<Self>, settlements: impl IntoIterator<Item = Pending>) {
        {
            let mut pending = self.pending();
            for settlement in settlements {
                if pending.len() >= MOST_PENDING {
                    self.lost(&settlement, "too many settlements wait for the store");
                    continue;
                }
                if matches!(settlement, Pending::Done { .. }) {
                    self.metrics.unsettled.inc();
                }
                pending.push_back(settlement);
            }
        }
        if self.pending().is_empty() {
            return;
        }
        if !self.at_work.swap(true, Ordering::AcqRel) {
            let settler = Arc::clone(self);
            tokio::spawn(async move { settler.work().await });
        }
    }

    /// Waits until nothing is pending.
    pub(super) async fn settled(&self) {
        loop {
            let idle = self.idle.notified();
            if !self.at_work.load(Ordering::Acquire) {
                return;
            }
            idle.await;
        }
    }

    /// Logs what is still pending: the process must end.
    pub(super) fn give_up(&self) {
        for settlement in self.pending().drain(..) {
            self.lost(&settlement, "the process ends before the store is back");
        }
    }

    async fn work(&self) {
        loop {
            let settled = self.try_once().await;
            {
                let pending = self.pending();
                if pending.is_empty() {
                    // Under the lock, so that whoever adds next either sees a worker or starts one.
                    self.at_work.store(false, Ordering::Release);
                    drop(pending);
                    self.idle.notify_waiters();
                    return;
                }
            }
            if !settled {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One try for the oldest settlements. Answers whether all of them were settled or given up.
    async fn try_once(&self) -> bool {
        let bite: Vec<Pending> = {
            let mut pending = self.pending();
            let most = pending.len().min(BITE);
            pending.drain(..most).collect()
        };
        let mut done = Vec::new();
        let mut others = Vec::new();
        for settlement in bite {
            match settlement {
                Pending::Done { key, record, window, lead } => {
                    let left = remaining(record, window);
                    if left.is_zero() {
                        self.metrics.unsettled.dec();
                        info!(key = %shown(self.log_keys, &key), "the window of an event passed before the store was back");
                    } else {
                        done.push((key, record, window, left, lead));
                    }
                }
                other => others.push(other),
            }
        }
        let mut again = Vec::new();
        if !done.is_empty() {
            let records: Vec<_> = done.iter().map(|(key, record, _, left, _)| (key.clone(), *record, *left)).collect();
            let answers = self.store.settle_done(&records).await;
            for ((key, record, window, _, lead), answer) in done.into_iter().zip(answers) {
                match answer {
                    Ok(()) => {
                        self.metrics.unsettled.dec();
                        info!(key = %shown(self.log_keys, &key), "the record of a delivered event is in the store now");
                    }
                    Err(_) => again.push(Pending::Done { key, record, window, lead }),
                }
            }
        }
        // Side by side: one that times out must not hold up the others.
        let released = others.into_iter().map(|settlement| self.try_release(settlement));
        again.extend(futures_util::future::join_all(released).await.into_iter().flatten());
        let settled = again.is_empty();
        let mut pending = self.pending();
        for settlement in again {
            pending.push_back(settlement);
        }
        settled
    }

    /// Tries one that only concerns a claim of ours; gives it back if the store did not answer and it still matters.
    async fn try_release(&self, settlement: Pending) -> Option<Pending> {
        let now = Instant::now();
        match settlement {
            Pending::Release { key, token, until } => {
                let answered = self.store.release(std::slice::from_ref(&key), &token).await.iter().all(Result::is_ok);
                (!answered && now < until).then_some(Pending::Release { key, token, until })
            }
            Pending::Unknown { key, token, record, window, until } => {
                let answered = self.store.settle_unknown(&key, &token, record, remaining(record, window)).await.is_ok();
                (!answered && now < until).then_some(Pending::Unknown { key, token, record, window, until })
            }
            Pending::Done { .. } => None,
        }
    }

    fn lost(&self, settlement: &Pending, why: &str) {
        let (Pending::Done { key, .. } | Pending::Unknown { key, .. } | Pending::Release { key, .. }) = settlement;
        let key = shown(self.log_keys, key);
        match settlement {
            Pending::Done { .. } => {
                error!(%key, why, "a delivered event could not be recorded: its next copy will be sent again");
            }
            Pending::Unknown { .. } => {
                warn!(%key, why, "an unknown outcome could not be recorded: it counts as such once its lease has passed");
            }
            Pending::Release { .. } => warn!(%key, why, "a claim could not be released: it ends with its lease"),
        }
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left of a window that began with the record.
fn remaining(record: Record, window: Duration) -> Duration {
    let since = record.at.and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
    window.saturating_sub(since)
}
