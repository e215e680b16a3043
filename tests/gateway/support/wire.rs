//! HTTP/1.1 messages as bytes: just enough to read what the other side sent without hiding anything of it.

use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::DEADLINE;

/// The bytes up to and including the empty line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head(pub Vec<u8>);

impl Head {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    pub fn start_line(&self) -> String {
        self.text().lines().next().unwrap_or_default().to_owned()
    }

    /// Names as they were sent, in their order.
    pub fn headers(&self) -> Vec<(String, String)> {
        let text = self.text();
        let pairs = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    }

    /// The value of a header that stands there once. Panics if it stands there more than once.
    pub fn header(&self, name: &str) -> Option<String> {
        let mut found = self.headers().into_iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value);
        assert!(found.next().is_none(), "`{name}` stands there twice:\n{}", self.text());
        value
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }

    fn length(&self) -> Option<usize> {
        self.header("content-length").map(|value| value.parse().expect("a number of bytes"))
    }
}

/// What ends a body that has neither a length nor chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unframed {
    /// A request: there is no body.
    IsEmpty,
    /// An answer: the body ends with the connection.
    EndsWithConnection,
}

/// A connection, read message by message.
pub struct Connection {
    pub stream: TcpStream,
    pending: Vec<u8>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(DEADLINE * 2)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE * 2)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, pending: Vec::new() }
    }

    pub fn open(address: SocketAddr) -> io::Result<Self> {
        TcpStream::connect_timeout(&address, Duration::from_secs(10)).map(Self::new)
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next head; `None` when the connection ended before its first byte.
    pub fn read_head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = find(&self.pending, b"\r\n\r\n") {
                return Ok(Some(Head(self.pending.drain(..end + 4).collect())));
            }
            if !self.read_more()? {
                return if self.pending.is_empty() { Ok(None) } else { Err(cut()) };
            }
        }
    }

    /// The body behind `head`, without its framing.
    pub fn read_body(&mut self, head: &Head, unframed: Unframed) -> io::Result<Vec<u8>> {
        if head.is_chunked() {
            return self.read_chunks();
        }
        match (head.length(), unframed) {
            (Some(length), _) => self.read_exactly(length),
            (None, Unframed::IsEmpty) => Ok(Vec::new()),
            (None, Unframed::EndsWithConnection) => {
                while self.read_more()? {}
                Ok(std::mem::take(&mut self.pending))
            }
        }
    }

    /// Whether the other side has ended the connection. Waits for what it does next.
    pub fn is_ended(&mut self) -> bool {
        match self.read_more() {
            Ok(more) => !more && self.pending.is_empty(),
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }

    /// Ends the connection with a reset instead of an orderly end.
    pub fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).expect("a linger time");
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            body.extend(self.read_exactly(size)?);
            self.read_line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.pending, b"\r\n") {
                let line: Vec<u8> = self.pending.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if !self.read_more()? {
                return Err(cut());
            }
        }
    }

    fn read_exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.pending.len() < length {
            if !self.read_more()? {
                return Err(cut());
            }
        }
        Ok(self.pending.drain(..length).collect())
    }

    fn read_more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 64 * 1024];
        let length = self.stream.read(&mut piece)?;
        self.pending.extend_from_slice(&piece[..length]);
        Ok(length > 0)
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended inside a message")
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
