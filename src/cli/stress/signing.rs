//! Signing a delivery as a provider would, now.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hookonce::config::{self, ProviderKind, Secret, Verify};
use hookonce::provider::{self, Delivery, Verified};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::cli::Failure;

/// A provider whose scheme is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signer(ProviderKind);

impl Signer {
    pub fn parse(text: &str) -> Result<Self, String> {
        [ProviderKind::Stripe, ProviderKind::Hotmart, ProviderKind::Meta]
            .into_iter()
            .find(|kind| kind.label() == text)
            .map(Self)
            .ok_or_else(|| {
                "must be `stripe`, `hotmart` or `meta`; what others sign with can be given by --header".to_owned()
            })
    }

    /// The headers that prove `body`.
    pub fn sign(self, secret: &str, body: &[u8]) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
        let unfit = || Failure::new("the secret cannot stand in a header");
        let mut headers = HeaderMap::new();
        let name = match self.0 {
            ProviderKind::Hotmart => {
                let token = HeaderValue::from_str(secret).map_err(|_| unfit())?;
                return Ok(vec![(HeaderName::from_static("x-hotmart-hottok"), token)]);
            }
            ProviderKind::Meta => HeaderName::from_static("x-hub-signature-256"),
            _ => HeaderName::from_static("stripe-signature"),
        };
        // Providers renew the signature that a delivery has: this one has the time, and nothing signed yet.
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        headers.insert(name, HeaderValue::from_str(&format!("t={seconds},v1=")).map_err(|_| unfit())?);
        let config = config::Provider {
            kind: self.0,
            secrets: vec![Secret::new(secret)],
            verify: Verify::Preset,
            key: None,
            events: None,
        };
        let provider = provider::build(&config, self.0.label()).ok_or_else(unfit)?;
        let delivery = Delivery { path: "/", query: "", headers: &headers, body: &Bytes::new() };
        Ok(provider.sign(&delivery, Verified::BySecret(0), body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_authentic() {
        let body = br#"{"id":"evt_1"}"#;
        for name in ["stripe", "hotmart", "meta"] {
            let signer = Signer::parse(name).expect("a provider");
            let headers: HeaderMap = signer.sign("s3cret", body).expect("signed").into_iter().collect();
            let verify = |secret: &str| {
                let secrets = vec![Secret::new(secret)];
                let config =
                    config::Provider { kind: signer.0, secrets, verify: Verify::Preset, key: None, events: None };
                let provider = provider::build(&config, name).expect("a provider");
                let delivery = Delivery { path: "/", query: "", headers: &headers, body: &body.as_slice().into() };
                provider.verify(&delivery, SystemTime::now())
            };
            assert_eq!(verify("s3cret"), Ok(Verified::BySecret(0)), "{name}");
            assert!(verify("another").is_err(), "{name}");
        }
        assert!(Signer::parse("generic").is_err());
    }
}
