//! Whether a Redis keeps what it acknowledges: read from what it says about itself in `INFO`.
//!
//! A Redis without an append-only file forgets with its process, and one that evicts forgets under load; both look
//! healthy until an event runs twice. Only what is proven counts as a fault: a Redis that may not tell (an ACL, a
//! managed service) is taken at its operator's word.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Persistence;
use crate::metrics::Metrics;

/// While a fault lasts, Redis is asked again at most this often.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A reason not to trust this Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    TooOld(String),
    Denied(String),
    NoAppendOnlyFile,
    AppendFailed,
    Evicts(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld(version) => write!(out, "this is Redis `{version}`, and 7.0 or newer is needed"),
            Self::Denied(reply) => write!(out, "Redis denies access: {reply}"),
            Self::NoAppendOnlyFile => {
                out.write_str("Redis runs without an append-only file and forgets keys when it restarts")
            }
            Self::AppendFailed => out.write_str("the last write to Redis' append-only file failed"),
            Self::Evicts(policy) => write!(out, "Redis evicts keys when it is full (`maxmemory-policy {policy}`)"),
        }
    }
}

impl Fault {
    /// What to do about it.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::TooOld(_) => "upgrade Redis, or use `store.embedded`",
            Self::Denied(_) => {
                "check `store.redis.password`; the user needs `EVALSHA`, `SCRIPT LOAD`, `INFO` and the commands on keys"
            }
            Self::NoAppendOnlyFile => "set `appendonly yes` in Redis, or `store.redis.persistence: warn` here",
            Self::AppendFailed => "free space on the disk of Redis, or see its log for why it cannot write",
            Self::Evicts(_) => "set `maxmemory-policy noeviction` in Redis, or `store.redis.persistence: warn` here",
        }
    }
}

/// What `INFO` told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Set if this server cannot work as a store at all.
    pub(super) too_old: Option<Fault>,
    /// Why it would forget; empty if no such reason is proven.
    pub(super) faults: Vec<Fault>,
    /// Whether it told enough to prove that it keeps everything.
    pub(super) complete: bool,
    /// Whether it follows another server, and takes no writes.
    pub(super) is_replica: bool,
}

impl Report {
    /// `None`: Redis did not say anything.
    pub(super) fn read(info: Option<&str>) -> Self {
        let value = |name: &str| {
            let lines = info.unwrap_or_default().lines();
            lines.filter_map(|line| line.trim_end().split_once(':')).find(|(key, _)| *key == name).map(|(_, it)| it)
        };
        let major = value("redis_version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        let too_old = major
            .is_some_and(|major| major < 7)
            .then(|| Fault::TooOld(value("redis_version").unwrap_or_default().to_owned()));

        // While it reads its append-only file, a Redis says that it has none.
        let is_loading = ["loading", "async_loading"].into_iter().any(|name| value(name) == Some("1"));
        let append_only = value("aof_enabled").filter(|_| !is_loading);
        let memory_limit = value("maxmemory");
        let policy = value("maxmemory_policy");
        let mut faults = Vec::new();
        if append_only == Some("0") {
            faults.push(Fault::NoAppendOnlyFile);
        } else if value("aof_last_write_status").is_some_and(|status| status != "ok") {
            faults.push(Fault::AppendFailed);
        }
        if let Some(policy) = policy
            && policy != "noeviction"
            && memory_limit.is_some_and(|limit| limit != "0")
        {
            faults.push(Fault::Evicts(policy.to_owned()));
        }
        let complete = append_only.is_some() && (memory_limit == Some("0") || policy.is_some());
        Self { too_old, faults, complete, is_replica: value("role") == Some("slave") }
    }

    /// All faults in one line, each with its way out.
    pub(super) fn fault(&self) -> Option<String> {
        let faults: Vec<_> = self.faults.iter().map(|fault| format!("{fault} (hint: {})", fault.hint())).collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// What is known of this Redis' durability now, and what follows from it.
pub(super) struct Durability {
    policy: Persistence,
    metrics: Arc<Metrics>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    fault: Option<String>,
    asked: Option<Instant>,
}

/// Whether keys may be claimed.
pub(super) enum Verdict {
    Claim,
    /// It would forget, for this reason.
    Refuse(String),
    /// It would have forgotten, and has not been asked for a while: whoever gets this asks.
    AskAgain,
}

impl Durability {
    pub(super) fn new(policy: Persistence, metrics: Arc<Metrics>) -> Self {
        Self { policy, metrics, known: Mutex::default() }
    }

    /// Takes in what Redis says of itself, and tells the operator when that has changed.
    /// Answers what [`Health::durable`](crate::store::Health) is then.
    pub(super) fn learn(&self, report: &Report) -> Option<bool> {
        if self.policy == Persistence::Off {
            return None;
        }
        let fault = report.fault();
        let durable = if fault.is_some() { Some(false) } else { report.complete.then_some(true) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let first = known.asked.is_none();
        match (&known.fault, &fault) {
            (before, Some(fault)) if before.as_ref() != Some(fault) => {
                tracing::warn!(fault, "the store would forget");
            }
            (Some(_), None) => tracing::info!("the store is durable again"),
            (None, None) if first && !report.complete => {
                tracing::warn!("Redis does not tell whether it persists, and is taken to do so");
            }
            _ => {}
        }
        *known = Known { fault, asked: Some(Instant::now()) };
        drop(known);
        self.metrics.set_store_durable(durable == Some(true));
        durable
    }

    pub(super) fn verdict(&self) -> Verdict {
        if self.policy != Persistence::Require {
            return Verdict::Claim;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fault) = &known.fault else { return Verdict::Claim };
        if known.asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
            return Verdict::Refuse(fault.clone());
        }
        // Marked before the asking, so that one caller asks and the others do not wait for it.
        known.asked = Some(Instant::now());
        Verdict::AskAgain
    }

    /// The fault that keeps the process from starting.
    pub(super) fn forbids_start<'a>(&self, report: &'a Report) -> &'a [Fault] {
        if self.policy == Persistence::Require { &report.faults } else { &[] }
    }

    pub(super) fn fault(&self) -> Option<String> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).fault.clone()
    }
}

#[cfg(test)]
mod tests;
