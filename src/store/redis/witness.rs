//! Whether Redis still has what it acknowledged.
//!
//! A Redis that came back without its data, or a replica that had lagged and was promoted, answers as if nothing had
//! ever been delivered. Nothing brings the records back, but it must not go unnoticed: copies of what was lost will be
//! sent again. So the newest acknowledged record is asked for whenever a connection is opened. It is the first that a
//! server loses which keeps less than it says, and one of those that a server loses which forgets everything. A person
//! who makes Redis forget just this one key looks the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::redis::{Cmd, Value};

use super::commands::Keys;
use crate::event::EventKey;
use crate::metrics::Metrics;

pub(super) struct Witness {
    newest: Mutex<Option<Record>>,
    metrics: Arc<Metrics>,
}

/// A record that Redis has acknowledged, until the window ends in which it must be there.
struct Record {
    key: EventKey,
    until: Instant,
}

impl Witness {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { newest: Mutex::default(), metrics }
    }

    /// Redis has acknowledged this record.
    pub(super) fn remember(&self, key: &EventKey, window: Duration) {
        let Some(until) = Instant::now().checked_add(window) else { return };
        let record = Record { key: key.clone(), until };
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }

    /// Asks whether the newest record is there, if there must be one.
    pub(super) fn question(&self, keys: &Keys) -> Option<Cmd> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let record = newest.as_ref().filter(|record| record.until > Instant::now())?;
        Some(keys.exists(&record.key))
    }

    /// Takes in the answer. Anything but a plain "no" says nothing: a server may be loading, or may not tell.
    pub(super) fn hear(&self, answer: &Value) {
        if *answer != Value::Int(0) {
            return;
        }
        // Told once: what is recorded from now on is in a Redis that has begun anew.
        let lost = self.newest.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Record { until, .. }) = lost
            && until > Instant::now()
        {
            self.metrics.store_lost_data();
            tracing::error!(
                "the store has lost records that it had acknowledged: copies of delivered events will be sent again"
            );
        }
    }
}
