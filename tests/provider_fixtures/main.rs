//! What each provider's file promises, row by row: which deliveries are authentic, which events are in them, and their
//! exact keys.
//!
//! One module per provider, each a table over `tests/fixtures/<provider>/`. The fixtures are written by hand with
//! invented ids.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its fixture is not what it should be")]

mod damaged;
mod evolution;
mod generic;
mod hotmart;
mod marcha;
mod meta;
mod meta_batches;
mod samples;
mod stripe;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use hookonce::config::{self, ProviderKind, Secret, Verify};
use hookonce::event::{Event, Unkeyed};
use hookonce::provider::{self, AuthFailure, Delivery, Provider, Verified};
use http::{HeaderMap, HeaderName, HeaderValue};

/// When the tests' deliveries arrive.
const NOW: u64 = 1_772_355_600;

/// A request as a provider sends it.
#[derive(Clone, Default)]
struct Sent {
    query: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Sent {
    fn body(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    fn fixture(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        Self::body(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn query(mut self, query: &str) -> Self {
        self.query = query.to_owned();
        self
    }

    fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    fn delivery(&self) -> Delivery<'_> {
        Delivery { path: "/hook", query: &self.query, headers: &self.headers, body: &self.body }
    }

    fn verify(&self, provider: &dyn Provider) -> Result<Verified, AuthFailure> {
        self.verify_at(provider, NOW)
    }

    fn verify_at(&self, provider: &dyn Provider, now: u64) -> Result<Verified, AuthFailure> {
        provider.verify(&self.delivery(), UNIX_EPOCH + Duration::from_secs(now))
    }

    fn events(&self, provider: &dyn Provider) -> Vec<Event> {
        provider.extract(&self.delivery()).events
    }

    /// Each event's kind and key, or the operator's text for why it has none.
    fn found(&self, provider: &dyn Provider) -> Vec<(String, Result<String, String>)> {
        let shown = |event: Event| {
            let key = event.key.map(|key| key.to_string()).map_err(|reason| reason.to_string());
            (event.kind.into_owned(), key)
        };
        self.events(provider).into_iter().map(shown).collect()
    }

    /// The key of a delivery of one event.
    fn key(&self, provider: &dyn Provider) -> Result<String, Unkeyed> {
        let mut events = self.events(provider);
        let event = events.pop().expect("there always is an event");
        assert!(events.is_empty(), "more than one event");
        event.key.map(|key| key.to_string())
    }
}

/// What a route without further settings says of its provider.
fn config(kind: ProviderKind) -> config::Provider {
    config::Provider { kind, secrets: vec![Secret::new("secret")], verify: Verify::Preset, key: None, events: None }
}

/// The provider of such a route; its namespace is the provider's word.
fn plain(kind: ProviderKind) -> Arc<dyn Provider> {
    build(&config(kind))
}

fn build(config: &config::Provider) -> Arc<dyn Provider> {
    provider::build(config, config.kind.label()).expect("the kind has a provider")
}

fn one(kind: &str, key: &str) -> Vec<(String, Result<String, String>)> {
    vec![(kind.to_owned(), Ok(key.to_owned()))]
}

fn unkeyed(kind: &str, reason: &str) -> Vec<(String, Result<String, String>)> {
    vec![(kind.to_owned(), Err(reason.to_owned()))]
}

#[test]
fn bodies_without_json_are_one_event_without_a_key() {
    for kind in [ProviderKind::Stripe, ProviderKind::Hotmart, ProviderKind::Evolution, ProviderKind::Marcha] {
        let provider = plain(kind);
        for (body, reason) in [("", Unkeyed::EmptyBody), (" \n", Unkeyed::EmptyBody), ("id=1", Unkeyed::NotJson)] {
            assert_eq!(Sent::body(body).key(&*provider), Err(reason), "{} {body:?}", kind.label());
        }
        for body in ["null", "[]", "{}", "7", "\"text\""] {
            let key = Sent::body(body).key(&*provider);
            assert!(matches!(key, Err(Unkeyed::Part(_))), "{} {body}: {key:?}", kind.label());
        }
    }
}

#[test]
fn every_provider_says_what_its_keys_identify() {
    for kind in [
        ProviderKind::Stripe,
        ProviderKind::Hotmart,
        ProviderKind::Evolution,
        ProviderKind::Marcha,
        ProviderKind::Meta,
        ProviderKind::Generic,
    ] {
        assert!(plain(kind).identifies().len() > 10, "{}", kind.label());
    }
    assert!(provider::build(&config(ProviderKind::None), "passed").is_none());
}

#[test]
fn verify_off_looks_at_nothing() {
    for kind in [
        ProviderKind::Stripe,
        ProviderKind::Hotmart,
        ProviderKind::Evolution,
        ProviderKind::Marcha,
        ProviderKind::Generic,
    ] {
        let provider = build(&config::Provider { verify: Verify::Off, ..config(kind) });
        assert_eq!(Sent::body("{}").verify(&*provider), Ok(Verified::NotChecked), "{}", kind.label());
        let strict = plain(kind);
        assert_eq!(Sent::body("{}").verify(&*strict), Err(AuthFailure::Missing), "{}", kind.label());
    }
}
