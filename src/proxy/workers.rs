//! The threads that serve connections, each with a runtime of its own.
//!
//! What belongs to a delivery (its provider's connection, its upstream's, the one to the store) is all in the runtime of
//! the thread that serves it, so that nothing it waits for comes from another thread: waking one costs more than most
//! of what it is woken for (measured: a third of a delivery's whole cost on two threads).

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pingora::server::{ListenFds, ShutdownWatch};
use pingora::services::Service;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{error, warn};

use super::door::Door;
use super::stream::PlainStream;

/// How long nothing is accepted after the system could not: too many files are open, say.
const BREATH: Duration = Duration::from_millis(100);

/// The service that accepts connections and has them served.
pub struct Workers {
    door: Arc<Door>,
    listener: Option<std::net::TcpListener>,
    threads: usize,
}

/// One thread.
struct Worker {
    connections: UnboundedSender<TcpStream>,
    /// How many connections it has.
    open: Arc<AtomicUsize>,
}

/// One connection of a worker, for as long as this lives.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    pub(super) fn new(door: Door, listener: std::net::TcpListener, threads: usize) -> Self {
        Self { door: Arc::new(door), listener: Some(listener), threads: threads.max(1) }
    }
}

impl Worker {
    fn start(number: usize, door: &Arc<Door>, shutdown: &ShutdownWatch) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (connections, taken) = unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let serving = serve(taken, Arc::clone(&open), Arc::clone(door), shutdown.clone());
        std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || runtime.block_on(serving))?;
        Ok(Self { connections, open })
    }

    fn take(&self, connection: TcpStream) {
        self.open.fetch_add(1, Ordering::Relaxed);
        if self.connections.send(connection).is_err() {
            error!("a connection was dropped: its thread has ended");
        }
    }
}

async fn serve(
    mut taken: UnboundedReceiver<TcpStream>,
    open: Arc<AtomicUsize>,
    door: Arc<Door>,
    shutdown: ShutdownWatch,
) {
    while let Some(connection) = taken.recv().await {
        let (open, door, shutdown) = (Open(Arc::clone(&open)), Arc::clone(&door), shutdown.clone());
        match tokio::net::TcpStream::from_std(connection).and_then(PlainStream::new) {
            Ok(stream) => drop(tokio::spawn(async move {
                door.serve(Box::new(stream), &shutdown).await;
                drop(open);
            })),
            // It was reset before it was looked at.
            Err(error) => tracing::debug!(%error, "a connection could not be served"),
        }
    }
    // No connection comes any more; those that are here are served until the process ends.
    std::future::pending::<()>().await;
}

#[async_trait]
impl Service for Workers {
    async fn start_service(&mut self, _: Option<ListenFds>, mut shutdown: ShutdownWatch, _: usize) {
        let started = self.listener.take().map(|listener| {
            let workers = (0..self.threads).map(|number| Worker::start(number, &self.door, &shutdown));
            Ok::<_, std::io::Error>((TcpListener::from_std(listener)?, workers.collect::<Result<Vec<_>, _>>()?))
        });
        let (listener, workers) = match started {
            Some(Ok(started)) => started,
            Some(Err(error)) => return error!(%error, "the threads that serve connections could not be started"),
            None => return,
        };
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted.and_then(|(stream, _)| stream.into_std()),
                _ = shutdown.wait_for(|stops| *stops) => break,
            };
            match accepted {
                Ok(connection) => {
                    let idlest = workers.iter().min_by_key(|worker| worker.open.load(Ordering::Relaxed));
                    if let Some(worker) = idlest {
                        worker.take(connection);
                    }
                }
                Err(error) => {
                    warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
        self.door.close().await;
    }

    fn name(&self) -> &str {
        "listener"
    }

    /// Accepting is all that is done here.
    fn threads(&self) -> Option<usize> {
        Some(1)
    }
}
