//! The proxy service with its eye on the store, in the runtime where deliveries are served.
//!
//! Whoever asks the store first opens its connection, and the connection's driver lives in the runtime of whoever that
//! was. So nothing else than the proxy's own runtime ever asks: elsewhere every claim would cross two threads more.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::server::{ListenFds, ShutdownWatch};
use pingora::services::Service;
use tokio::sync::{mpsc, oneshot};

use crate::store::{ClaimStore, Health};

/// How often the store's health is looked at, so that its gauges are true while no delivery comes.
const PAUSE: Duration = Duration::from_secs(5);

/// Asks for the store's health from another runtime.
#[derive(Clone)]
pub(super) struct Questions(mpsc::Sender<oneshot::Sender<Health>>);

impl Questions {
    /// The store's health now.
    pub(super) async fn ask(&self) -> Health {
        let (answer, answered) = oneshot::channel();
        let unasked = || Health { up: false, durable: None, fault: Some("the store was not asked yet".to_owned()) };
        match self.0.send(answer).await {
            Ok(()) => answered.await.unwrap_or_else(|_| unasked()),
            Err(_) => unasked(),
        }
    }
}

/// A service, with the look at the store beside it.
pub(super) struct Beside<S> {
    service: S,
    store: Arc<dyn ClaimStore>,
    questions: Option<mpsc::Receiver<oneshot::Sender<Health>>>,
}

impl<S> Beside<S> {
    pub(super) fn new(service: S, store: Arc<dyn ClaimStore>) -> (Self, Questions) {
        let (ask, questions) = mpsc::channel(16);
        (Self { service, store, questions: Some(questions) }, Questions(ask))
    }
}

async fn look(store: Arc<dyn ClaimStore>, mut questions: mpsc::Receiver<oneshot::Sender<Health>>) {
    let mut pause = tokio::time::interval(PAUSE);
    loop {
        tokio::select! {
            _ = pause.tick() => {
                store.health().await;
            }
            question = questions.recv() => {
                let Some(answer) = question else { return };
                // Whoever asked may have gone.
                let _ = answer.send(store.health().await);
            }
        }
    }
}

#[async_trait]
impl<S: Service> Service for Beside<S> {
    async fn start_service(&mut self, fds: Option<ListenFds>, shutdown: ShutdownWatch, listeners_per_fd: usize) {
        if let Some(questions) = self.questions.take() {
            tokio::spawn(look(Arc::clone(&self.store), questions));
        }
        self.service.start_service(fds, shutdown, listeners_per_fd).await;
    }

    fn name(&self) -> &str {
        self.service.name()
    }

    fn threads(&self) -> Option<usize> {
        self.service.threads()
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        self.service.listen_addresses()
    }
}
