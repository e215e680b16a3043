//! What a valid configuration means: the types the rest of the program works with.
//!
//! Every field of the file stands here once, with its unit and its default.

mod provider;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use self::provider::*;
use super::Secret;

/// A whole, valid configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `server`
    pub server: Server,
    /// `store`
    pub store: Store,
    /// `routes`, in the order of the file. At least one.
    pub routes: Vec<Route>,
}

/// `server`: the process as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where deliveries come in. Default `0.0.0.0:8080`.
    pub listen: SocketAddr,
    /// Where `/metrics`, `/healthz` and `/readyz` are. Default `127.0.0.1:9090`.
    pub admin: SocketAddr,
    /// Worker threads. Default: the number of cores.
    pub threads: usize,
    /// The longest that stopping may take. Default 30 s.
    pub shutdown_grace: Duration,
    /// Bytes of all request bodies in memory together. Default 64 MiB.
    pub body_budget: u64,
    /// How long a whole body may take to arrive. Default 10 s.
    pub body_timeout: Duration,
    /// `log`
    pub log: Log,
    /// Whether a store outage turns `/readyz` off. Default `process`: it does not.
    pub readiness: Readiness,
}

/// `server.log`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// Default `info`.
    pub level: LogLevel,
    /// Default `text`.
    pub format: LogFormat,
    /// Which deliveries get a line. Default `all`.
    pub deliveries: LogDeliveries,
    /// How keys stand in it. Default `full`.
    pub keys: LogKeys,
}

/// `server.log.level`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `info`
    Info,
    /// `debug`
    Debug,
    /// `trace`
    Trace,
}

/// `server.log.format`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// `text`
    Text,
    /// `json`
    Json,
}

/// `server.log.deliveries`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDeliveries {
    /// `all`: a line for each delivery.
    All,
    /// `exceptions`: a line for each that was neither forwarded and delivered nor a plain duplicate.
    Exceptions,
    /// `off`
    Off,
}

/// `server.log.keys`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKeys {
    /// `full`: as they are.
    Full,
    /// `hashed`: a short SHA-256, since a key can hold a phone number. Equal keys stay equal.
    Hashed,
}

/// `server.readiness`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// `process`: started and not stopping.
    Process,
    /// `store`: and the store answers.
    Store,
}

/// `store`: exactly one of its kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// `redis`: shared by all replicas.
    Redis(Redis),
    /// `embedded`: one process, one file on disk.
    Embedded(Embedded),
}

impl Store {
    /// The longest that one operation may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        match self {
            Self::Redis(redis) => redis.timeout,
            Self::Embedded(embedded) => embedded.timeout,
        }
    }
}

/// `store.redis`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// `redis://` or `rediss://` URL; a secret, since it may hold a password.
    pub url: Secret,
    /// `password`, instead of one inside the URL.
    pub password: Option<Secret>,
    /// First word of every key in Redis, one per installation. Default `dedup`.
    pub prefix: String,
    /// What to do about a Redis that would forget. Default `require`.
    pub persistence: Persistence,
    /// The longest that one operation may take. Default 500 ms.
    pub timeout: Duration,
}

/// `store.redis.persistence`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// `require`: do not start, and do not claim after a reconnect, while it is proven to forget.
    Require,
    /// `warn`: log it and show it in a gauge.
    Warn,
    /// `off`: do not look.
    Off,
}

/// `store.embedded`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedded {
    /// The database file; a relative path is relative to the working directory.
    pub path: PathBuf,
    /// The longest that one operation may take. Default 2 s: a commit waits for the disk.
    pub timeout: Duration,
}

/// One entry of `routes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// `[a-z0-9-]+`, unique.
    pub name: String,
    /// Only this host (without port, lower case); `None` takes every host.
    pub host: Option<String>,
    /// `path`
    pub path: PathPattern,
    /// What is verified and how events are found.
    pub provider: Provider,
    /// Where deliveries are sent.
    pub upstream: Upstream,
    /// First part of every key. Default: the route's name.
    pub namespace: String,
    /// How long a done key is remembered. Default by provider.
    pub window: Duration,
    /// How long a claim holds without renewal. Default 30 s.
    pub lease: Duration,
    /// `in_flight`
    pub in_flight: InFlight,
    /// Default `redeliver`.
    pub unknown_outcome: UnknownOutcome,
    /// Default `refuse`.
    pub store_down: StoreDown,
    /// Default `enforce`.
    pub mode: Mode,
    /// Default by provider.
    pub on_auth_failure: OnAuthFailure,
    /// Longest body in bytes. Default 4 MiB; evolution 32 MiB.
    pub max_body: u64,
    /// The answer to a duplicate.
    pub duplicate_response: DuplicateResponse,
    /// Default `split` for meta, else `whole`.
    pub batch: BatchMode,
    /// Exchanges of one delivery side by side. Default 8.
    pub batch_concurrency: usize,
    /// Methods beside GET, HEAD, OPTIONS and POST that are streamed through without a claim. Default none.
    pub pass_methods: Vec<String>,
    /// Upstream statuses of something in between that gave up. Default 502 and 504.
    pub unknown_statuses: Vec<u16>,
}

/// `routes[].path`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPattern {
    /// `/webhooks/stripe`: this path and no other.
    Exact(String),
    /// `/evo/*`, kept here as `/evo`: `/evo`, `/evo/` and all below. `/*` is kept as the empty text.
    Prefix(String),
}

/// `routes[].upstream`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Whether the URL says `https`.
    pub tls: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port; 80 or 443 where the URL has none.
    pub port: u16,
    /// `host`: the `Host` header to send. `None`: the received one.
    pub host_header: Option<String>,
    /// For name, connect and TLS together. Default 1 s.
    pub connect_timeout: Duration,
    /// From the first byte written to the final response head. Default 30 s.
    pub timeout: Duration,
}

/// `routes[].in_flight`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// How long a copy waits for the first to be settled. Default 3 s.
    pub wait: Duration,
    /// What it is answered then. Default `retry_later`.
    pub then: InFlightThen,
}

/// `routes[].in_flight.then`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlightThen {
    /// `retry_later`: 503.
    RetryLater,
    /// `accept`: 200, although the first may still fail.
    Accept,
}

/// `routes[].unknown_outcome`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownOutcome {
    /// `redeliver`: at least once.
    Redeliver,
    /// `suppress`: at most once.
    Suppress,
}

/// `routes[].store_down`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreDown {
    /// `refuse`: 503, nothing is sent.
    Refuse,
    /// `forward`: sent without a claim, and counted.
    Forward,
}

/// `routes[].mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `enforce`
    Enforce,
    /// `observe`: everything is forwarded, and what would have been done is told.
    Observe,
}

/// `routes[].on_auth_failure`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAuthFailure {
    /// `reject`: 401.
    Reject,
    /// `discard`: 200, nothing is forwarded.
    Discard,
    /// `retry_later`: 503.
    RetryLater,
}

/// `routes[].duplicate_response`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateResponse {
    /// A 2xx status. Default 200: Meta and Asaas take nothing else.
    pub status: u16,
    /// Default `{"received":true,"duplicate":true}`.
    pub body: String,
    /// Default `application/json`.
    pub content_type: String,
}

/// `routes[].batch`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchMode {
    /// `split`: each claimed event becomes a delivery of its own.
    Split,
    /// `filter`: one delivery with the other elements removed.
    Filter,
    /// `whole`: forwarded as received when anything in it is first seen.
    Whole,
}
