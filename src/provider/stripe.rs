//! Stripe: events v1 and thin events v2, one in each delivery.
//!
//! `Stripe-Signature: t=<unix seconds>,v1=<hex>,…` signs the text of `t`, a dot and the raw body, with the whole
//! secret, `whsec_` included. While a secret is rolled there is a `v1` for each; other schemes are ignored, since
//! Stripe adds a false `v0` to test events. Each attempt is signed anew, so that only the event's `id` tells copies.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue};
use subtle::{Choice, ConstantTimeEq};

use super::outline::{Document, Text};
use super::signature::{HmacScheme, single_header};
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config::{self, Encoding, HmacAlgorithm, Secret, Verify};
use crate::event::{Event, EventKey, Unkeyed};

const SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

/// How old a signature may be. Like Stripe's own libraries this refuses old ones only, not those of a sender whose
/// clock is ahead.
const TOLERANCE_SECONDS: u64 = 300;

/// One Stripe endpoint. Another endpoint of the same account gets the same ids: it is another route.
pub(super) struct Stripe {
    namespace: String,
    secrets: Vec<Secret>,
    verifies: bool,
    scheme: HmacScheme,
}

impl Stripe {
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            secrets: config.secrets.clone(),
            verifies: config.verify != Verify::Off,
            scheme: HmacScheme { algorithm: HmacAlgorithm::Sha256, encoding: Encoding::Hex, prefix: String::new() },
        }
    }
}

impl Provider for Stripe {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        if !self.verifies {
            return Ok(Verified::NotChecked);
        }
        let received = Received::parse(single_header(delivery.headers, SIGNATURE.as_str())?)?;
        // Each secret signs once, however many signatures the header brings: it may bring hundreds.
        let index = self
            .secrets
            .iter()
            .position(|secret| received.holds(&self.sign_at(secret, received.time, delivery.body)))
            .ok_or(AuthFailure::Mismatch)?;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if now.saturating_sub(received.seconds) > TOLERANCE_SECONDS {
            return Err(AuthFailure::Stale);
        }
        Ok(Verified::BySecret(index))
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        let document = Document::read(delivery.body);
        let root = document.as_ref().map(Document::root).map_err(Unkeyed::clone);
        let kind = root.as_ref().ok().and_then(|root| root.get("type")).and_then(Text::key_part);
        let kind = kind.map_or("event".into(), |kind| kind.into_owned().into());
        let key = root.and_then(|root| Ok(EventKey::new(&self.namespace, [Some(&*root.required("$.id")?)])));
        Extraction { events: vec![Event { kind, key, conversation: None }], batch: None }
    }

    fn sign(&self, delivery: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        let header = || {
            let Verified::BySecret(index) = verified else { return None };
            let received = Received::parse(single_header(delivery.headers, SIGNATURE.as_str()).ok()?).ok()?;
            let signature = self.sign_at(self.secrets.get(index)?, received.time, body);
            HeaderValue::try_from(format!("t={},v1={signature}", received.time)).ok()
        };
        header().map(|value| (SIGNATURE, value)).into_iter().collect()
    }

    fn identifies(&self) -> &'static str {
        "one Stripe event, by its `id`"
    }
}

impl Stripe {
    fn sign_at(&self, secret: &Secret, time: &str, body: &[u8]) -> String {
        self.scheme.sign(secret, &[time.as_bytes(), b".", body])
    }
}

/// What a `Stripe-Signature` header says.
struct Received<'a> {
    time: &'a str,
    seconds: u64,
    signatures: Vec<&'a str>,
}

impl<'a> Received<'a> {
    fn parse(header: &'a str) -> Result<Self, AuthFailure> {
        let mut times = Vec::new();
        let mut signatures = Vec::new();
        for (name, value) in header.split(',').filter_map(|entry| entry.trim().split_once('=')) {
            match name {
                "t" => times.push(value),
                "v1" => signatures.push(value),
                _ => {}
            }
        }
        let [time] = times[..] else { return Err(AuthFailure::Malformed) };
        let digits = time.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = time.parse().ok().filter(|_| digits).ok_or(AuthFailure::Malformed)?;
        if signatures.is_empty() {
            return Err(AuthFailure::Malformed);
        }
        Ok(Self { time, seconds, signatures })
    }

    fn holds(&self, expected: &str) -> bool {
        let found = self
            .signatures
            .iter()
            .fold(Choice::from(0), |found, signature| found | signature.as_bytes().ct_eq(expected.as_bytes()));
        found.into()
    }
}
