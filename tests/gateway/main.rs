//! What a running gateway promises: real processes, real bytes on real sockets.
//!
//! One file for each theme; `support` is the kit they share.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test ends where it cannot go on, and says why")]

mod admin_metrics_logs;
mod authenticity;
mod batches;
mod bodies;
mod commands;
mod commands_diff;
mod commands_keys;
mod commands_stress;
mod config_mistakes;
mod disconnects;
mod first_and_duplicate;
mod kit;
mod methods_and_routes;
mod observe;
mod parallel;
mod reload;
mod stopping;
mod store_faults;
mod store_outage;
mod support;
mod suppress;
mod survival;
mod unkeyed;
mod upstream_failures;
mod waiting;
