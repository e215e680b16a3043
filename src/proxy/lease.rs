//! The claims that one delivery holds, from the attempt to the acknowledged settlement.
//!
//! The lease is counted by this process's monotonic clock, from before the claim was sent: so it ends here before it
//! ends in the store, whatever the clocks of other machines say.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
    held: Mutex<BTreeMap<EventKey, Hold>>,
    promotes: AtomicBool,
}

#[derive(Clone, Copy)]
enum Hold {
    /// Ours until then, unless it is renewed.
    Until(Instant),
    /// Its settlement is under way. It is renewed until that is acknowledged; that a renewal then no longer finds it is
    /// how it should be.
    Settling,
    /// It ended, or somebody else has it.
    Lost,
}

impl OpenClaims {
    pub(super) fn new(store: Arc<dyn ClaimStore>, metrics: Arc<Metrics>, log_keys: LogKeys, terms: Terms) -> Self {
        let promotes = AtomicBool::new(false);
        Self { store, metrics, log_keys, token: Token::fresh(), terms, held: Mutex::default(), promotes }
    }

    /// Claims `keys` together, and holds what it got.
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

    /// Whether what this delivery claimed of `keys` may be sent now: it is still ours, with at least a third of its lease
    /// left. Where less is left, it is renewed first; an error means that the store did not answer that.
    pub(super) async fn fit_to_send(&self, keys: &[EventKey]) -> Result<bool, StoreError> {
        if self.all_fresh(keys) {
            return Ok(true);
        }
        let renewed = Box::pin(self.renew()).await;
        if self.all_fresh(keys) { Ok(true) } else { renewed.map(|()| false) }
    }

    /// Makes sending what this delivery claimed of `keys`. `false`: one is no longer ours, and nothing may be sent.
    pub(super) async fn promote(&self, keys: &[EventKey]) -> Result<bool, StoreError> {
        let claimed: Vec<&EventKey> = keys.iter().filter(|key| self.holds(key)).collect();
        if claimed.is_empty() {
            return Ok(true);
        }
        self.promotes.store(true, Ordering::Relaxed);
        let promotions = claimed.into_iter().map(|key| self.store.promote(key, &self.token, self.terms.window));
        let mut all_ours = true;
        for promoted in futures_util::future::join_all(promotions).await {
            all_ours &= promoted?;
        }
        Ok(all_ours)
    }

    /// Whether a promotion was tried: the keys may be sending.
    pub(super) fn may_be_sending(&self) -> bool {
        self.promotes.load(Ordering::Relaxed)
    }

    /// How long a claim of ours can outlive this moment if nobody settles it: its lease; or, once it may have been
    /// promoted, the window, since a sending key is never taken over.
    pub(super) fn longest_life(&self) -> Duration {
        if self.may_be_sending() { self.terms.window } else { self.terms.lease }
    }

    /// Notes that the settlement of `keys` begins.
    pub(super) fn settling(&self, keys: &[EventKey]) {
        let mut held = self.held();
        for key in keys {
            if let Some(hold) = held.get_mut(key)
                && matches!(hold, Hold::Until(_))
            {
                *hold = Hold::Settling;
            }
        }
    }

    /// Takes `keys` out of the open claims: their settlement is acknowledged, or goes on elsewhere.
    pub(super) fn close(&self, keys: &[EventKey]) {
        let mut held = self.held();
        for key in keys {
            held.remove(key);
        }
    }

