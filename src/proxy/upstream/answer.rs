//! The upstream's answer: its head, and its body as it comes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pingora::http::ResponseHeader;
use pingora::protocols::http::v1::client::HttpSession;

use super::idle::IdleConnections;

/// An answer whose head has been read. The outcome is settled by then: nothing that happens to the body matters to the
/// event any more, but the handler shall not see its connection cut because a provider has hung up.
pub(in crate::proxy) struct Answer {
    pub(in crate::proxy) head: Box<ResponseHeader>,
    session: Option<Box<HttpSession>>,
    idle: Arc<IdleConnections>,
    timeout: Duration,
}

impl Answer {
    pub(super) fn new(
        head: Box<ResponseHeader>,
        session: Box<HttpSession>,
        idle: Arc<IdleConnections>,
        timeout: Duration,
    ) -> Self {
        Self { head, session: Some(session), idle, timeout }
    }

    /// The next piece of the body; `None` when it is complete.
    pub(in crate::proxy) async fn body(&mut self) -> pingora::Result<Option<Bytes>> {
        let Some(session) = &mut self.session else { return Ok(None) };
        match session.read_body_bytes().await {
            Ok(Some(piece)) => Ok(Some(piece)),
            Ok(None) => {
                if let Some(session) = self.session.take() {
                    keep(*session, &self.idle).await;
                }
                Ok(None)
            }
            Err(error) => {
                self.session = None;
                Err(error)
            }
        }
    }
}

impl Drop for Answer {
    /// Reads what is left in the background.
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        let idle = Arc::clone(&self.idle);
        let timeout = self.timeout;
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let read = async { while let Ok(Some(_)) = session.read_body_ref().await {} };
                if tokio::time::timeout(timeout, read).await.is_ok() && session.is_body_done() {
                    keep(*session, &idle).await;
                }
            });
        }
    }
}

async fn keep(mut session: HttpSession, idle: &Arc<IdleConnections>) {
    session.respect_keepalive();
    if let Some(stream) = session.reuse().await {
        idle.put(stream);
    }
}
