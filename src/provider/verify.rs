//! The route's `verify` in each of its forms, for the providers that leave the choice to the operator.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::query;
use super::signature::{HmacScheme, matching_token, single_header};
use super::{AuthFailure, Delivery, Verified};
use crate::config::{Encoding, HmacAlgorithm, Place, Secret, Verify};

/// One form of `verify`, with the route's secrets.
#[derive(Debug)]
pub(super) struct Verifier {
    form: Form,
    secrets: Vec<Secret>,
}

#[derive(Debug)]
enum Form {
    Off,
    Token(Place),
    Hmac(HmacScheme, Place),
    Jwt {
        leeway: Duration,
    },
    /// A form had to be said and was not. The configuration's check refuses that; without it, nobody is authentic.
    Unsaid,
}

impl Verifier {
    pub(super) fn new(verify: &Verify, secrets: &[Secret]) -> Self {
        let form = match verify {
            Verify::Preset => Form::Unsaid,
            Verify::Off => Form::Off,
            Verify::Token(place) => Form::Token(place.clone()),
            Verify::Hmac { algorithm, signature, encoding, prefix } => Form::Hmac(
                HmacScheme { algorithm: *algorithm, encoding: *encoding, prefix: prefix.clone() },
                signature.clone(),
            ),
            Verify::Jwt { leeway } => Form::Jwt { leeway: *leeway },
        };
        Self { form, secrets: secrets.to_vec() }
    }

    pub(super) fn verify(&self, delivery: &Delivery<'_>, now: SystemTime) -> Result<Verified, AuthFailure> {
        let index = match &self.form {
            Form::Off => return Ok(Verified::NotChecked),
            Form::Unsaid => return Err(AuthFailure::Missing),
            Form::Token(place) => matching_token(&self.secrets, &find(place, delivery)?)?,
            Form::Hmac(scheme, place) => {
                scheme.verify(&self.secrets, &find(place, delivery)?, &[delivery.body.as_ref()])?
            }
            Form::Jwt { leeway } => verify_jwt(&self.secrets, delivery, now, *leeway)?,
        };
        Ok(Verified::BySecret(index))
    }

    /// The signature header for another body, where the form has one.
    pub(super) fn sign(&self, verified: Verified, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        let (Form::Hmac(scheme, Place::Header(name)), Verified::BySecret(index)) = (&self.form, verified) else {
            return Vec::new();
        };
        let header = self.secrets.get(index).and_then(|secret| {
            let value = HeaderValue::try_from(scheme.sign(secret, &[body])).ok()?;
            Some((HeaderName::try_from(name).ok()?, value))
        });
        header.into_iter().collect()
    }
}

fn find<'a>(place: &'a Place, delivery: &Delivery<'a>) -> Result<Cow<'a, str>, AuthFailure> {
    match place {
        Place::Header(name) => single_header(delivery.headers, name).map(Cow::Borrowed),
        Place::Query(name) => query::single(delivery.query, name),
    }
}

#[derive(Deserialize)]
struct JoseHeader {
    alg: String,
    /// Extensions that must be understood (RFC 7515, 4.1.11); none is.
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    exp: f64,
    nbf: Option<f64>,
}

/// A JSON Web Token in `Authorization: Bearer` (RFC 7519), signed with HS256 and nothing else: a token that names its
/// own algorithm could otherwise choose `none`. The signature is judged before the claims are read.
fn verify_jwt(
    secrets: &[Secret],
    delivery: &Delivery<'_>,
    now: SystemTime,
    leeway: Duration,
) -> Result<usize, AuthFailure> {
    let (scheme, token) =
        single_header(delivery.headers, "authorization")?.split_once(' ').ok_or(AuthFailure::Malformed)?;
    let (signed, signature) = token.trim_start().rsplit_once('.').ok_or(AuthFailure::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(AuthFailure::Malformed)?;
    let header: JoseHeader = decode(header)?;
    if !scheme.eq_ignore_ascii_case("bearer") || header.alg != "HS256" || header.crit.is_some() {
        return Err(AuthFailure::Malformed);
    }
    let code = BASE64URL_NOPAD.decode(signature.as_bytes()).map_err(|_| AuthFailure::Malformed)?;
    let hs256 = HmacScheme { algorithm: HmacAlgorithm::Sha256, encoding: Encoding::Hex, prefix: String::new() };
    let index = hs256.verify(secrets, &HEXLOWER.encode(&code), &[signed.as_bytes()])?;

    let claims: Claims = decode(claims)?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let leeway = leeway.as_secs_f64();
    let over = now > claims.exp + leeway;
    let not_yet = claims.nbf.is_some_and(|from| now < from - leeway);
    if over || not_yet { Err(AuthFailure::Stale) } else { Ok(index) }
}

fn decode<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, AuthFailure> {
    let json = BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| AuthFailure::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| AuthFailure::Malformed)
}
