//! The audit line of `keys forget`: who, where and when, in the format of the gateway's own log.

use std::os::unix::fs::MetadataExt as _;

use hookonce::config::{Log, LogLevel};
use hookonce::telemetry;

/// Starts the log. The line is written whatever level the gateway logs at.
pub fn start(log: Log) {
    telemetry::start(Log { level: LogLevel::Info, ..log }, &[]);
}

/// One line. `was` is what the store said of the key.
pub fn tell(key: &str, result: &str, was: Option<&str>, force: bool) {
    let (user, host) = (user(), host());
    tracing::warn!(target: "hookonce", user, host, key, force, result, was, "audit: a key was to be forgotten");
}

/// The name that the environment gives, which anyone can set, and the number that the system gives.
fn user() -> String {
    let name = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let uid = std::fs::metadata("/proc/self").map_or_else(|_| "unknown".to_owned(), |own| own.uid().to_string());
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}