    /// Does `work`, and renews all open claims in one round trip whenever a third of the lease has passed.
    pub(super) async fn while_renewing<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        loop {
            if let Ok(done) = tokio::time::timeout(self.terms.lease / 3, &mut work).await {
                return done;
            }
            tokio::select! {
                done = &mut work => return done,
                _ = Box::pin(self.renew()) => {}
            }
        }
    }

    /// Renews every open claim. An error: the store did not answer for at least one of them.
    async fn renew(&self) -> Result<(), StoreError> {
        let keys: Vec<EventKey> = {
            let held = self.held();
            held.iter().filter(|(_, hold)| !matches!(hold, Hold::Lost)).map(|(key, _)| key.clone()).collect()
        };
        if keys.is_empty() {
            return Ok(());
        }
        let mut answered = Ok(());
        let sent = Instant::now();
        let renewed = self.store.renew(&keys, &self.token, self.terms).await;
        let mut held = self.held();
        for (key, renewed) in keys.iter().zip(renewed) {
            // A claim that was closed while the renewal was under way is no longer here.
            let Some(hold) = held.get_mut(key) else { continue };
            match (renewed, *hold) {
                (Ok(true), Hold::Until(_)) => *hold = Hold::Until(sent + self.terms.lease),
                (Ok(_), Hold::Settling | Hold::Lost) => {}
                (Ok(false), Hold::Until(_)) => {
                    *hold = Hold::Lost;
                    self.metrics.lease_lost();
                    let key = shown(self.log_keys, key);
                    warn!(%key, "the claim ended while its event was in flight: another gateway may send it again");
                }
                // The lease may still hold; the next third asks again.
                (Err(error), _) => {
                    warn!(key = %shown(self.log_keys, key), %error, "the claim was not renewed");
                    answered = Err(error);
                }
            }
        }
        answered
    }

    fn all_fresh(&self, keys: &[EventKey]) -> bool {
        let now = Instant::now();
        let held = self.held();
        keys.iter().all(|key| match held.get(key) {
            Some(Hold::Until(end)) => end.saturating_duration_since(now) >= self.terms.lease / 3,
            Some(Hold::Settling | Hold::Lost) => false,
            // What was not claimed is sent without the store's answer.
            None => true,
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<EventKey, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::claim::{Record, Recorded};
    use crate::config;

    async fn open(folder: &tempfile::TempDir) -> (OpenClaims, Arc<dyn ClaimStore>, Arc<Metrics>) {
        let path = folder.path().join("claims.db");
        let text = format!(
            "store: {{embedded: {{path: {}}}}}\nroutes:\n  - {{name: any, path: /any, provider: generic, verify: off, \
             key: ['$.id'], upstream: 'http://127.0.0.1:9'}}\n",
            path.display()
        );
        let config = config::parse(&text, &|_| None).expect("a configuration").config;
        let metrics = Arc::new(Metrics::new("test").expect("metrics"));
        let store = crate::store::open(&config.store, Arc::clone(&metrics)).await.expect("a store");
        let terms = Terms { lease: Duration::from_secs(30), window: Duration::from_secs(3600) };
        (OpenClaims::new(Arc::clone(&store), Arc::clone(&metrics), LogKeys::Full, terms), store, metrics)
    }

    /// A renewal and a settlement of one claim may be under way side by side, and the settlement may come first.
    #[tokio::test]
    async fn a_claim_that_a_renewal_misses_is_lost_unless_it_was_just_settled() {
        let folder = tempfile::tempdir().expect("a folder");
        let (claims, store, metrics) = open(&folder).await;
        let [released, recorded, taken] = ["1", "2", "3"].map(|id| EventKey::new("any", [Some(id)]));
        let keys = [released.clone(), recorded.clone(), taken.clone()];
        assert!(claims.claim(&keys).await.iter().all(|found| matches!(found, Ok(Found::Claimed))));
        claims.settling(&[released.clone(), recorded.clone()]);
        claims.renew().await.expect("the store answers");
        let lost = |count| metrics.render().contains(&format!("hookonce_leases_lost_total {count}\n"));
        assert!(lost(0));

        let record = Record { at: Some(SystemTime::now()), result: Recorded::Delivered(200) };
        store.release(&[released, taken.clone()], &claims.token).await;
        store.settle_done(&[(recorded, record, claims.terms.window)]).await;
        claims.renew().await.expect("the store answers");
        assert!(lost(1), "only the one that was taken away: {}", metrics.render());
        assert!(!claims.fit_to_send(&[taken]).await.expect("the store answers"));
    }
}
