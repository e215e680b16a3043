//! The store as a parameter: the same tests over Redis and over the embedded one.

use std::net::SocketAddr;

use super::redis::Redis;

/// Where the gateway of a test keeps its claims.
pub enum Store {
    Redis {
        server: Redis,
        /// Further lines of the section, such as `persistence: warn`.
        lines: Vec<String>,
    },
    /// A Redis that the test keeps itself, behind this address.
    Behind(SocketAddr),
    /// A file in the gateway's own folder.
    Embedded,
}

impl Store {
    pub fn redis() -> Self {
        Self::over(Redis::start(), &[])
    }

    pub fn over(server: Redis, lines: &[&str]) -> Self {
        Self::Redis { server, lines: lines.iter().map(ToString::to_string).collect() }
    }

    /// The Redis of this store, if it has one of its own.
    pub fn as_redis(&self) -> Option<&Redis> {
        match self {
            Self::Redis { server, .. } => Some(server),
            Self::Behind(_) | Self::Embedded => None,
        }
    }

    /// The `store` section. The embedded store keeps its default time-out of 2 s, since a commit waits for the disk; a
    /// route's lease must be longer.
    pub fn section(&self) -> String {
        match self {
            Self::Redis { server, lines } => {
                let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
                format!("store:\n  redis:\n    url: {}\n    timeout: 500ms\n{lines}", server.url())
            }
            Self::Behind(address) => {
                format!("store:\n  redis:\n    url: redis://{address}/0\n    timeout: 500ms\n")
            }
            Self::Embedded => "store:\n  embedded:\n    path: ./hookonce.db\n".to_owned(),
        }
    }
}

/// Runs one test over each store, side by side.
pub fn on_both_stores(test: impl Fn(Store) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        let over_redis = scope.spawn(move || test(Store::redis()));
        let over_embedded = scope.spawn(move || test(Store::Embedded));
        let outcomes = [("redis", over_redis.join()), ("embedded", over_embedded.join())];
        let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(name, _)| *name).collect();
        assert!(failed.is_empty(), "failed over: {}", failed.join(", "));
    });
}
