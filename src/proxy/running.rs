//! What is under way, and how it is brought to an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

use super::Core;

/// Counts what is under way, and knows whether the gateway is stopping.
pub(super) struct Running {
    count: AtomicUsize,
    idle: Notify,
    stopping: watch::Sender<bool>,
}

/// Something that is under way, for as long as this lives.
pub(super) struct Under(Arc<Running>);

impl Running {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), idle: Notify::new(), stopping: watch::Sender::new(false) })
    }

    pub(super) fn enter(self: &Arc<Self>) -> Under {
        self.count.fetch_add(1, Ordering::AcqRel);
        Under(Arc::clone(self))
    }

    /// Becomes true when the gateway is stopping.
    pub(super) fn watch(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the gateway is stopping.
    pub(super) async fn stopping(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives as long as this, so waiting cannot fail.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// The handle by which a gateway is stopped.
pub struct Stopping {
    core: Arc<Core>,
}

impl Stopping {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// From now on nothing is begun: waiting deliveries and claims whose exchange has not begun are given up, and
    /// their providers told to come back.
    pub fn begin(&self) {
        self.core.running.stopping.send_replace(true);
    }

    /// Waits until every exchange has ended, every answer is written and every settlement acknowledged.
    pub async fn ended(&self) {
        self.core.running.idle().await;
        self.core.settler.unsettled().settled().await;
    }

    /// Logs what could not be settled: the process must end now.
    pub fn give_up(&self) {
        self.core.settler.unsettled().give_up();
    }
}
