//! The upstream's answer: its head, and its body as it comes.

use std::sync::Arc;
use std::time::Duration;

use pingora::http::ResponseHeader;
use pingora::protocols::http::v1::client::HttpSession;

use super::idle::IdleConnections;

/// An answer whose head has been read. The outcome is settled by then: nothing that happens to the body matters to the
/// event any more, but the handler shall not see its connection cut because a provider has hung up.
pub(in crate::proxy) struct Answer {
    /// `None` once it has ended.
    session: Option<Box<HttpSession>>,
    status: u16,
    /// Where its connection goes afterwards. `None`: nowhere, the request is not written to its end, and what is written
    /// next would be read as its rest.
    idle: Option<Arc<IdleConnections>>,
    timeout: Duration,
}

impl Answer {
    pub(super) fn new(
        status: u16,
        session: Box<HttpSession>,
        idle: Option<Arc<IdleConnections>>,
        timeout: Duration,
    ) -> Self {
        Self { session: Some(session), status, idle, timeout }
    }

    pub(in crate::proxy) fn status(&self) -> u16 {
        self.status
    }

    /// The head, until the body has ended.
    pub(in crate::proxy) fn head(&self) -> Option<&ResponseHeader> {
        self.session.as_ref()?.resp_header()
    }

    /// Whether all of the body has come.
    pub(in crate::proxy) fn is_whole(&mut self) -> bool {
        self.session.as_mut().is_none_or(|session| session.is_body_done())
    }

    /// Gives the next piece of the body to `take`. `false`: there is none, the body was complete.
    pub(in crate::proxy) async fn piece(&mut self, take: impl FnOnce(&[u8])) -> pingora::Result<bool> {
        let Some(session) = &mut self.session else { return Ok(false) };
        match session.read_body_ref().await {
            Ok(Some(piece)) => {
                take(piece);
                return Ok(true);
            }
            Ok(None) => {}
            Err(error) => {
                self.session = None;
                return Err(error);
            }
        }
        if let (Some(session), Some(idle)) = (self.session.take(), &self.idle) {
            keep(*session, idle).await;
        }
        Ok(false)
    }
}

impl Drop for Answer {
    /// Reads what is left in the background.
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        let idle = self.idle.take();
        let timeout = self.timeout;
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let read = async { while let Ok(Some(_)) = session.read_body_ref().await {} };
                let all_read = tokio::time::timeout(timeout, read).await.is_ok() && session.is_body_done();
                if let (true, Some(idle)) = (all_read, idle) {
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
