//! What every store must do (`promises`), and what each must do about its own kinds of trouble.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test ends where it cannot go on")]

#[path = "store/asking.rs"]
mod asking;
#[path = "store/embedded_troubles.rs"]
mod embedded_troubles;
#[path = "store/promises.rs"]
mod promises;
#[path = "store/redis_fitness.rs"]
mod redis_fitness;
#[path = "store/redis_outages.rs"]
mod redis_outages;
#[path = "store/redis_server.rs"]
mod redis_server;
#[path = "store/redis_wire.rs"]
mod redis_wire;
#[path = "store/round_trips.rs"]
mod round_trips;

use std::sync::Arc;

use hookonce::config;
use hookonce::metrics::Metrics;
use hookonce::store::{self, ClaimStore, OpenError};

use redis_server::RedisServer;

/// Opens a store as the gateway does: with its time-out and metrics around it.
async fn open(config: config::Store) -> Result<Arc<dyn ClaimStore>, OpenError> {
    store::open(&config, Arc::new(Metrics::new("test").unwrap())).await
}

async fn open_redis(config: config::Redis) -> Arc<dyn ClaimStore> {
    open(config::Store::Redis(config)).await.unwrap()
}

async fn keeps_its_promises(store: &dyn ClaimStore) {
    for (name, promise) in promises::ALL {
        println!("{name}");
        promise(store).await;
    }
}

#[tokio::test]
async fn redis_keeps_its_promises() {
    let server = RedisServer::start(&[]);
    keeps_its_promises(&*open_redis(server.config()).await).await;
}

#[tokio::test]
async fn the_embedded_store_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(embedded_troubles::config_for(&folder.path().join("keys.db"))).await.unwrap();
    keeps_its_promises(&*store).await;
}
