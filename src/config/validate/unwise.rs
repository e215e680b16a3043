//! What works, but seldom as one wants it: the warnings.

use std::time::Duration;

use super::{At, BatchMode, Config, ProviderKind, Route, Store, StoreDown, Verify};
use crate::config::schema::{InFlightThen, KeySource, Mode, Persistence};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn process(at: &At<'_>, config: &Config) {
    match &config.store {
        Store::Redis(redis) => match redis.persistence {
            Persistence::Require => {}
            Persistence::Warn | Persistence::Off => at.warn(
                &["store.redis.persistence"],
                "a Redis that forgets lets duplicates through, and nothing stops it from that here",
            ),
        },
        Store::Embedded(_) => {
            if !config.server.listen.ip().is_loopback() {
                at.warn(
                    &["store.embedded", "server.listen", "store"],
                    "is not shared: a second replica would know nothing of this one's events (more than one needs \
                     `redis`)",
                );
            }
        }
    }
}

pub(super) fn route(at: &At<'_>, before: &[Route], route: &Route) {
    authenticity(at, route);
    if route.in_flight.then == InFlightThen::Accept {
        at.warn(&["in_flight.then"], "`accept` loses an event whose first copy fails after this answer");
    }
    if route.store_down == StoreDown::Forward {
        at.warn(&["store_down"], "`forward` lets duplicates through while the store is down");
    }
    if route.mode == Mode::Observe {
        at.warn(&["mode"], "`observe` forwards every duplicate: it only tells what would have been done");
    }
    if let Some(other) = before.iter().position(|other| shares_keys(other, route)) {
        let message = format!("is the one of `routes[{other}]` too: an event that reaches both is sent on only once");
        at.warn(&["namespace", "name"], message);
    }
    times(at, route);
    key(at, route);
}

fn shares_keys(other: &Route, route: &Route) -> bool {
    other.provider.kind != ProviderKind::None && other.namespace == route.namespace
}

fn authenticity(at: &At<'_>, route: &Route) {
    if route.provider.verify != Verify::Off {
        return;
    }
    at.warn(
        &["verify", "provider"],
        "`off` takes deliveries from anyone: who knows the address can send events, and use up the keys of true ones",
    );
    if route.provider.kind == ProviderKind::Generic && route.batch != BatchMode::Whole {
        at.warn(
            &["batch", "verify"],
            "cuts bodies, and a handler that verifies signatures by itself refuses the parts",
        );
    }
    // A meta route that cuts its batches signs the parts with it.
    let signs = route.provider.kind == ProviderKind::Meta && route.batch != BatchMode::Whole;
    if !route.provider.secrets.is_empty() && !signs {
        at.warn(&["secret", "verify"], "is not used while `verify` is `off`");
    }
}

fn times(at: &At<'_>, route: &Route) {
    let kind = route.provider.kind;
    // How long a provider repeats a delivery that failed; where it does not say, nothing is claimed here.
    let retries = match kind {
        ProviderKind::Stripe => Some(3 * DAY),
        ProviderKind::Meta => Some(7 * DAY),
        ProviderKind::Evolution => Some(Duration::from_secs(30 * 60)),
        _ => None,
    };
    if let Some(retries) = retries.filter(|retries| route.window < *retries) {
        let retries = humantime::format_duration(retries);
        let message =
            format!("is shorter than {} repeats a delivery ({retries}): later copies are sent on", kind.label());
        at.warn(&["window", "provider"], message);
    }
    // Evolution gives a webhook 30 seconds (WEBHOOK_REQUEST_TIMEOUT_MS); the others do not say.
    let patience = Duration::from_secs(30);
    if kind == ProviderKind::Evolution && route.upstream.timeout > patience {
        let patience = humantime::format_duration(patience);
        let message = format!("is longer than {} waits for an answer ({patience}), so it will repeat", kind.label());
        at.warn(&["upstream.timeout", "provider"], message);
    }
}

fn key(at: &At<'_>, route: &Route) {
    for (index, part) in route.provider.key.iter().flatten().enumerate() {
        let message = match &part.source {
            KeySource::Header(name) if is_of_the_transport(name) => {
                "belongs to one delivery, not to the event: a repeated delivery would get another key"
            }
            KeySource::Body(path) | KeySource::Item(path) if changes_with_time(path) => {
                "looks like a time or a counter: where a repeated delivery has another one, it gets another key \
                 (`hookonce diff` compares two deliveries)"
            }
            _ => continue,
        };
        at.warn(&[&format!("key[{index}]"), "key"], message);
    }
}

/// Headers that senders and proxies set anew for each request.
fn is_of_the_transport(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "age",
        "authorization",
        "cf-connecting-ip",
        "cf-ray",
        "content-length",
        "date",
        "forwarded",
        "host",
        "traceparent",
        "tracestate",
        "user-agent",
        "via",
        "x-amzn-trace-id",
        "x-correlation-id",
        "x-real-ip",
        "x-request-id",
    ];
    const BEGINNINGS: [&str; 4] = ["x-b3-", "x-forwarded-", "x-hub-signature", "x-retry"];
    const ENDINGS: [&str; 6] = ["signature", "timestamp", "-retry-num", "-retry-reason", "-retry-count", "-attempt"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&&*name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Fields that by their name tell a time or count attempts.
fn changes_with_time(path: &str) -> bool {
    const NAMES: [&str; 20] = [
        "attempt",
        "attempts",
        "created",
        "createdat",
        "creationdate",
        "date",
        "datecreated",
        "datetime",
        "deliveredat",
        "deliveryattempt",
        "occurredat",
        "pendingwebhooks",
        "retries",
        "retrycount",
        "sentat",
        "time",
        "timestamp",
        "ts",
        "updated",
        "updatedat",
    ];
    let last = path.rsplit(['.', '[']).next().unwrap_or_default();
    let name: String =
        last.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect();
    NAMES.contains(&&*name)
}
