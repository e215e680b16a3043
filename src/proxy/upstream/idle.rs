//! Connections between two exchanges.
//!
//! The last one put back is the first one taken, so that under light load the others grow old and are closed. A
//! connection is kept for less time than any handler keeps it (gunicorn 2 s, Node and uvicorn 5 s): one that the
//! handler closes while a request is under way would make that request's outcome unknown.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use pingora::protocols::Stream;
use tokio::io::{AsyncRead, ReadBuf};

/// How long a connection is kept.
pub(super) const LONGEST: Duration = Duration::from_millis(1_500);
/// How many are kept.
const MOST: usize = 256;

/// The idle connections that one thread has to one upstream.
pub(super) struct IdleConnections {
    streams: Mutex<Vec<(Stream, Instant)>>,
    watched: AtomicBool,
}

impl IdleConnections {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { streams: Mutex::default(), watched: AtomicBool::new(false) })
    }

    /// A connection that is young and was not closed by the other side, if there is one.
    pub(super) fn take(&self) -> Option<Stream> {
        loop {
            let (mut stream, since) = self.streams().pop()?;
            if since.elapsed() >= LONGEST {
                self.streams().clear();
                return None;
            }
            if is_quiet(&mut stream) {
                return Some(stream);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn put(self: &Arc<Self>, stream: Stream) {
        {
            let mut streams = self.streams();
            if streams.len() >= MOST {
                return;
            }
            streams.push((stream, Instant::now()));
        }
        if !self.watched.swap(true, Ordering::AcqRel) {
            let idle = Arc::clone(self);
            tokio::spawn(async move { idle.close_the_old().await });
        }
    }

    async fn close_the_old(&self) {
        loop {
            tokio::time::sleep(LONGEST).await;
            let mut streams = self.streams();
            let old = streams.iter().take_while(|(_, since)| since.elapsed() >= LONGEST).count();
            streams.drain(..old);
            if streams.is_empty() {
                self.watched.store(false, Ordering::Release);
                return;
            }
        }
    }

    fn streams(&self) -> MutexGuard<'_, Vec<(Stream, Instant)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing has come in: an idle connection has nothing to say, so an end, an error or data all mean that it is
/// not to be used again. This asks the runtime's readiness, not the kernel, unless something has happened.
fn is_quiet(stream: &mut Stream) -> bool {
    let mut byte = [0];
    let mut buffer = ReadBuf::new(&mut byte);
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(stream).poll_read(&mut context, &mut buffer).is_pending()
}
