//! A time-out and metrics around any store, so that no store needs its own.
//!
//! A store whose answer did not come in time is dropped in the middle of its work: it may still carry the operation
//! out, which the trait allows for.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::{ClaimStore, Health, StoreError};
use crate::claim::{Forgotten, Found, Record, Standing, Terms, Token};
use crate::event::EventKey;
use crate::metrics::{Metrics, StoreOperation};

pub(super) struct Observed<S> {
    store: S,
    timeout: Duration,
    metrics: Arc<Metrics>,
}

impl<S: ClaimStore> Observed<S> {
    pub(super) fn new(store: S, timeout: Duration, metrics: Arc<Metrics>) -> Self {
        Self { store, timeout, metrics }
    }

    async fn many<T>(
        &self,
        operation: StoreOperation,
        count: usize,
        work: impl Future<Output = Vec<Result<T, StoreError>>>,
    ) -> Vec<Result<T, StoreError>> {
        if count == 0 {
            return Vec::new();
        }
        let started = Instant::now();
        let answers = match tokio::time::timeout(self.timeout, work).await {
            Ok(answers) => answers,
            Err(_) => (0..count).map(|_| Err(StoreError::TimedOut)).collect(),
        };
        self.count(operation, started, answers.iter().find_map(|answer| answer.as_ref().err()));
        answers
    }

    async fn one<T>(
        &self,
        operation: StoreOperation,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let answer = tokio::time::timeout(self.timeout, work).await.unwrap_or(Err(StoreError::TimedOut));
        self.count(operation, started, answer.as_ref().err());
        answer
    }

    /// Counts an operation on several keys once, by its first error if it has one.
    fn count(&self, operation: StoreOperation, started: Instant, error: Option<&StoreError>) {
        match error {
            None => self.metrics.store_answered(operation, started.elapsed()),
            Some(error) => self.metrics.store_failed(operation, error.kind()),
        }
        let silent = matches!(error, Some(StoreError::TimedOut | StoreError::Unreachable(_)));
        self.metrics.set_store_up(!silent);
    }
}

// A method that the trait gets later must not slip past the time-out by a default.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ClaimStore> ClaimStore for Observed<S> {
    async fn claim(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>> {
        self.many(StoreOperation::Claim, keys.len(), self.store.claim(keys, token, terms)).await
    }

    async fn settle_done(&self, done: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>> {
        self.many(StoreOperation::Settle, done.len(), self.store.settle_done(done)).await
    }

    async fn settle_unknown(
        &self,
        key: &EventKey,
        token: &Token,
        record: Record,
        window: Duration,
    ) -> Result<bool, StoreError> {
        self.one(StoreOperation::Settle, self.store.settle_unknown(key, token, record, window)).await
    }

    async fn release(&self, keys: &[EventKey], token: &Token) -> Vec<Result<bool, StoreError>> {
        self.many(StoreOperation::Release, keys.len(), self.store.release(keys, token)).await
    }

    async fn renew(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<bool, StoreError>> {
        self.many(StoreOperation::Renew, keys.len(), self.store.renew(keys, token, terms)).await
    }

    async fn promote(&self, key: &EventKey, token: &Token, window: Duration) -> Result<bool, StoreError> {
        self.one(StoreOperation::Promote, self.store.promote(key, token, window)).await
    }

    async fn look(&self, key: &EventKey, terms: Terms) -> Result<Option<Standing>, StoreError> {
        self.one(StoreOperation::Look, self.store.look(key, terms)).await
    }

    async fn forget(&self, key: &EventKey, terms: Terms, force: bool) -> Result<Forgotten, StoreError> {
        self.one(StoreOperation::Forget, self.store.forget(key, terms, force)).await
    }

    async fn health(&self) -> Health {
        let started = Instant::now();
        let health = tokio::time::timeout(self.timeout, self.store.health()).await.unwrap_or_else(|_| Health {
            up: false,
            durable: None,
            fault: Some(StoreError::TimedOut.to_string()),
        });
        if health.up {
            self.metrics.store_answered(StoreOperation::Health, started.elapsed());
        } else {
            self.metrics.store_failed(StoreOperation::Health, StoreError::TimedOut.kind());
        }
        self.metrics.set_store_up(health.up);
        health
    }
}

#[cfg(test)]
mod tests;
