//! The `verify` forms: tokens, HMACs, JSON Web Tokens.

use super::*;
use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use hookonce::config::{Encoding, HmacAlgorithm, Place};
use sha2::Sha256;

fn verifying(verify: Verify, secrets: &[&str]) -> Arc<dyn Provider> {
    let secrets = secrets.iter().map(|secret| Secret::new(*secret)).collect();
    build(&config::Provider { secrets, verify, ..config(ProviderKind::Generic) })
}

fn hmac(algorithm: HmacAlgorithm, encoding: Encoding, prefix: &str, signature: Place) -> Verify {
    Verify::Hmac { algorithm, signature, encoding, prefix: prefix.to_owned() }
}

#[test]
fn a_token_verifies_from_header_and_query() {
    let header = verifying(Verify::Token(Place::Header("X-Token".to_owned())), &["one", "two words+"]);
    let query = verifying(Verify::Token(Place::Query("token".to_owned())), &["one", "two words+"]);
    let in_header = |token: &str| Sent::body("{}").header("x-token", token).verify(&*header);
    let in_query = |token: &str| Sent::body("{}").query(&format!("a=1&token={token}")).verify(&*query);
    assert_eq!(in_header("one"), Ok(Verified::BySecret(0)));
    assert_eq!(in_header("two words+"), Ok(Verified::BySecret(1)));
    assert_eq!(in_header("One"), Err(AuthFailure::Mismatch));
    assert_eq!(in_query("one"), Ok(Verified::BySecret(0)));
    assert_eq!(in_query("two%20words%2B"), Ok(Verified::BySecret(1)));
    assert_eq!(in_query("two"), Err(AuthFailure::Mismatch));
    assert_eq!(in_query("one&token=one"), Err(AuthFailure::Missing), "twice");
    assert_eq!(Sent::body("{}").verify(&*header), Err(AuthFailure::Missing));
    assert_eq!(Sent::body("{}").verify(&*query), Err(AuthFailure::Missing));
}

#[test]
fn published_hmac_vectors_verify_over_the_raw_body() {
    const BODY: &str = r#"{"id":"evt_test_webhook","object":"event"}"#;
    let header = || Place::Header("X-Signature".to_owned());
    let github = verifying(
        hmac(HmacAlgorithm::Sha256, Encoding::Hex, "sha256=", header()),
        &["another", "It's a Secret to Everybody"],
    );
    let shopify = verifying(hmac(HmacAlgorithm::Sha256, Encoding::Base64, "", header()), &["hush"]);
    let kiwify =
        verifying(hmac(HmacAlgorithm::Sha1, Encoding::Hex, "", Place::Query("signature".to_owned())), &["token"]);

    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let sent = Sent::body("Hello, World!").header("X-Signature", signature);
    assert_eq!(sent.verify(&*github), Ok(Verified::BySecret(1)));
    let renewed = github.sign(&sent.delivery(), Verified::BySecret(1), b"Hello, World!");
    assert_eq!(renewed, [("x-signature".parse().unwrap(), signature.parse().unwrap())]);

    let sent = Sent::body(BODY).header("X-Signature", "sc09ox6/ccNcTmXNHMwNZCGEwOIRL5Kb2Fuxjo74LiA=");
    assert_eq!(sent.verify(&*shopify), Ok(Verified::BySecret(0)));
    let sent = Sent::body(BODY).query("signature=f61a02b1cf68126af309287bb65c33a56bf319cb");
    assert_eq!(sent.verify(&*kiwify), Ok(Verified::BySecret(0)));
    let forged = Sent { body: "{}".into(), ..sent.clone() };
    assert_eq!(forged.verify(&*kiwify), Err(AuthFailure::Mismatch));
    assert_eq!(Sent::body(BODY).verify(&*kiwify), Err(AuthFailure::Missing));
    assert!(kiwify.sign(&sent.delivery(), Verified::BySecret(0), b"{}").is_empty(), "a query is not renewed");
}

