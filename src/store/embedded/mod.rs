//! The embedded store: one process, one SQLite file on a local disk, no server.
//!
//! Every acknowledged operation is on disk (write-ahead log, `synchronous=FULL`). Since only one process may hold the
//! file, whoever opens it knows that the claims in it have lost their owners, and ends them.

mod table;
mod writer;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use self::table::Table;
use self::writer::Writer;
use super::{ClaimStore, Health, OpenError, StoreError};
use crate::claim::{Forgotten, Found, Record, Standing, Terms, Token, Value};
use crate::config;
use crate::event::EventKey;
use crate::metrics::Metrics;

pub(super) struct EmbeddedStore {
    writer: Writer,
}

impl EmbeddedStore {
    pub(super) fn open(config: &config::Embedded, metrics: &Arc<Metrics>) -> Result<Self, OpenError> {
        let lock = lock(&config.path)?;
        let store = Self::start(Table::open(&config.path)?, lock)?;
        metrics.set_store_durable(true);
        Ok(store)
    }

    /// Opens the file beside the process that holds it. SQLite lets both write, each in its turn.
    pub(super) fn open_beside(config: &config::Embedded) -> Result<Self, OpenError> {
        Self::start(Table::open_beside(&config.path)?, ())
    }

    fn start(table: Table, held: impl Send + 'static) -> Result<Self, OpenError> {
        let writer = Writer::start(table, held)
            .map_err(|error| OpenError { message: format!("cannot start the store's thread: {error}"), hint: None })?;
        Ok(Self { writer })
    }

    /// Does `work` for each of `keys`, in one transaction.
    async fn each<K, T>(
        &self,
        keys: &[K],
        work: impl Fn(&Table, &K) -> Result<T, StoreError> + Send + 'static,
    ) -> Vec<Result<T, StoreError>>
    where
        K: Clone + Send + 'static,
        T: Send + 'static,
    {
        let all = keys.to_vec();
        let done = self.writer.run(move |table| all.iter().map(|key| work(table, key)).collect());
        done.await.unwrap_or_else(|error| keys.iter().map(|_| Err(error.clone())).collect())
    }

    async fn replace(
        &self,
        key: &EventKey,
        token: &Token,
        value: Value<'_>,
        duration: Duration,
    ) -> Result<bool, StoreError> {
        let (key, token, value) = (key.clone(), token.clone(), value.text());
        self.writer.run(move |table| table.replace(key.as_str(), &token, &value, duration)).await?
    }
}

#[async_trait]
impl ClaimStore for EmbeddedStore {
    async fn claim(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>> {
        let token = token.clone();
        self.each(keys, move |table, key| table.claim(key.as_str(), &token, terms)).await
    }

    async fn settle_done(&self, done: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>> {
        self.each(done, |table, (key, record, window)| table.settle_done(key.as_str(), *record, *window)).await
    }

    async fn settle_unknown(
        &self,
        key: &EventKey,
        token: &Token,
        record: Record,
        window: Duration,
    ) -> Result<bool, StoreError> {
        self.replace(key, token, Value::Done(record), window).await
    }

    async fn release(&self, keys: &[EventKey], token: &Token) -> Vec<Result<bool, StoreError>> {
        let token = token.clone();
        self.each(keys, move |table, key| table.release(key.as_str(), &token)).await
    }

    async fn renew(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<bool, StoreError>> {
        let token = token.clone();
        self.each(keys, move |table, key| table.renew(key.as_str(), &token, terms)).await
    }

    async fn promote(&self, key: &EventKey, token: &Token, window: Duration) -> Result<bool, StoreError> {
        self.replace(key, token, Value::Sending(token.as_str()), window).await
    }

    async fn look(&self, key: &EventKey, terms: Terms) -> Result<Option<Standing>, StoreError> {
        let key = key.clone();
        self.writer.run(move |table| table.look(key.as_str(), terms)).await?
    }

    async fn forget(&self, key: &EventKey, terms: Terms, force: bool) -> Result<Forgotten, StoreError> {
        let key = key.clone();
        self.writer.run(move |table| table.forget(key.as_str(), terms, force)).await?
    }

    async fn health(&self) -> Health {
        let fault = self.writer.run(|_| ()).await.err().map(|error| error.to_string());
        Health { up: fault.is_none(), durable: Some(true), fault }
    }
}

/// How long the lock of another process is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes the file for this process, by a lock on a file beside it. On the database itself SQLite has locks of its own,
/// which another handle on it would end when it is closed.
fn lock(path: &Path) -> Result<File, OpenError> {
    // Two names of one file must give one lock. A file that is yet to be made has one name.
    let mut beside = path.canonicalize().unwrap_or_else(|_| path.to_owned()).into_os_string();
    beside.push(".lock");
    let beside = PathBuf::from(beside);
    let failed = |error: std::io::Error, hint: &str| OpenError {
        message: format!("cannot use `{}`: {error}", beside.display()),
        hint: Some(hint.to_owned()),
    };
    let file = File::options().create(true).truncate(false).write(true).open(&beside).map_err(|error| {
        failed(error, "the folder of `store.embedded.path` must exist and the process must be allowed to write in it")
    })?;
    let asked = Instant::now();
    let mut held = file.try_lock();
    // A process that is just ending, or that is just starting another one, gives it up in a moment.
    while matches!(held, Err(TryLockError::WouldBlock)) && asked.elapsed() < PATIENCE {
        std::thread::sleep(PATIENCE / 50);
        held = file.try_lock();
    }
    match held {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError {
            message: format!("another hookonce uses `{}`", path.display()),
            hint: Some(
                "stop it, give this one a file of its own, or use `store.redis`, which can be shared".to_owned(),
            ),
        }),
        Err(TryLockError::Error(error)) => Err(failed(error, "put `store.embedded.path` on a local disk")),
    }
}
