//! One entry of `routes`.

use std::time::Duration;

use http::{HeaderValue, Method};

use crate::config::document::{Fields, Node};
use crate::config::schema::{
    BatchMode, DuplicateResponse, InFlight, InFlightThen, Mode, OnAuthFailure, PathPattern, ProviderKind, Route,
    StoreDown, UnknownOutcome,
};
use crate::config::values;

use super::{provider, upstream};

const PROVIDERS: &[(&str, ProviderKind)] = &[
    ("stripe", ProviderKind::Stripe),
    ("hotmart", ProviderKind::Hotmart),
    ("meta", ProviderKind::Meta),
    ("evolution", ProviderKind::Evolution),
    ("marcha", ProviderKind::Marcha),
    ("generic", ProviderKind::Generic),
    ("none", ProviderKind::None),
];
const IN_FLIGHT_THEN: &[(&str, InFlightThen)] =
    &[("retry_later", InFlightThen::RetryLater), ("accept", InFlightThen::Accept)];
const UNKNOWN_OUTCOMES: &[(&str, UnknownOutcome)] =
    &[("redeliver", UnknownOutcome::Redeliver), ("suppress", UnknownOutcome::Suppress)];
const STORE_DOWN: &[(&str, StoreDown)] = &[("refuse", StoreDown::Refuse), ("forward", StoreDown::Forward)];
const MODES: &[(&str, Mode)] = &[("enforce", Mode::Enforce), ("observe", Mode::Observe)];
const ON_AUTH_FAILURE: &[(&str, OnAuthFailure)] = &[
    ("reject", OnAuthFailure::Reject),
    ("discard", OnAuthFailure::Discard),
    ("retry_later", OnAuthFailure::RetryLater),
];
const BATCH_MODES: &[(&str, BatchMode)] =
    &[("split", BatchMode::Split), ("filter", BatchMode::Filter), ("whole", BatchMode::Whole)];

/// All that a route without claims can say.
const PASSED_THROUGH: [&str; 5] = ["name", "host", "path", "provider", "upstream"];

/// More exchanges side by side than a delivery of Meta has updates make no sense.
const MOST_CONCURRENT: usize = 1000;

/// Below this, a lease ends by a short pause of the machine alone.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn read(node: &Node<'_>) -> Route {
    node.fields(|fields| {
        let name = fields.require("name").and_then(|node| node.read_text(values::name)).unwrap_or_default();
        let host = fields.take("host").and_then(|node| node.read_text(host));
        let path = fields.require("path").and_then(|node| node.read_text(path));
        let said_kind = fields.require("provider").and_then(|node| node.read(values::word(PROVIDERS)));
        let kind = said_kind.unwrap_or(ProviderKind::Generic);
        let upstream = upstream::read(fields.require("upstream"));
        let route = Route {
            namespace: fields.or("namespace", name.clone(), |node| node.read_text(values::key_word)),
            name,
            host,
            path: path.unwrap_or(PathPattern::Exact(String::new())),
            provider: provider::read(fields, kind),
            upstream,
            window: fields
                .or("window", default_window(kind), |node| node.read(values::duration(Duration::from_millis(1)))),
            lease: fields.or("lease", Duration::from_secs(30), |node| node.read(values::duration(SHORTEST_LEASE))),
            in_flight: fields.section("in_flight", in_flight),
            unknown_outcome: fields
                .or("unknown_outcome", UnknownOutcome::Redeliver, |node| node.read(values::word(UNKNOWN_OUTCOMES))),
            store_down: fields.or("store_down", StoreDown::Refuse, |node| node.read(values::word(STORE_DOWN))),
            mode: fields.or("mode", Mode::Enforce, |node| node.read(values::word(MODES))),
            on_auth_failure: fields
                .or("on_auth_failure", default_on_auth_failure(kind), |node| node.read(values::word(ON_AUTH_FAILURE))),
            max_body: fields.or("max_body", default_max_body(kind), |node| node.read(values::size)),
            duplicate_response: fields.section("duplicate_response", duplicate_response),
            batch: fields.or("batch", default_batch(kind), |node| node.read(values::word(BATCH_MODES))),
            batch_concurrency: fields.or("batch_concurrency", 8, |node| node.read(values::number(1..=MOST_CONCURRENT))),
            pass_methods: fields.or("pass_methods", Vec::new(), |node| all(&node, |item| item.read_text(method))),
            unknown_statuses: fields
                .or("unknown_statuses", vec![502, 504], |node| all(&node, |item| item.read(values::number(300..=599)))),
        };
        if said_kind == Some(ProviderKind::None) {
            refuse_claim_keys(fields);
        }
        route
    })
}

/// Longer than the provider's longest retry schedule, with room for it to be late.
fn default_window(kind: ProviderKind) -> Duration {
    match kind {
        ProviderKind::Meta => 8 * DAY,
        ProviderKind::Generic => 15 * DAY,
        _ => 7 * DAY,
    }
}

