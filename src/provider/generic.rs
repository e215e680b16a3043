//! Any provider that the route's own `verify` and `key` describe.

use std::time::SystemTime;

use http::{HeaderName, HeaderValue};

use super::recipe::{self, Recipe};
use super::verify::Verifier;
use super::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::config;

/// A route's own recipe. An element that `events` finds and whose key cannot be built is an event without a key.
pub(super) struct Generic {
    verifier: Verifier,
    recipe: Recipe,
}

impl Generic {
    pub(super) fn new(config: &config::Provider, namespace: &str) -> Self {
        let parts = config.key.as_deref().unwrap_or_default();
        Self {
            verifier: Verifier::new(&config.verify, &config.secrets),
            recipe: Recipe::new(namespace, parts, config.events.as_deref()),
        }
    }
}

impl Provider for Generic {
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        self.verifier.verify(delivery, now)
    }

    fn extract(&self, delivery: &Delivery<'_>) -> Extraction {
        self.recipe.extract(delivery)
    }

    fn sign(&self, _: &Delivery<'_>, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        self.verifier.sign(verified, body)
    }

    fn identifies(&self) -> &'static str {
        recipe::IDENTIFIES
    }
}
