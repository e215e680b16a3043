//! A route's `key` list: which parts of a delivery make the key of its events.
//!
//! It is the whole of a generic route, and takes the place of a preset's own parts where such a route has one.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::json::{self, Path, Wanted};
use super::query;
use super::{AuthFailure, Batch, Delivery, Extraction, Provider, Verified};
use crate::config::{KeyPart, KeySource};
use crate::event::{Event, EventKey, Unkeyed};

/// A compiled `key` list, with the `events` path where the route has one.
#[derive(Debug)]
pub(super) struct Recipe {
    namespace: String,
    parts: Vec<Part>,
    events: Option<Events>,
    reads_body: bool,
    /// Where all parts stand at plain paths: all that needs to be read of a body.
    wanted: Option<Wanted>,
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
        let in_body = parts.iter().filter_map(|part| match &part.source {
            KeySource::Body(path) => Some(path.as_str()),
            _ => None,
        });
        let wanted = if events.is_some() { None } else { Wanted::new(in_body.chain(["$.type", "$.challenge"])) };
        let parts: Vec<_> = parts.iter().map(Part::compile).collect();
        Self {
            wanted,
            namespace: namespace.to_owned(),
            reads_body: events.is_some()
                || parts.iter().any(|part| matches!(part.source, Source::Body(_) | Source::Item(_))),
            parts,
            events: events.map(|written| Events { written: written.to_owned(), path: Path::compile(written) }),
        }
    }

    /// The events of a delivery: one, or under `events` one for each element.
    pub(super) fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        // Parts that stand in headers, the query and the route itself need no body that can be read.
        let read = || match &self.wanted {
            Some(wanted) => json::parse_only(delivery.body, wanted),
            None => json::parse(delivery.body),
        };
        let document = match self.reads_body.then(read).transpose() {
            Ok(document) => document.unwrap_or(Value::Null),
            Err(reason) => return Extraction { events: vec![event(Err(reason))], batch: None },
        };
        let Some(events) = &self.events else {
            let key = self.key(delivery, &document, None).map_err(|reason| handshake_or(reason, &document));
            return Extraction { events: vec![event(key)], batch: None };
        };
        let elements = events.path.located(&document);
        let mut found: Vec<_> =
            elements.iter().map(|element| event(self.key(delivery, &document, Some(element.node())))).collect();
        if found.is_empty() {
            found.push(event(Err(handshake_or(Unkeyed::Part(events.written.clone()), &document))));
        }
        let batch = Batch::of_elements(delivery.body, &elements.locations().collect::<Vec<_>>());
        Extraction { events: found, batch }
    }

    fn key(&self, delivery: &Delivery<'_>, document: &Value, item: Option<&Value>) -> Result<EventKey, Unkeyed> {
        let mut texts = Vec::with_capacity(self.parts.len());
        let mut from_delivery = false;
        for part in &self.parts {
            let text = part.text(delivery, document, item)?;
            from_delivery |= text.is_some() && !matches!(part.source, Source::Literal(_));
            texts.push(text);
        }
        // Literals alone would make one event of everything.
        if !from_delivery {
            return Err(Unkeyed::Part(
                self.parts.first().map_or_else(|| "key".to_owned(), |part| part.written.clone()),
            ));
        }
        Ok(EventKey::new(&self.namespace, texts.iter().map(Option::as_deref)))
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
    fn text<'a>(
        &'a self,
        delivery: &Delivery<'a>,
        document: &'a Value,
        item: Option<&'a Value>,
    ) -> Result<Option<Cow<'a, str>>, Unkeyed> {
        let mut found: Vec<Option<Cow<'a, str>>> = match &self.source {
            Source::Literal(text) => return Ok(Some(Cow::Borrowed(text))),
            Source::Body(path) => texts(&path.all(document)),
            Source::Item(path) => texts(&item.map(|item| path.all(item)).unwrap_or_default()),
            Source::Header(name) => {
                let values = delivery.headers.get_all(name).iter();
                values.map(|value| std::str::from_utf8(value.as_bytes()).ok().map(Cow::Borrowed)).collect()
            }
            Source::Query(name) => query::values(delivery.query, name).collect(),
        };
        match (found.pop(), found.is_empty()) {
            (None, _) if self.optional => Ok(None),
            (Some(Some(text)), true) if !text.is_empty() => Ok(Some(text)),
            _ => Err(Unkeyed::Part(self.written.clone())),
        }
    }
}

fn texts<'a>(values: &[&'a Value]) -> Vec<Option<Cow<'a, str>>> {
    match values {
        [Value::Null] => Vec::new(),
        values => values.iter().map(|value| json::text(value)).collect(),
    }
}

fn event(key: Result<EventKey, Unkeyed>) -> Event {
    Event { kind: "event".to_owned(), key, conversation: None }
}

/// Slack's way of asking whether a URL is meant: the answer's body must reach it, and it is no event.
fn handshake_or(reason: Unkeyed, document: &Value) -> Unkeyed {
    let asks = json::at(document, "$.type").is_some_and(|kind| kind == "url_verification");
    if asks && json::at(document, "$.challenge").is_some() { Unkeyed::Handshake } else { reason }
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
