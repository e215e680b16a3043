//! What is told about a delivery: one line in the log, and its counts.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::ServedRoute;
use crate::claim::{Record, Recorded};
use crate::config::{Log, LogDeliveries, LogKeys};
use crate::event::EventKey;
use crate::metrics::{DeliveryResult, RouteMetrics};

/// At most this many keys stand in one line.
const MOST_KEYS: usize = 10;

/// What one line says.
pub(super) struct Line {
    pub(super) result: DeliveryResult,
    /// The whole `hookonce-result`.
    pub(super) label: Cow<'static, str>,
    /// Empty where no line is wanted.
    pub(super) keys: Vec<EventKey>,
    /// When a duplicate was first delivered.
    pub(super) first_seen: Option<Record>,
    /// What the keys identify, where there was a duplicate: the answer to "why was this one not sent?".
    pub(super) identifies: Option<&'static str>,
    pub(super) upstream_status: Option<u16>,
    pub(super) causes: Vec<String>,
    /// Whether anything went otherwise than a plain first or duplicate.
    pub(super) exceptional: bool,
}

impl Line {
    /// The line of a delivery that touched no key.
    pub(super) fn unclaimed(result: DeliveryResult, cause: Option<String>) -> Self {
        Self {
            result,
            label: Cow::Borrowed(result.label()),
            keys: Vec::new(),
            first_seen: None,
            identifies: None,
            upstream_status: None,
            causes: cause.into_iter().collect(),
            exceptional: result != DeliveryResult::Passed,
        }
    }
}

/// Counts a delivery and logs it. `sent` is the status that the provider got; `None`: it had gone.
pub(super) fn tell(
    log: Log,
    route: Option<&Arc<ServedRoute>>,
    unrouted: &RouteMetrics,
    line: &Line,
    sent: Option<u16>,
    arrived: Instant,
) {
    let took = arrived.elapsed();
    route.map_or(unrouted, |route| &route.metrics).answered(line.result, took);
    let wanted = match log.deliveries {
        LogDeliveries::All => true,
        LogDeliveries::Exceptions => line.exceptional || sent.is_none(),
        LogDeliveries::Off => false,
    };
    if wanted {
        log_line(log.keys, route.map_or("-", |route| route.config.name.as_str()), line, sent, took);
    }
}

/// A key as it may stand in the log.
pub(super) fn shown(keys: LogKeys, key: &EventKey) -> Cow<'_, str> {
    match keys {
        LogKeys::Full => Cow::Borrowed(key.as_str()),
        LogKeys::Hashed => Cow::Owned(key.hashed()),
    }
}

fn log_line(keys: LogKeys, route: &str, line: &Line, sent: Option<u16>, took: Duration) {
    let shown: Vec<_> = line.keys.iter().take(MOST_KEYS).map(|key| shown(keys, key)).collect();
    let mut keys = shown.join(" ");
    if line.keys.len() > MOST_KEYS {
        keys.push_str(&format!(" … {} more", line.keys.len() - MOST_KEYS));
    }
    let status = sent.map_or_else(|| "gone".to_owned(), |status| status.to_string());
    let cause = line.causes.join("; ");
    let milliseconds = (took.as_secs_f64() * 1_000_000.0).round() / 1_000.0;
    let first_seen = line.first_seen.map(|Record { at, result }| {
        let at =
            at.map_or_else(|| "at an unknown time".to_owned(), |at| humantime::format_rfc3339_millis(at).to_string());
        match result {
            Recorded::Delivered(status) => format!("{at} ({status})"),
            Recorded::Unknown => format!("{at} (outcome unknown)"),
        }
    });
    let first_seen = first_seen.as_deref();
    let upstream_status = line.upstream_status;
    let identifies = line.identifies;
    let keys = (!keys.is_empty()).then_some(keys.as_str());
    let cause = (!cause.is_empty()).then_some(cause.as_str());
    let result = &*line.label;
    if line.exceptional {
        warn!(route, result, status, keys, upstream_status, first_seen, identifies, cause, milliseconds, "delivery");
    } else {
        info!(route, result, status, keys, upstream_status, first_seen, identifies, cause, milliseconds, "delivery");
    }
}
