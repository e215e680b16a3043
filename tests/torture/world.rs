//! The world of a run: two gateways on one Redis, a handler, links between them, and what befalls them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::handler::{Handler, Moment};
use super::history::{At, Kind, Recorder};
use super::ledger::Terms;
use super::link::{Link, Toll};
use super::schedule::{Planned, Schedule};
use super::senders::SPLIT_PATH;
use super::support::gateway::Gateway;
use super::support::provider::SECRET;
use super::support::redis::Redis;
use super::support::route::Route;
use super::support::store::Store;

/// Short, so that leases end often; the window is longer than any run.
pub const TERMS: Terms = Terms { lease: Duration::from_secs(2), window: Duration::from_secs(6 * 3600) };
/// How long a gateway waits for the handler: longer than a lease, so that leases must be renewed.
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// So long it storms, and then so long nothing goes wrong: a repeat for which nobody can be blamed stands out then.
const STORM: Duration = Duration::from_secs(12);
const CALM: Duration = Duration::from_secs(5);
/// How long a gateway may take to stop.
const GRACE: &str = "shutdown_grace: 5s";
/// The machine has stalled when a thread that sleeps for a moment was away for this long.
const STALL: Duration = Duration::from_millis(150);

/// How Redis brings what it acknowledged to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    Always,
    EverySecond,
}

/// All that runs.
pub struct World {
    pub recorder: Arc<Recorder>,
    pub redis: Redis,
    pub gateways: Vec<Arc<Gateway>>,
    handler: Handler,
    to_store: Vec<Link>,
    to_handler: Vec<Link>,
    /// How long the append-only file was at which moment: with `everysec`, power loss takes the last second.
    written: Mutex<Vec<(Instant, u64)>>,
    pub healed: AtomicBool,
    pub over: AtomicBool,
}

