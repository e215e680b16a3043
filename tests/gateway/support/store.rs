//! The store as a parameter: the same tests over Redis and over the embedded one.

use super::redis::Redis;

/// Where the gateway of a test keeps its claims.
pub enum Store {
    Redis(Redis),
    /// A file in the gateway's own folder.
    Embedded,
}

impl Store {
    pub fn redis() -> Self {
        Self::Redis(Redis::start())
    }

    /// The Redis behind it; `None` for the embedded store.
    pub fn as_redis(&self) -> Option<&Redis> {
        match self {
            Self::Redis(redis) => Some(redis),
            Self::Embedded => None,
        }
    }

    /// The `store` section. The time-outs are equal, so that one short lease suits both.
    pub fn section(&self) -> String {
        match self {
            Self::Redis(redis) => format!("store:\n  redis:\n    url: {}\n    timeout: 500ms\n", redis.url()),
            Self::Embedded => "store:\n  embedded:\n    path: ./hookonce.db\n    timeout: 500ms\n".to_owned(),
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
