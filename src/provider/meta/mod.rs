//! Meta: the WhatsApp Cloud API, Messenger and Instagram.
//!
//! One delivery holds up to 1000 updates, in entries, changes and arrays of values. Every message, status, echo, call
//! and so on is an event of its own; see [`elements`] for what is an event and what is its envelope, and [`keys`] for
//! what identifies each.

mod contacts;
mod elements;
mod keys;

use std::time::SystemTime;

use http::{HeaderName, HeaderValue};

use super::signature::{HmacScheme, single_header};
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config::{self, Encoding, HmacAlgorithm, Secret, Verify};

/// HMAC-SHA256 of the raw body with the app secret.
const SIGNATURE: &str = "x-hub-signature-256";
/// HMAC-SHA1 of the same, which Meta still sends for old handlers. It proves nothing here.
const LEGACY_SIGNATURE: &str = "x-hub-signature";

/// Deliveries of one Meta app.
pub(super) struct Meta {
    secrets: Vec<Secret>,
    /// False under `verify: off`. The parts of a batch are signed all the same, if there is a secret.
    verifies: bool,
    namespace: String,
}

impl Meta {
    /// The provider of a route whose keys begin with `namespace`.
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        let verifies = config.verify != Verify::Off;
        Self { secrets: config.secrets.clone(), verifies, namespace: namespace.to_owned() }
    }
}

impl Provider for Meta {
    fn verify(&self, delivery: &Delivery<'_>, _now: SystemTime) -> Result<Verified, AuthFailure> {
        if !self.verifies {
            return Ok(Verified::NotChecked);
        }
        let received = single_header(delivery.headers, SIGNATURE)?;
        scheme(HmacAlgorithm::Sha256).verify(&self.secrets, received, &[delivery.body]).map(Verified::BySecret)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        elements::read(delivery.body, &self.namespace)
    }

    fn sign(&self, delivery: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        let index = match verified {
            Verified::BySecret(index) => index,
            Verified::NotChecked => 0,
        };
        let Some(secret) = self.secrets.get(index) else { return Vec::new() };
        [(SIGNATURE, HmacAlgorithm::Sha256), (LEGACY_SIGNATURE, HmacAlgorithm::Sha1)]
            .into_iter()
            .filter(|(name, _)| delivery.headers.contains_key(*name))
            .filter_map(|(name, algorithm)| {
                let value = HeaderValue::from_str(&scheme(algorithm).sign(secret, &[body])).ok()?;
                Some((HeaderName::from_static(name), value))
            })
            .collect()
    }

    fn identifies(&self) -> &'static str {
        "one message, one status of one message (in a group: for one participant), one echo, call or edit, or one \
         change of an account, at one business number, page or account"
    }
}

fn scheme(algorithm: HmacAlgorithm) -> HmacScheme {
    let prefix = match algorithm {
        HmacAlgorithm::Sha1 => "sha1=",
        HmacAlgorithm::Sha256 => "sha256=",
    };
    HmacScheme { algorithm, encoding: Encoding::Hex, prefix: prefix.to_owned() }
}

#[cfg(test)]
mod tests;