fn token(secret: &str, header: &str, claims: &str) -> String {
    let signed = [header, claims].map(|part| BASE64URL_NOPAD.encode(part.as_bytes())).join(".");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(signed.as_bytes());
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&mac.finalize().into_bytes()))
}

#[test]
fn a_json_web_token_verifies_while_it_is_fresh_enough() {
    const LEEWAY: u64 = 1800;
    let provider = verifying(Verify::Jwt { leeway: Duration::from_secs(LEEWAY) }, &["old", "evolution-key"]);
    const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
    let verify = |bearer: &str| Sent::body("{}").header("Authorization", bearer).verify(&*provider);
    let claims = |exp: i64| format!(r#"{{"iat":1,"exp":{},"app":"evolution"}}"#, NOW as i64 + exp);
    let good = token("evolution-key", HS256, &claims(600));

    assert_eq!(verify(&format!("Bearer {good}")), Ok(Verified::BySecret(1)));
    assert_eq!(verify(&format!("bearer {good}")), Ok(Verified::BySecret(1)));
    assert_eq!(verify(&format!("Basic {good}")), Err(AuthFailure::Malformed));
    assert_eq!(verify(&good), Err(AuthFailure::Malformed));
    assert_eq!(Sent::body("{}").verify(&*provider), Err(AuthFailure::Missing));

    for (secret, header, claims, expected) in [
        ("old", HS256, claims(600), Ok(Verified::BySecret(0))),
        ("evolution-key", HS256, claims(-(LEEWAY as i64)), Ok(Verified::BySecret(1))),
        ("evolution-key", HS256, claims(-(LEEWAY as i64) - 1), Err(AuthFailure::Stale)),
        ("evolution-key", HS256, format!(r#"{{"exp":{}.5}}"#, NOW), Ok(Verified::BySecret(1))),
        ("evolution-key", HS256, format!(r#"{{"exp":{},"nbf":{}}}"#, NOW, NOW + LEEWAY), Ok(Verified::BySecret(1))),
        ("evolution-key", HS256, format!(r#"{{"exp":{},"nbf":{}}}"#, NOW, NOW + LEEWAY + 1), Err(AuthFailure::Stale)),
        ("forger", HS256, claims(600), Err(AuthFailure::Mismatch)),
        ("forger", HS256, claims(-86_400), Err(AuthFailure::Mismatch)),
        ("evolution-key", HS256, r#"{"iat":1}"#.to_owned(), Err(AuthFailure::Malformed)),
        ("evolution-key", HS256, r#"{"exp":"soon"}"#.to_owned(), Err(AuthFailure::Malformed)),
        ("evolution-key", HS256, "exp".to_owned(), Err(AuthFailure::Malformed)),
        ("evolution-key", r#"{"alg":"none"}"#, claims(600), Err(AuthFailure::Malformed)),
        ("evolution-key", r#"{"alg":"hs256"}"#, claims(600), Err(AuthFailure::Malformed)),
        ("evolution-key", r#"{"typ":"JWT"}"#, claims(600), Err(AuthFailure::Malformed)),
        ("evolution-key", r#"{"alg":"HS256","crit":["b64"],"b64":false}"#, claims(600), Err(AuthFailure::Malformed)),
    ] {
        let bearer = format!("Bearer {}", token(secret, header, &claims));
        assert_eq!(verify(&bearer), expected, "{secret} {header} {claims}");
    }

    let (signed, _) = good.rsplit_once('.').unwrap();
    assert_eq!(verify(&format!("Bearer {signed}.")), Err(AuthFailure::Mismatch), "no signature");
    assert_eq!(verify(&format!("Bearer {signed}")), Err(AuthFailure::Malformed), "two parts");
    assert_eq!(verify(&format!("Bearer {good}=")), Err(AuthFailure::Malformed), "padding");
    assert_eq!(verify("Bearer "), Err(AuthFailure::Malformed));
}
