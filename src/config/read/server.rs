//! `server`: the process as a whole.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::config::document::{Fields, Node};
use crate::config::schema::{Log, LogDeliveries, LogFormat, LogKeys, LogLevel, Readiness, Server};
use crate::config::values;

/// More worker threads than any machine has use for.
const MOST_THREADS: usize = 1024;

const LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];
const FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];
const DELIVERIES: &[(&str, LogDeliveries)] =
    &[("all", LogDeliveries::All), ("exceptions", LogDeliveries::Exceptions), ("off", LogDeliveries::Off)];
const KEYS: &[(&str, LogKeys)] = &[("full", LogKeys::Full), ("hashed", LogKeys::Hashed)];
const READINESS: &[(&str, Readiness)] = &[("process", Readiness::Process), ("store", Readiness::Store)];

pub(super) fn read(root: &mut Fields<'_>) -> Server {
    let millisecond = Duration::from_millis(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    root.section("server", |fields| Server {
        listen: fields.or("listen", SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8080), address),
        admin: fields.or("admin", SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090), address),
        threads: fields.or("threads", cores, |node| node.read(values::number(1..=MOST_THREADS))),
        shutdown_grace: fields
            .or("shutdown_grace", Duration::from_secs(30), |node| node.read(values::duration(Duration::ZERO))),
        body_budget: fields.or("body_budget", 64 << 20, |node| node.read(values::size)),
        body_timeout: fields
            .or("body_timeout", Duration::from_secs(10), |node| node.read(values::duration(millisecond))),
        log: fields.section("log", |log| Log {
            level: log.or("level", LogLevel::Info, |node| node.read(values::word(LEVELS))),
            format: log.or("format", LogFormat::Text, |node| node.read(values::word(FORMATS))),
            deliveries: log.or("deliveries", LogDeliveries::All, |node| node.read(values::word(DELIVERIES))),
            keys: log.or("keys", LogKeys::Full, |node| node.read(values::word(KEYS))),
        }),
        readiness: fields.or("readiness", Readiness::Process, |node| node.read(values::word(READINESS))),
    })
}

fn address(node: Node<'_>) -> Option<SocketAddr> {
    node.read(|text| {
        text.parse().map_err(|_| "must be an address and a port, such as `0.0.0.0:8080` or `[::1]:8080`".to_owned())
    })
}
