//! The exchange: one request to the upstream and its answer.
//!
//! Deliveries that are deduplicated do not travel pingora-proxy's own upstream path: it gives up when the provider
//! hangs up, keeps no more than 64 KiB of a body it has read, and does not tell what was written. Here a request is
//! sent whole, over a connection of our own (pingora's connector makes those with TLS), pingora's HTTP/1 session reads
//! the answer, and every end has one of four outcomes.

mod addresses;
mod answer;
mod idle;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pingora::connectors::TransportConnector;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::{ALPN, HttpPeer};
use thread_local::ThreadLocal;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use self::addresses::Addresses;
pub(super) use self::answer::Answer;
use self::idle::IdleConnections;
use super::request::Request;
use super::stream::PlainStream;
use crate::claim::Doubt;
use crate::config;

/// How long an answer that is here already may take to be read.
const AT_HAND: Duration = Duration::from_millis(50);
/// A request up to this size is handed to the kernel in one call, which takes it whole or not at all while the socket's
/// buffer is empty, as it is before a request.
const ATOMIC_WRITE: usize = 1_460;

/// The upstream of one route.
pub(super) struct Upstream {
    config: config::Upstream,
    connector: Arc<TransportConnector>,
    addresses: Addresses,
    own_host: String,
    /// Those of each thread: a connection wakes the thread in which it was opened.
    idle: ThreadLocal<Arc<IdleConnections>>,
}

/// A connection that is ready for a request.
pub(super) struct Connection {
    stream: Stream,
    pub(super) reused: bool,
}

/// An exchange that brought no final head.
#[derive(Debug)]
pub(super) enum Failure {
    /// No byte of the request was written.
    NotSent(String),
    /// At least one was.
    Unknown(Doubt, String),
}

impl Upstream {
    pub(super) fn new(config: config::Upstream, connector: Arc<TransportConnector>) -> Self {
        let addresses = Addresses::new(&config.host, config.port);
        Self { own_host: own_host(&config), config, connector, addresses, idle: ThreadLocal::new() }
    }

    /// Connects, or takes an idle connection unless a `fresh` one is asked for. Name, connect and TLS together take no
    /// longer than `connect_timeout`.
    pub(super) async fn connect(&self, fresh: bool) -> Result<Connection, Failure> {
        if !fresh && let Some(stream) = self.idle().take() {
            return Ok(Connection { stream, reused: true });
        }
        match tokio::time::timeout(self.config.connect_timeout, Box::pin(self.dial())).await {
            Ok(connected) => connected.map(|stream| Connection { stream, reused: false }),
            Err(_) => Err(Failure::NotSent(format!(
                "no connection to `{}:{}` within {:?}",
                self.config.host, self.config.port, self.config.connect_timeout
            ))),
        }
    }

    fn idle(&self) -> &Arc<IdleConnections> {
        self.idle.get_or(IdleConnections::new)
    }

    async fn dial(&self) -> Result<Stream, Failure> {
        let addresses = self.addresses.get().await.map_err(Failure::NotSent)?;
        let mut cause = format!("`{}` has no address", self.config.host);
        // A name such as `localhost` may stand for several addresses of which only one is listened on.
        for address in addresses.iter() {
            match self.dial_at(*address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => cause = format!("{address}: {error}"),
            }
        }
        Err(Failure::NotSent(cause))
    }

    async fn dial_at(&self, address: SocketAddr) -> Result<Stream, String> {
        if self.config.tls {
            return self.connector.new_stream(&self.peer_at(address)).await.map_err(|error| brief(&error));
        }
        let stream = TcpStream::connect(address).await.and_then(PlainStream::new);
        stream.map(|stream| Box::new(stream) as Stream).map_err(|error| error.to_string())
    }

    /// The peer for pingora's own path, which streams requests through.
    pub(super) async fn peer(&self) -> Result<HttpPeer, Failure> {
        let addresses = self.addresses.get().await.map_err(Failure::NotSent)?;
        match addresses.first() {
            Some(address) => Ok(self.peer_at(*address)),
            None => Err(Failure::NotSent(format!("`{}` has no address", self.config.host))),
        }
    }

