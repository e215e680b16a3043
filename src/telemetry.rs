//! The log: to stderr, as text or as one JSON object per line.

use std::io::IsTerminal;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{Log, LogFormat, LogLevel};

/// Starts the log. Has no effect the second time.
pub fn start(log: Log) {
    let level = match log.level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    // Pingora's lines about single requests show their paths and queries, in which some providers carry tokens, and
    // say nothing that ours do not. What it says about listeners and services is kept.
    let targets = Targets::new()
        .with_target("hookonce", level)
        .with_target("pingora_core::services", LevelFilter::WARN)
        .with_target("pingora_core::listeners", LevelFilter::WARN)
        .with_target("pingora_core::server", LevelFilter::WARN);
    let writer = fmt::layer().with_writer(std::io::stderr);
    let layer = match log.format {
        LogFormat::Text => writer.with_target(false).with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => writer.json().flatten_event(true).with_target(false).boxed(),
    };
    // An error means that a log is running already, as in a test of several gateways in one process.
    let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
}
