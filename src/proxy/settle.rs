//! Settling: what an exchange's outcome leaves in the store.
//!
//! A provider is answered as soon as the outcome is known and the store was asked once. What the store did not
//! acknowledge goes on in the background (`unsettled`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tracing::warn;

use super::inflight::{Ended, Lead};
use super::journal::shown;
use super::lease::OpenClaims;
use super::unsettled::{Pending, Unsettled};
use crate::claim::{Outcome, Record, Settlement};
use crate::config::LogKeys;
use crate::event::EventKey;
use crate::metrics::Metrics;
use crate::store::ClaimStore;

/// Settles claims, now or as soon as the store is back.
pub(super) struct Settler {
    store: Arc<dyn ClaimStore>,
    unsettled: Arc<Unsettled>,
    log_keys: LogKeys,
}

impl Settler {
    pub(super) fn new(store: Arc<dyn ClaimStore>, metrics: Arc<Metrics>, log_keys: LogKeys) -> Self {
        Self { unsettled: Unsettled::new(Arc::clone(&store), metrics, log_keys), store, log_keys }
    }

    /// What goes on in the background.
    pub(super) fn unsettled(&self) -> &Unsettled {
        &self.unsettled
    }

    /// Writes down what an exchange's outcome means for `keys`, the events it carried, and tells their copies. `leads`
    /// are the places this delivery has at some of them.
    ///
    /// Copies of a delivered event are told before the record is acknowledged; a released one is given up only after
    /// it, so that the next delivery of the event finds it free.
    pub(super) async fn settle(
        &self,
        claims: &OpenClaims,
        keys: &[EventKey],
        leads: Vec<Lead>,
        settlement: Settlement,
        outcome: Outcome,
    ) {
        claims.settling(keys);
        match settlement {
            Settlement::Done(record) => self.record(claims, keys, leads, record).await,
            Settlement::Unknown(record) => {
                Box::pin(self.record_unknown(claims, keys, record)).await;
                leads.into_iter().for_each(|lead| lead.end(Ended::Failed(outcome)));
            }
            Settlement::Release => Box::pin(self.release(claims, keys, leads, Ended::Failed(outcome))).await,
        }
        claims.close(keys);
    }

    async fn record(&self, claims: &OpenClaims, keys: &[EventKey], leads: Vec<Lead>, record: Record) {
        let window = claims.terms.window;
        let leads: Vec<Lead> = leads.into_iter().map(|lead| lead.told(Ended::Done(record))).collect();
        // What is not held was sent without the store's answer: its provider does not wait for that store again.
        let (held, unheld): (Vec<_>, Vec<_>) =
            keys.iter().map(|key| (key.clone(), record, window)).partition(|(key, _, _)| claims.holds(key));
        let answers = if held.is_empty() { Vec::new() } else { self.store.settle_done(&held).await };
        let failed = held.into_iter().zip(answers).filter_map(|((key, ..), answer)| {
            let error = answer.err()?;
            warn!(key = %shown(self.log_keys, &key), %error, "a delivered event is not recorded yet");
            Some(key)
        });
        let open: Vec<EventKey> = failed.chain(unheld.into_iter().map(|(key, ..)| key)).collect();
        if open.is_empty() {
            return;
        }
        let mut leads: HashMap<EventKey, Lead> = leads.into_iter().map(|lead| (lead.key().clone(), lead)).collect();
        let pending = |key: EventKey| Pending::Done { lead: leads.remove(&key), key, record, window };
        self.unsettled.take_over(open.into_iter().map(pending));
    }

    async fn record_unknown(&self, claims: &OpenClaims, keys: &[EventKey], record: Record) {
        let until = Instant::now() + claims.longest_life();
        let window = claims.terms.window;
        let settling = keys.iter().map(|key| self.store.settle_unknown(key, &claims.token, record, window));
        let answers = join_all(settling).await;
        let open = keys.iter().zip(answers).filter(|(_, answer)| answer.is_err());
        self.unsettled.take_over(open.map(|(key, _)| Pending::Unknown {
            key: key.clone(),
            token: claims.token.clone(),
            record,
            window,
            until,
        }));
    }

    /// Frees the claims this delivery has, or may have, on `keys`, and tells their copies; goes on in the background
    /// where the store does not answer.
    pub(super) async fn release(&self, claims: &OpenClaims, keys: &[EventKey], leads: Vec<Lead>, ended: Ended) {
        if keys.is_empty() {
            return;
        }
        claims.settling(keys);
        let answers = self.store.release(keys, &claims.token).await;
        let open: Vec<EventKey> =
            keys.iter().zip(answers).filter(|(_, answer)| answer.is_err()).map(|(key, _)| key.clone()).collect();
        let (unreleased, released): (Vec<Lead>, Vec<Lead>) =
            leads.into_iter().partition(|lead| open.contains(lead.key()));
        released.into_iter().for_each(|lead| lead.end(ended));
        claims.close(keys);
        self.release_later(claims, open, unreleased, ended);
    }

    /// Frees claims in the background, and tells their copies: the provider need not wait for a store that just failed.
    pub(super) fn release_later(&self, claims: &OpenClaims, keys: Vec<EventKey>, leads: Vec<Lead>, ended: Ended) {
        let until = Instant::now() + claims.longest_life();
        claims.close(&keys);
        let mut kept = HashMap::new();
        for lead in leads {
            if claims.may_be_sending() {
                // Without us its key counts as done as soon as the store is back, before it is released. So this
                // gateway goes on knowing better: its copies are told how it ended, and none is a duplicate.
                let ended = if ended == Ended::GaveUp { Ended::Unavailable } else { ended };
                kept.insert(lead.key().clone(), lead.told(ended));
            } else {
                lead.end(ended);
            }
        }
        self.unsettled.take_over(keys.into_iter().map(|key| Pending::Release {
            lead: kept.remove(&key),
            key,
            token: claims.token.clone(),
            until,
        }));
    }
}
