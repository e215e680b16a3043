//! A route's `key` list: which parts of a delivery make the key of its events.
//!
//! It is the whole of a generic route, and takes the place of a preset's own parts where such a route has one.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::outline::{Document, Text};
use super::query;
use super::tree::{self, Path};
use super::{AuthFailure, Batch, Delivery, Extraction, Provider, Verified};
use crate::config::{KeyPart, KeySource};
use crate::event::{Event, EventKey, Joining, Unkeyed};

/// A compiled `key` list, with the `events` path where the route has one.
#[derive(Debug)]
pub(super) struct Recipe {
    namespace: String,
    parts: Vec<Part>,
    events: Option<Events>,
    reading: Reading,
}

/// How a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Not at all: parts that stand in headers, the query and the route itself need no body that can be read.
    Not,
    /// All parts stand at paths of names.
    Outline,
    /// Something is found by a JSONPath.
    Tree,
}

/// The body as it was read.
#[derive(Clone, Copy)]
enum Content<'a> {
    Unread,
    Outline(Text<'a>),
    Tree { document: &'a Value, item: Option<&'a Value> },
}

#[derive(Debug)]
struct Part {
    written: String,
    source: Source,
    optional: bool,
}

#[derive(Debug)]
enum Source {
    Body(Path),
    Item(Path),
    Header(String),
    Query(String),
    Literal(String),
}

#[derive(Debug)]
struct Events {
    written: String,
    path: Path,
}

impl Recipe {
    pub(super) fn new(namespace: &str, parts: &[KeyPart], events: Option<&str>) -> Self {
        let parts: Vec<_> = parts.iter().map(Part::compile).collect();
        let mut in_body = parts.iter().filter_map(|part| match &part.source {
            Source::Body(path) | Source::Item(path) => Some(path),
            Source::Header(_) | Source::Query(_) | Source::Literal(_) => None,
        });
        let reading = match events {
            None if in_body.clone().next().is_none() => Reading::Not,
            None if in_body.all(|path| path.names().is_some()) => Reading::Outline,
            _ => Reading::Tree,
        };
        let events = events.map(|written| Events { written: written.to_owned(), path: Path::compile(written) });
        Self { namespace: namespace.to_owned(), parts, events, reading }
    }

    /// The events of a delivery: one, or under `events` one for each element.
    pub(super) fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let key = match self.reading {
            Reading::Tree => return self.extract_by_tree(delivery),
            Reading::Not => self.key(delivery, Content::Unread),
            Reading::Outline => Document::read(delivery.body).and_then(|document| {
                let key = self.key(delivery, Content::Outline(document.root()));
                key.map_err(|reason| handshake_or(reason, document.root()))
            }),
        };
        alone(key)
    }

    fn extract_by_tree(&self, delivery: &Delivery<'_>) -> Extraction {
        let document = match tree::parse(delivery.body) {
            Ok(document) => document,
            Err(reason) => return alone(Err(reason)),
        };
        let key = |item| self.key(delivery, Content::Tree { document: &document, item });
        let unless_handshake = |reason| match Document::read(delivery.body) {
            Ok(document) => handshake_or(reason, document.root()),
            Err(_) => reason,
        };
        let Some(events) = &self.events else { return alone(key(None).map_err(unless_handshake)) };
        let elements = events.path.located(&document);
        if elements.is_empty() {
            return alone(Err(unless_handshake(Unkeyed::Part(events.written.clone()))));
        }
        let found = elements.iter().map(|element| event(key(Some(element.node())))).collect();
        let batch = Batch::of_elements(delivery.body, &elements.locations().collect::<Vec<_>>());
        Extraction { events: found, batch }
    }

    fn key(&self, delivery: &Delivery<'_>, content: Content<'_>) -> Result<EventKey, Unkeyed> {
        let mut key = Joining::under(&self.namespace);
        let mut from_delivery = false;
        for part in &self.parts {
            let text = part.text(delivery, content)?;
            from_delivery |= text.is_some() && !matches!(part.source, Source::Literal(_));
            key.add(text.as_deref());
        }
        // Literals alone would make one event of everything.
        if !from_delivery {
            return Err(Unkeyed::Part(
                self.parts.first().map_or_else(|| "key".to_owned(), |part| part.written.clone()),
            ));
        }
        Ok(key.finish())
    }
}

