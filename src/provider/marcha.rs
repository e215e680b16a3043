//! Marcha, also MarchaPay: one event in each delivery.
//!
//! No documentation is public; two generations of bodies are known from handlers. The newer one brings its event's id
//! in a header. An order's `uuid` and an old transaction's `id` are no events: each of their statuses repeats them.

use std::borrow::Cow;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::json;
use super::signature::single_header;
use super::verify::Verifier;
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config;
use crate::event::{Event, EventKey, Unkeyed};

/// One postback URL.
pub(super) struct Marcha {
    namespace: String,
    verifier: Verifier,
}

impl Marcha {
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), verifier: Verifier::new(&config.verify, &config.secrets) }
    }

    fn key(&self, headers: &HeaderMap, document: Result<&Value, Unkeyed>) -> Result<EventKey, Unkeyed> {
        if let Some(id) = single_header(headers, "x-webhook-event-id").ok().filter(|id| !id.is_empty()) {
            return Ok(EventKey::new(&self.namespace, [Some(id)]));
        }
        let document = document?;
        let paths: &[&str] = if json::at(document, "$.event").is_some() {
            &["$.event", "$.data.order.uuid", "$.data.order.status", "$.occurred_at"]
        } else {
            &["$.id", "$.data.id", "$.data.status"]
        };
        let parts = paths.iter().map(|path| json::required(document, path)).collect::<Result<Vec<_>, _>>()?;
        Ok(EventKey::new(&self.namespace, parts.iter().map(|part| Some(&**part))))
    }
}

impl Provider for Marcha {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.verifier.verify(delivery, now)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let document = json::parse(delivery.body);
        let kind = document
            .as_ref()
            .ok()
            .and_then(|document| json::at(document, "$.event").or_else(|| json::at(document, "$.type")))
            .and_then(json::text)
            .map_or_else(|| "event".to_owned(), Cow::into_owned);
        let key = self.key(delivery.headers, document.as_ref().map_err(Unkeyed::clone));
        Extraction { events: vec![Event { kind, key, conversation: None }], batch: None }
    }

    fn sign(&self, _: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        self.verifier.sign(verified, body)
    }

    fn identifies(&self) -> &'static str {
        "one Marcha event, by the header X-Webhook-Event-Id, else by what happened to which order, its status and when"
    }
}
