//! Evolution API, versions 1.8 and 2.x: one webhook event in each delivery, sometimes about several things.
//!
//! Nothing in a body is an event's id, so each event has its own recipe. Three things of the sender shape them:
//!
//! - `date_time` is set once per event: it is equal over retries and over the copies that the instance's and the global
//!   webhook send. Without it, states that repeat for good reasons (connecting, open, connecting) would be one event.
//! - `data` of a message is written anew at each attempt and may have grown meanwhile, so it is never hashed where
//!   there is an id. The same message can be emitted again after a reconnect, with a new `date_time`: its id tells.
//! - `messages.update` is flat in 2.x (`keyId`), spreads the message's key in 1.8 (`id`), and forks nest it
//!   (`{key, update}`, also in arrays).
//!
//! An instance is known by its name. Where two servers have instances of one name, each needs a route of its own. An
//! event with neither the ids of its recipe nor a `date_time` has no key.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::time::SystemTime;

use http::{HeaderName, HeaderValue};

use super::outline::{Document, Text};
use super::verify::Verifier;
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config;
use crate::event::{Event, EventKey, Unkeyed};

/// One webhook URL of an Evolution server, with or without the suffixes of its by-events mode.
pub(super) struct Evolution {
    namespace: String,
    verifier: Verifier,
}

impl Evolution {
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), verifier: Verifier::new(&config.verify, &config.secrets) }
    }

    fn events(&self, root: Text<'_>) -> Vec<Event> {
        let kind = match root.required("$.event") {
            Ok(kind) => kind,
            Err(reason) => return vec![unkeyed(reason)],
        };
        let nothing = Document::null();
        let data = root.get("data").unwrap_or_else(|| nothing.root());
        let ids = ids_of(&kind);
        let around = Around { root, instance: root.required("$.instance"), date_time: OnceCell::new() };
        let event = |thing| Event {
            kind: Cow::Owned(kind.clone().into_owned()),
            key: self.key(&around, &kind, ids, thing),
            conversation: one_of(thing, &["$.key.remoteJid", "$.remoteJid"]).flatten().map(Cow::into_owned),
        };
        // What is known by an id is an event of its own in an array; what is known by its moment is not.
        match data.array() {
            Some(elements) if ids.is_some() && !data.is_hollow() => elements.map(event).collect(),
            _ => vec![event(data)],
        }
    }

    fn key<'a>(
        &self,
        around: &Around<'a>,
        kind: &'a str,
        ids: Option<Ids>,
        thing: Text<'a>,
    ) -> Result<EventKey, Unkeyed> {
        let instance = match &around.instance {
            Ok(instance) => Some(instance.clone()),
            // The server's own error reports belong to no instance.
            Err(_) if kind == "error" => None,
            Err(reason) => return Err(reason.clone()),
        };
        let mut parts = vec![instance, Some(Cow::Borrowed(kind))];
        match ids.and_then(|ids| ids(around, thing)) {
            Some(ids) => parts.extend(ids),
            None => {
                parts.push(Some(around.date_time()?));
                let hash = thing.canonical_sha256().ok_or_else(|| Unkeyed::Part("$.data".to_owned()))?;
                parts.push(Some(hash.into()));
            }
        }
        Ok(EventKey::new(&self.namespace, parts.iter().map(Option::as_deref)))
    }
}

impl Provider for Evolution {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.verifier.verify(delivery, now).or_else(|failure| {
            // The by-events mode appends its suffix to the whole URL: `?token=x` arrives as `?token=x/messages-upsert`.
            let (query, _) = delivery.query.rsplit_once('/').ok_or(failure)?;
            self.verifier.verify(&Delivery { query, ..*delivery }, now).map_err(|_| failure)
        })
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let events = match Document::read(delivery.body) {
            Ok(document) => self.events(document.root()),
            Err(reason) => vec![unkeyed(reason)],
        };
        Extraction { events, batch: None }
    }

    fn sign(&self, _: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        self.verifier.sign(verified, body)
    }

    fn identifies(&self) -> &'static str {
        "one message, one status of it, or one call of an Evolution instance by its id; any other event by its moment \
         (`date_time`) and content"
    }
}