impl Part {
    fn compile(part: &KeyPart) -> Self {
        let source = match &part.source {
            KeySource::Body(path) => Source::Body(Path::compile(path)),
            KeySource::Item(path) => Source::Item(Path::compile(path)),
            KeySource::Header(name) => Source::Header(name.clone()),
            KeySource::Query(name) => Source::Query(name.clone()),
            KeySource::Literal(text) => Source::Literal(text.clone()),
        };
        Self { written: part.written.clone(), source, optional: part.optional }
    }

    /// The part's text; `None` where it is optional and absent. JSON's `null` is absent, an empty text is not.
    fn text<'a>(&'a self, delivery: &Delivery<'a>, content: Content<'a>) -> Result<Option<Cow<'a, str>>, Unkeyed> {
        let found = match (&self.source, content) {
            (Source::Literal(text), _) => return Ok(Some(Cow::Borrowed(text))),
            (Source::Header(name), _) => {
                let values = delivery.headers.get_all(name).iter();
                Found::among(values.map(|value| std::str::from_utf8(value.as_bytes()).ok().map(Cow::Borrowed)))
            }
            (Source::Query(name), _) => Found::among(query::values(delivery.query, name)),
            (Source::Body(path), Content::Outline(root)) => {
                let names = path.names().unwrap_or_default();
                let value = names.iter().try_fold(root, |value, name| value.get(name));
                Found::among(value.filter(|value| !value.is_null()).map(Text::key_part).into_iter())
            }
            (Source::Body(path), Content::Tree { document, .. }) => Found::in_tree(path, document),
            (Source::Item(path), Content::Tree { item: Some(item), .. }) => Found::in_tree(path, item),
            (Source::Body(_), Content::Unread) | (Source::Item(_), _) => Found::Nothing,
        };
        match found {
            Found::Nothing if self.optional => Ok(None),
            Found::Text(text) => Ok(Some(text)),
            Found::Nothing | Found::Unusable => Err(Unkeyed::Part(self.written.clone())),
        }
    }
}

/// What stands where a part points to.
enum Found<'a> {
    Nothing,
    Text(Cow<'a, str>),
    /// Several values, or one that can be no part of a key.
    Unusable,
}

impl<'a> Found<'a> {
    /// `None` is a value that can be no part of a key.
    fn among(mut values: impl Iterator<Item = Option<Cow<'a, str>>>) -> Self {
        match (values.next(), values.next()) {
            (None, _) => Self::Nothing,
            (Some(Some(text)), None) if !text.is_empty() => Self::Text(text),
            _ => Self::Unusable,
        }
    }

    fn in_tree(path: &Path, document: &'a Value) -> Self {
        match path.all(document).as_slice() {
            [Value::Null] => Self::Nothing,
            values => Self::among(values.iter().map(|value| tree::text(value))),
        }
    }
}

fn alone(key: Result<EventKey, Unkeyed>) -> Extraction {
    Extraction { events: vec![event(key)], batch: None }
}

fn event(key: Result<EventKey, Unkeyed>) -> Event {
    Event { kind: "event".into(), key, conversation: None }
}

/// Slack's way of asking whether a URL is meant: the answer's body must reach it, and it is no event.
fn handshake_or(reason: Unkeyed, root: Text<'_>) -> Unkeyed {
    let asks = root.get("type").and_then(Text::key_part).is_some_and(|kind| kind == "url_verification");
    if asks && root.get("challenge").is_some() { Unkeyed::Handshake } else { reason }
}

/// A preset whose own parts give way to the route's `key` list; what it verifies and signs stays.
pub(super) struct WithRecipe {
    pub(super) preset: Arc<dyn Provider>,
    pub(super) recipe: Recipe,
}

impl Provider for WithRecipe {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.preset.verify(delivery, now)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let mut extraction = self.recipe.extract(delivery);
        // Where both see one event, the preset knows what it is called and whose conversation it belongs to.
        if let [event] = extraction.events.as_mut_slice()
            && let Ok([known]) = <[Event; 1]>::try_from(self.preset.extract(delivery).events)
        {
            event.kind = known.kind;
            event.conversation = known.conversation;
        }
        extraction
    }

    fn sign(
        &self,
        delivery: &Delivery<'_>,
        verified: Verified,
        body: &[u8],
    ) -> Vec<(http::HeaderName, http::HeaderValue)> {
        self.preset.sign(delivery, verified, body)
    }

    fn identifies(&self) -> &'static str {
        IDENTIFIES
    }
}

/// What a key from a `key` list identifies.
pub(super) const IDENTIFIES: &str = "what the parts in the route's `key` list identify together";
