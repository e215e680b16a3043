//! Signatures and tokens: the parts of verification that several providers share.
//!
//! Whatever depends on a secret is compared in constant time. A failure says only which of four reasons it has, never
//! a value.

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::AuthFailure;
use crate::config::{Encoding, HmacAlgorithm, Secret};

/// An HMAC over some bytes, written as text after a fixed prefix, such as `sha256=` and hexadecimal digits.
#[derive(Clone, Debug)]
pub(super) struct HmacScheme {
    pub(super) algorithm: HmacAlgorithm,
    pub(super) encoding: Encoding,
    pub(super) prefix: String,
}

impl HmacScheme {
    /// The index of the secret that made `received` over the concatenated `message`.
    pub(super) fn verify(&self, secrets: &[Secret], received: &str, message: &[&[u8]]) -> Result<usize, AuthFailure> {
        let encoded = received.strip_prefix(&self.prefix).ok_or(AuthFailure::Malformed)?;
        let received = match self.encoding {
            Encoding::Hex => HEXLOWER_PERMISSIVE.decode(encoded.as_bytes()),
            Encoding::Base64 => BASE64.decode(encoded.as_bytes()),
        }
        .map_err(|_| AuthFailure::Malformed)?;
        secrets
            .iter()
            .position(|secret| self.code(secret, message).is_some_and(|code| code.ct_eq(&received).into()))
            .ok_or(AuthFailure::Mismatch)
    }

    /// The text that [`verify`](Self::verify) accepts for this secret and message.
    pub(super) fn sign(&self, secret: &Secret, message: &[&[u8]]) -> String {
        // HMAC takes keys of every length, so there always is a code; an empty one would be refused by every verifier.
        let code = self.code(secret, message).unwrap_or_default();
        let encoded = match self.encoding {
            Encoding::Hex => HEXLOWER.encode(&code),
            Encoding::Base64 => BASE64.encode(&code),
        };
        format!("{}{encoded}", self.prefix)
    }

    fn code(&self, secret: &Secret, message: &[&[u8]]) -> Option<Vec<u8>> {
        match self.algorithm {
            HmacAlgorithm::Sha1 => code::<Hmac<Sha1>>(secret, message),
            HmacAlgorithm::Sha256 => code::<Hmac<Sha256>>(secret, message),
        }
    }
}

fn code<M: Mac + KeyInit>(secret: &Secret, message: &[&[u8]]) -> Option<Vec<u8>> {
    let mut mac = <M as KeyInit>::new_from_slice(secret.reveal().as_bytes()).ok()?;
    for piece in message {
        mac.update(piece);
    }
    Some(mac.finalize().into_bytes().to_vec())
}

/// The index of the secret that `received` is. Hashes are compared, so that the time tells nothing about lengths
/// either.
pub(super) fn matching_token(secrets: &[Secret], received: &str) -> Result<usize, AuthFailure> {
    if received.is_empty() {
        return Err(AuthFailure::Missing);
    }
    let received = Sha256::digest(received.as_bytes());
    secrets
        .iter()
        .position(|secret| Sha256::digest(secret.reveal().as_bytes()).ct_eq(&received).into())
        .ok_or(AuthFailure::Mismatch)
}

/// The value of a header that must be there once. Of two, the gateway and the upstream could each believe another, so
/// twice is as bad as missing.
pub(super) fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, AuthFailure> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => std::str::from_utf8(value.as_bytes()).map_err(|_| AuthFailure::Malformed),
        _ => Err(AuthFailure::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"evt_test_webhook","object":"event"}"#;

    fn scheme(algorithm: HmacAlgorithm, encoding: Encoding, prefix: &str) -> HmacScheme {
        HmacScheme { algorithm, encoding, prefix: prefix.to_owned() }
    }

    #[test]
    fn published_vectors_verify_and_are_made_again() {
        let table = [
            (
                scheme(HmacAlgorithm::Sha256, Encoding::Hex, "sha256="),
                "It's a Secret to Everybody",
                b"Hello, World!".as_slice(),
                "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            ),
            (
                scheme(HmacAlgorithm::Sha256, Encoding::Base64, ""),
                "hush",
                BODY,
                "sc09ox6/ccNcTmXNHMwNZCGEwOIRL5Kb2Fuxjo74LiA=",
            ),
            (scheme(HmacAlgorithm::Sha1, Encoding::Hex, ""), "token", BODY, "f61a02b1cf68126af309287bb65c33a56bf319cb"),
        ];
        for (scheme, secret, message, signature) in table {
            let secrets = [Secret::new("another"), Secret::new(secret)];
            assert_eq!(scheme.verify(&secrets, signature, &[message]), Ok(1), "{signature}");
            assert_eq!(scheme.sign(&secrets[1], &[message]), signature);
            let (start, end) = message.split_at(3);
            assert_eq!(scheme.verify(&secrets, signature, &[start, end]), Ok(1), "{signature} over pieces");
        }
    }

    #[test]
    fn a_signature_fails_for_the_right_reason() {
        let scheme = scheme(HmacAlgorithm::Sha256, Encoding::Hex, "sha256=");
        let secrets = [Secret::new("one"), Secret::new("two")];
        let good = scheme.sign(&secrets[1], &[BODY]);
        let verify = |received: &str| scheme.verify(&secrets, received, &[BODY]);
        assert_eq!(verify(&good), Ok(1));
        assert_eq!(verify(&format!("sha256={}", good["sha256=".len()..].to_uppercase())), Ok(1), "either case");
        assert_eq!(verify(&good["sha256=".len()..]), Err(AuthFailure::Malformed), "no prefix");
        assert_eq!(verify("sha256=zz"), Err(AuthFailure::Malformed), "no hexadecimal");
        assert_eq!(verify("sha256="), Err(AuthFailure::Mismatch), "empty");
        assert_eq!(verify(&good[..good.len() - 2]), Err(AuthFailure::Mismatch), "cut short");
        assert_eq!(scheme.verify(&secrets[..1], &good, &[BODY]), Err(AuthFailure::Mismatch), "another secret");
        assert_eq!(scheme.verify(&secrets, &good, &[BODY, b" "]), Err(AuthFailure::Mismatch), "another body");
    }

    #[test]
    fn a_token_is_compared_whole() {
        let secrets = [Secret::new("alpha"), Secret::new("beta")];
        for (received, expected) in [
            ("alpha", Ok(0)),
            ("beta", Ok(1)),
            ("bet", Err(AuthFailure::Mismatch)),
            ("betaa", Err(AuthFailure::Mismatch)),
            ("", Err(AuthFailure::Missing)),
        ] {
            assert_eq!(matching_token(&secrets, received), expected, "{received}");
        }
    }

    #[test]
    fn a_header_counts_only_once_and_as_text() {
        let mut headers = HeaderMap::new();
        assert_eq!(single_header(&headers, "X-Token"), Err(AuthFailure::Missing));
        headers.append("x-token", "one".parse().unwrap());
        assert_eq!(single_header(&headers, "X-Token"), Ok("one"));
        headers.append("x-token", "one".parse().unwrap());
        assert_eq!(single_header(&headers, "X-Token"), Err(AuthFailure::Missing));
        headers.insert("x-token", http::HeaderValue::from_bytes(&[0xff]).unwrap());
        assert_eq!(single_header(&headers, "X-Token"), Err(AuthFailure::Malformed));
    }
}
