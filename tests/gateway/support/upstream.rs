//! The handler behind the gateway: it answers as the test tells it to and remembers every byte it got.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::wire::{Connection, Head, Unframed};
use super::{eventually, local};

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub head: Head,
    pub body: Vec<u8>,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<String> {
        self.head.header(name)
    }
}

/// Holds an answer back until the test opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn closed() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        *self.0.0.lock().expect("the gate") = true;
        self.0.1.notify_all();
    }

    /// Returns in the end even if a failed test never opens it.
    fn pass(&self) {
        let open = self.0.0.lock().expect("the gate");
        drop(self.0.1.wait_timeout_while(open, Duration::from_secs(60), |open| !*open).expect("the gate"));
    }
}

/// What to do with one request once it has been read whole.
#[derive(Clone)]
pub struct Answer {
    gate: Option<Gate>,
    bytes: Vec<u8>,
    ending: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    KeepAlive,
    Close,
    Reset,
}

impl Answer {
    /// A whole answer with this status and the body `answer`.
    pub fn status(status: u16) -> Self {
        Self::with_body(status, b"answer")
    }

    pub fn with_body(status: u16, body: &[u8]) -> Self {
        let mut bytes =
            format!("HTTP/1.1 {status} Said\r\nX-Handler: upstream\r\nContent-Length: {}\r\n\r\n", body.len())
                .into_bytes();
        bytes.extend_from_slice(body);
        Self::bytes(&bytes)
    }

    /// Exactly these bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self { gate: None, bytes: bytes.to_vec(), ending: Ending::KeepAlive }
    }

    /// No answer: the connection ends.
    pub fn none() -> Self {
        Self::bytes(b"").and_close()
    }

    /// No answer: the connection is reset.
    pub fn reset() -> Self {
        Self { ending: Ending::Reset, ..Self::bytes(b"") }
    }

    /// Only once the gate is open.
    pub fn behind(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    /// Ends the connection afterwards, without having announced it.
    pub fn and_close(self) -> Self {
        Self { ending: Ending::Close, ..self }
    }

    /// Sends these bytes first, such as an interim answer.
    pub fn after(mut self, before: &[u8]) -> Self {
        self.bytes.splice(0..0, before.iter().copied());
        self
    }
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    script: VecDeque<Answer>,
    otherwise: Option<Answer>,
    reset_unread: usize,
    connections: usize,
    open_connections: usize,
    running: usize,
    most_at_once: usize,
    ended: bool,
}

/// A port that is taken and refuses connections, until the handler appears on it.
pub struct Absent {
    socket: Socket,
    pub address: SocketAddr,
}

impl Absent {
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&local(0).into()).expect("a free port");
        let address = socket.local_addr().expect("an address").as_socket().expect("an address of the internet");
        Self { socket, address }
    }

    pub fn appear(self) -> Upstream {
        self.socket.listen(256).expect("listening");
        Upstream::on(self.socket.into(), self.address)
    }

    /// A handler that is there and takes no connection: whoever connects waits, and has sent nothing yet.
    pub fn appear_deaf(self) -> Deaf {
        self.socket.listen(0).expect("listening");
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&self.address, Duration::from_millis(300)) {
            queued.push(stream);
        }
        Deaf { absent: self, _queued: queued }
    }
}

/// See [`Absent::appear_deaf`].
pub struct Deaf {
    absent: Absent,
    _queued: Vec<TcpStream>,
}

impl Deaf {
    pub fn address(&self) -> SocketAddr {
        self.absent.address
    }

    /// From now on connections are taken. Those that fill the queue end without a request.
    pub fn listen(self) -> Upstream {
        self.absent.appear()
    }
}

/// The handler. It answers 200 unless told otherwise.
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Upstream {
    pub fn start() -> Self {
        Absent::new().appear()
    }

    fn on(listener: TcpListener, address: SocketAddr) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if lock(&shared).ended {
                    return;
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let _broken_off = serve(stream, &shared);
                    lock(&shared).open_connections -= 1;
                });
            }
        });
        Self { address, state }
    }

    /// The answers to the next requests, in the order in which these arrive.
    pub fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        lock(&self.state).script.extend(answers);
    }

    /// The answer to every request that the script does not cover.
    pub fn otherwise(&self, answer: Answer) {
        lock(&self.state).otherwise = Some(answer);
    }

    /// Resets the next connections before anything is read from them.
    pub fn reset_unread(&self, connections: usize) {
        lock(&self.state).reset_unread = connections;
    }

    /// Everything received so far.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.state).received.clone()
    }

    pub fn count(&self) -> usize {
        lock(&self.state).received.len()
    }

    /// Waits until this many requests have arrived, and returns the last of them.
    pub fn wait_for(&self, count: usize) -> Received {
        eventually(&format!("{count} requests at the handler"), || {
            let received = self.received();
            (received.len() >= count).then(|| received[count - 1].clone())
        })
    }

    /// The most requests that were being answered at one moment.
    pub fn most_at_once(&self) -> usize {
        lock(&self.state).most_at_once
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        lock(&self.state).connections
    }

    /// Waits until no connection is open.
    pub fn wait_for_no_connection(&self) {
        eventually("the end of every connection to the handler", || {
            (lock(&self.state).open_connections == 0).then_some(())
        });
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        lock(&self.state).ended = true;
        // Wakes the accepting thread, which then gives up the port.
        drop(TcpStream::connect(self.address));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no test panics while it holds the handler's state")
}

fn serve(stream: TcpStream, shared: &Mutex<State>) -> io::Result<()> {
    let mut connection = Connection::new(stream);
    let (number, reset) = {
        let mut state = lock(shared);
        state.connections += 1;
        state.open_connections += 1;
        let reset = state.reset_unread > 0;
        state.reset_unread = state.reset_unread.saturating_sub(1);
        (state.connections - 1, reset)
    };
    if reset {
        connection.reset();
        return Ok(());
    }
    while let Some(head) = connection.read_head()? {
        let body = connection.read_body(&head, Unframed::IsEmpty)?;
        let answer = {
            let mut state = lock(shared);
            state.received.push(Received { head, body, connection: number });
            state.running += 1;
            state.most_at_once = state.most_at_once.max(state.running);
            state.script.pop_front().or_else(|| state.otherwise.clone()).unwrap_or_else(|| Answer::status(200))
        };
        if let Some(gate) = &answer.gate {
            gate.pass();
        }
        let written = connection.write(&answer.bytes);
        lock(shared).running -= 1;
        written?;
        match answer.ending {
            Ending::KeepAlive => {}
            Ending::Close => return Ok(()),
            Ending::Reset => {
                connection.reset();
                return Ok(());
            }
        }
    }
    Ok(())
}