/// Hotmart switches a URL off that answers errors, and to Evolution a 401 is final.
fn default_on_auth_failure(kind: ProviderKind) -> OnAuthFailure {
    match kind {
        ProviderKind::Hotmart => OnAuthFailure::Discard,
        ProviderKind::Evolution => OnAuthFailure::RetryLater,
        _ => OnAuthFailure::Reject,
    }
}

/// Evolution sends media inside the body.
fn default_max_body(kind: ProviderKind) -> u64 {
    if kind == ProviderKind::Evolution { 32 << 20 } else { 4 << 20 }
}

fn default_batch(kind: ProviderKind) -> BatchMode {
    if kind == ProviderKind::Meta { BatchMode::Split } else { BatchMode::Whole }
}

fn in_flight(fields: &mut Fields<'_>) -> InFlight {
    InFlight {
        wait: fields.or("wait", Duration::from_secs(3), |node| node.read(values::duration(Duration::ZERO))),
        then: fields.or("then", InFlightThen::RetryLater, |node| node.read(values::word(IN_FLIGHT_THEN))),
    }
}

fn duplicate_response(fields: &mut Fields<'_>) -> DuplicateResponse {
    let status = fields.or("status", 200, |node| node.read(values::number(200..=299)));
    // HTTP lets no body follow these.
    let is_bare = matches!(status, 204 | 205);
    let default = if is_bare { "" } else { r#"{"received":true,"duplicate":true}"# };
    let body = fields.or("body", default.to_owned(), |node| {
        node.read_text(|text| match text {
            "" => Ok(String::new()),
            _ if is_bare => Err(format!("must be empty: an answer of {status} has no body")),
            _ => Ok(text.to_owned()),
        })
    });
    let content_type = fields.or("content_type", "application/json".to_owned(), |node| {
        node.read_text(|text| match HeaderValue::from_str(text) {
            Ok(_) if text.contains('/') => Ok(text.to_owned()),
            _ => Err("must be a media type, such as `application/json`".to_owned()),
        })
    });
    DuplicateResponse { status, body, content_type }
}

/// Every element of a list, or nothing where one of them is wrong.
fn all<'a, T>(node: &Node<'a>, read: impl Fn(&Node<'a>) -> Option<T>) -> Option<Vec<T>> {
    node.items().iter().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn method(text: &str) -> Result<String, String> {
    match text {
        "GET" | "HEAD" | "OPTIONS" | "POST" => Err("is taken anyway: list only other methods".to_owned()),
        "CONNECT" => Err("cannot be passed on".to_owned()),
        _ if Method::from_bytes(text.as_bytes()).is_ok() && text.to_ascii_uppercase() == text => Ok(text.to_owned()),
        _ => Err("must be a method in capitals, such as `PUT`".to_owned()),
    }
}

fn host(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_address = || {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
    };
    if (!text.is_empty() && text.bytes().all(is_name)) || is_address() {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("must be one host, without a scheme, a port and `*`".to_owned())
    }
}

/// A path that stays as it is under normalisation: only such paths are ever matched.
fn path(text: &str) -> Result<PathPattern, String> {
    if !text.starts_with('/') {
        return Err("must start with `/`".to_owned());
    }
    let (path, is_prefix) = match text.strip_suffix("/*") {
        Some(path) => (path, true),
        None => (text, false),
    };
    if path.contains('*') {
        return Err("`*` can only stand at the end, after a `/`".to_owned());
    }
    let allowed = |byte: u8| byte.is_ascii_graphic() && !br#"?#\"<>^`{|}"#.contains(&byte);
    if !path.bytes().all(allowed) {
        return Err("must be a path as it stands in a URL: no query, and other characters percent-encoded".to_owned());
    }
    if path.contains("//")
        || (is_prefix && path.ends_with('/'))
        || path.split('/').any(|part| part == "." || part == "..")
    {
        return Err("must be normalised: without `//`, `/./` and `/../`".to_owned());
    }
    if !path.split('%').skip(1).all(is_needed_encoding) {
        return Err("must be normalised: `%` encodes only what has to be, in capitals, and never a slash".to_owned());
    }
    Ok(if is_prefix { PathPattern::Prefix(path.to_owned()) } else { PathPattern::Exact(path.to_owned()) })
}

/// Whether the two digits that follow a `%` stand for something other than a slash, a backslash and what needs none.
fn is_needed_encoding(after: &str) -> bool {
    let Some(digits) = after.get(..2) else { return false };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/\\".contains(&byte);
    digits.bytes().all(|digit| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit))
        && u8::from_str_radix(digits, 16).is_ok_and(|byte| !is_plain(byte))
}

fn refuse_claim_keys(fields: &Fields<'_>) {
    for name in fields.taken().filter(|name| !PASSED_THROUGH.contains(name)) {
        fields.problem_at(name, "says nothing with `provider: none`, which streams everything through");
    }
}
