//! hookonce: a reverse proxy for webhooks that lets each event reach its handler once.

pub mod claim;
pub mod config;
pub mod event;
pub mod metrics;
pub mod provider;
pub mod store;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
