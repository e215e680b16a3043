//! Providers: who sent a delivery, whether it is authentic, and which events are in it.
//!
//! One file per provider, one arm in [`build`]. Providers are pure: they look at one delivery, and know neither stores
//! nor upstreams.

mod batch;
mod outline;
mod query;
mod recipe;
mod signature;
mod tree;
mod verify;

mod evolution;
mod generic;
mod hotmart;
mod marcha;
mod meta;
mod stripe;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::HeaderMap;

pub use batch::Batch;

use crate::config::{self, ProviderKind};
use crate::event::Event;

/// One delivery, as its provider sees it.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The path, without the query.
    pub path: &'a str,
    /// The query as received, without the `?`; empty where there is none.
    pub query: &'a str,
    /// The received headers.
    pub headers: &'a HeaderMap,
    /// The received body, byte for byte.
    pub body: &'a Bytes,
}

/// A provider, as one route uses it.
///
/// # Guarantees
///
/// - [`verify`](Provider::verify) looks at the received bytes and decides in constant time for secrets and signatures.
/// - [`extract`](Provider::extract) never fails and never loses content: what it does not understand is an event
///   without a key, which is forwarded.
/// - Equal events give equal keys and different events different ones, whatever stands around them in a batch, and
///   whatever the provider changes from one delivery of an event to the next.
/// - Neither logs, and no error names a secret or a value of the payload.
pub trait Provider: Send + Sync {
    /// Whether the delivery is authentic. Nothing about its keys may be read or written before this has said yes.
    fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure>;

    /// The events of the delivery, in the order in which they stand in it; at least one.
    fn extract(&self, delivery: &Delivery<'_>) -> Extraction;

    /// Headers that must be set when `body` replaces the received one, so that the upstream's own verification accepts
    /// it: every signature header that the delivery has, renewed with the secret that verified. Empty where nothing
    /// signs the body.
    fn sign(
        &self,
        delivery: &Delivery<'_>,
        verified: Verified,
        body: &[u8],
    ) -> Vec<(http::HeaderName, http::HeaderValue)>;

    /// What a key of this provider identifies, for `explain` and for people who wonder why something was a duplicate.
    fn identifies(&self) -> &'static str;
}

/// How a delivery was found authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// By the secret at this index of the route's list.
    BySecret(usize),
    /// `verify: off`: it was not looked at.
    NotChecked,
}

/// Why a delivery is not authentic. The label is the metrics' `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthFailure {
    /// The header or parameter that carries the signature or token is not there, or more than once.
    #[error("the signature or token is missing")]
    Missing,
    /// It is there, but cannot be read as what it should be.
    #[error("the signature or token is malformed")]
    Malformed,
    /// It was made with another secret or over other bytes.
    #[error("the signature or token does not match")]
    Mismatch,
    /// It was right once, and is too old now.
    #[error("the signature or token is too old")]
    Stale,
}

impl AuthFailure {
    /// Every failure, so that each can be counted from the start.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Malformed, Self::Mismatch, Self::Stale];

    /// The metrics' `reason`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Mismatch => "mismatch",
            Self::Stale => "stale",
        }
    }
}

/// What was found in a delivery.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// The events, in the order in which they stand in the delivery; at least one. Two may have the same key: they are
    /// one event.
    pub events: Vec<Event>,
    /// How to make a body that holds only some of the events. `None` where the delivery cannot be cut: then it is
    /// forwarded whole or not at all.
    pub batch: Option<Batch>,
}

/// Builds the provider of a route; `None` for `provider: none`, which never gets this far.
#[must_use]
pub fn build(config: &config::Provider, namespace: &str) -> Option<Arc<dyn Provider>> {
    let preset: Arc<dyn Provider> = match config.kind {
        ProviderKind::Generic => return Some(Arc::new(generic::Generic::new(config, namespace))),
        ProviderKind::Stripe => Arc::new(stripe::Stripe::new(config, namespace)),
        ProviderKind::Hotmart => Arc::new(hotmart::Hotmart::new(config, namespace)),
        ProviderKind::Evolution => Arc::new(evolution::Evolution::new(config, namespace)),
        ProviderKind::Marcha => Arc::new(marcha::Marcha::new(config, namespace)),
        ProviderKind::Meta => Arc::new(meta::Meta::new(config, namespace)),
        ProviderKind::None => return None,
    };
    Some(match &config.key {
        Some(parts) => {
            let recipe = recipe::Recipe::new(namespace, parts, config.events.as_deref());
            Arc::new(recipe::WithRecipe { preset, recipe })
        }
        None => preset,
    })
}
