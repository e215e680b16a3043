//! A TCP connection without TLS, to a provider or an upstream, as pingora takes one.
//!
//! Pingora's own wrapper puts 64 KiB of buffers around it and takes times for logs. Heads and bodies have buffers of their
//! own here, and what is written is written whole.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, TimingDigest, UniqueID,
    UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct PlainStream(TcpStream);

impl PlainStream {
    /// A connection that was made or accepted in the runtime that uses it.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        // What is written is whole: nothing is gained by waiting for more.
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[async_trait]
impl Shutdown for PlainStream {
    async fn shutdown(&mut self) {
        // Whoever closes does not care that the other side has closed before.
        let _ = AsyncWriteExt::shutdown(&mut self.0).await;
    }
}

impl UniqueID for PlainStream {
    fn id(&self) -> UniqueIDType {
        self.0.as_raw_fd()
    }
}

impl Ssl for PlainStream {}

impl Peek for PlainStream {}

impl GetTimingDigest for PlainStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for PlainStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for PlainStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}
