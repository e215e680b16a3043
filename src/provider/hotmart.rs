//! Hotmart, webhook version 2.0.0: one event in each delivery.
//!
//! `X-HOTMART-HOTTOK` is a fixed token, no signature. The envelope's `id` is the event. `transaction` is not: a
//! purchase keeps it from the printed slip to the refund, and every test delivery of the panel has the same.

use std::time::SystemTime;

use http::{HeaderName, HeaderValue};

use super::outline::{Document, Text};
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

    fn key(&self, root: Text<'_>) -> Result<EventKey, Unkeyed> {
        if let Ok(id) = root.required("$.id") {
            return Ok(EventKey::new(&self.namespace, [Some(&*id)]));
        }
        // Without an id the event is known by when it was made and what it says. The order of names varies from one
        // delivery to the next, so the hash must not depend on it. CLUB_FIRST_ACCESS writes the date in camel case.
        let event = root.required("$.event")?;
        let transaction = root.at("$.data.purchase.transaction").and_then(Text::key_part);
        let created =
            root.required("$.creation_date").or_else(|missing| root.required("$.creationDate").map_err(|_| missing))?;
        let data = root.get("data").and_then(Text::canonical_sha256);
        let data = data.ok_or_else(|| Unkeyed::Part("$.data".to_owned()))?;
        Ok(EventKey::new(&self.namespace, [Some(&*event), transaction.as_deref(), Some(&*created), Some(&*data)]))
    }
}

impl Provider for Hotmart {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.verifier.verify(delivery, now)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let document = Document::read(delivery.body);
        let root = document.as_ref().map(Document::root).map_err(Unkeyed::clone);
        let kind = root.as_ref().ok().and_then(|root| root.get("event")).and_then(Text::key_part);
        let kind = kind.map_or("event".into(), |kind| kind.into_owned().into());
        let key = root.and_then(|root| self.key(root));
        Extraction { events: vec![Event { kind, key, conversation: None }], batch: None }
    }

    fn sign(&self, _: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        self.verifier.sign(verified, body)
    }

    fn identifies(&self) -> &'static str {
        "one Hotmart event, by its envelope's `id`, else by its kind, transaction, creation date and content"
    }
}
