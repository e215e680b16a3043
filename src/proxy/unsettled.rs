//! Settlements that the store has not acknowledged: they go on in the background.
//!
//! A delivered event is tried until it is recorded; a release until its claim has ended anyway (under `suppress` that is
//! the window: a sending key that is not released counts as done). The list is bounded; what finds no place, or is still
//! here when the process must end, is logged.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::inflight::Lead;
use super::journal::shown;
use crate::claim::{Record, Token};
use crate::config::LogKeys;
use crate::event::EventKey;
use crate::metrics::Metrics;
use crate::store::ClaimStore;

/// How many settlements may wait for the store.
const MOST_PENDING: usize = 50_000;
/// How many of them are tried in one round trip.
const BITE: usize = 500;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Settles in the background what the store did not take at once.
pub(super) struct Unsettled {
    store: Arc<dyn ClaimStore>,
    metrics: Arc<Metrics>,
    log_keys: LogKeys,
    pending: Mutex<VecDeque<Pending>>,
    at_work: AtomicBool,
    idle: Notify,
}

/// The worker, while it is there.
struct AtWork<'a>(&'a Unsettled);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.at_work.store(false, Ordering::Release);
        }
        self.0.idle.notify_waiters();
    }
}

/// A settlement that the store has not acknowledged.
pub(super) enum Pending {
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
    Release {
        key: EventKey,
        token: Token,
        until: Instant,
        /// Keeps what became of the event known in this process until its key is free.
        lead: Option<Lead>,
    },
    /// Under `suppress`: an event that may have been handled.
    Unknown { key: EventKey, token: Token, record: Record, window: Duration, until: Instant },
}

impl Unsettled {
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

    /// Takes settlements over. Must be called inside the runtime in which they are to be tried.
    pub(super) fn take_over(self: &Arc<Self>, settlements: impl IntoIterator<Item = Pending>) {
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
            let unsettled = Arc::clone(self);
            tokio::spawn(async move { unsettled.work().await });
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
        // A worker that ends in a panic must not look as if it were still there.
        let _at_work = AtWork(self);
        loop {
            let settled = self.try_once().await;
            {
                let pending = self.pending();
                if pending.is_empty() {
                    // Under the lock, so that whoever adds next either sees a worker or starts one.
                    self.at_work.store(false, Ordering::Release);
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
            Pending::Release { key, token, until, lead } => {
                let answered = self.store.release(std::slice::from_ref(&key), &token).await.iter().all(Result::is_ok);
                self.keep_until(until, now, answered, Pending::Release { key, token, until, lead })
            }
            Pending::Unknown { key, token, record, window, until } => {
                let answered = self.store.settle_unknown(&key, &token, record, remaining(record, window)).await.is_ok();
                self.keep_until(until, now, answered, Pending::Unknown { key, token, record, window, until })
            }
            Pending::Done { .. } => None,
        }
    }

    /// A settlement that is to be tried again, unless it was answered or does not matter any more.
    fn keep_until(&self, until: Instant, now: Instant, answered: bool, settlement: Pending) -> Option<Pending> {
        if answered {
            return None;
        }
        if now >= until {
            self.lost(&settlement, "the claim has ended before the store was back");
            return None;
        }
        Some(settlement)
    }

    fn lost(&self, settlement: &Pending, why: &str) {
        match settlement {
            Pending::Done { key, .. } => error!(
                key = %shown(self.log_keys, key),
                why,
                "a delivered event could not be recorded: its next copy will be sent again"
            ),
            Pending::Unknown { key, .. } => warn!(
                key = %shown(self.log_keys, key),
                why,
                "an unknown outcome could not be recorded: it counts as such once its lease has passed"
            ),
            Pending::Release { key, .. } => warn!(
                key = %shown(self.log_keys, key),
                why,
                "a claim could not be released: it ends with its lease, or under `suppress` counts as done"
            ),
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
