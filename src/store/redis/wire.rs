//! How a connection to Redis is opened, and how commands leave on it.
//!
//! Whoever sends a command wakes the connection's task, which runs before others that are about to send: left to itself, it
//! would write nearly every command by its own, and a write costs more than the command. So before it writes, the task
//! steps back once and lets those run that wait for their turn, and what they have to send leaves in the same write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult};
use futures_util::future::select_ok;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// How many commands may wait for the connection's task before their senders wait for a place.
const WAITING: usize = 1024;

/// How many bytes of commands are gathered before they are written all the same.
const GATHERED: usize = 64 * 1024;

/// An open connection; it ends when this is dropped, whatever is still unanswered.
pub(super) struct Wire {
    pub(super) connection: MultiplexedConnection,
    _task: Option<Task>,
}

/// Runs a connection of ours. The library has its own way to end those it opens.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a connection. It lives no longer than the runtime this is called in.
pub(super) async fn open(client: &Client) -> RedisResult<Wire> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WAITING)
        .set_write_backpressure_boundary(GATHERED);
    let info = client.get_connection_info();
    let ConnectionAddr::Tcp(host, port) = info.addr() else {
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        return Ok(Wire { connection, _task: None });
    };
    // A name may stand for several addresses, and the first may be one that never answers.
    let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), *port)).await?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
    }
    let (stream, _) = select_ok(addresses.into_iter().map(|address| Box::pin(TcpStream::connect(address)))).await?;
    stream.set_nodelay(true)?;
    let gathering = Gathering { stream, gathered: false };
    let (connection, work) = MultiplexedConnection::new_with_config(info.redis_settings(), gathering, config).await?;
    let task = Task(tokio::spawn(work).abort_handle());
    Ok(Wire { connection, _task: Some(task) })
}

/// A stream whose writer steps back once before it writes.
struct Gathering {
    stream: TcpStream,
    /// Whether the writer has stepped back since the last flush.
    gathered: bool,
}

impl AsyncRead for Gathering {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Gathering {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.gathered {
            self.gathered = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.gathered = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
