//! Redis: the store that all replicas share.
//!
//! A claim is `SET key value NX GET PX lease`: one command that either takes the key or tells who has it. A batch is a
//! pipeline of them, one write and one round trip, with one reply per key. Before a large one, Redis is asked in one
//! command which keys are done, which costs a fraction of claiming them: a batch that comes again is answered by that
//! alone, and one that is new pays a round trip on top of an exchange for each of its events. Redis' persistence decides
//! how far "durable" goes: with `appendfsync everysec` a power loss may cost the last second.

mod commands;
mod connection;
mod durability;
mod replies;
mod scripts;
mod wire;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Value as Reply};
use async_trait::async_trait;

use self::commands::{Commands, Keys, Replies};
use self::connection::Connector;
use self::replies::{Attempt, attempt, done, held, taken, yes_or_no};
use super::reading::{Held, forgotten, found, milliseconds, standing};
use super::{ClaimStore, Health, OpenError, StoreError};
use crate::claim::{Forgotten, Found, LONGEST_VALUE, Record, Standing, Terms, Token, Value};
use crate::config;
use crate::event::EventKey;
use crate::metrics::Metrics;

/// From this many keys on, a look comes before the claims.
const LARGE: usize = 32;

/// Redis does nothing else while it reads so many keys.
const READ_AT_ONCE: usize = 500;

/// How often a key that changes under a person's hand is looked at anew before the person is told.
const FORGET_ATTEMPTS: usize = 5;

pub(super) struct RedisStore {
    connector: Arc<Connector>,
}

/// What a server must be for some commands.
#[derive(Clone, Copy)]
enum Needs {
    Any,
    /// Claims must not be made on one that would forget them.
    Durable,
}

impl RedisStore {
    /// A Redis that cannot be reached is not an error. One that would forget is, where the configuration says so.
    pub(super) async fn open(config: &config::Redis, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        let connector = Connector::new(config, metrics)?;
        connector.check_at_start().await?;
        Ok(Self { connector: Arc::new(connector) })
    }

    /// The same without a look at the server: for a person's questions, one that would forget is good enough.
    pub(super) fn open_beside(config: &config::Redis, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        Ok(Self { connector: Arc::new(Connector::new(config, metrics)?) })
    }

    fn keys(&self) -> &Keys {
        &self.connector.keys
    }

    /// Has `commands` carried out. Redis may close a connection that was idle, and whoever stands in between too, so
    /// where it ended under them they are tried once more on a fresh one: each of them may be carried out twice, and a
    /// claim that was carried out unheard finds its own token.
    async fn ask(&self, commands: &Commands, needs: Needs) -> Result<Replies, StoreError> {
        match self.ask_once(commands, needs).await {
            Err(StoreError::Unreachable(_)) => Box::pin(self.ask_once(commands, needs)).await,
            replies => replies,
        }
    }

    async fn ask_once(&self, commands: &Commands, needs: Needs) -> Result<Replies, StoreError> {
        let link = match needs {
            Needs::Any => self.connector.link().await?,
            Needs::Durable => self.connector.durable_link().await?,
        };
        self.connector.run(&link, commands).await
    }

    /// One command per key, and one answer for each.
    async fn each<T>(
        &self,
        commands: Commands,
        read: impl Fn(&Reply) -> Result<T, StoreError>,
    ) -> Vec<Result<T, StoreError>> {
        if commands.len() == 0 {
            return Vec::new();
        }
        match self.ask(&commands, Needs::Any).await {
            Ok(replies) => replies.as_slice().iter().map(read).collect(),
            Err(error) => repeated(&error, commands.len()),
        }
    }

    async fn one<T>(&self, command: Cmd, read: impl Fn(&Reply) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let replies = self.ask(&Commands::One(command), Needs::Any).await?;
        let no_reply = || Err(StoreError::Refused("no reply to the command".to_owned()));
        replies.as_slice().first().map_or_else(no_reply, read)
    }

