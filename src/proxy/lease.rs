//! The claims that one delivery holds, from the attempt to the acknowledged settlement.
//!
//! The lease is counted by this process's monotonic clock, from before the claim was sent: so it ends here before it
//! ends in the store, whatever the clocks of other machines say.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tracing::warn;

use super::journal::shown;
use crate::claim::{Found, Terms, Token};
use crate::config::LogKeys;
use crate::event::EventKey;
use crate::metrics::Metrics;
use crate::store::{ClaimStore, StoreError};

/// The open claims of one delivery, all under one token.
pub(super) struct OpenClaims {
    store: Arc<dyn ClaimStore>,
    metrics: Arc<Metrics>,
    log_keys: LogKeys,
    pub(super) token: Token,
    pub(super) terms: Terms,
    held: Mutex<HashMap<EventKey, Hold>>,
}

#[derive(Clone, Copy)]
enum Hold {
    Until(Instant),
    Lost,
}

impl OpenClaims {
    pub(super) fn new(store: Arc<dyn ClaimStore>, metrics: Arc<Metrics>, log_keys: LogKeys, terms: Terms) -> Self {
        Self { store, metrics, log_keys, token: Token::fresh(), terms, held: Mutex::default() }
    }

    /// Claims `keys` in one round trip, and holds what it got.
    pub(super) async fn claim(&self, keys: &[EventKey]) -> Vec<Result<Found, StoreError>> {
        let sent = Instant::now();
        let found = self.store.claim(keys, &self.token, self.terms).await;
        let mut held = self.held();
        for (key, found) in keys.iter().zip(&found) {
            if matches!(found, Ok(Found::Claimed)) {
                held.insert(key.clone(), Hold::Until(sent + self.terms.lease));
            }
        }
        found
    }

    /// Whether this delivery claimed `key` and has not settled it.
    pub(super) fn holds(&self, key: &EventKey) -> bool {
        self.held().contains_key(key)
    }

    /// Whether each of `keys` may be sent now: it is still ours, with at least a third of its lease left. Where less is
    /// left, it is renewed first.
    pub(super) async fn fit_to_send(&self, keys: &[EventKey]) -> bool {
        if self.all_fresh(keys) {
            return true;
        }
        self.renew().await;
        self.all_fresh(keys)
    }

    /// Makes each of `keys` sending. `false`: one is no longer ours, and nothing may be sent.
    pub(super) async fn promote(&self, keys: &[EventKey]) -> Result<bool, StoreError> {
        let promotions = keys.iter().map(|key| self.store.promote(key, &self.token, self.terms.window));
        let mut all_ours = true;
        for promoted in futures_util::future::join_all(promotions).await {
            all_ours &= promoted?;
        }
        Ok(all_ours)
    }

    /// Takes `keys` out of the open claims: their settlement is acknowledged, or goes on elsewhere.
    pub(super) fn close(&self, keys: &[EventKey]) {
        let mut held = self.held();
        for key in keys {
            held.remove(key);
        }
    }

    /// Does `work`, and renews all open claims in one round trip whenever a third of the lease has passed.
    pub(super) async fn while_renewing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = tokio::time::timeout(self.terms.lease / 3, &mut work).await {
                return done;
            }
            tokio::select! {
                done = &mut work => return done,
                () = self.renew() => {}
            }
        }
    }

    async fn renew(&self) {
        let keys: Vec<EventKey> = {
            let held = self.held();
            held.iter().filter(|(_, hold)| matches!(hold, Hold::Until(_))).map(|(key, _)| key.clone()).collect()
        };
        if keys.is_empty() {
            return;
        }
        let sent = Instant::now();
        let renewed = self.store.renew(&keys, &self.token, self.terms).await;
        let mut held = self.held();
        for (key, renewed) in keys.iter().zip(renewed) {
            // A claim that was closed while the renewal was under way is no longer here.
            let Some(hold) = held.get_mut(key) else { continue };
            match renewed {
                Ok(true) => *hold = Hold::Until(sent + self.terms.lease),
                Ok(false) => {
                    *hold = Hold::Lost;
                    self.metrics.lease_lost();
                    let key = shown(self.log_keys, key);
                    warn!(%key, "the claim ended while its event was in flight: another gateway may send it again");
                }
                // The lease may still hold; the next third asks again.
                Err(error) => warn!(key = %shown(self.log_keys, key), %error, "the claim was not renewed"),
            }
        }
    }

    fn all_fresh(&self, keys: &[EventKey]) -> bool {
        let now = Instant::now();
        let held = self.held();
        keys.iter().all(|key| match held.get(key) {
            Some(Hold::Until(end)) => end.saturating_duration_since(now) >= self.terms.lease / 3,
            Some(Hold::Lost) | None => false,
        })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<EventKey, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
