//! The providers in front of the gateways: they repeat until they get a 2xx, send copies side by side, wait for less
//! time than the handler takes, and hang up in the middle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::handler::ATTEMPT;
use super::history::{Event, Promise, Recorder};
use super::support::gateway::Gateway;
use super::support::provider::{self, Request, SECRET, hmac_sha256_hex};
use super::support::wire::{Connection, Unframed};

pub const SPLIT_PATH: &str = "/webhooks/whatsapp";

/// What all senders share.
pub struct Field {
    pub recorder: Arc<Recorder>,
    pub gateways: Vec<Arc<Gateway>>,
    /// No new events any more; those that are under way are repeated until they are acknowledged.
    pub closing: AtomicBool,
    /// Nothing at all any more.
    pub closed: AtomicBool,
    events: AtomicU32,
}

/// How long a provider stays on the line.
enum Patience {
    /// For an answer that comes within this time.
    For(Duration),
    /// Until the request is written.
    Written,
    /// Until half of its body is written.
    HalfWritten,
}

impl Field {
    pub fn new(recorder: &Arc<Recorder>, gateways: &[Arc<Gateway>]) -> Self {
        Self {
            recorder: Arc::clone(recorder),
            gateways: gateways.to_vec(),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            events: AtomicU32::new(1),
        }
    }

    /// One provider, which sends one event or batch after the other.
    pub fn send(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut acknowledged: Vec<Vec<Event>> = Vec::new();
        while !self.closing.load(Ordering::Acquire) {
            let events = self.fresh(&mut random);
            if self.until_acknowledged(&events, &mut random) {
                acknowledged.push(events);
            }
            // Again, after a while, as if nothing had been: a retry that was under way, a person's click.
            if random.random_bool(0.2) && !acknowledged.is_empty() {
                let old = random.random_range(acknowledged.len().saturating_sub(40)..acknowledged.len());
                let mut copy = acknowledged[old].clone();
                copy.shuffle(&mut random);
                self.once(&copy, &mut random);
            }
            std::thread::sleep(Duration::from_millis(random.random_range(5..40)));
        }
    }

    /// Sends each of these once more, to gateways that are well.
    pub fn send_again(&self, deliveries: &[Vec<Event>], seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        for events in deliveries {
            let gateway = random.random_range(0..self.gateways.len());
            self.attempt(events, gateway, &Patience::For(Duration::from_secs(10)));
        }
    }

    fn fresh(&self, random: &mut StdRng) -> Vec<Event> {
        let (promise, count) = match random.random_range(0..10) {
            0..=3 => (Promise::Redeliver, 1),
            4..=6 => (Promise::Suppress, 1),
            _ => (Promise::Split, random.random_range(1..7)),
        };
        (0..count).map(|_| Event { promise, number: self.events.fetch_add(1, Ordering::Relaxed) }).collect()
    }

    /// `false`: the run ended before.
    fn until_acknowledged(&self, events: &[Event], random: &mut StdRng) -> bool {
        while !self.closed.load(Ordering::Acquire) {
            if self.once(events, random) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(random.random_range(10..200)));
        }
        false
    }

    /// One attempt, or a few side by side. Whether one of them was acknowledged.
    fn once(&self, events: &[Event], random: &mut StdRng) -> bool {
        let copies = if random.random_bool(0.25) { random.random_range(2..5) } else { 1 };
        let mut attempts = Vec::new();
        for _ in 0..copies {
            let patience = match random.random_range(0..10) {
                0 => Patience::Written,
                1 => Patience::HalfWritten,
                2..=4 => Patience::For(Duration::from_millis(random.random_range(50..1_500))),
                _ => Patience::For(Duration::from_secs(8)),
            };
            let mut order = events.to_vec();
            if random.random_bool(0.3) {
                order.shuffle(random);
            }
            let pause = Duration::from_millis(random.random_range(0..100));
            attempts.push((order, random.random_range(0..self.gateways.len()), patience, pause));
        }
        if let [(order, gateway, patience, _)] = attempts.as_slice() {
            return self.attempt(order, *gateway, patience);
        }
        std::thread::scope(|scope| {
            let copies: Vec<_> = attempts
                .iter()
                .map(|(order, gateway, patience, pause)| {
                    scope.spawn(|| {
                        std::thread::sleep(*pause);
                        self.attempt(order, *gateway, patience)
                    })
                })
                .collect();
            copies.into_iter().map(|copy| copy.join().expect("a copy")).fold(false, |any, one| any | one)
        })
    }

    fn attempt(&self, events: &[Event], gateway: usize, patience: &Patience) -> bool {
        let attempt = self.recorder.attempt(events, gateway);
        let request = request(events).header(ATTEMPT, &attempt.to_string());
        let answer = self.converse(&request, gateway, patience).unwrap_or_default();
        let acknowledged = answer.as_ref().is_some_and(|(status, _)| (200..300).contains(status));
        self.recorder.answered(attempt, answer);
        acknowledged
    }

    /// The answer, if one came while the provider was on the line.
    fn converse(&self, request: &Request, gateway: usize, patience: &Patience) -> io::Result<Option<(u16, String)>> {
        let mut connection = Connection::open(self.gateways[gateway].address())?;
        let start = Instant::now();
        connection.write(&request.head_bytes())?;
        let body = request.body_bytes();
        let half = if matches!(patience, Patience::HalfWritten) { body.len() / 2 } else { body.len() };
        connection.write(&body[..half])?;
        let Patience::For(longest) = patience else {
            if start.elapsed().subsec_nanos().is_multiple_of(2) {
                connection.reset();
            }
            return Ok(None);
        };
        connection.stream.set_read_timeout(Some(*longest))?;
        let Some(head) = connection.read_head()? else { return Ok(None) };
        let status = head.start_line().split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let result = head.header("hookonce-result").unwrap_or_default();
        connection.read_body(&head, Unframed::EndsWithConnection)?;
        Ok(Some((status, result.split(';').next().unwrap_or_default().to_owned())))
    }
}

/// A delivery of these events as their provider would send it now.
fn request(events: &[Event]) -> Request {
    match events {
        [Event { promise: Promise::Redeliver, .. }] => {
            let body = format!(r#"{{"id":"{}","object":"event","type":"invoice.paid"}}"#, events[0]);
            provider::stripe_with_body(body.into_bytes())
        }
        [Event { promise: Promise::Suppress, .. }] => {
            Request::post("/webhooks/generic", format!(r#"{{"id":"{}","amount":1.50}}"#, events[0]))
        }
        _ => {
            let message = |event: &Event| {
                let sender = 5_511_999_990_000_u64 + u64::from(event.number % 3);
                format!(r#"{{"from":"{sender}","id":"{event}","timestamp":"1760000001","type":"text","text":{{}}}}"#)
            };
            let messages: Vec<String> = events.iter().map(message).collect();
            let body = format!(
                r#"{{"object":"whatsapp_business_account","entry":[{{"id":"200","changes":[{{"field":"messages","value":{{"messaging_product":"whatsapp","metadata":{{"phone_number_id":"1000"}},"messages":[{}]}}}}]}}]}}"#,
                messages.join(",")
            );
            let signature = format!("sha256={}", hmac_sha256_hex(SECRET, body.as_bytes()));
            Request::post(SPLIT_PATH, body).header("X-Hub-Signature-256", &signature)
        }
    }
}