    fn peer_at(&self, address: SocketAddr) -> HttpPeer {
        // `HttpPeer::new` blocks on names and panics on unknown ones (cloudflare/pingora#570), so it only ever gets
        // addresses. The name stays for TLS.
        let mut peer = HttpPeer::new(address, self.config.tls, self.config.host.clone());
        peer.options.alpn = ALPN::H1;
        peer.options.total_connection_timeout = Some(self.config.connect_timeout);
        peer.options.read_timeout = Some(self.config.timeout);
        peer.options.write_timeout = Some(self.config.timeout);
        peer.options.idle_timeout = Some(idle::LONGEST);
        peer
    }

    /// Sends one request and reads the final head of its answer, within the upstream's `timeout`. Informational (1xx)
    /// heads are read past.
    pub(super) async fn exchange(
        &self,
        connection: Connection,
        Request { first, rest }: &Request,
    ) -> Result<Answer, Failure> {
        let deadline = tokio::time::Instant::now() + self.config.timeout;
        let Connection { mut stream, reused } = connection;
        let written = tokio::time::timeout_at(deadline, async {
            stream.write_all(first).await?;
            if !rest.is_empty() {
                stream.write_all(rest).await?;
            }
            stream.flush().await
        })
        .await;
        let all_written = matches!(written, Ok(Ok(())));
        let broken = match written {
            Ok(Ok(())) => None,
            Ok(Err(error)) => {
                if first.len() <= ATOMIC_WRITE && rest.is_empty() && !self.config.tls {
                    return Err(Failure::NotSent(format!("the connection was closed before the request: {error}")));
                }
                Some(format!("while sending: {error}"))
            }
            // An upstream may have answered without reading on: its answer stands, if it is here.
            Err(_) => None,
        };
        // What is here already is read even if no time is left.
        let deadline = deadline.max(tokio::time::Instant::now() + AT_HAND);

        let mut session = Box::new(HttpSession::new(stream));
        let read = tokio::time::timeout_at(deadline, read_final_head(&mut session)).await;
        match (read, broken) {
            // An upstream may answer and close before it has read all of a body: then the answer stands.
            (Ok(Ok(status)), None | Some(_)) => {
                session.read_timeout = Some(self.config.timeout);
                let idle = all_written.then(|| Arc::clone(self.idle()));
                Ok(Answer::new(status, session, idle, self.config.timeout))
            }
            (Ok(Err(_)), Some(cause)) => Err(Failure::Unknown(Doubt::Reset, cause)),
            (Ok(Err(error)), None) => {
                let over = if reused { " over a reused connection" } else { "" };
                Err(Failure::Unknown(Doubt::Reset, format!("no answer{over}: {}", brief(&error))))
            }
            (Err(_), _) => {
                Err(Failure::Unknown(Doubt::TimedOut, format!("no answer came within {:?}", self.config.timeout)))
            }
        }
    }

    /// The `Host` that the route sets, and the one of a request that brings none.
    pub(super) fn host_header(&self) -> (Option<&str>, &str) {
        (self.config.host_header.as_deref(), &self.own_host)
    }
}

fn own_host(config: &config::Upstream) -> String {
    let host = &config.host;
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let default_port = if config.tls { 443 } else { 80 };
    if config.port == default_port { bracketed } else { format!("{bracketed}:{}", config.port) }
}

/// Reads until the head is there that is no informational one, and answers its status.
async fn read_final_head(session: &mut HttpSession) -> pingora::Result<u16> {
    loop {
        session.read_response().await?;
        if let Some(head) = session.resp_header()
            && (!head.status.is_informational() || head.status == 101)
        {
            return Ok(head.status.as_u16());
        }
    }
}

/// An error of pingora's in one line, without the request's content.
fn brief(error: &pingora::Error) -> String {
    match error.root_cause().downcast_ref::<std::io::Error>() {
        Some(cause) => format!("{}: {cause}", error.etype().as_str()),
        None => error.etype().as_str().to_owned(),
    }
}
