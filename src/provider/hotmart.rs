//! Hotmart, webhook version 2.0.0: one event in each delivery.
//!
//! `X-HOTMART-HOTTOK` is a fixed token, no signature. The envelope's `id` is the event. `transaction` is not: a
//! purchase keeps it from the printed slip to the refund, and every test delivery of the panel has the same.

use std::time::SystemTime;

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::json;
use super::verify::Verifier;
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config::{self, Place, Verify};
use crate::event::{Event, EventKey, Unkeyed};

/// One webhook of a Hotmart account.
pub(super) struct Hotmart {
    namespace: String,
    verifier: Verifier,
}

impl Hotmart {
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        let verify = match &config.verify {
            Verify::Preset => &Verify::Token(Place::Header("x-hotmart-hottok".to_owned())),
            said => said,
        };
        Self { namespace: namespace.to_owned(), verifier: Verifier::new(verify, &config.secrets) }
    }

    fn key(&self, document: &Value) -> Result<EventKey, Unkeyed> {
        if let Ok(id) = json::required(document, "$.id") {
            return Ok(EventKey::new(&self.namespace, [Some(&*id)]));
        }
        // Without an id the event is known by when it was made and what it says. The order of names varies from one
        // delivery to the next, so the hash must not depend on it. CLUB_FIRST_ACCESS writes the date in camel case.
        let event = json::required(document, "$.event")?;
        let transaction = json::at(document, "$.data.purchase.transaction").and_then(json::text);
        let created = json::required(document, "$.creation_date")
            .or_else(|missing| json::required(document, "$.creationDate").map_err(|_| missing))?;
        let data = json::at(document, "$.data").ok_or_else(|| Unkeyed::Part("$.data".to_owned()))?;
        let data = json::canonical_sha256(data);
        Ok(EventKey::new(&self.namespace, [Some(&*event), transaction.as_deref(), Some(&*created), Some(&*data)]))
    }
}

impl Provider for Hotmart {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.verifier.verify(delivery, now)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let document = json::parse(delivery.body);
        let kind = document.as_ref().ok().and_then(|document| json::at(document, "$.event")).and_then(json::text);
        let kind = kind.map_or_else(|| "event".to_owned(), Into::into);
        let key = document.and_then(|document| self.key(&document));
        Extraction { events: vec![Event { kind, key, conversation: None }], batch: None }
    }

    fn sign(&self, _: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        self.verifier.sign(verified, body)
    }

    fn identifies(&self) -> &'static str {
        "one Hotmart event, by its envelope's `id`, else by its kind, transaction, creation date and content"
    }
}
