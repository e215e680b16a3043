//! The one thread that works on the file. It takes all operations that wait, carries them out in one transaction, and
//! answers them once that is on disk: a hundred claims at the same moment cost one flush, not a hundred.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::table::{Table, refused};
use crate::store::StoreError;

/// How many operations wait for the thread before their callers have to wait for a place.
const WAITING: usize = 1024;

/// How many operations are committed together at most.
const TOGETHER: usize = 256;

/// How often the rows whose time has come are looked for, and how many are removed at a time.
const PURGE_EVERY: Duration = Duration::from_secs(1);
const BITE: usize = 500;

/// One operation. It is called once with the table, inside a transaction, and gives back how it is answered when that
/// has ended; or with the reason why there is no transaction, which it answers at once.
type Job = Box<dyn FnOnce(Result<&Table, StoreError>) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

pub(super) struct Writer {
    /// `None` only while this is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. `held` is dropped when the file is closed.
    pub(super) fn start(table: Table, held: impl Send + 'static) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let clock = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread = std::thread::Builder::new().name("hookonce-store".to_owned()).spawn(move || {
            work(&table, waiting, &clock);
            if let Err((_, error)) = table.connection.close() {
                tracing::error!(%error, "the store's file was not closed cleanly");
            }
            drop(held);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has `work` done and waits until it is on disk. The work of a caller that has gone before its turn is not done.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Table) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let ended = || StoreError::Unreachable("the store's thread has ended".to_owned());
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |table| {
            let table = match table {
                Ok(table) if !answer.is_closed() => table,
                Ok(_) => return Box::new(|_| {}),
                Err(error) => {
                    drop(answer.send(Err(error)));
                    return Box::new(|_| {});
                }
            };
            let done = work(table);
            Box::new(move |committed| drop(answer.send(committed.map(|()| done))))
        });
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(job).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    /// Ends the thread after what was handed to it, so that the file can be opened again right away.
    fn drop(&mut self) {
        self.jobs = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's thread has ended in a panic");
        }
    }
}

fn work(table: &Table, mut waiting: mpsc::Receiver<Job>, clock: &tokio::runtime::Runtime) {
    let mut jobs = Vec::with_capacity(TOGETHER);
    let mut purged = Instant::now();
    loop {
        let next = async { tokio::time::timeout(PURGE_EVERY, waiting.recv_many(&mut jobs, TOGETHER)).await };
        match clock.block_on(next) {
            Ok(0) => return,
            Ok(_) => commit(table, &mut jobs),
            Err(_) => {}
        }
        if purged.elapsed() >= PURGE_EVERY {
            match table.purge(BITE) {
                // There may be more: the next bite follows the next commit.
                Ok(BITE) => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "rows whose time has come were not removed"),
            }
            purged = Instant::now();
        }
    }
}

/// Carries out the jobs in one transaction and answers them after it has ended, all alike if it failed.
fn commit(table: &Table, jobs: &mut Vec<Job>) {
    let connection = &table.connection;
    let mut state = begin(connection);
    let mut answers: Vec<Answer> = Vec::with_capacity(jobs.len());
    for job in jobs.drain(..) {
        answers.push(job(state.clone().map(|()| table)));
        // A full disk and the like end the transaction and take back what was done in it.
        if state.is_ok() && connection.is_autocommit() {
            state = Err(StoreError::Refused("SQLite: the transaction was rolled back".to_owned()));
        }
    }
    let committed = state.and_then(|()| connection.execute_batch("COMMIT").map_err(|error| refused(&error)));
    if let Err(error) = &committed {
        tracing::error!(%error, "the store's file took no changes");
    }
    for answer in answers {
        answer(committed.clone());
    }
}

fn begin(connection: &Connection) -> Result<(), StoreError> {
    // A transaction whose commit failed may still be open.
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").map_err(|error| refused(&error))?;
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests;
