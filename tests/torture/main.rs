//! The fault machine: two gateways on one Redis, and everything goes wrong at once.
//!
//! [`world`] runs them; [`senders`] behave like providers, [`handler`] like a handler on bad days, [`link`] like a bad
//! network, and [`schedule`] says what goes wrong when. All of it is written down in a [`history`], to which Redis adds
//! its own ([`ledger`]); the [`checker`] then looks for anything that the gateway promises and did not keep.
//!
//! `make torture` runs it for ten minutes. `SEED` chooses the schedule, which is printed otherwise; `TORTURE_SECONDS` says how
//! long faults happen, and `FSYNC=everysec` lets Redis lose power instead of being killed, and only tells what is lost.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test ends where it cannot go on, and says why")]

mod checker;
mod figures;
mod handler;
mod history;
mod ledger;
mod link;
mod run;
mod schedule;
mod senders;
#[allow(dead_code, reason = "the kit is the gateway's tests', and not all of it is needed here")]
#[path = "../gateway/support/mod.rs"]
mod support;
mod world;

use std::time::Duration;

use self::world::Sync;

/// Long enough for every kind of fault to happen, short enough for `cargo test`.
const SHORT: u64 = 40;

#[test]
fn nothing_is_lost_and_nothing_is_doubled_whatever_goes_wrong() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.is_empty())
            .map(|value| value.parse::<u64>().unwrap_or_else(|_| panic!("`{name}` must be a number")))
    };
    let seed = number("SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let suffering = Duration::from_secs(number("TORTURE_SECONDS").unwrap_or(SHORT));
    let sync = match std::env::var("FSYNC").as_deref() {
        Ok("everysec") => Sync::EverySecond,
        _ => Sync::Always,
    };
    eprintln!("SEED={seed}, faults for {} s", suffering.as_secs());
    let outcome = run::run(seed, suffering, sync);
    eprintln!("{}", outcome.report);
    assert!(sync == Sync::EverySecond || outcome.violations == 0, "{} violations with SEED={seed}", outcome.violations);
}
