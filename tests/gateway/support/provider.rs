//! The provider in front of the gateway: deliveries as bytes on a socket.

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::wire::{Connection, Head, Unframed};

/// The secret of every route that verifies.
pub const SECRET: &str = "whsec_kept_by_the_tests";

/// A request, in the bytes in which it will be sent.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    /// In chunks of at most this many bytes.
    Chunks(usize),
    /// Nothing is added: the headers say it themselves.
    AsGiven,
}

impl Request {
    pub fn new(method: &str, target: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let framing = if body.is_empty() && method != "POST" { Framing::AsGiven } else { Framing::Length };
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body, framing }
    }

    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target, body).header("Content-Type", "application/json")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn chunked(self, longest: usize) -> Self {
        Self { framing: Framing::Chunks(longest), ..self }
    }

    /// Without any framing header but those given.
    pub fn framed_as_given(self) -> Self {
        Self { framing: Framing::AsGiven, ..self }
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub fn head_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: hooks.example.com\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.framing {
            Framing::Length => head.push_str(&format!("Content-Length: {}\r\n", self.body.len())),
            Framing::Chunks(_) => head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::AsGiven => {}
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub fn body_bytes(&self) -> Vec<u8> {
        let Framing::Chunks(longest) = self.framing else { return self.body.clone() };
        let mut bytes = Vec::new();
        for chunk in self.body.chunks(longest) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }
}

/// What the provider was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Head,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<String> {
        self.head.header(name)
    }

    /// `hookonce-result`, without what stands behind a `;`.
    pub fn result(&self) -> String {
        let value = self.header("hookonce-result").unwrap_or_default();
        value.split(';').next().unwrap_or_default().to_owned()
    }

    /// Panics unless this is what came back.
    pub fn expect(self, status: u16, result: &str) -> Self {
        assert_eq!((self.status, self.result().as_str()), (status, result), "{}{}", self.head.text(), self.text());
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection of a provider, for what a plain [`send`] cannot do.
pub struct Line(Connection);

impl Line {
    pub fn open(address: SocketAddr) -> Self {
        Self(Connection::open(address).expect("the gateway listens"))
    }

    /// Opens a connection and writes a request; the answer is for later.
    pub fn begin(address: SocketAddr, request: &Request) -> Self {
        let mut line = Self::open(address);
        line.request(request);
        line
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes).expect("the gateway reads");
    }

    /// Writes a request. A gateway that has heard enough may answer and stop reading, so that is no fault.
    pub fn request(&mut self, request: &Request) {
        let _stopped_reading = self.0.write(&request.head_bytes()).and_then(|()| self.0.write(&request.body_bytes()));
    }

    /// The next head, interim ones too.
    pub fn head(&mut self) -> Head {
        self.0.read_head().expect("a head").expect("an answer before the connection ends")
    }

    /// The next final answer, where one must come.
    pub fn finish(&mut self) -> Answer {
        self.answer().expect("an answer")
    }

    /// The next final answer.
    pub fn answer(&mut self) -> io::Result<Answer> {
        self.answer_to("POST")
    }

    pub fn answer_to(&mut self, method: &str) -> io::Result<Answer> {
        loop {
            let head = self.0.read_head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let status = head.start_line().split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
            if status < 200 {
                continue;
            }
            let empty = method == "HEAD" || status == 204 || status == 304;
            let body = if empty { Vec::new() } else { self.0.read_body(&head, Unframed::EndsWithConnection)? };
            return Ok(Answer { status, head, body });
        }
    }

    /// Writes a byte this often, until the returned value is dropped or the gateway stops reading.
    pub fn trickle(&self, every: Duration) -> Trickle {
        let mut stream = self.0.stream.try_clone().expect("a second handle");
        let (keep, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) && stream.write_all(b" ").is_ok() {}
        });
        Trickle(keep)
    }

    /// Whether the gateway has ended the connection. Waits for what it does next.
    pub fn is_ended(&mut self) -> bool {
        self.0.is_ended()
    }

    /// Tells the gateway that nothing more will be sent.
    pub fn close_half(&self) {
        self.0.stream.shutdown(Shutdown::Write).expect("an open connection");
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        self.0.reset();
    }
}

/// See [`Line::trickle`].
pub struct Trickle(#[expect(dead_code, reason = "dropping it ends the writing")] Sender<()>);

/// Sends a request on a connection of its own and waits for the answer.
pub fn send(address: SocketAddr, request: &Request) -> Answer {
    let mut line = Line::begin(address, request);
    line.answer_to(&request.method).expect("an answer")
}

/// Sends the same request this often at the same moment.
pub fn send_at_once(addresses: &[SocketAddr], request: &Request, times: usize) -> Vec<Answer> {
    let together = std::sync::Barrier::new(times);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..times)
            .map(|number| {
                let (together, address) = (&together, addresses[number % addresses.len()]);
                scope.spawn(move || {
                    let mut line = Line::open(address);
                    together.wait();
                    line.request(request);
                    line.finish()
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
    })
}

/// Seconds since 1970, `ago` before now.
pub fn timestamp(ago: Duration) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs() - ago.as_secs()
}

pub fn hmac_sha256_hex(secret: &str, bytes: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length is a key");
    mac.update(bytes);
    HEXLOWER.encode(&mac.finalize().into_bytes())
}

/// The value of `Stripe-Signature`.
pub fn stripe_signature(secret: &str, timestamp: u64, body: &[u8]) -> String {
    let signed = [format!("{timestamp}.").as_bytes(), body].concat();
    format!("t={timestamp},v1={}", hmac_sha256_hex(secret, &signed))
}

/// The body of a Stripe event, with odd spacing so that re-written JSON is noticed.
pub fn stripe_body(id: &str) -> Vec<u8> {
    format!(
        "{{\n  \"id\": \"{id}\",\n  \"object\": \"event\",  \"type\": \"invoice.paid\",\n  \"created\": 1700000000,\n  \
         \"data\": {{\"object\": {{\"id\": \"in_1\", \"amount\": 1.50, \"note\": \"caf\\u00e9 \\/ é\"}}}}\n}}\n"
    )
    .into_bytes()
}

/// A Stripe delivery of this event as Stripe would send it now, to `/webhooks/stripe`.
pub fn stripe(id: &str) -> Request {
    stripe_with_body(stripe_body(id))
}

pub fn stripe_with_body(body: Vec<u8>) -> Request {
    let signature = stripe_signature(SECRET, timestamp(Duration::ZERO), &body);
    Request::post("/webhooks/stripe", body).header("Stripe-Signature", &signature)
}
