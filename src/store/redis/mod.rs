//! Redis: the store that all replicas share.
//!
//! A claim is `SET key value NX GET PX lease`: one command that either takes the key or tells who has it. A batch is a
//! pipeline of them, one write and one round trip, with one reply per key. Redis' persistence decides how far
//! "durable" goes: with `appendfsync everysec` a power loss may cost the last second.

mod connection;
mod durability;
mod scripts;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Pipeline, Value as Reply, cmd};
use async_trait::async_trait;

use self::connection::{Connector, pipeline, refusal};
use super::reading::{forgotten, found, found_at_once, milliseconds, standing};
use super::{ClaimStore, Health, OpenError, StoreError};
use crate::claim::{Forgotten, Found, Record, Standing, Terms, Token, Value};
use crate::config;
use crate::event::EventKey;
use crate::metrics::Metrics;

/// How often a key that changes under a person's hand is looked at anew before the person is told.
const FORGET_ATTEMPTS: usize = 5;

pub(super) struct RedisStore {
    connector: Arc<Connector>,
    prefix: String,
}

/// A claim that is decided, or that takes a second look at the key: because of the time that is left, or because Redis
/// refused the write with this error, which a duplicate need not mind.
enum Attempt {
    Decided(Result<Found, StoreError>),
    TimeDecides,
    Refused(StoreError),
}

impl RedisStore {
    /// A Redis that cannot be reached is not an error. One that would forget is, where the configuration says so.
    pub(super) async fn open(config: &config::Redis, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        let connector = Connector::new(config, metrics)?;
        connector.check_at_start().await?;
        Ok(Self { connector: Arc::new(connector), prefix: config.prefix.clone() })
    }

    /// The same without a look at the server: for a person's questions, one that would forget is good enough.
    pub(super) fn open_beside(config: &config::Redis, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        Ok(Self { connector: Arc::new(Connector::new(config, metrics)?), prefix: config.prefix.clone() })
    }

    fn key(&self, key: &EventKey) -> String {
        format!("{}:{key}", self.prefix)
    }

    /// One command per key, and one answer for each.
    async fn each<T>(
        &self,
        commands: Vec<Cmd>,
        read: impl Fn(&Reply) -> Result<T, StoreError>,
    ) -> Vec<Result<T, StoreError>> {
        let count = commands.len();
        if count == 0 {
            return Vec::new();
        }
        let commands = pipeline(commands);
        let mut replies = self.ask(&commands).await;
        if is_broken(&replies) {
            replies = self.ask(&commands).await;
        }
        match replies {
            Ok(replies) => replies.iter().map(read).collect(),
            Err(error) => repeated(&error, count),
        }
    }

    async fn ask(&self, commands: &Pipeline) -> Result<Vec<Reply>, StoreError> {
        let link = self.connector.link().await?;
        self.connector.run(&link, commands).await
    }

    /// The same for claims, which must not be made on a server that would forget them.
    async fn ask_durable(&self, commands: &Pipeline) -> Result<Vec<Reply>, StoreError> {
        let link = self.connector.durable_link().await?;
        self.connector.run(&link, commands).await
    }

    async fn try_claim(
        &self,
        keys: &[EventKey],
        token: &Token,
        terms: Terms,
    ) -> Result<Vec<Result<Found, StoreError>>, StoreError> {
        let claimed = Value::Claimed(token.clone()).to_string();
        let lease = milliseconds(terms.lease);
        let set = |key| {
            let mut set = cmd("SET");
            set.arg(self.key(key)).arg(&claimed).arg("NX").arg("GET").arg("PX").arg(lease);
            set
        };
        let claims = pipeline(keys.iter().map(set));
        let mut replies = self.ask_durable(&claims).await;
        if is_broken(&replies) {
            replies = self.ask_durable(&claims).await;
        }
        let attempts: Vec<Attempt> = replies?.iter().map(|reply| attempt(reply, token)).collect();

        let open = keys.iter().zip(&attempts).filter(|(_, attempt)| !matches!(attempt, Attempt::Decided(_)));
        let reads: Vec<Cmd> = open.map(|(key, _)| scripts::READ.on(&self.key(key))).collect();
        let mut looks = Vec::new().into_iter();
        if !reads.is_empty() {
            let count = reads.len();
            looks = match self.ask(&pipeline(reads)).await {
                Ok(replies) => replies.iter().map(read_key).collect(),
                Err(error) => repeated(&error, count),
            }
            .into_iter();
        }
        let decide = |attempt| match attempt {
            Attempt::Decided(answer) => answer,
            Attempt::TimeDecides => match looks.next() {
                Some(Ok(Some((value, remaining)))) => Ok(found(&value, remaining, token, terms)),
                // It ended between the two looks. This attempt has not claimed it, the next one will.
                Some(Ok(None)) | None => Ok(Found::Held),
                Some(Err(error)) => Err(error),
            },
            Attempt::Refused(error) => match looks.next() {
                Some(Ok(Some((value, remaining)))) => match found(&value, remaining, token, terms) {
                    // What an earlier attempt claimed is not confirmed by a server that takes no writes.
                    Found::Claimed => Err(error),
                    found => Ok(found),
                },
                _ => Err(error),
            },
        };
        Ok(attempts.into_iter().map(decide).collect())
    }
}

