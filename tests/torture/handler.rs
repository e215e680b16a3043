//! The handler behind the gateways: it answers, refuses, fails, is too slow, breaks off after it did the work, is killed.
//!
//! It listens once for each gateway, so it knows who sent a request. Which attempt of which provider a request stems
//! from stands in its header; which event it is for, in its body, of which it reads only the first element, as the
//! handlers do that batches are split for.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::history::{Act, Event, Exchange, Recorder};
use super::support::wire::{Connection, Head, Unframed};

/// The header in which a provider numbers its attempts.
pub const ATTEMPT: &str = "X-Attempt";

/// A moment of an exchange at which a fault can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request is here, and nothing is answered.
    Arrived,
    /// The answer has just been written.
    Answered,
}

type Trap = (Moment, Box<dyn FnOnce() + Send>);

/// The handler.
pub struct Handler {
    pub addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
}

struct Shared {
    recorder: Arc<Recorder>,
    random: Mutex<StdRng>,
    failing: AtomicBool,
    /// Counts the deaths of the handler: what began before one is never finished.
    deaths: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
    traps: Vec<Mutex<Option<Trap>>>,
    timeout: Duration,
    ended: AtomicBool,
}

/// What is to be done with one request.
struct Plan {
    act: Act,
    status: u16,
    /// How long the handler takes.
    takes: Duration,
    /// Whether the work is done at the beginning of that time, or at its end.
    works_at_once: bool,
}

