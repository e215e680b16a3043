//! What is in flight in this process: one delivery leads each key, its copies follow it.
//!
//! The store stays the arbiter between gateways. Inside one gateway it need not be asked twice: copies of an event that
//! is in flight here wait for its leader, wake when it has ended, and know at once how. A key whose event was delivered
//! stays here until its record is acknowledged, so that this gateway answers copies as duplicates even while the store
//! is gone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use crate::claim::{Outcome, Record};
use crate::event::EventKey;

const SHARDS: usize = 16;

/// The keys in flight in this process.
pub(super) struct InFlight {
    shards: [Mutex<HashMap<EventKey, Arc<Flight>>>; SHARDS],
}

struct Flight {
    ended: OnceLock<Ended>,
    wake: Notify,
}

/// How a leader ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The event is done: it was before, or the leader's exchange delivered it.
    Done(Record),
    /// The leader's exchange did not deliver it.
    Failed(Outcome),
    /// The store did not answer the leader.
    Unavailable,
    /// The leader stopped without an exchange of its own: it waited in vain, or did not begin.
    GaveUp,
}

/// A delivery's place at one key.
pub(super) enum Place {
    /// Nobody else in this process has the key.
    Lead(Lead),
    /// Another delivery leads.
    Follow(Follow),
}

/// The leadership of one key. Dropped without having ended, it counts as given up.
pub(super) struct Lead {
    map: Arc<InFlight>,
    key: EventKey,
    flight: Arc<Flight>,
}

/// A copy's view of its leader.
pub(super) struct Follow {
    flight: Arc<Flight>,
}

impl InFlight {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { shards: std::array::from_fn(|_| Mutex::default()) })
    }

    /// Takes the lead of `key`, or follows whoever has it.
    pub(super) fn join(self: &Arc<Self>, key: &EventKey) -> Place {
        match self.shard(key).entry(key.clone()) {
            Entry::Occupied(known) => Place::Follow(Follow { flight: Arc::clone(known.get()) }),
            Entry::Vacant(free) => {
                let flight = Arc::new(Flight { ended: OnceLock::new(), wake: Notify::new() });
                free.insert(Arc::clone(&flight));
                Place::Lead(Lead { map: Arc::clone(self), key: key.clone(), flight })
            }
        }
    }

    fn shard(&self, key: &EventKey) -> MutexGuard<'_, HashMap<EventKey, Arc<Flight>>> {
        // The ends of keys differ most. Whoever chooses his keys to meet in one shard only makes his own wait.
        let ends = key.as_str().bytes().rev().take(8);
        let shard = ends.fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte))) % SHARDS;
        // The map is left whole by every line that holds the lock, so a panic elsewhere does not spoil it.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lead {
    pub(super) fn key(&self) -> &EventKey {
        &self.key
    }

    /// Tells the copies how it ended, and gives the key up.
    pub(super) fn end(self, ended: Ended) {
        self.tell(ended);
    }

    /// Tells the copies how it ended. The key stays here, and later copies are told the same, until the returned lead is
    /// dropped: when the store has acknowledged it.
    #[must_use]
    pub(super) fn told(self, ended: Ended) -> Self {
        self.tell(ended);
        self
    }

    fn tell(&self, ended: Ended) {
        if self.flight.ended.set(ended).is_ok() {
            self.flight.wake.notify_waiters();
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.map.shard(&self.key).remove(&self.key);
        self.tell(Ended::GaveUp);
    }
}

impl Follow {
    /// Waits until the leader has ended.
    pub(super) async fn ended(&self) -> Ended {
        loop {
            let woken = self.flight.wake.notified();
            if let Some(ended) = self.flight.ended.get() {
                return *ended;
            }
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Recorded;

    const RECORD: Record = Record { at: None, result: Recorded::Delivered(200) };

    fn lead(map: &Arc<InFlight>, key: &EventKey) -> Lead {
        match map.join(key) {
            Place::Lead(lead) => lead,
            Place::Follow(_) => panic!("`{key}` is led already"),
        }
    }

    fn follow(map: &Arc<InFlight>, key: &EventKey) -> Follow {
        match map.join(key) {
            Place::Lead(_) => panic!("`{key}` is not led"),
            Place::Follow(follow) => follow,
        }
    }

    #[tokio::test]
    async fn one_leads_and_its_copies_learn_how_it_ended() {
        let map = InFlight::new();
        let key = EventKey::new("r", [Some("1")]);
        let leader = lead(&map, &key);
        let copies = [follow(&map, &key), follow(&map, &key)];
        leader.end(Ended::Failed(Outcome::Refused(500)));
        for copy in copies {
            assert_eq!(copy.ended().await, Ended::Failed(Outcome::Refused(500)));
        }
        lead(&map, &key).end(Ended::Done(RECORD));
    }

    #[tokio::test]
    async fn a_lead_that_is_dropped_has_given_up() {
        let map = InFlight::new();
        let key = EventKey::new("r", [Some("1")]);
        let leader = lead(&map, &key);
        let copy = follow(&map, &key);
        drop(leader);
        assert_eq!(copy.ended().await, Ended::GaveUp);
    }

    #[tokio::test]
    async fn a_delivered_event_is_known_until_its_record_is_acknowledged() {
        let map = InFlight::new();
        let key = EventKey::new("r", [Some("1")]);
        let unrecorded = lead(&map, &key).told(Ended::Done(RECORD));
        assert_eq!(follow(&map, &key).ended().await, Ended::Done(RECORD));
        drop(unrecorded);
        drop(lead(&map, &key));
    }
}