impl World {
    pub fn start(seed: u64, sync: Sync) -> Self {
        let fsync = if sync == Sync::Always { "always" } else { "everysec" };
        let redis = Redis::start_with(&[
            "--appendonly",
            "yes",
            "--appendfsync",
            fsync,
            "--aof-timestamp-enabled",
            "yes",
            "--auto-aof-rewrite-percentage",
            "0",
        ]);
        let recorder = Arc::new(Recorder::new(TIMEOUT, TERMS.lease));
        let handler = Handler::start(2, TIMEOUT, &recorder, seed);
        let to_store: Vec<Link> = (0..2).map(|_| Link::to(redis.address())).collect();
        let to_handler: Vec<Link> = handler.addresses.iter().map(|address| Link::to(*address)).collect();
        let gateway = |number: usize| {
            let routes = routes(&to_handler[number]);
            let server = ["log: {deliveries: exceptions}", GRACE];
            Arc::new(Gateway::start_with(&Store::Behind(to_store[number].address), &server, &routes))
        };
        let gateways = (0..2).map(gateway).collect();
        Self {
            recorder,
            redis,
            gateways,
            handler,
            to_store,
            to_handler,
            written: Mutex::default(),
            healed: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Lets the faults of one lane happen until the world is to be healed.
    pub fn suffer(&self, schedule: Schedule) {
        for planned in schedule {
            self.wait(planned.pause);
            while self.is_calm() {
                if self.healed.load(Ordering::Acquire) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let from = self.recorder.now();
            if let Some((gateway, from)) = self.inflict(planned, from) {
                self.recorder.fault(planned.kind, gateway, from);
            }
        }
    }

    /// Does one fault and puts it right. Whom it concerned, and since when; `None` if it could not be done.
    fn inflict(&self, planned: Planned, from: At) -> Option<(Option<usize>, At)> {
        let Planned { kind, gateway: number, lasts, toll, .. } = planned;
        let gateway = &self.gateways[number];
        match kind {
            Kind::RedisKilled | Kind::RedisLostPower => {
                self.redis.kill();
                if kind == Kind::RedisLostPower {
                    self.forget_the_last_second();
                }
                self.wait(lasts);
                self.redis.start_again();
                Some((None, from))
            }
            Kind::RedisFrozen => {
                self.redis.freeze();
                self.wait(lasts);
                self.redis.thaw();
                Some((None, from))
            }
            Kind::RedisFull => {
                self.redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
                self.wait(lasts);
                self.redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
                Some((None, from))
            }
            Kind::RedisReadOnly => {
                // A replica of a server that is not there: its data stays, and it takes no writes.
                self.redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
                self.wait(lasts);
                self.redis.command(&["REPLICAOF", "NO", "ONE"]);
                Some((None, from))
            }
            Kind::StoreDelayed | Kind::StoreCut | Kind::StoreLate | Kind::StoreRefused => {
                self.burden(&self.to_store[number], toll, lasts);
                Some((Some(number), from))
            }
            Kind::UpstreamCut | Kind::UpstreamLate | Kind::UpstreamRefused => {
                self.burden(&self.to_handler[number], toll, lasts);
                Some((Some(number), from))
            }
            Kind::GatewayKilled => {
                gateway.kill();
                self.revive(number, lasts);
                Some((Some(number), from))
            }
            Kind::GatewayKilledBeforeSending | Kind::GatewayKilledAfterSending | Kind::GatewayKilledBeforeSettling => {
                let from = self.kill_at(kind, number)?;
                self.revive(number, lasts);
                Some((Some(number), from))
            }
            Kind::GatewayTerminated => {
                gateway.terminate();
                gateway.wait_for_end();
                self.revive(number, lasts);
                Some((Some(number), from))
            }
            Kind::GatewayPaused => {
                gateway.freeze();
                self.wait(lasts);
                gateway.thaw();
                Some((Some(number), from))
            }
            Kind::HandlerKilled => {
                self.to_handler.iter().for_each(|link| link.set(Toll { refuse: true, ..Toll::default() }));
                self.handler.kill();
                self.wait(lasts);
                self.to_handler.iter().for_each(Link::heal);
                Some((None, from))
            }
            Kind::HandlerFailing => {
                self.handler.set_failing(true);
                self.wait(lasts);
                self.handler.set_failing(false);
                Some((None, from))
            }
            Kind::MachineStalled => None,
        }
    }

    fn burden(&self, link: &Link, toll: Toll, lasts: Duration) {
        link.set(toll);
        self.wait(lasts);
        link.heal();
    }

    /// Kills a gateway at a moment of its next exchange, if one comes. Since when it is dead.
    fn kill_at(&self, kind: Kind, number: usize) -> Option<At> {
        let (died, dead) = mpsc::channel();
        let (gateway, recorder) = (Arc::clone(&self.gateways[number]), Arc::clone(&self.recorder));
        let kill = move || {
            let from = recorder.now();
            gateway.kill();
            let _nobody_waits = died.send(from);
        };
        match kind {
            Kind::GatewayKilledBeforeSending => self.to_handler[number].trap(kill),
            Kind::GatewayKilledAfterSending => self.handler.trap(number, Moment::Arrived, kill),
            _ => self.handler.trap(number, Moment::Answered, kill),
        }
        match dead.recv_timeout(Duration::from_secs(3)) {
            Ok(from) => Some(from),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let taken_away = if kind == Kind::GatewayKilledBeforeSending {
                    self.to_handler[number].disarm()
                } else {
                    self.handler.disarm(number)
                };
                // What sprang just now is a death like any other.
                if taken_away { None } else { dead.recv().ok() }
            }
        }
    }

    fn revive(&self, number: usize, after: Duration) {
        self.wait(after);
        self.gateways[number].start_again();
    }

    /// Whether nothing is to go wrong now: the world is to be healed, or it is one of the times in which nothing
    /// explains a fault.
    fn is_calm(&self) -> bool {
        let at = self.recorder.now().as_secs() % (STORM + CALM).as_secs();
        at >= STORM.as_secs() || self.healed.load(Ordering::Acquire)
    }

    /// Waits, and not longer than until all is to be calm.
    fn wait(&self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time && !self.is_calm() {
            std::thread::sleep((time.saturating_sub(start.elapsed())).min(Duration::from_millis(50)));
        }
    }

    /// Notes when this machine does not let a thread run, and how the append-only file grows.
    pub fn watch(&self) {
        let mut file: Option<PathBuf> = None;
        let mut last = self.recorder.now();
        while !self.over.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.recorder.now();
            if now.saturating_sub(last) > STALL {
                self.recorder.fault(Kind::MachineStalled, None, last);
            }
            let path = file.get_or_insert_with(|| self.redis.append_only_file());
            if let Ok(about) = std::fs::metadata(path) {
                let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
                written.push((Instant::now(), about.len()));
                let old = written.iter().take_while(|(at, _)| at.elapsed() > Duration::from_secs(2)).count();
                written.drain(..old);
            }
            last = self.recorder.now();
        }
    }

    /// What a power loss takes with `everysec`: all that was written since the last second began.
    fn forget_the_last_second(&self) {
        let path = self.redis.append_only_file();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = written.iter().rev().find(|(at, _)| at.elapsed() >= Duration::from_secs(1)).map(|(_, size)| *size);
        if let Some(kept) = kept {
            let file = std::fs::OpenOptions::new().write(true).open(path).expect("the append-only file");
            file.set_len(kept).expect("a shorter file");
            written.clear();
        }
    }
}

fn routes(handler: &Link) -> [Route; 3] {
    let (lease, window) = (TERMS.lease.as_secs(), TERMS.window.as_secs());
    let times = [format!("lease: {lease}s"), format!("window: {window}s"), "in_flight: {wait: 400ms}".to_owned()];
    let split = Route::new("whatsapp", SPLIT_PATH, "meta", handler.address).with(&format!("secret: {SECRET}"));
    let suppress = Route::generic(handler.address).with("unknown_outcome: suppress");
    [Route::stripe(handler.address), suppress, split.with("batch: split")].map(|route| {
        let route = route.timeout(&format!("{}s", TIMEOUT.as_secs()));
        times.iter().fold(route, |route, line| route.with(line))
    })
}
