//! The history of a run: every event, attempt, exchange, answer, fault and change of a key, with its time.
//!
//! Times count from the start of the run on this process's monotonic clock. What Redis wrote down in wall time is
//! brought to the same scale by [`Recorder::at_wall_time`].

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A time of the run.
pub type At = Duration;

/// What the route of an event promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Promise {
    /// `unknown_outcome: redeliver`, one event in a delivery.
    Redeliver,
    /// `unknown_outcome: suppress`, one event in a delivery.
    Suppress,
    /// A batch that is split, `unknown_outcome: redeliver`.
    Split,
}

/// An event. Its id is what the provider, the handler and Redis call it, and tells its route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    pub promise: Promise,
    pub number: u32,
}

impl Event {
    /// Reads the id; `None` for anything else.
    pub fn parse(id: &str) -> Option<Self> {
        let (letter, number) = id.split_at_checked(1)?;
        let promise = match letter {
            "r" => Promise::Redeliver,
            "s" => Promise::Suppress,
            "b" => Promise::Split,
            _ => return None,
        };
        Some(Self { promise, number: number.parse().ok()? })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.promise {
            Promise::Redeliver => 'r',
            Promise::Suppress => 's',
            Promise::Split => 'b',
        };
        write!(out, "{letter}{}", self.number)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// One delivery of a provider to one gateway. Its number travels in a header, so the handler knows it too.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub events: Vec<Event>,
    pub gateway: usize,
    pub sent: At,
    /// When the provider had its answer, or stopped waiting for one.
    pub ended: Option<At>,
    /// Its status and `hookonce-result`.
    pub answer: Option<(u16, String)>,
}

impl Attempt {
    /// When the provider was told that all is done, if it was.
    pub fn acknowledged(&self) -> Option<At> {
        let accepted = self.answer.as_ref().is_some_and(|(status, _)| (200..300).contains(status));
        if accepted { self.ended } else { None }
    }
}

/// What the handler did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// Worked, and answered within the gateway's time-out.
    Answer,
    /// Worked, and answered long after it.
    AnswerTooLate,
    /// Said 4xx and did nothing.
    Refuse,
    /// Said 5xx and did nothing.
    Fail,
    /// Worked, and the answer was one of something in between that gave up (504).
    GiveUp,
    /// Worked, and the connection ended without an answer.
    End,
    /// Worked, and the answer ended in the middle of its head.
    BreakOff,
}

/// One event in one request at the handler.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub event: Event,
    /// The attempt it stems from: its index in the history.
    pub attempt: usize,
    pub gateway: usize,
    /// When its head had been read.
    pub arrived: At,
    pub act: Act,
    /// Whether the event's work was done, whatever was answered.
    pub worked: bool,
    /// The status that was written whole, and from when on.
    pub said: Option<(u16, At)>,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    RedisKilled,
    RedisLostPower,
    RedisFrozen,
    RedisFull,
    RedisReadOnly,
    StoreDelayed,
    StoreCut,
    StoreLate,
    StoreRefused,
    UpstreamCut,
    UpstreamLate,
    UpstreamRefused,
    GatewayKilled,
    GatewayKilledBeforeSending,
    GatewayKilledAfterSending,
    GatewayKilledBeforeSettling,
    GatewayTerminated,
    GatewayPaused,
    HandlerKilled,
    HandlerFailing,
    /// Nothing was injected: this machine did not let the test's own threads run.
    MachineStalled,
}

impl Kind {
    /// Keeps a gateway from its store, or the store from writing.
    pub fn concerns_store(self) -> bool {
        use Kind::{
            RedisFrozen, RedisFull, RedisKilled, RedisLostPower, RedisReadOnly, StoreCut, StoreDelayed, StoreLate,
            StoreRefused,
        };
        matches!(
            self,
            RedisKilled
                | RedisLostPower
                | RedisFrozen
                | RedisFull
                | RedisReadOnly
                | StoreDelayed
                | StoreCut
                | StoreLate
                | StoreRefused
        )
    }

    /// Ends a gateway's process.
    pub fn ends_gateway(self) -> bool {
        use Kind::{
            GatewayKilled, GatewayKilledAfterSending, GatewayKilledBeforeSending, GatewayKilledBeforeSettling,
            GatewayTerminated,
        };
        matches!(
            self,
            GatewayKilled
                | GatewayKilledBeforeSending
                | GatewayKilledAfterSending
                | GatewayKilledBeforeSettling
                | GatewayTerminated
        )
    }