/// What stands beside all things of a delivery. It is looked up once, not for each of them: a body can have many things
/// and much beside them.
struct Around<'a> {
    root: Text<'a>,
    instance: Result<Cow<'a, str>, Unkeyed>,
    date_time: OnceCell<Result<Cow<'a, str>, Unkeyed>>,
}

impl<'a> Around<'a> {
    fn date_time(&self) -> Result<Cow<'a, str>, Unkeyed> {
        self.date_time.get_or_init(|| self.root.required("$.date_time")).clone()
    }
}

/// The parts after instance and event; `None` where the thing lacks what identifies it.
type Ids = for<'a> fn(around: &Around<'a>, thing: Text<'a>) -> Option<Vec<Option<Cow<'a, str>>>>;

/// How the things in an event of this kind are identified; `None` where only the moment tells.
fn ids_of(kind: &str) -> Option<Ids> {
    match kind {
        // Neither `fromMe` nor `remoteJid`: one id can show under both of a contact's addresses.
        "messages.upsert" | "send.message" => Some(|_, message| Some(vec![Some(one_of(message, &["$.key.id"])??)])),
        "messages.update" => Some(|_, update| {
            let id = one_of(update, &["$.keyId", "$.key.id", "$.id"])??;
            let status = one_of(update, &["$.status", "$.update.status"])?;
            let participant = one_of(update, &["$.participant", "$.key.participant"])?;
            let votes = hash(update, "$.pollUpdates").or_else(|| hash(update, "$.update.pollUpdates"));
            // Other changes of a message (a star, a new text) say neither: its id would make one event of them all.
            (status.is_some() || votes.is_some()).then(|| vec![Some(id), status, participant, votes])
        }),
        // `key.id` is the original message's, so that a second edit has it too. The time may be written as an object
        // of two halves.
        "messages.edited" | "send.message.update" => Some(|_, edit| {
            let id = one_of(edit, &["$.key.id"])??;
            let time = edit.get("timestampMs").and_then(Text::key_part).or_else(|| hash(edit, "$.timestampMs"));
            let content = hash(edit, "$.editedMessage");
            (time.is_some() || content.is_some()).then_some(())?;
            Some(vec![Some(id), one_of(edit, &["$.type"])?, time, content])
        }),
        // A revocation is the message's key itself; a deletion over the API has the key inside, and a database id.
        "messages.delete" => Some(|_, deleted| {
            let id = if deleted.get("key").is_some() { "$.key.id" } else { "$.id" };
            Some(vec![Some(one_of(deleted, &[id])??)])
        }),
        "call" => Some(|_, call| Some(vec![Some(one_of(call, &["$.id"])??), Some(one_of(call, &["$.status"])??)])),
        "group-participants.update" => Some(|around, update| {
            let (id, action) = (one_of(update, &["$.id"])??, one_of(update, &["$.action"])??);
            let date_time = around.date_time().ok()?;
            Some(vec![Some(id), Some(action), Some(hash(update, "$.participants")?), Some(date_time)])
        }),
        _ => None,
    }
}

/// The text at the first of these paths that has one: `Some(None)` where all are absent, null or empty, and `None` where
/// one has what can be no text, so that nothing is made of it.
fn one_of<'a>(value: Text<'a>, paths: &[&str]) -> Option<Option<Cow<'a, str>>> {
    let mut found = paths.iter().filter_map(|path| value.at(path));
    let found = found.find(|found| !found.is_null() && !found.is_empty_string());
    found.map_or(Some(None), |found| found.key_part().map(Some))
}

fn hash<'a>(value: Text<'_>, path: &str) -> Option<Cow<'a, str>> {
    value.at(path).filter(|found| !found.is_null())?.canonical_sha256().map(Cow::Owned)
}

fn unkeyed(reason: Unkeyed) -> Event {
    Event { kind: "event".into(), key: Err(reason), conversation: None }
}
