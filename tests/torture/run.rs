//! One run: the world is started, suffers, is healed and comes to rest; then its history is read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::checker;
use super::figures::{Figures, account};
use super::history::Event;
use super::ledger;
use super::schedule::{LANES, Schedule};
use super::senders::Field;
use super::support::gateway::Gateway;
use super::world::{Sync, TERMS, World};

const SENDERS: u64 = 20;
/// How long after everything was put right an event may still be repeated.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// How many of the acknowledged deliveries are sent once more in the end.
const SENT_AGAIN: usize = 2_000;

/// What became of a run.
pub struct Outcome {
    pub violations: usize,
    /// The figures, and an account of the first violations.
    pub report: String,
}

/// Lets faults happen for this long, and judges what came of it.
pub fn run(seed: u64, suffering: Duration, sync: Sync) -> Outcome {
    let world = World::start(seed, sync);
    let field = Field::new(&world.recorder, &world.gateways);
    std::thread::scope(|scope| {
        scope.spawn(|| world.watch());
        let senders: Vec<_> = (0..SENDERS)
            .map(|number| {
                scope.spawn({
                    let field = &field;
                    move || field.send(seed ^ (number << 32))
                })
            })
            .collect();
        let lanes: Vec<_> = LANES
            .into_iter()
            .map(|lane| {
                let schedule = Schedule::new(lane, seed, sync == Sync::EverySecond);
                let world = &world;
                scope.spawn(move || world.suffer(schedule))
            })
            .collect();
        let start = Instant::now();
        while start.elapsed() < suffering && lanes.iter().all(|lane| !lane.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
        }
        world.healed.store(true, Ordering::Release);
        // A lane that panicked must not keep the others: what they wait for ends, and then the run fails.
        let suffered: Vec<_> = lanes.into_iter().map(|lane| lane.join()).collect();
        field.closing.store(true, Ordering::Release);
        let healed = Instant::now();
        while healed.elapsed() < LONGEST_REST && !senders.iter().all(|sender| sender.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        field.closed.store(true, Ordering::Release);
        for sender in senders {
            sender.join().expect("a sender");
        }
        world.over.store(true, Ordering::Release);
        suffered.into_iter().for_each(|lane| lane.expect("a lane of faults"));
    });
    send_again(&field, seed);
    for gateway in &world.gateways {
        gateway.wait_for_metric("hookonce_unsettled", 0.0);
        assert_eq!(gateway.metric("hookonce_panics_total"), 0.0, "{}", gateway.log());
    }
    judge(&world, seed, sync)
}

/// What is done stays done: copies of acknowledged deliveries, to gateways that are well.
fn send_again(field: &Field, seed: u64) {
    let history = field.recorder.finish();
    let done = history.attempts.iter().filter(|attempt| attempt.acknowledged().is_some());
    let mut done: Vec<Vec<Event>> = done.map(|attempt| attempt.events.clone()).collect();
    let mut random = StdRng::seed_from_u64(seed);
    done.shuffle(&mut random);
    done.truncate(SENT_AGAIN);
    std::thread::scope(|scope| {
        for part in done.chunks(done.len().div_ceil(8).max(1)) {
            let seed = random.random_range(0..u64::MAX);
            scope.spawn(move || field.send_again(part, seed));
        }
    });
}

fn judge(world: &World, seed: u64, sync: Sync) -> Outcome {
    let mut history = world.recorder.finish();
    // The times in Redis are wall time, so they are only worth something if nobody has set the clock.
    let drift = world.recorder.drift();
    assert!(drift < Duration::from_millis(20), "the clock of this machine was set during the run, by {drift:?}");
    assert!(history.exchanges.len() > 100 && history.faults.len() > 5, "too little happened to say anything");
    let file = std::fs::read(world.redis.append_only_file()).expect("the append-only file");
    history.changes = ledger::read(&file, TERMS, &world.recorder);
    let verdict = checker::check(&history);
    let mut report = Figures { seed, history: &history, verdict: &verdict }.to_string();
    // Of a Redis that loses power it is known that records are lost; what counts is whether the gateways notice.
    let noticed: f64 = world.gateways.iter().map(|gateway| gateway.metric("hookonce_store_losses_total")).sum();
    report.push_str(&format!("lost records noticed by the gateways that run in the end: {noticed}\n"));
    assert!(sync == Sync::EverySecond || noticed == 0.0, "a gateway missed records that no Redis had lost");
    let told = if sync == Sync::Always { 5 } else { 0 };
    for violation in verdict.violations.iter().take(told) {
        report.push_str(&format!("{violation}\n{}", account(&history, violation.event)));
        report.push_str(&logged(&world.gateways, violation.event));
    }
    Outcome { violations: verdict.violations.len(), report }
}

/// What the gateways logged about an event.
fn logged(gateways: &[Arc<Gateway>], event: Event) -> String {
    let mut found = String::new();
    for (number, gateway) in gateways.iter().enumerate() {
        let log = gateway.log();
        let id = format!(":{event}");
        let about = log.lines().filter(|line| {
            line.match_indices(&id)
                .any(|(at, _)| !line[at + id.len()..].starts_with(|next: char| next.is_ascii_digit()))
        });
        for line in about {
            found.push_str(&format!("    gateway {number} logged: {line}\n"));
        }
    }
    found
}