#[async_trait]
impl ClaimStore for RedisStore {
    async fn claim(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>> {
        if keys.is_empty() {
            return Vec::new();
        }
        self.try_claim(keys, token, terms).await.unwrap_or_else(|error| repeated(&error, keys.len()))
    }

    async fn settle_done(&self, done: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>> {
        let set = |(key, record, window): &(EventKey, Record, Duration)| {
            let mut set = cmd("SET");
            set.arg(self.key(key)).arg(Value::Done(*record).to_string()).arg("PX").arg(milliseconds(*window));
            set
        };
        let mut answers = self.each(done.iter().map(set).collect(), taken).await;
        // A full Redis refuses a plain SET, even over a key that is there, but takes it from a script that may. The
        // plain one costs Redis half as much, so it is tried first.
        let full: Vec<usize> = (0..answers.len()).filter(|index| is_full(&answers[*index])).collect();
        if !full.is_empty() {
            let call = |index: &usize| {
                let (key, record, window) = &done[*index];
                let mut call = scripts::SETTLE_DONE.on(&self.key(key));
                call.arg(Value::Done(*record).to_string()).arg(milliseconds(*window));
                call
            };
            let again = self.each(full.iter().map(call).collect(), |reply| yes_or_no(reply).map(|_| ())).await;
            for (index, answer) in full.into_iter().zip(again) {
                answers[index] = answer;
            }
        }
        let newest = done.iter().zip(&answers).rev().find(|(_, answer)| answer.is_ok());
        if let Some(((key, _, window), _)) = newest {
            self.connector.witness.remember(self.key(key), *window);
        }
        answers
    }

    async fn settle_unknown(
        &self,
        key: &EventKey,
        token: &Token,
        record: Record,
        window: Duration,
    ) -> Result<bool, StoreError> {
        let mut call = ours(&scripts::REPLACE, &self.key(key), token);
        call.arg(Value::Done(record).to_string()).arg(milliseconds(window));
        only(self.each(vec![call], yes_or_no).await)
    }

    async fn release(&self, keys: &[EventKey], token: &Token) -> Vec<Result<bool, StoreError>> {
        let release = |key| ours(&scripts::RELEASE, &self.key(key), token);
        self.each(keys.iter().map(release).collect(), yes_or_no).await
    }

    async fn renew(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<bool, StoreError>> {
        let renew = |key| {
            let mut call = ours(&scripts::RENEW, &self.key(key), token);
            call.arg(milliseconds(terms.lease)).arg(milliseconds(terms.window));
            call
        };
        self.each(keys.iter().map(renew).collect(), yes_or_no).await
    }

    async fn promote(&self, key: &EventKey, token: &Token, window: Duration) -> Result<bool, StoreError> {
        // A promotion licenses an exchange as much as a claim does, so it asks for as much.
        self.connector.durable_link().await?;
        let mut call = ours(&scripts::REPLACE, &self.key(key), token);
        call.arg(Value::Sending(token.clone()).to_string()).arg(milliseconds(window));
        only(self.each(vec![call], yes_or_no).await)
    }

    async fn look(&self, key: &EventKey, terms: Terms) -> Result<Option<Standing>, StoreError> {
        let found = only(self.each(vec![scripts::READ.on(&self.key(key))], read_key).await)?;
        Ok(found.map(|(value, remaining)| standing(&value, remaining, terms)))
    }

    async fn forget(&self, key: &EventKey, terms: Terms, force: bool) -> Result<Forgotten, StoreError> {
        let key = self.key(key);
        let mut seen = Forgotten::Absent;
        for _ in 0..FORGET_ATTEMPTS {
            let Some((value, remaining)) = only(self.each(vec![scripts::READ.on(&key)], read_key).await)? else {
                // What was seen a moment ago and is gone may have been freed by a try whose answer was lost.
                return Ok(seen);
            };
            let decided = forgotten(&value, remaining, terms, force);
            if matches!(decided, Forgotten::Open(_)) {
                return Ok(decided);
            }
            // Freed only while it holds what was seen.
            let mut call = scripts::RELEASE.on(&key);
            call.arg(value.to_string()).arg(value.to_string());
            if only(self.each(vec![call], yes_or_no).await)? {
                return Ok(decided);
            }
            seen = decided;
        }
        Err(StoreError::Refused("the key changes all the time".to_owned()))
    }

    async fn health(&self) -> Health {
        let durable = match self.connector.link().await {
            Ok(link) => self.connector.inspect(&link).await,
            Err(error) => Err(error),
        };
        match durable {
            Ok(durable) => Health { up: true, durable, fault: self.connector.durability.fault() },
            Err(error) => Health { up: false, durable: None, fault: Some(error.to_string()) },
        }
    }
}

/// Whether the connection ended under the commands. Redis may close one that was idle, and whoever stands in between
/// too, so they are tried once more on a fresh one: each of them may be carried out twice, and a claim that was carried
/// out unheard finds its own token.
fn is_broken(replies: &Result<Vec<Reply>, StoreError>) -> bool {
    matches!(replies, Err(StoreError::Unreachable(_)))
}

fn attempt(reply: &Reply, token: &Token) -> Attempt {
    if let Reply::Nil = reply {
        return Attempt::Decided(Ok(Found::Claimed));
    }
    if let Some(error) = refusal(reply) {
        return Attempt::Refused(StoreError::Refused(error));
    }
    match value(reply) {
        Ok(value) => found_at_once(&value, token).map_or(Attempt::TimeDecides, |found| Attempt::Decided(Ok(found))),
        Err(error) => Attempt::Decided(Err(error)),
    }
}

/// The call of a script that compares the key's value with the two that `token` may have written.
fn ours(script: &scripts::Script, key: &str, token: &Token) -> Cmd {
    let mut call = script.on(key);
    call.arg(Value::Claimed(token.clone()).to_string()).arg(Value::Sending(token.clone()).to_string());
    call
}

fn value(reply: &Reply) -> Result<Value, StoreError> {
    match reply {
        Reply::BulkString(bytes) => Ok(String::from_utf8_lossy(bytes).parse()?),
        _ => Err(other_shape(reply)),
    }
}

/// The answer of [`scripts::READ`].
fn read_key(reply: &Reply) -> Result<Option<(Value, Duration)>, StoreError> {
    match reply {
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Nil, _] => Ok(None),
            [held, Reply::Int(remaining)] => {
                let remaining = Duration::from_millis(u64::try_from(*remaining).unwrap_or(0));
                Ok(Some((value(held)?, remaining)))
            }
            _ => Err(other_shape(reply)),
        },
        _ => Err(other_shape(reply)),
    }
}

fn yes_or_no(reply: &Reply) -> Result<bool, StoreError> {
    match reply {
        Reply::Int(answer) => Ok(*answer == 1),
        _ => Err(other_shape(reply)),
    }
}

/// The answer to a plain `SET`.
fn taken(reply: &Reply) -> Result<(), StoreError> {
    match reply {
        Reply::Okay => Ok(()),
        _ => Err(other_shape(reply)),
    }
}

/// Whether Redis refused because it is at its `maxmemory`.
fn is_full(answer: &Result<(), StoreError>) -> bool {
    matches!(answer, Err(StoreError::Refused(error)) if error.starts_with("OOM"))
}

fn other_shape(reply: &Reply) -> StoreError {
    StoreError::Refused(refusal(reply).unwrap_or_else(|| "the reply has another shape than expected".to_owned()))
}

fn repeated<T>(error: &StoreError, count: usize) -> Vec<Result<T, StoreError>> {
    (0..count).map(|_| Err(error.clone())).collect()
}

fn only<T>(mut answers: Vec<Result<T, StoreError>>) -> Result<T, StoreError> {
    answers.pop().unwrap_or_else(|| Err(StoreError::Refused("no reply to the command".to_owned())))
}