impl Handler {
    /// Listens for this many gateways. `timeout` is how long these wait for an answer.
    pub fn start(gateways: usize, timeout: Duration, recorder: &Arc<Recorder>, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            recorder: Arc::clone(recorder),
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            failing: AtomicBool::new(false),
            deaths: AtomicU64::new(0),
            open: Mutex::default(),
            traps: (0..gateways).map(|_| Mutex::default()).collect(),
            timeout,
            ended: AtomicBool::new(false),
        });
        let listen = |gateway| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("an address");
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if shared.ended.load(Ordering::Acquire) {
                        return;
                    }
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || {
                        let _broken_off = shared.serve(stream, gateway);
                    });
                }
            });
            address
        };
        Self { addresses: (0..gateways).map(listen).collect(), shared }
    }

    /// Whether nearly everything is answered with 5xx.
    pub fn set_failing(&self, failing: bool) {
        self.shared.failing.store(failing, Ordering::Release);
    }

    /// Ends it as SIGKILL would: what is under way ends there, with its connections. That nobody listens
    /// afterwards is the links' part.
    pub fn kill(&self) {
        self.shared.deaths.fetch_add(1, Ordering::AcqRel);
        for stream in lock(&self.shared.open).drain(..) {
            let _already_ended = stream.shutdown(Shutdown::Both);
        }
    }

    /// Springs once, at this moment of the next exchange of this gateway.
    pub fn trap(&self, gateway: usize, moment: Moment, trap: impl FnOnce() + Send + 'static) {
        *lock(&self.shared.traps[gateway]) = Some((moment, Box::new(trap)));
    }

    /// Takes a trap away. `false`: it has sprung.
    pub fn disarm(&self, gateway: usize) -> bool {
        lock(&self.shared.traps[gateway]).take().is_some()
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.kill();
        for address in &self.addresses {
            // Wakes the accepting thread, which then gives up the port.
            drop(TcpStream::connect(address));
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream, gateway: usize) -> io::Result<()> {
        let deaths = self.deaths.load(Ordering::Acquire);
        {
            let mut open = lock(&self.open);
            open.retain(|stream| stream.peer_addr().is_ok());
            open.push(stream.try_clone()?);
        }
        let ending = stream.try_clone()?;
        let served = self.serve_all(Connection::new(stream), gateway, deaths);
        // The handle that is kept for a death would hold the connection open.
        let _already_ended = ending.shutdown(Shutdown::Both);
        served
    }

    fn serve_all(&self, mut connection: Connection, gateway: usize, deaths: u64) -> io::Result<()> {
        while let Some(head) = connection.read_head()? {
            let arrived = self.recorder.now();
            let body = connection.read_body(&head, Unframed::IsEmpty)?;
            let plan = self.plan();
            let exchange = self.note(&head, &body, gateway, arrived, plan.act);
            self.spring(gateway, Moment::Arrived);
            if plan.works_at_once {
                self.work(exchange, plan.act);
            }
            if !self.live_through(plan.takes, deaths) {
                return Ok(());
            }
            if !plan.works_at_once {
                self.work(exchange, plan.act);
            }
            match plan.act {
                Act::End => return Ok(()),
                Act::BreakOff => return connection.write(b"HTTP/1.1 200 OK\r\nContent-"),
                _ => {}
            }
            self.recorder.says(exchange, plan.status);
            let answer = format!("HTTP/1.1 {} Said\r\nContent-Length: 4\r\n\r\nsaid", plan.status);
            if let Err(error) = connection.write(answer.as_bytes()) {
                self.recorder.unsaid(exchange);
                return Err(error);
            }
            self.spring(gateway, Moment::Answered);
        }
        Ok(())
    }

    fn plan(&self) -> Plan {
        let mut random = lock(&self.random);
        let quick = Duration::from_millis(random.random_range(0..25));
        let failing = self.failing.load(Ordering::Acquire) && random.random_bool(0.9);
        let (act, status, takes) = match random.random_range(0..100) {
            _ if failing => (Act::Fail, 500 + random.random_range(0..2), quick),
            0..=3 => (Act::Refuse, [400, 404, 409, 422][random.random_range(0..4)], quick),
            4..=7 => (Act::Fail, [500, 501, 503][random.random_range(0..3)], quick),
            // Within the time-out, and longer than a lease.
            8..=9 => (Act::Answer, 200, self.timeout * 3 / 4 + quick * 8),
            10..=11 => (Act::AnswerTooLate, 200, self.timeout * 5 / 4 + quick * 60),
            12..=13 => (Act::End, 0, quick),
            14 => (Act::BreakOff, 0, quick),
            15 => (Act::GiveUp, 504, quick),
            16..=25 => (Act::Answer, 202, quick * 12),
            _ => (Act::Answer, 200, quick),
        };
        Plan { act, status, takes, works_at_once: random.random_bool(0.5) }
    }

    fn note(&self, head: &Head, body: &[u8], gateway: usize, arrived: Duration, act: Act) -> usize {
        let attempt = head.header(ATTEMPT).and_then(|number| number.parse().ok()).expect("a numbered attempt");
        let event = event_in(body).expect("an event that a provider sent");
        self.recorder.arrived(Exchange { event, attempt, gateway, arrived, act, worked: false, said: None })
    }

    fn work(&self, exchange: usize, act: Act) {
        if !matches!(act, Act::Refuse | Act::Fail) {
            self.recorder.worked(exchange);
        }
    }

    /// Takes its time. `false`: it was killed meanwhile.
    fn live_through(&self, takes: Duration, deaths: u64) -> bool {
        let start = Instant::now();
        loop {
            if self.deaths.load(Ordering::Acquire) != deaths {
                return false;
            }
            let left = takes.saturating_sub(start.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    }

    fn spring(&self, gateway: usize, moment: Moment) {
        let mut trap = lock(&self.traps[gateway]);
        if trap.as_ref().is_some_and(|(at, _)| *at == moment) {
            let (_, spring) = trap.take().expect("the trap that is there");
            drop(trap);
            spring();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The event of a request: its `id`, or that of the first message of the first change.
fn event_in(body: &[u8]) -> Option<Event> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let messages = &body["entry"][0]["changes"][0]["value"]["messages"];
    let id = body["id"].as_str().or_else(|| messages[0]["id"].as_str())?;
    Event::parse(id)
}
