//! hookonce stands in front of a webhook handler that nobody can modify, and makes each event reach it once.
//!
//! Providers deliver at least once: they repeat after a time-out, an error, a cut connection, days later, by a person's
//! click. hookonce verifies a delivery, finds the events in it, claims each event's key in a durable store, forwards
//! only what was not seen, settles by what the handler answered, and answers 200 for what is done.
//!
//! # A delivery's way
//!
//! 1. [`server`] has assembled the process from a [`config::Config`]; `proxy/workers` accepts the connection for the
//!    [`proxy::Gateway`] and gives it to one of its threads, where `proxy/door` takes its requests, one after the other.
//! 2. `proxy/intake` finds the [`route`] (in `proxy/routes`) and checks the method; `proxy/body` reads the body within its
//!    limits; the route's [`provider::Provider`] says whether the delivery is authentic and which [`event`]s are in it.
//!    What is no delivery is streamed through by pingora's own proxy (`proxy/passing`).
//! 3. `proxy/forward` claims every event's key at once in the [`store::ClaimStore`]. Copies that are in
//!    flight in this process are known from `proxy/inflight`; `proxy/lease` renews what is claimed.
//! 4. [`dedup::plan`] decides what is sent, in how many exchanges, and what is waited for (`proxy/wait`).
//! 5. `proxy/exchange` has each exchange with the upstream (`proxy/request` writes it, `proxy/upstream` sends it); it
//!    ends in one of the four [`claim::Outcome`]s.
//! 6. [`dedup::verdict`] says what the outcome means for the claim; `proxy/settle` writes it down, and
//!    `proxy/unsettled` goes on where the store is away.
//! 7. `proxy/conclude` makes one answer of how all events ended, `proxy/respond` writes it, `proxy/journal` tells about
//!    it: one line in the log ([`telemetry`]), and the counters that [`admin`] serves ([`metrics`]).
//!
//! `cli` (in the binary) is what a person types: `run`, `check`, `explain`, and for the day of trouble `keys`, `stress`,
//! `diff`, `echo` and `schema`.
//!
//! While the process runs, `server/reload` reads the configuration anew when its files change. Only routes are replaced;
//! a delivery keeps the one it came in by to its end.
//!
//! # What must always hold
//!
//! 1. As long as the store keeps its data, no exchange for a key begins while another owner's lease holds, over all
//!    replicas.
//! 2. Likewise, none begins within the window after a recorded `delivered`; and a gateway that knows of a delivery it
//!    could not record yet answers its copies as duplicates.
//! 3. A provider gets a 2xx only when every event of its delivery is done, or delivered with the record being written.
//!    Never for a claim that is still open.
//! 4. No key is read or written before the delivery's authenticity is verified.
//! 5. What is forwarded whole reaches the upstream with the received bytes and headers unchanged. Where a batch is cut,
//!    every signature header present is renewed.
//! 6. An event whose key cannot be built, and content that is not understood, is forwarded, counted and logged, never
//!    dropped.
//! 7. One event's failure never loses, repeats or delays for good another event of its batch.
//! 8. The exchange and its settling do not depend on the provider's connection.
//! 9. A store that does not answer is "unavailable", never "duplicate" and never "first seen".
//!
//! Exceptions, only where the configuration or a person says so: to 1 and 2 `batch: whole`, `mode: observe`,
//! `store_down: forward` and `keys forget`; to 3 `in_flight: accept` and `on_auth_failure: discard`. Events without a key
//! have no memory: every copy is sent.
//!
//! # Who may import whom
//!
//! `claim` and `metrics` use `event`; `provider` uses `config` and `event`; `route` uses those and `provider`; `store`
//! uses `config`, `event`, `claim` and `metrics`; `dedup` uses `event` and `claim` and does no I/O; `proxy` uses all of
//! these; `admin` uses `metrics` and `store`; `telemetry` uses `config`; `server` assembles them; `cli` uses all but
//! `proxy`. Pingora's types stay
//! in `proxy`, `admin` and `server`, redis' in `store/redis`, serde_yaml's in `config`, clap's in `cli`.
//! `tests/architecture.rs` holds this.
//!
//! # To add
//!
//! - a provider: one file in `provider/`, one arm in [`provider::build`], one variant of [`config::ProviderKind`], a
//!   folder of fixtures;
//! - a store: one file in `store/`, one arm in [`store::open`] and in [`store::open_beside`], one line in the conformance
//!   suite;
//! - a key of the configuration: its section in `config/read`, and `conf/hookonce.schema.json`.

pub mod admin;
pub mod claim;
pub mod config;
pub mod dedup;
pub mod event;
pub mod metrics;
pub mod provider;
pub mod proxy;
pub mod route;
pub mod server;
pub mod store;
pub mod telemetry;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