    /// Claims what is not done. Whatever happens between the look and the claim, the claim is what decides.
    async fn claim_many(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>> {
        let pieces = keys.chunks(READ_AT_ONCE);
        let look: Commands = pieces.clone().map(|keys| self.keys().read_all(keys)).collect();
        let done: Vec<Option<Record>> = match self.ask(&look, Needs::Durable).await {
            Ok(replies) => pieces.zip(replies.as_slice()).flat_map(|(keys, reply)| done(reply, keys.len())).collect(),
            Err(error) => return repeated(&error, keys.len()),
        };
        let record = |index: usize| done.get(index).copied().flatten();
        let open = keys.iter().enumerate().filter(|(index, _)| record(*index).is_none());
        let open: Vec<EventKey> = open.map(|(_, key)| key.clone()).collect();
        let mut claimed =
            if open.is_empty() { Vec::new() } else { self.claim_each(&open, token, terms).await }.into_iter();
        let unanswered = || Err(StoreError::Refused("no reply to the command".to_owned()));
        let answer = |index| match record(index) {
            Some(record) => Ok(Found::Done(record)),
            None => claimed.next().unwrap_or_else(unanswered),
        };
        (0..keys.len()).map(answer).collect()
    }

    async fn claim_each(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>> {
        let value = Value::Claimed(token.as_str()).text();
        let lease = milliseconds(terms.lease);
        let claims: Commands = keys.iter().map(|key| self.keys().claim(key, &value, lease)).collect();
        let replies = match self.ask(&claims, Needs::Durable).await {
            Ok(replies) => replies,
            Err(error) => return repeated(&error, keys.len()),
        };
        let mut found = Vec::with_capacity(keys.len());
        for reply in replies.as_slice() {
            match attempt(reply, token) {
                Attempt::Decided(answer) => found.push(answer),
                Attempt::TimeDecides | Attempt::Refused(_) => {
                    let attempts = replies.as_slice().iter().map(|reply| attempt(reply, token)).collect();
                    return Box::pin(self.look_again(keys, attempts, token, terms)).await;
                }
            }
        }
        found
    }

    /// Decides the attempts that are open by a second look at their keys, in one round trip for all of them.
    async fn look_again(
        &self,
        keys: &[EventKey],
        attempts: Vec<Attempt>,
        token: &Token,
        terms: Terms,
    ) -> Vec<Result<Found, StoreError>> {
        let open = keys.iter().zip(&attempts).filter(|(_, attempt)| !matches!(attempt, Attempt::Decided(_)));
        let reads: Commands = open.map(|(key, _)| self.keys().call(&scripts::READ, key)).collect();
        let mut looks = self.each(reads, held).await.into_iter();
        let found = |held: Held| Ok(found(held.value()?, held.remaining, token, terms));
        let decide = |attempt| match attempt {
            Attempt::Decided(answer) => answer,
            Attempt::TimeDecides => match looks.next() {
                Some(Ok(Some(held))) => found(held),
                // It ended between the two looks. This attempt has not claimed it, the next one will.
                Some(Ok(None)) | None => Ok(Found::Held),
                Some(Err(error)) => Err(error),
            },
            Attempt::Refused(error) => match looks.next() {
                Some(Ok(Some(held))) => match found(held) {
                    // What an earlier attempt claimed is not confirmed by a server that takes no writes.
                    Ok(Found::Claimed) | Err(_) => Err(error),
                    found => found,
                },
                _ => Err(error),
            },
        };
        attempts.into_iter().map(decide).collect()
    }

    /// A full Redis refuses a plain `SET`, even over a key that is there, but takes it from a script that may.
    async fn settle_in_full(
        &self,
        done: &[(EventKey, Record, Duration)],
        mut answers: Vec<Result<(), StoreError>>,
    ) -> Vec<Result<(), StoreError>> {
        let full: Vec<usize> = (0..answers.len()).filter(|index| is_full(&answers[*index])).collect();
        let call = |index: &usize| {
            let (key, record, window) = &done[*index];
            let mut call = self.keys().call(&scripts::SETTLE_DONE, key);
            call.arg(Value::Done(*record).text()).arg(milliseconds(*window));
            call
        };
        let again = self.each(full.iter().map(call).collect(), |reply| yes_or_no(reply).map(|_| ())).await;
        for (index, answer) in full.into_iter().zip(again) {
            answers[index] = answer;
        }
        answers
    }
}

#[async_trait]
impl ClaimStore for RedisStore {
    async fn claim(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<Found, StoreError>> {
        match keys.len() {
            0 => Vec::new(),
            1..LARGE => self.claim_each(keys, token, terms).await,
            _ => Box::pin(self.claim_many(keys, token, terms)).await,
        }
    }

    async fn settle_done(&self, done: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>> {
        let mut value = String::with_capacity(LONGEST_VALUE);
        let mut written = None;
        let set = |(key, record, window): &(EventKey, Record, Duration)| {
            // What one exchange has settled has one record.
            if written.replace(*record) != Some(*record) {
                value.clear();
                Value::Done(*record).write_to(&mut value);
            }
            self.keys().set(key, &value, milliseconds(*window))
        };
        // The plain SET costs Redis half as much as the script, so it is tried first.
        let mut answers = self.each(done.iter().map(set).collect(), taken).await;
        if answers.iter().any(is_full) {
            answers = Box::pin(self.settle_in_full(done, answers)).await;
        }
        let newest = done.iter().zip(&answers).rev().find(|(_, answer)| answer.is_ok());
        if let Some(((key, _, window), _)) = newest {
            self.connector.witness.remember(key, *window);
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
        let mut call = self.keys().call_if_ours(&scripts::REPLACE, key, token);
        call.arg(Value::Done(record).text()).arg(milliseconds(window));
        self.one(call, yes_or_no).await
    }

    async fn release(&self, keys: &[EventKey], token: &Token) -> Vec<Result<bool, StoreError>> {
        let release = |key| self.keys().call_if_ours(&scripts::RELEASE, key, token);
        self.each(keys.iter().map(release).collect(), yes_or_no).await
    }

    async fn renew(&self, keys: &[EventKey], token: &Token, terms: Terms) -> Vec<Result<bool, StoreError>> {
        let renew = |key| {
            let mut call = self.keys().call_if_ours(&scripts::RENEW, key, token);
            call.arg(milliseconds(terms.lease)).arg(milliseconds(terms.window));
            call
        };
        self.each(keys.iter().map(renew).collect(), yes_or_no).await
    }

    async fn promote(&self, key: &EventKey, token: &Token, window: Duration) -> Result<bool, StoreError> {
        // A promotion licenses an exchange as much as a claim does, so it asks for as much.
        self.connector.durable_link().await?;
        let mut call = self.keys().call_if_ours(&scripts::REPLACE, key, token);
        call.arg(Value::Sending(token.as_str()).text()).arg(milliseconds(window));
        self.one(call, yes_or_no).await
    }

    async fn look(&self, key: &EventKey, terms: Terms) -> Result<Option<Standing>, StoreError> {
        let held = self.one(self.keys().call(&scripts::READ, key), held).await?;
        held.map(|held| Ok(standing(held.value()?, held.remaining, terms))).transpose()
    }

    async fn forget(&self, key: &EventKey, terms: Terms, force: bool) -> Result<Forgotten, StoreError> {
        let mut seen = Forgotten::Absent;
        for _ in 0..FORGET_ATTEMPTS {
            let Some(held) = self.one(self.keys().call(&scripts::READ, key), held).await? else {
                // What was seen a moment ago and is gone may have been freed by a try whose answer was lost.
                return Ok(seen);
            };
            let decided = forgotten(held.value()?, held.remaining, terms, force);
            if matches!(decided, Forgotten::Open(_)) {
                return Ok(decided);
            }
            // Freed only while it holds what was seen.
            let mut call = self.keys().call(&scripts::RELEASE, key);
            call.arg(&held.text).arg(&held.text);
            if self.one(call, yes_or_no).await? {
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

/// Whether Redis refused because it is at its `maxmemory`.
fn is_full(answer: &Result<(), StoreError>) -> bool {
    matches!(answer, Err(StoreError::Refused(error)) if error.starts_with("OOM"))
}

fn repeated<T>(error: &StoreError, count: usize) -> Vec<Result<T, StoreError>> {
    (0..count).map(|_| Err(error.clone())).collect()
}
