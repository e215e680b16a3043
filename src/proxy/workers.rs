//! The threads that serve connections, each with a runtime of its own.
//!
//! What belongs to a delivery (its provider's connection, its upstream's, the one to the store) is all in the runtime of
//! the thread that serves it, so that nothing it waits for comes from another thread: waking one costs more than most
//! of what it is woken for (measured: a third of a delivery's whole cost on two threads).

use std::io::ErrorKind;
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
    workers: Vec<Worker>,
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
    /// Starts the threads.
    pub(super) fn start(door: Door, listener: std::net::TcpListener, threads: usize) -> std::io::Result<Self> {
        let door = Arc::new(door);
        let workers = (0..threads.max(1)).map(|number| Worker::start(number, &door)).collect::<Result<_, _>>()?;
        Ok(Self { door, listener: Some(listener), workers })
    }
}

impl Worker {
    fn start(number: usize, door: &Arc<Door>) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (connections, taken) = unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let serving = serve(taken, Arc::clone(&open), Arc::clone(door));
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

async fn serve(mut taken: UnboundedReceiver<TcpStream>, open: Arc<AtomicUsize>, door: Arc<Door>) {
    let opening = Arc::clone(&door);
    tokio::spawn(async move { opening.open_store().await });
    while let Some(connection) = taken.recv().await {
        let (open, door) = (Open(Arc::clone(&open)), Arc::clone(&door));
        match tokio::net::TcpStream::from_std(connection).and_then(PlainStream::new) {
            Ok(stream) => drop(tokio::spawn(async move {
                door.serve(Box::new(stream)).await;
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
        let listener = match self.listener.take().map(TcpListener::from_std) {
            Some(Ok(listener)) => listener,
            Some(Err(error)) => return error!(%error, "nothing can be accepted"),
            None => return,
        };
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted.and_then(|(stream, _)| stream.into_std()),
                _ = shutdown.wait_for(|stops| *stops) => break,
            };
            match accepted {
                Ok(connection) => {
                    let idlest = self.workers.iter().min_by_key(|worker| worker.open.load(Ordering::Relaxed));
                    if let Some(worker) = idlest {
                        worker.take(connection);
                    }
                }
                // It ended before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
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
