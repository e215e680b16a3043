//! Whether a delivery is Meta's, and the signatures of its parts.

use bytes::Bytes;
use http::HeaderMap;

use super::*;
use crate::config::ProviderKind;

const BODY: &[u8] = br#"{"object":"page","entry":[]}"#;

fn meta(verify: Verify, secrets: &[&str]) -> Meta {
    let secrets = secrets.iter().map(|secret| Secret::new(*secret)).collect();
    Meta::new(&config::Provider { kind: ProviderKind::Meta, secrets, verify, key: None, events: None }, "meta")
}

fn headers(headers: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    map
}

fn verify(meta: &Meta, headers: &HeaderMap) -> Result<Verified, AuthFailure> {
    let delivery = Delivery { path: "/", query: "", headers, body: &Bytes::from_static(BODY) };
    meta.verify(&delivery, SystemTime::UNIX_EPOCH)
}

#[test]
fn only_the_sha256_signature_counts_and_only_once() {
    let meta = meta(Verify::Preset, &["one", "two"]);
    let by = |secret: &str| scheme(HmacAlgorithm::Sha256).sign(&Secret::new(secret), &[BODY]);
    let legacy = scheme(HmacAlgorithm::Sha1).sign(&Secret::new("one"), &[BODY]);
    for (received, expected) in [
        (headers(&[(SIGNATURE, &by("one"))]), Ok(Verified::BySecret(0))),
        (headers(&[(SIGNATURE, &by("two")), (LEGACY_SIGNATURE, "sha1=00")]), Ok(Verified::BySecret(1))),
        (headers(&[(SIGNATURE, &by("three"))]), Err(AuthFailure::Mismatch)),
        (headers(&[]), Err(AuthFailure::Missing)),
        (headers(&[(LEGACY_SIGNATURE, &legacy)]), Err(AuthFailure::Missing)),
        (headers(&[(SIGNATURE, &by("one")), (SIGNATURE, &by("one"))]), Err(AuthFailure::Missing)),
        (headers(&[(SIGNATURE, &legacy)]), Err(AuthFailure::Malformed)),
        (headers(&[(SIGNATURE, "sha256=xy")]), Err(AuthFailure::Malformed)),
    ] {
        assert_eq!(verify(&meta, &received), expected, "{received:?}");
    }
}

#[test]
fn nothing_is_checked_under_verify_off_and_nothing_signed() {
    let meta = meta(Verify::Off, &[]);
    let received = headers(&[(SIGNATURE, "sha256=00")]);
    assert_eq!(verify(&meta, &received), Ok(Verified::NotChecked));
    let delivery = Delivery { path: "/", query: "", headers: &received, body: &Bytes::from_static(BODY) };
    assert!(meta.sign(&delivery, Verified::NotChecked, b"{}").is_empty());
}

#[test]
fn every_signature_that_came_is_renewed_with_the_secret_that_verified() {
    let meta = meta(Verify::Preset, &["one", "two"]);
    let sha256 = (SIGNATURE, scheme(HmacAlgorithm::Sha256).sign(&Secret::new("two"), &[b"{}"]));
    let sha1 = (LEGACY_SIGNATURE, scheme(HmacAlgorithm::Sha1).sign(&Secret::new("two"), &[b"{}"]));
    for (received, expected) in [
        (headers(&[(SIGNATURE, "x")]), vec![sha256.clone()]),
        (headers(&[(LEGACY_SIGNATURE, "x"), (SIGNATURE, "x")]), vec![sha256, sha1]),
    ] {
        let delivery = Delivery { path: "/", query: "", headers: &received, body: &Bytes::from_static(BODY) };
        let renewed = meta.sign(&delivery, Verified::BySecret(1), b"{}");
        let renewed: Vec<_> =
            renewed.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap().to_owned())).collect();
        assert_eq!(renewed, expected);
    }
}
