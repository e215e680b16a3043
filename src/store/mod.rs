//! The durable memory of claims: one trait, and the one place where stores are opened.

mod embedded;
mod observed;
mod reading;
mod redis;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::observed::Observed;
use crate::claim::{Forgotten, Found, Record, Standing, Terms, Token};
use crate::config;
use crate::event::EventKey;
use crate::metrics::Metrics;

/// What a store must do for hookonce to keep its promises.
///
/// # Guarantees
///
/// - **Atomic**: however many owners on however many machines claim one absent key at the same time, exactly one of
///   them gets [`Found::Claimed`]. There is no moment between looking and writing.
/// - **Durable**: what was acknowledged survives the end of this process and of the store's own, as far as the store's
///   persistence goes (each store says how far).
/// - **Three answers, never two**: what cannot be answered is a [`StoreError`]. An error, a time-out or a value that
///   does not parse is never reported as absent, held or done.
/// - **Late is harmless**: any operation may be carried out after its caller has stopped waiting. Release, renewal,
///   promotion and the settling of unknown outcomes change a key only while it carries the token they were made for.
/// - **Done wins**: [`settle_done`](ClaimStore::settle_done) is right at any time, over any state, and can be repeated.
/// - **No memory beyond its time**: a claim ends with its lease, a done key with its window. An ended key is absent,
///   whether or not it was removed yet. Claiming a done key does not lengthen its window.
/// - **Dead senders are seen**: a sending key is renewed to a whole window at every renewal, so one with less than
///   window minus lease left has lost its owner, and is reported as done with an unknown outcome.
///
/// Operations on several keys take one round trip, or two where a look spares the claims of a large batch that comes
/// again; they are carried out in the order of the list, and answer in that order. One answer may be an error beside
/// others that are not.
#[async_trait]
pub trait ClaimStore: Send + Sync {
    /// Claims every absent key of `keys` for `token`, for `terms.lease`. A key that carries `token` already counts as
    /// claimed, so that an attempt can be repeated. An answer that is an error leaves open whether the key was claimed:
    /// the caller must release it. Finding it claimed already does not renew its lease.
    async fn claim(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>>;

    /// Remembers each key as done for the duration beside its record, over whatever it holds now.
    async fn settle_done(&self, done: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>>;

    /// Turns a claimed or sending key that carries `token` into done with an unknown outcome, for `window`.
    /// Answers whether the key still was ours; a done key is left as it is.
    async fn settle_unknown(
        &self,
        key: &EventKey,
        token: &Token,
        record: Record,
        window: Duration,
    ) -> Result<bool, StoreError>;

    /// Frees each claimed or sending key that carries `token`. Answers for each whether it did.
    async fn release(&self, keys: &[EventKey], token: &Token) -> Vec<Result<bool, StoreError>>;

    /// Lengthens each key that carries `token`: a claimed one to a whole lease, a sending one to a whole window.
    /// Answers for each whether it was still ours. A sending key whose owner is dead by `terms` is not: others have been
    /// told that it is done, and it is not brought back.
    async fn renew(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<bool, StoreError>>;

    /// Turns a claimed key that carries `token` into a sending one, for `window`. Answers whether it did (also when it
    /// was sending for that token already); nothing may be sent after any other answer.
    async fn promote(&self, key: &EventKey, token: &Token, window: Duration) -> Result<bool, StoreError>;

    /// Reads one key as it stands. A sending key whose owner is dead by `terms` reads as done.
    async fn look(&self, key: &EventKey, terms: Terms) -> Result<Option<Standing>, StoreError>;

    /// Frees `key` because a person says so, whoever holds it and whatever it remembers; one that is in flight by
    /// `terms` only with `force`. One atomic step: what is freed is what the answer shows, and what was written in
    /// between is not lost. The owner of a freed claim finds out at its next renewal or promotion; a `delivered` that it
    /// still settles is remembered, as ever.
    async fn forget(&self, key: &EventKey, terms: Terms, force: bool) -> Result<Forgotten, StoreError>;

    /// How the store is now, for `/readyz` and the gauges. Never waits longer than the store's time-out.
    async fn health(&self) -> Health;
}

/// Why the store gave no answer. Every one of them means "unavailable": never "duplicate", never "first seen".
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No answer within the store's time-out.
    #[error("the store did not answer within its time-out")]
    TimedOut,
    /// The store cannot be reached, or the connection ended.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// The store answered that it cannot do this now: out of memory, read-only, loading, disk full.
    #[error("the store refused: {0}")]
    Refused(String),
    /// The store works, but would forget: persistence is off, or keys are evicted.
    #[error("the store is not durable: {0}")]
    NotDurable(String),
    /// A key holds a value that this version did not write.
    #[error(transparent)]
    Unreadable(#[from] crate::claim::UnreadableValue),
}

impl StoreError {
    /// The metrics' label for this kind of error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Refused(_) => "refused",
            Self::NotDurable(_) => "not_durable",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// How a store is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// It answers.
    pub up: bool,
    /// Whether it persists and does not evict; `None` where that could not be found out.
    pub durable: Option<bool>,
    /// What is wrong, in words for the operator.
    pub fault: Option<String>,
}

/// Why a store could not be opened. `hint` names the way out.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Opens the store that the configuration names, with a time-out and metrics around it.
///
/// May be called in a runtime that ends before the store is used: what lasts is opened when it is first needed.
///
/// # Errors
///
/// What must not go unnoticed at the start: a file that cannot be used or that another process holds, a Redis that is
/// proven to forget. A Redis that cannot be reached is no error: it is unavailable until it is there.
pub async fn open(config: &config::Store, metrics: Arc<Metrics>) -> Result<Arc<dyn ClaimStore>, OpenError> {
    let timeout = config.timeout();
    Ok(match config {
        config::Store::Redis(config) => {
            let store = redis::RedisStore::open(config, Arc::clone(&metrics)).await?;
            Arc::new(Observed::new(store, timeout, metrics))
        }
        config::Store::Embedded(config) => {
            let store = embedded::EmbeddedStore::open(config, &metrics)?;
            Arc::new(Observed::new(store, timeout, metrics))
        }
    })
}

/// Opens the store that the configuration names beside the gateways that use it, for a person's questions: nobody's
/// claims are ended, nothing is made that is not there, and a store that would forget is good enough.
///
/// # Errors
///
/// A file that is not there or that cannot be used, and a URL that is none.
pub fn open_beside(config: &config::Store, metrics: Arc<Metrics>) -> Result<Arc<dyn ClaimStore>, OpenError> {
    let timeout = config.timeout();
    Ok(match config {
        config::Store::Redis(config) => {
            let store = redis::RedisStore::open_beside(config, Arc::clone(&metrics))?;
            Arc::new(Observed::new(store, timeout, metrics))
        }
        config::Store::Embedded(config) => {
            let store = embedded::EmbeddedStore::open_beside(config)?;
            Arc::new(Observed::new(store, timeout, metrics))
        }
    })
}
