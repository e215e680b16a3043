//! The log: to stderr, as text or as one JSON object per line.

use std::io::IsTerminal;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{Log, LogFormat, LogLevel};

/// Starts the log. Has no effect the second time. Of libraries only the warnings of `others` are shown: their lines
/// about single requests show paths and queries, in which some providers carry tokens.
pub fn start(log: Log, others: &[&'static str]) {
    let level = match log.level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let targets = Targets::new()
        .with_target("hookonce", level)
        .with_targets(others.iter().map(|other| (*other, LevelFilter::WARN)));
    let writer = fmt::layer().with_writer(std::io::stderr);
    let layer = match log.format {
        LogFormat::Text => writer.with_target(false).with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => writer.json().flatten_event(true).with_target(false).boxed(),
    };
    // An error means that a log is running already, as in a test of several gateways in one process.
    let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
}
