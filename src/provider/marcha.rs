//! Marcha, also MarchaPay: one event in each delivery.
//!
//! No documentation is public; two generations of bodies are known from handlers. The newer one brings its event's id
//! in a header. An order's `uuid` and an old transaction's `id` are no events: each of their statuses repeats them.

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::outline::{Document, Text};
use super::signature::single_header;
use super::verify::Verifier;
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config;
use crate::event::{Event, EventKey, Joining, Unkeyed};

/// One postback URL.
pub(super) struct Marcha {
    namespace: String,
    verifier: Verifier,
}

impl Marcha {
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), verifier: Verifier::new(&config.verify, &config.secrets) }
    }

    fn key(&self, headers: &HeaderMap, root: Result<Text<'_>, Unkeyed>) -> Result<EventKey, Unkeyed> {
        if let Some(id) = single_header(headers, "x-webhook-event-id").ok().filter(|id| !id.is_empty()) {
            return Ok(EventKey::new(&self.namespace, [Some(id)]));
        }
        let root = root?;
        let paths: &[&str] = if root.get("event").is_some() {
            &["$.event", "$.data.order.uuid", "$.data.order.status", "$.occurred_at"]
        } else {
            &["$.id", "$.data.id", "$.data.status"]
        };
        let mut key = Joining::under(&self.namespace);
        for path in paths {
            key.add(Some(&root.required(path)?));
        }
        Ok(key.finish())
    }
}

impl Provider for Marcha {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.verifier.verify(delivery, now)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let document = Document::read(delivery.body);
        let root = document.as_ref().map(Document::root).map_err(Unkeyed::clone);
        let kind = root.as_ref().ok().and_then(|root| root.get("event").or_else(|| root.get("type")));
        let kind = kind.and_then(Text::key_part).map_or("event".into(), |kind| kind.into_owned().into());
        let key = self.key(delivery.headers, root);
        Extraction { events: vec![Event { kind, key, conversation: None }], batch: None }
    }

    fn sign(&self, _: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        self.verifier.sign(verified, body)
    }

    fn identifies(&self) -> &'static str {
        "one Marcha event, by the header X-Webhook-Event-Id, else by what happened to which order, its status and when"
    }
}