    /// Keeps a gateway's process from running for a while.
    pub fn pauses(self) -> bool {
        matches!(self, Self::GatewayPaused | Self::MachineStalled)
    }

    /// Makes the outcome of exchanges unknown or impossible.
    pub fn concerns_upstream(self) -> bool {
        use Kind::{HandlerKilled, UpstreamCut, UpstreamLate, UpstreamRefused};
        matches!(self, HandlerKilled | UpstreamCut | UpstreamLate | UpstreamRefused)
    }
}

/// A fault from its beginning until things had been put right.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: Kind,
    /// The gateway it concerns; `None` for both.
    pub gateway: Option<usize>,
    pub from: At,
    pub to: At,
}

/// What became of a key in Redis. The moments between which it was written are known.
#[derive(Clone, Debug)]
pub struct Change {
    pub event: Event,
    pub earliest: At,
    pub latest: At,
    pub what: Written,
}

/// A write to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// A claim that holds until then.
    Claimed { token: String, until: At },
    /// A claim past the point of no return, whose owner counts as dead from then on.
    Sending { token: String, until: At },
    /// The time of whatever stands there was set anew.
    Renewed { until: At, sending_until: At },
    /// Delivered.
    Done,
    /// Settled as unknown.
    Unknown,
    /// Released, or removed after its end.
    Deleted,
}

/// All that is known of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub attempts: Vec<Attempt>,
    pub exchanges: Vec<Exchange>,
    pub faults: Vec<Fault>,
    pub changes: Vec<Change>,
    /// The upstream's time-out.
    pub timeout: Duration,
    /// How long a claim holds without being renewed.
    pub lease: Duration,
    /// When the run had ended.
    pub end: At,
}

/// Writes a history down while the run goes on, from all threads.
pub struct Recorder {
    start: Instant,
    start_in_wall_time: SystemTime,
    history: Mutex<History>,
}

impl Recorder {
    pub fn new(timeout: Duration, lease: Duration) -> Self {
        let history = Mutex::new(History { timeout, lease, ..History::default() });
        Self { start: Instant::now(), start_in_wall_time: SystemTime::now(), history }
    }

    pub fn now(&self) -> At {
        self.start.elapsed()
    }

    /// How far wall time and monotonic time have come apart since the start.
    pub fn drift(&self) -> Duration {
        self.start_in_wall_time.elapsed().unwrap_or_default().abs_diff(self.start.elapsed())
    }

    /// Milliseconds since 1970 as a time of the run.
    pub fn at_wall_time(&self, milliseconds: u64) -> At {
        let wall = UNIX_EPOCH + Duration::from_millis(milliseconds);
        wall.duration_since(self.start_in_wall_time).unwrap_or_default()
    }

    pub fn attempt(&self, events: &[Event], gateway: usize) -> usize {
        let attempt = Attempt { events: events.to_vec(), gateway, sent: self.now(), ended: None, answer: None };
        let mut history = self.history();
        history.attempts.push(attempt);
        history.attempts.len() - 1
    }

    pub fn answered(&self, attempt: usize, answer: Option<(u16, String)>) {
        let ended = self.now();
        let mut history = self.history();
        history.attempts[attempt].ended = Some(ended);
        history.attempts[attempt].answer = answer;
    }

    pub fn arrived(&self, exchange: Exchange) -> usize {
        let mut history = self.history();
        history.exchanges.push(exchange);
        history.exchanges.len() - 1
    }

    pub fn worked(&self, exchange: usize) {
        self.history().exchanges[exchange].worked = true;
    }

    /// The handler begins to write its answer.
    pub fn says(&self, exchange: usize, status: u16) {
        let at = self.now();
        self.history().exchanges[exchange].said = Some((status, at));
    }

    /// The answer could not be written.
    pub fn unsaid(&self, exchange: usize) {
        self.history().exchanges[exchange].said = None;
    }

    pub fn fault(&self, kind: Kind, gateway: Option<usize>, from: At) {
        let to = self.now();
        self.history().faults.push(Fault { kind, gateway, from, to });
    }

    /// Takes the history as it is now.
    pub fn finish(&self) -> History {
        let end = self.now();
        let mut history = self.history().clone();
        history.end = end;
        history
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
