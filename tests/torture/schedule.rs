//! The schedule of faults: what is done to whom, when, and for how long, all from one seed.
//!
//! Three lanes run side by side, each with one fault at a time: Redis, the links, and the processes. So a gateway may
//! die while Redis is frozen and the link is cut. A seed gives the same faults at the same moments; how the processes
//! run between them is the machine's.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::history::Kind;
use super::link::Toll;

/// A part of the world that has one fault at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Redis,
    Links,
    Processes,
}

pub const LANES: [Lane; 3] = [Lane::Redis, Lane::Links, Lane::Processes];

/// One fault to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// How long all is well before it.
    pub pause: Duration,
    pub kind: Kind,
    pub gateway: usize,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it does to a link, if it concerns one.
    pub toll: Toll,
}

/// The faults of one lane, without end.
pub struct Schedule {
    lane: Lane,
    random: StdRng,
    /// Redis loses power instead of being killed: what it had not brought to the disk is gone.
    power_fails: bool,
}

impl Schedule {
    pub fn new(lane: Lane, seed: u64, power_fails: bool) -> Self {
        let own = match lane {
            Lane::Redis => 1,
            Lane::Links => 2,
            Lane::Processes => 3,
        };
        Self { lane, random: StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(own)), power_fails }
    }
}

impl Iterator for Schedule {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let random = &mut self.random;
        let mut within = |least: u64, most: u64| Duration::from_millis(random.random_range(least..most));
        let killed = if self.power_fails { Kind::RedisLostPower } else { Kind::RedisKilled };
        let pause = match self.lane {
            Lane::Redis => within(1_000, 4_000),
            Lane::Links => within(300, 2_000),
            Lane::Processes => within(500, 3_000),
        };
        let (short, long, bytes) = (within(50, 900), within(600, 3_500), within(0, 3_000).as_millis());
        let gateway = random.random_range(0..2);
        let bytes = usize::try_from(bytes).ok();
        let well = Toll::default();
        let pick = random.random_range(0..10);
        let (kind, lasts, toll) = match self.lane {
            Lane::Redis => match pick {
                0..=3 => (killed, short * 2, well),
                4..=5 => (Kind::RedisFrozen, long, well),
                6..=7 => (Kind::RedisFull, long, well),
                _ => (Kind::RedisReadOnly, long, well),
            },
            Lane::Links => match pick {
                0..=1 => (Kind::StoreDelayed, long, Toll { delay_there: short / 3, ..well }),
                2 => (Kind::StoreCut, long, Toll { cut_there: bytes, ..well }),
                3 => (Kind::StoreCut, long, Toll { cut_back: bytes, ..well }),
                4..=5 => (Kind::StoreLate, long, Toll { delay_back: short + Duration::from_millis(400), ..well }),
                6 => (Kind::StoreRefused, long, Toll { refuse: true, ..well }),
                7 => (Kind::UpstreamCut, long, Toll { cut_there: bytes.map(|bytes| bytes / 4), ..well }),
                8 => (Kind::UpstreamCut, long, Toll { cut_back: bytes.map(|bytes| bytes / 40), ..well }),
                _ if bytes.is_some_and(|bytes| bytes % 2 == 0) => {
                    (Kind::UpstreamLate, long, Toll { delay_back: short * 5, ..well })
                }
                _ => (Kind::UpstreamRefused, long, Toll { refuse: true, ..well }),
            },
            Lane::Processes => match pick {
                0 => (Kind::GatewayKilled, short, well),
                1 => (Kind::GatewayKilledBeforeSending, short, well),
                2..=3 => (Kind::GatewayKilledAfterSending, short, well),
                4 => (Kind::GatewayKilledBeforeSettling, short, well),
                5 => (Kind::GatewayTerminated, short, well),
                6..=7 => (Kind::GatewayPaused, long, well),
                8 => (Kind::HandlerKilled, short, well),
                _ => (Kind::HandlerFailing, long, well),
            },
        };
        Some(Planned { pause, kind, gateway, lasts, toll })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_the_same_faults_and_soon_every_kind() {
        let mut kinds = BTreeSet::new();
        for lane in LANES {
            let first: Vec<Planned> = Schedule::new(lane, 7, false).take(60).collect();
            assert_eq!(first, Schedule::new(lane, 7, false).take(60).collect::<Vec<_>>());
            assert_ne!(first, Schedule::new(lane, 8, false).take(60).collect::<Vec<_>>());
            kinds.extend(first.iter().map(|planned| planned.kind));
        }
        assert_eq!(kinds.len(), 19, "{kinds:?}");
        let mut failing = Schedule::new(Lane::Redis, 7, true);
        assert!(failing.any(|planned| planned.kind == Kind::RedisLostPower));
    }
}
